//! Single messages: read and written in one format, and through another.

use bough_session::{
    AgentMessage, Format, Loss, LossReason, RawJson, Role, StopReason, conversation_to_format,
    entry_to_format,
};
use serde_json::Value;

use crate::facts::Facts;
use crate::samples::SAMPLES;
use crate::{entry_in, entry_of, message_of};

#[test]
fn what_came_in_a_format_is_given_back_byte_for_byte() {
    for sample in SAMPLES {
        let entry = entry_in(sample.format, "e", sample.json);
        let mapped = entry_to_format(&entry, sample.format).unwrap();
        assert_eq!(mapped.losses, []);
        let [json] = mapped.messages.as_slice() else { panic!("{}", sample.json) };
        assert_eq!(json.get(), sample.json);
    }
}

#[test]
fn a_format_through_the_canonical_message_loses_nothing() {
    for sample in SAMPLES {
        let message = message_of(sample.format, &RawJson::parse(sample.json).unwrap());
        let mapped = sample.format.from_canonical(&message);
        assert_eq!(mapped.losses, [], "{}", sample.json);
        if !sample.is_usual {
            continue;
        }
        let [json] = mapped.messages.as_slice() else { panic!("{}", sample.json) };
        let expected: Value = serde_json::from_str(sample.json).unwrap();
        assert_eq!(json.value(), expected, "{}", sample.json);
    }
}

/// The canonical message is sent as JSON, so nothing may depend on what is not in it.
#[test]
fn the_canonical_message_is_whole_as_json() {
    for sample in SAMPLES {
        let message = message_of(sample.format, &RawJson::parse(sample.json).unwrap());
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<AgentMessage>(&text).unwrap(), message, "{text}");
    }
}

/// The messages that a canonical message is in a format, read again.
pub(crate) fn through(message: &AgentMessage, format: Format) -> Vec<AgentMessage> {
    let mapped = format.from_canonical(message);
    mapped.messages.iter().map(|json| message_of(format, json)).collect()
}

/// Checks one message through one format.
#[track_caller]
pub(crate) fn check_through(message: &AgentMessage, from: Format, to: Format) {
    let there = through(message, to);
    let formats = [from, to];
    let mut before = Facts::of(std::slice::from_ref(message), &formats);
    let back: Vec<AgentMessage> = if there.len() == 1 {
        there.iter().flat_map(|message| through(message, from)).collect()
    } else {
        // Several messages there become one again in a conversation, which has no place for usage.
        before.usage = (0, 0, 0);
        let entries: Vec<_> = there.iter().map(|message| entry_of("e", message.clone())).collect();
        let back = conversation_to_format(&entries, from);
        back.messages.iter().map(|json| message_of(from, json)).collect()
    };
    let mut after = Facts::of(&back, &formats);
    if there.len() > 1 {
        after.usage = (0, 0, 0);
    }
    assert_eq!(after, before, "{from} to {to}: {there:?}");
}

#[test]
fn every_sample_through_every_format_keeps_what_matters() {
    for sample in SAMPLES {
        let message = message_of(sample.format, &RawJson::parse(sample.json).unwrap());
        for to in Format::ALL {
            check_through(&message, sample.format, to);
        }
    }
}

#[test]
fn losses_are_named_by_their_place() {
    let sample = SAMPLES.iter().find(|sample| sample.json.contains("msg_01")).unwrap();
    let message = message_of(sample.format, &RawJson::parse(sample.json).unwrap());
    let mapped = Format::OpenaiChat.from_canonical(&message);
    let pointers: Vec<&str> = mapped.losses.iter().map(|loss| loss.pointer.as_str()).collect();
    for expected in [
        "/content/0",
        "/content/1",
        "/content/2/anthropic/citations",
        "/usage/cache_write",
        "/usage/anthropic/service_tier",
        "/anthropic/id",
        "/provider",
    ] {
        assert!(pointers.contains(&expected), "{expected} in {pointers:?}");
    }
    let json = serde_json::to_value(&message).unwrap();
    for pointer in pointers {
        assert!(json.pointer(pointer).is_some(), "{pointer} in {json}");
    }
}

/// A call without an id, as there were before tools, finds its result in the other formats.
#[test]
fn a_call_without_an_id_is_named_by_its_function() {
    let call =
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#;
    let result = r#"{"role":"function","name":"f","content":"15"}"#;
    let read = |json: &str| message_of(Format::OpenaiChat, &RawJson::parse(json).unwrap());
    let AgentMessage::Assistant(reply) = read(call) else { panic!("not a reply") };
    assert_eq!(reply.stop_reason, StopReason::FunctionCall);
    let calls = Facts::of(&[AgentMessage::Assistant(reply), read(result)], &[]);
    assert_eq!(calls.calls, [("f".to_owned(), "f".to_owned(), serde_json::json!({}))]);
    assert_eq!(calls.results["f"].0, "15");
}

