//! Deltas, updates and ends of streams on messages that are stored as they came.

use bough_session::{
    AgentMessage, ContentBlock, ContentChange, Entry, Finish, Format, Revision, StopReason,
    TextAppend, Usage, UsageChange, entry_to_format, unfinished_to_format,
};
use serde_json::{Value, json};

use crate::entry_in;

fn append(entry: &mut Entry, block: u32, text: &str, finish: Option<Finish>) {
    let revision = Revision {
        entry_id: entry.id.clone(),
        from: entry.revision,
        to: entry.revision + 1,
        change: ContentChange::Append(TextAppend { block, text: text.into() }),
        details: None,
        origin: None,
        finish: finish.map(Box::new),
    };
    revision.apply(entry).unwrap();
}

fn written(entry: &Entry, format: Format) -> Value {
    entry_to_format(entry, format).unwrap().messages[0].value()
}

#[test]
fn a_delta_adds_to_the_block_and_the_rest_stays_in_the_format() {
    let json = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"text","text":"He","citations":[1]}],"container":{"id":"c"}}"#;
    let mut entry = entry_in(Format::Anthropic, "e", json);
    append(&mut entry, 1, "llo", None);
    let mut expected: Value = serde_json::from_str(json).unwrap();
    expected["content"][1]["text"] = json!("Hello");
    assert_eq!(written(&entry, Format::Anthropic), expected);
    assert_eq!(written(&entry, Format::Gemini)["parts"][1]["text"], "Hello");
}

