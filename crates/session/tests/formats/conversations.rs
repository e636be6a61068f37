//! Whole conversations: results are where the format wants them.

use bough_session::{
    AgentMessage, Entry, Format, LossReason, RawJson, StreamTally, context_to_format, context_view,
    conversation_to_format,
};
use serde_json::{Value, json};

use crate::facts::Facts;
use crate::samples::SAMPLES;
use crate::{entry_in, entry_of, message_of};

const QUESTION: &str = r#"{"role":"user","content":"Weather and time?"}"#;
const CALLS: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"tool_use","id":"t1","name":"weather","input":{"city":"Oslo"}},{"type":"tool_use","id":"t2","name":"time","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}"#;
const RESULTS: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"12 C"},{"type":"tool_result","tool_use_id":"t2","content":"noon","is_error":true}]}"#;
const ANSWER: &str = r#"{"role":"assistant","content":[{"type":"text","text":"12 C at noon."}]}"#;
const SYSTEM: &str = r#"{"role":"system","content":"Be brief."}"#;

fn anthropic_path() -> Vec<Entry> {
    let lines = [SYSTEM, QUESTION, CALLS, RESULTS, ANSWER];
    let entry =
        |(index, json): (usize, &&str)| entry_in(Format::Anthropic, &format!("e{index}"), json);
    lines.iter().enumerate().map(entry).collect()
}

fn values(messages: &[RawJson]) -> Value {
    messages.iter().map(RawJson::value).collect()
}

/// What a request of its own API has of a sample: all but the envelope of a reply.
fn without_envelope(format: Format, json: &str) -> Vec<Value> {
    let sample: Value = serde_json::from_str(json).unwrap();
    let (object, kind) = (sample["object"].as_str(), sample["type"].as_str());
    match format {
        Format::Anthropic => {
            vec![json!({"role": sample["role"], "content": sample["content"]})]
        }
        Format::OpenaiChat if object == Some("chat.completion") => {
            vec![sample["choices"][0]["message"].clone()]
        }
        Format::OpenaiResponses if object == Some("response") => {
            sample["output"].as_array().unwrap().clone()
        }
        Format::Gemini if sample.get("parts").is_none() => {
            let content = sample["candidates"][0]["content"].clone();
            if content["parts"].is_null() { Vec::new() } else { vec![content] }
        }
        Format::Pi if kind == Some("message") => vec![sample["message"].clone()],
        _ => vec![sample],
    }
}

#[test]
fn only_the_envelope_of_a_reply_is_taken_off_in_the_own_format() {
    for sample in SAMPLES {
        let conversation =
            conversation_to_format(&[entry_in(sample.format, "e", sample.json)], sample.format);
        let expected = without_envelope(sample.format, sample.json);
        if let Some(system) = conversation.system {
            let own = match sample.format {
                Format::Anthropic => expected[0]["content"].clone(),
                _ => json!({"parts": expected[0]["parts"]}),
            };
            assert_eq!(system.value(), own, "{}", sample.json);
            assert!(conversation.messages.is_empty(), "{}", sample.json);
            continue;
        }
        assert_eq!(values(&conversation.messages), Value::Array(expected), "{}", sample.json);
    }
}

#[test]
fn anthropic_gets_back_what_it_takes() {
    let conversation = conversation_to_format(&anthropic_path(), Format::Anthropic);
    assert_eq!(
        conversation.system.unwrap().value(),
        json!([{"type": "text", "text": "Be brief."}])
    );
    let texts: Vec<&str> = conversation.messages.iter().map(RawJson::get).collect();
    assert_eq!((texts[0], texts[2], texts[3]), (QUESTION, RESULTS, ANSWER));
    // The reply without the members that a request may not have; its content is as it came.
    let whole: Value = serde_json::from_str(CALLS).unwrap();
    assert_eq!(
        conversation.messages[1].value(),
        json!({"role": "assistant", "content": whole["content"]})
    );
    assert!(conversation.losses.iter().all(|loss| loss.reason == LossReason::NotInput));
}

#[test]
fn openai_chat_gets_one_message_a_result() {
    let conversation = conversation_to_format(&anthropic_path(), Format::OpenaiChat);
    assert_eq!(conversation.system, None);
    assert_eq!(
        values(&conversation.messages),
        json!([
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "Weather and time?"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
                {"id": "t2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "name": "weather", "content": [{"type": "text", "text": "12 C"}]},
            {"role": "tool", "tool_call_id": "t2", "name": "time", "content": [{"type": "text", "text": "noon"}]},
            {"role": "assistant", "content": "12 C at noon."},
        ])
    );
    let lost: Vec<_> = conversation
        .losses
        .iter()
        .map(|loss| (loss.entry_id.as_ref().unwrap().as_str(), loss.pointer.as_str()))
        .collect();
    assert!(lost.contains(&("e2", "/content/0")), "the thought: {lost:?}");
    assert!(lost.contains(&("e3", "/content/1/is_error")), "{lost:?}");
}

#[test]
fn openai_responses_gets_items() {
    let conversation = conversation_to_format(&anthropic_path(), Format::OpenaiResponses);
    let kinds: Vec<Value> =
        conversation.messages.iter().map(|item| item.value()["type"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "message",
            "message",
            "reasoning",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "message",
        ]
    );
}

#[test]
fn gemini_gets_the_results_of_a_turn_in_one_content_with_their_names() {
    let conversation = conversation_to_format(&anthropic_path(), Format::Gemini);
    assert_eq!(conversation.system.unwrap().value(), json!({"parts": [{"text": "Be brief."}]}));
    assert_eq!(
        conversation.messages[2].value(),
        json!({"role": "user", "parts": [
            {"functionResponse": {"id": "t1", "name": "weather", "response": {"output": "12 C"}}},
            {"functionResponse": {"id": "t2", "name": "time", "response": {"error": "noon"}}},
        ]})
    );
}

#[test]
fn the_ai_sdk_gets_one_reply() {
    let conversation = conversation_to_format(&anthropic_path(), Format::AiSdk);
    let reply = conversation.messages[2].value();
    assert_eq!(conversation.messages.len(), 3);
    let kinds: Vec<&str> = reply["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["reasoning", "tool-weather", "tool-time", "step-start", "text"]);
    assert_eq!(reply["parts"][1]["output"], "12 C");
    assert_eq!(reply["parts"][2]["state"], "output-error");
}

#[test]
fn results_that_are_entries_of_their_own_are_joined_for_anthropic() {
    let result = |id: &str, text: &str| {
        let mut message = crate::common::result(text);
        let AgentMessage::FunctionResult(said) = &mut message else { panic!() };
        id.clone_into(&mut said.function_call_id);
        message
    };
    let path = [
        entry_in(Format::Anthropic, "e0", CALLS),
        entry_of("e1", result("t1", "a")),
        entry_of("e2", result("t2", "b")),
    ];
    let conversation = conversation_to_format(&path, Format::Anthropic);
    assert_eq!(
        conversation.messages[1].value(),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}]},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "b"}]},
        ]})
    );
    assert_eq!(conversation.messages.len(), 2);
}