/// What a reply speaks, and a picture that it made, are there in every format.
#[test]
fn what_a_reply_says_in_another_way_is_content() {
    let read = |format: Format, json: &str| message_of(format, &RawJson::parse(json).unwrap());
    let spoken = r#"{"role":"assistant","content":null,"audio":{"id":"a","transcript":"said"}}"#;
    assert_eq!(read(Format::OpenaiChat, spoken).text(), "said");
    let made =
        r#"{"type":"image_generation_call","id":"i","status":"completed","result":"UklGRg=="}"#;
    let facts = Facts::of(&[read(Format::OpenaiResponses, made)], &[]);
    assert_eq!(facts.images, ["image/png;UklGRg=="]);
}

/// A reply that was blocked is an error, and the figures of the response count.
#[test]
fn a_reply_of_gemini_without_content_is_a_message() {
    let read = |json: &str| message_of(Format::Gemini, &RawJson::parse(json).unwrap());
    let of = |message: AgentMessage| match message {
        AgentMessage::Assistant(reply) => {
            (reply.stop_reason, reply.model, reply.usage.and_then(|usage| usage.input))
        }
        other => panic!("{other:?}"),
    };
    let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":9},"modelVersion":"g"}"#;
    assert_eq!(of(read(blocked)), (StopReason::Error, "g".to_owned(), Some(9)));
    let thought = r#"{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":9},"modelVersion":"g"}"#;
    assert_eq!(of(read(thought)), (StopReason::Length, "g".to_owned(), Some(9)));
    let python = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finish_reason":"MAX_TOKENS"}],"usage_metadata":{"prompt_token_count":9},"model_version":"g"}"#;
    assert_eq!(of(read(python)), (StopReason::Length, "g".to_owned(), Some(9)));
}

/// A tool part is a call and its result. One that stands for the result alone says so: a call of its own would be a second one
/// with the same id, which the APIs refuse.
#[test]
fn a_result_through_ai_sdk_is_no_second_call() {
    let read = |format: Format, json: &str| message_of(format, &RawJson::parse(json).unwrap());
    let one = r#"{"role":"tool","tool_call_id":"c","content":"15 degrees"}"#;
    let two = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2","is_error":true},{"type":"text","text":"go on"}]}"#;
    for (format, json) in [(Format::OpenaiChat, one), (Format::Anthropic, two)] {
        let message = read(format, json);
        let there = through(&message, Format::AiSdk);
        let formats = [format, Format::AiSdk];
        let expected = Facts::of(&[message], &formats);
        assert!(expected.calls.is_empty());
        assert_eq!(Facts::of(&there, &formats), expected, "{there:?}");
    }
    let result = through(&read(Format::OpenaiChat, one), Format::AiSdk).remove(0);
    assert_eq!(result.role(), Role::FunctionResult);
    // A part of the application's own with a result is a call, as ever.
    let own = r#"{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"output-available","input":{},"output":"x","callProviderMetadata":{"google":{"thoughtSignature":"s"}}}]}"#;
    assert_eq!(Facts::of(&[read(Format::AiSdk, own)], &[]).calls.len(), 1);
}

/// What a format adds to a message is listed too: a call that nobody made, and figures that nobody reported.
#[test]
fn what_is_invented_is_named() {
    let result = r#"{"type":"function_call_output","call_id":"c","output":"15 degrees"}"#;
    let result = message_of(Format::OpenaiResponses, &RawJson::parse(result).unwrap());
    let reply = r#"{"role":"assistant","content":[{"type":"text","text":"hi"}]}"#;
    let reply = message_of(Format::Anthropic, &RawJson::parse(reply).unwrap());
    for (format, message, pointer) in [
        (Format::AiSdk, &result, "/role"),
        (Format::Pi, &reply, "/usage"),
        (Format::Phi, &reply, "/usage"),
    ] {
        let mapped = format.from_canonical(message);
        let is_named = |loss: &Loss| loss.pointer == pointer && loss.reason == LossReason::Changed;
        assert!(mapped.losses.iter().any(is_named), "{format:?}: {:?}", mapped.losses);
    }
}

#[test]
fn a_signature_stays_with_its_provider() {
    let sample = SAMPLES.iter().find(|sample| sample.json.contains("msg_01")).unwrap();
    let message = message_of(sample.format, &RawJson::parse(sample.json).unwrap());
    let text = |format: Format| format.from_canonical(&message).messages[0].get().to_owned();
    assert!(text(Format::Anthropic).contains("EqQBCgIYAhIM"));
    assert!(text(Format::Pi).contains("EqQBCgIYAhIM"), "pi keeps every provider's");
    for format in [Format::Gemini, Format::OpenaiResponses] {
        assert!(!text(format).contains("EqQBCgIYAhIM"), "{format}");
    }
}
