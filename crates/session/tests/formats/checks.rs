//! The cheap check, and names.

use bough_session::{Canonical, EntryBody, FORMAT_SESSION_MANAGER, Format, RawJson};

use crate::samples::SAMPLES;

#[track_caller]
fn refused(format: Format, json: &str, pointer: &str) {
    let error = format.check(&RawJson::parse(json).unwrap()).unwrap_err();
    assert_eq!((error.format, error.pointer.as_str()), (format, pointer), "{error}");
    assert!(format.body(RawJson::parse(json).unwrap()).is_err());
}

#[test]
fn a_fault_is_named_by_its_place() {
    refused(Format::Bough, "[]", "");
    refused(Format::Bough, r#"{"role":"robot","content":""}"#, "/role");
    refused(Format::Bough, r#"{"role":"user","content":[{"type":"text"}]}"#, "/content/0/text");
    refused(Format::Bough, r#"{"role":"user","content":[{"type":"video"}]}"#, "/content/0/type");
    refused(Format::Bough, r#"{"role":"function_result","content":""}"#, "/function_call_id");
    refused(Format::Bough, r#"{"role":"user","content":"","timestamp":"now"}"#, "");
    refused(Format::Anthropic, r#"{"role":"user"}"#, "/content");
    refused(
        Format::Anthropic,
        r#"{"role":"user","content":[{"type":"text","text":""},7]}"#,
        "/content/1",
    );
    refused(Format::Anthropic, r#"{"role":"tool","content":""}"#, "/role");
    refused(Format::OpenaiChat, r#"{"role":"tool","content":""}"#, "/tool_call_id");
    refused(
        Format::OpenaiChat,
        r#"{"role":"assistant","content":"","tool_calls":[{"type":"function"}]}"#,
        "/tool_calls/0/id",
    );
    refused(Format::OpenaiChat, r#"{"choices":[{"index":0}]}"#, "/choices/0/message");
    refused(Format::OpenaiChat, r#"{"choices":[]}"#, "/choices");
    refused(
        Format::OpenaiChat,
        r#"{"choices":[{"message":{"role":"user","content":""}}]}"#,
        "/choices/0/message/role",
    );
    refused(Format::OpenaiResponses, r#"{"type":"function_call","name":"f"}"#, "/call_id");
    refused(
        Format::OpenaiResponses,
        r#"{"object":"response","output":[{"type":"message","role":"x"}]}"#,
        "/output/0/role",
    );
    refused(Format::Gemini, r#"{"role":"user","content":"x"}"#, "/parts");
    refused(Format::Gemini, r#"{"role":"assistant","parts":[]}"#, "/role");
    refused(Format::Gemini, r#"{"candidates":[]}"#, "/candidates");
    refused(Format::Gemini, r#"{"candidates":null}"#, "/parts");
    refused(Format::Gemini, r#"{"candidates":[{"content":7}]}"#, "/candidates/0/content");
    refused(
        Format::Gemini,
        r#"{"candidates":[{"content":{"parts":[]}}]}"#,
        "/candidates/0/content/role",
    );
    refused(Format::AiSdk, r#"{"role":"user","parts":[{"type":"text"}]}"#, "/parts/0/text");
    refused(
        Format::Pi,
        r#"{"type":"message","message":{"role":"toolResult"}}"#,
        "/message/toolCallId",
    );
    refused(Format::Phi, r#"{"role":"robot"}"#, "/role");
}

#[test]
fn what_passes_the_check_is_a_message() {
    for sample in SAMPLES {
        let json = RawJson::parse(sample.json).unwrap();
        sample.format.check(&json).unwrap();
        assert!(matches!(sample.format.to_canonical(&json, 1), Canonical::Message(_)));
    }
}

#[test]
fn formats_are_known_by_their_names_and_by_old_ones() {
    for format in Format::ALL {
        assert_eq!(Format::named(format.name()), Some(format));
        assert_eq!(serde_json::to_value(format).unwrap(), format.name());
    }
    assert_eq!(Format::named(FORMAT_SESSION_MANAGER), Some(Format::Bough));
    assert_eq!(Format::named("later"), None);
}

#[test]
fn a_canonical_message_in_its_usual_spelling_is_held_as_such() {
    let body = |json: &str| Format::Bough.body(RawJson::parse(json).unwrap()).unwrap();
    let usual = r#"{"role":"user","content":[],"timestamp":1,"k":1.50}"#;
    assert!(matches!(body(usual), EntryBody::Message(_)));
    let other = r#"{"role":"user","timestamp":1,"content":[]}"#;
    assert!(matches!(body(other), EntryBody::Foreign(_)));
}

#[test]
fn half_a_character_is_no_fault() {
    let json = r#"{"role":"user","content":"cut \ud83d"}"#;
    for format in [Format::Bough, Format::Anthropic, Format::OpenaiChat] {
        format.check(&RawJson::parse(json).unwrap()).unwrap();
    }
}