#[test]
fn a_thought_without_a_signature_is_not_sent_back() {
    let path = [entry_in(
        Format::Pi,
        "e0",
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"}],"api":"x","provider":"openai","model":"m","usage":{},"stopReason":"stop","timestamp":2}"#,
    )];
    let conversation = conversation_to_format(&path, Format::Anthropic);
    assert_eq!(
        values(&conversation.messages),
        json!([{"role": "assistant", "content": [{"type": "text", "text": "hi"}]}])
    );
}

#[test]
fn a_conversation_in_any_format_is_the_same_conversation() {
    let read = |messages: &[RawJson], format: Format| -> Vec<AgentMessage> {
        messages.iter().map(|json| message_of(format, json)).collect()
    };
    let path: Vec<Entry> = anthropic_path().split_off(1);
    let before: Vec<AgentMessage> =
        path.iter().map(|entry| (*entry.message().unwrap()).clone()).collect();
    for format in Format::ALL {
        let there = conversation_to_format(&path, format);
        let entries: Vec<Entry> = there
            .messages
            .iter()
            .enumerate()
            .map(|(index, json)| entry_in(format, &format!("f{index}"), json.get()))
            .collect();
        let back = conversation_to_format(&entries, Format::Anthropic);
        let after = read(&back.messages, Format::Anthropic);
        let formats = [format, Format::Anthropic];
        let (mut before, mut after) = (Facts::of(&before, &formats), Facts::of(&after, &formats));
        // A request has no place for usage.
        before.usage = (0, 0, 0);
        after.usage = (0, 0, 0);
        assert_eq!(after, before, "{format}: {there:?}");
    }
}

#[test]
fn a_context_takes_unchanged_messages_from_their_entries() {
    let path = anthropic_path();
    let view = context_view(&path, None);
    assert_eq!(
        context_to_format(&view, &path, Format::Anthropic, &StreamTally::default()),
        conversation_to_format(&path, Format::Anthropic)
    );
}

#[test]
fn any_path_of_samples_is_a_conversation_in_every_format() {
    let path: Vec<Entry> = SAMPLES
        .iter()
        .enumerate()
        .map(|(index, sample)| entry_in(sample.format, &format!("e{index}"), sample.json))
        .collect();
    for format in Format::ALL {
        let conversation = conversation_to_format(&path, format);
        for json in &conversation.messages {
            format.check(json).unwrap();
        }
    }
}

/// The Responses API has one item for each thought and each call; other APIs want the calls of a turn in one message, and
/// refuse a message that says nothing.
#[test]
fn items_of_one_turn_are_one_message_for_the_other_apis() {
    let items = [
        r#"{"type":"message","role":"user","content":"Both?"}"#,
        r#"{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"hm"}]}"#,
        r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"1"}"#,
        r#"{"type":"function_call_output","call_id":"c2","output":"2"}"#,
        r#"{"type":"reasoning","id":"r2","summary":[{"type":"summary_text","text":"done"}]}"#,
    ];
    let entry = |(index, json): (usize, &&str)| {
        entry_in(Format::OpenaiResponses, &format!("e{index}"), json)
    };
    let path: Vec<Entry> = items.iter().enumerate().map(entry).collect();
    let roles = |format| {
        let conversation = conversation_to_format(&path, format);
        let messages = conversation.messages.iter().map(RawJson::value);
        let roles: Vec<String> =
            messages.map(|json| json["role"].as_str().unwrap().to_owned()).collect();
        roles.join(" ")
    };
    assert_eq!(roles(Format::Anthropic), "user assistant user");
    assert_eq!(roles(Format::OpenaiChat), "user assistant tool tool");
    // Gemini takes thoughts back, so the last one is a message.
    assert_eq!(roles(Format::Gemini), "user model user model");
    let chat = conversation_to_format(&path, Format::OpenaiChat).messages[1].value();
    assert_eq!(chat["tool_calls"].as_array().unwrap().len(), 2, "{chat}");
    let bough = conversation_to_format(&path, Format::Bough);
    assert!(bough.messages.iter().all(|json| !json.get().contains("gemini")), "{bough:?}");
}