#[test]
fn a_text_in_place_of_a_list_is_block_0() {
    for (format, json) in [
        (Format::Anthropic, r#"{"role":"assistant","content":"a"}"#),
        (Format::OpenaiChat, r#"{"role":"assistant","content":"a"}"#),
        (Format::OpenaiResponses, r#"{"role":"assistant","content":"a"}"#),
        (Format::Bough, r#"{"role":"assistant","content":"a"}"#),
        (Format::Gemini, r#"{"role":"model","parts":[{"text":"a"}]}"#),
        (Format::AiSdk, r#"{"id":"m","role":"assistant","parts":[{"type":"text","text":"a"}]}"#),
    ] {
        let mut entry = entry_in(format, "e", json);
        append(&mut entry, 0, "b", None);
        assert_eq!(entry.message().unwrap().text(), "ab", "{format}");
        let again = entry_in(format, "e", &written(&entry, format).to_string());
        assert_eq!(again.message().unwrap().content()[0].as_text(), Some("ab"), "{format}");
    }
}

/// A reply that begins without content: as the APIs write it, and as their programs do.
#[test]
fn a_reply_that_began_empty_has_its_text_in_its_own_format() {
    for (format, json) in [
        (Format::Anthropic, r#"{"role":"assistant","content":[]}"#),
        (Format::Bough, r#"{"role":"assistant","content":[]}"#),
        (Format::OpenaiChat, r#"{"role":"assistant","content":null}"#),
        (
            Format::OpenaiChat,
            r#"{"role":"assistant","content":null,"refusal":null,"tool_calls":null}"#,
        ),
        (
            Format::OpenaiChat,
            r#"{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":null}]}"#,
        ),
        (Format::OpenaiResponses, r#"{"type":"message","role":"assistant","content":[]}"#),
        (Format::OpenaiResponses, r#"{"role":"assistant","content":[]}"#),
        (
            Format::OpenaiResponses,
            r#"{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}"#,
        ),
        (
            Format::OpenaiResponses,
            r#"{"object":"response","model":"m","status":"in_progress","output":[]}"#,
        ),
        (
            Format::OpenaiResponses,
            r#"{"object":"response","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","content":[]}]}"#,
        ),
        (Format::Gemini, r#"{"role":"model","parts":[]}"#),
        (Format::Gemini, r#"{"candidates":[{"content":{"role":"model","parts":null}}]}"#),
        (Format::Gemini, r#"{"candidates":[{"content":null}]}"#),
        (Format::AiSdk, r#"{"id":"m","role":"assistant","parts":[]}"#),
        (Format::Pi, r#"{"role":"assistant","content":[],"timestamp":1}"#),
        (Format::Phi, r#"{"role":"assistant","content":[],"timestamp":1}"#),
    ] {
        let mut entry = entry_in(format, "e", json);
        if entry.message().unwrap().content().is_empty() {
            entry.set_content(vec![ContentBlock::text("")], None);
        }
        append(&mut entry, 0, "Par", None);
        append(&mut entry, 0, "is.", None);
        assert_eq!(entry.message().unwrap().text(), "Paris.", "{json}");
        let now = written(&entry, format).to_string();
        let again = entry_in(format, "e", &now);
        assert_eq!(again.message().unwrap().text(), "Paris.", "{json} became {now}");
        assert_eq!(now.contains("msg_1"), json.contains("msg_1"), "the item keeps its id: {now}");
    }
}

/// What a provider's API shows of a reply that is not finished, and nothing where it shows none.
#[test]
fn a_message_that_streams_does_not_say_why_it_stopped() {
    let json = r#"{"role":"assistant","content":"a","model":"m","stop_reason":"end"}"#;
    let mut entry = entry_in(Format::Bough, "e", json);
    append(&mut entry, 0, "b", None);
    for (format, place, shown) in [
        (Format::Bough, "/stop_reason", None),
        (Format::Anthropic, "/stop_reason", Some(json!(null))),
        (Format::OpenaiChat, "/choices/0/finish_reason", Some(json!(null))),
        (Format::OpenaiResponses, "/status", Some(json!("in_progress"))),
        (Format::Gemini, "/candidates/0/finishReason", Some(json!(null))),
        (Format::AiSdk, "/metadata/bough/stop_reason", None),
        (Format::Pi, "/stopReason", None),
        (Format::Phi, "/stopReason", None),
    ] {
        let unfinished = unfinished_to_format(&entry, format).unwrap().messages[0].value();
        assert_eq!(unfinished.pointer(place), shown.as_ref(), "{format}: {unfinished}");
        let again = entry_in(format, "e", &unfinished.to_string());
        assert_eq!(again.message().unwrap().text(), "ab", "{format}");
        let finished = written(&entry, format);
        let word = finished.pointer(place).and_then(Value::as_str);
        assert_eq!(word.is_some(), format != Format::AiSdk, "{format}: {finished}");
        assert_ne!(word, Some("in_progress"));
    }
}

#[test]
fn the_end_of_a_stream_is_said_in_the_format() {
    let mut entry = entry_in(Format::Anthropic, "e", r#"{"role":"assistant","content":""}"#);
    let usage = Usage { input: Some(3), output: Some(4), ..Usage::default() };
    let finish = Finish {
        stop_reason: Some(StopReason::Length),
        native_stop_reason: Some("max_tokens".into()),
        usage: Some(UsageChange { model: String::new(), before: None, after: usage }),
        ..Finish::default()
    };
    append(&mut entry, 0, "Hi", Some(finish));
    append(
        &mut entry,
        0,
        "!",
        Some(Finish { error_message: Some("cut".into()), ..Finish::default() }),
    );
    let said = written(&entry, Format::Anthropic);
    assert_eq!(said["stop_reason"], "max_tokens");
    assert_eq!(said["usage"], json!({"input_tokens": 3, "output_tokens": 4}));
    assert_eq!(said["content"], json!([{"type": "text", "text": "Hi!"}]));
    let bough = written(&entry, Format::Bough);
    assert_eq!((&bough["stop_reason"], &bough["error_message"]), (&json!("length"), &json!("cut")));
}

/// Providers begin a stream with a message whose end and usage are null.
#[test]
fn a_message_that_came_without_an_end_gets_one() {
    let chat = r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}"#;
    let gemini = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":null,"index":0}],"usageMetadata":null,"modelVersion":"m"}"#;
    let responses = r#"{"id":"r","object":"response","status":"in_progress","model":"m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}],"usage":null,"error":null,"incomplete_details":null}"#;
    let anthropic = r#"{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":""}],"stop_reason":null,"stop_sequence":null,"usage":null}"#;
    let pi = r#"{"role":"assistant","content":[{"type":"text","text":""}],"api":"x","provider":"p","model":"m","stopReason":"stop","timestamp":1}"#;
    for (format, json, end, word, usage) in [
        (Format::Anthropic, anthropic, "/stop_reason", "max_tokens", "/usage/output_tokens"),
        (
            Format::OpenaiChat,
            chat,
            "/choices/0/finish_reason",
            "length",
            "/usage/completion_tokens",
        ),
        (Format::OpenaiResponses, responses, "/status", "incomplete", "/usage/output_tokens"),
        (
            Format::Gemini,
            gemini,
            "/candidates/0/finishReason",
            "MAX_TOKENS",
            "/usageMetadata/candidatesTokenCount",
        ),
        (Format::Pi, pi, "/stopReason", "length", "/usage/output"),
    ] {
        let mut entry = entry_in(format, "e", json);
        let after = Usage { input: Some(3), output: Some(4), ..Usage::default() };
        let finish = Finish {
            stop_reason: Some(StopReason::Length),
            usage: Some(UsageChange { model: "m".into(), before: None, after }),
            ..Finish::default()
        };
        append(&mut entry, 0, "Hi", Some(finish));
        let written = written(&entry, format);
        assert_eq!(written.pointer(end), Some(&json!(word)), "{format}: {written}");
        assert_eq!(written.pointer(usage), Some(&json!(4)), "{format}: {written}");
        let AgentMessage::Assistant(reply) = &*entry.message().unwrap() else { panic!("{format}") };
        assert_eq!(reply.native_stop_reason, None, "{format}");
    }
}

/// Providers begin an item or a part with a word that says that it streams.
#[test]
fn a_finished_message_does_not_say_that_it_streams() {
    let item =
        r#"{"type":"message","role":"assistant","id":"m","status":"in_progress","content":[]}"#;
    let call = r#"{"type":"function_call","id":"fc","status":"in_progress","call_id":"c","name":"f","arguments":""}"#;
    let text =
        r#"{"id":"u","role":"assistant","parts":[{"type":"text","text":"","state":"streaming"}]}"#;
    let tool = r#"{"id":"u","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"input-streaming","input":""}]}"#;
    for (format, json, state, word) in [
        (Format::OpenaiResponses, item, "/status", None),
        (Format::OpenaiResponses, call, "/status", None),
        (Format::AiSdk, text, "/parts/0/state", None),
        (Format::AiSdk, tool, "/parts/0/state", Some(json!("input-available"))),
    ] {
        let mut entry = entry_in(format, "e", json);
        append(&mut entry, 0, "{}", None);
        let before = written(&entry, format).pointer(state).cloned();
        assert!(before.is_some(), "it streams: {json}");
        append(
            &mut entry,
            0,
            " ",
            Some(Finish { stop_reason: Some(StopReason::End), ..Finish::default() }),
        );
        let written = written(&entry, format);
        assert_eq!(written.pointer(state), word.as_ref(), "{written}");
        let id = written.get("id").or_else(|| written.pointer("/output/0/id"));
        assert!(id.is_some(), "the rest stays: {written}");
    }
}

#[test]
fn arguments_that_stream_are_a_text_whether_or_not_they_are_whole() {
    for arguments in [r#"{"a""#, r#"{"a":1}"#] {
        let call =
            json!({"type": "function_call", "id": "c", "function_id": "f", "arguments": arguments});
        let json = json!({"role": "assistant", "model": "m", "content": [call]}).to_string();
        let entry = entry_in(Format::Bough, "e", &json);
        for (format, place) in [
            (Format::OpenaiChat, "/choices/0/message/tool_calls/0/function/arguments"),
            (Format::OpenaiResponses, "/output/0/arguments"),
        ] {
            let shown = unfinished_to_format(&entry, format).unwrap().messages[0].value();
            assert_eq!(shown.pointer(place), Some(&json!(arguments)), "{format}: {shown}");
        }
    }
}

#[test]
fn a_replacement_is_written_in_the_format() {
    let json = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"old"},"finish_reason":"stop"}]}"#;
    let mut entry = entry_in(Format::OpenaiChat, "e", json);
    let content = [ContentBlock::text("new")];
    Revision::replace(&entry, &content, None).apply(&mut entry).unwrap();
    let said = written(&entry, Format::OpenaiChat);
    assert_eq!(said["choices"][0]["message"]["content"], "new");
    assert_eq!(said["id"], "x");
}
