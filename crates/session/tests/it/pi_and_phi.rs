//! Entries of other systems, read as canonical ones.

use bough_session::{
    CustomPayload, Entry, EntryBody, FORMAT_PHI, FORMAT_PI, FORMAT_SESSION_MANAGER, ForeignBody,
    RawJson, compacted_system_prompt,
};
use serde_json::{Value, json};

use crate::common::{entry, user};

fn foreign(format: &str, text: &str) -> Entry {
    Entry {
        timestamp: 77,
        body: EntryBody::Foreign(ForeignBody::new(format, RawJson::parse(text).unwrap())),
        ..entry("e", None, user("", 1))
    }
}

/// The entry's message or custom payload, as JSON.
fn shown(format: &str, text: &str) -> Value {
    let wire = serde_json::to_value(foreign(format, text).to_wire()).unwrap();
    match wire.get("message") {
        Some(message) => message.clone(),
        None => json!({"custom_type": wire["custom_type"], "data": wire["data"]}),
    }
}

#[track_caller]
fn check_pi(line: &str, expected: Value) {
    assert_eq!(shown(FORMAT_PI, line), expected, "{line}");
}

#[track_caller]
fn check_phi(message: &str, expected: Value) {
    assert_eq!(shown(FORMAT_PHI, message), expected, "{message}");
}

#[test]
fn pi_messages_of_every_role() {
    check_pi(
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"2024-12-03T14:00:00.000Z","message":{"role":"user","content":"Hello","timestamp":1733234401000}}"#,
        json!({"role": "user", "content": [{"type": "text", "text": "Hello"}], "timestamp": 1733234401000_i64}),
    );
    check_pi(
        r#"{"type":"message","message":{"role":"user","content":[{"type":"image","data":"QQ==","mimeType":"image/png"}],"timestamp":1}}"#,
        json!({"role": "user", "content": [{"type": "image", "mime": "image/png", "data": "QQ=="}], "timestamp": 1}),
    );
    check_pi(
        r#"{"type":"message","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}],"api":"x","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"total":0.25}},"stopReason":"toolUse","timestamp":2}}"#,
        json!({"role": "assistant", "content": [
            {"type": "thinking", "text": "hm", "signature": "s"},
            {"type": "function_call", "id": "c", "function_id": "bash", "arguments": {"command": "ls"}},
        ], "stop_reason": "function_call", "native_stop_reason": "toolUse", "model": "m", "provider": "p",
           "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "cost_usd": 0.25,
                     "pi": {"cost": {"total": 0.25}}}, "timestamp": 2, "pi": {"api": "x"}}),
    );
    check_pi(
        r#"{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"out"}],"details":{"x":1},"isError":true,"timestamp":3}}"#,
        json!({"role": "function_result", "function_call_id": "c", "function_id": "bash",
               "content": [{"type": "text", "text": "out"}], "details": {"x": 1}, "is_error": true, "timestamp": 3}),
    );
    check_pi(
        r#"{"type":"custom_message","timestamp":"2024-12-03T14:00:00.000Z","customType":"ext","content":"Injected","display":true,"details":{}}"#,
        json!({"role": "custom", "custom_type": "ext", "content": [{"type": "text", "text": "Injected"}],
               "display": "true", "details": {}, "timestamp": 77}),
    );
}

#[test]
fn a_pi_command_is_shown_with_how_it_ended() {
    let text = |fields: &str| {
        let line = format!(
            r#"{{"type":"message","message":{{"role":"bashExecution","command":"ls",{fields},"timestamp":4}}}}"#
        );
        foreign(FORMAT_PI, &line).message().unwrap().text()
    };
    assert_eq!(text(r#""output":"a","exitCode":0"#), "Ran `ls`\n```\na\n```");
    assert_eq!(text(r#""output":"","exitCode":2"#), "Ran `ls`\n(no output)\n(exit code 2)");
    assert_eq!(
        text(r#""output":"a","cancelled":true,"truncated":true"#),
        "Ran `ls`\n```\na\n```\n(cancelled)\n(output truncated)"
    );
    assert_eq!(
        text(r#""output":"a","exitCode":0,"truncated":true,"fullOutputPath":"/tmp/x""#),
        "Ran `ls`\n```\na\n```\n(output truncated; all of it: /tmp/x)"
    );
}

#[test]
fn a_system_message_of_pi_shows_its_sections_and_tools() {
    let line = r#"{"type":"message","message":{"role":"system","content":"","sections":{"preamble":"Be brief.","old":null},"toolsAdded":[{"name":"bash"},{"name":"read"}],"toolsRemoved":[{"name":"edit"}],"timestamp":1}}"#;
    let shown = shown(FORMAT_PI, line);
    let texts: Vec<&str> =
        shown["content"].as_array().unwrap().iter().map(|b| b["text"].as_str().unwrap()).collect();
    for text in
        ["Be brief.", "(section old removed)", "Tools added: bash, read", "Tools removed: edit"]
    {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    assert_eq!(shown["details"]["sections"]["old"], Value::Null);
    let compaction = r#"{"type":"compaction","summary":"s","firstKeptEntryId":"c","tokensBefore":5,"systemMessage":{"role":"system","content":"Be brief."}}"#;
    let data = shown_pi(compaction)["data"].clone();
    assert_eq!(data["pi.system_message"]["content"], "Be brief.");
    let payload = |data| CustomPayload { custom_type: "bough.compaction".to_owned(), data };
    let prompt = |data| compacted_system_prompt(&payload(data));
    assert_eq!(prompt(data).as_deref(), Some("Be brief."));
    let sections = json!({"content": "", "sections": {"a": "One.", "b": "Two."}});
    let sections = prompt(json!({ "pi.system_message": sections }));
    assert_eq!(sections.as_deref(), Some("One.\nTwo."));
    assert_eq!(prompt(json!({"pi.system_message": {"content": ""}})), None);
    assert_eq!(prompt(json!({})), None);
}

fn shown_pi(line: &str) -> Value {
    shown(FORMAT_PI, line)
}

/// pi sums what models used for messages, on lines of usage, for tools' results and for summaries.
#[test]
fn usage_is_counted_where_pi_counts_it() {
    let usage = |input: u64, cost: f64| {
        format!(
            r#""usage":{{"input":{input},"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"total":{cost}}}}}"#
        )
    };
    let lines = [
        format!(
            r#"{{"type":"message","message":{{"role":"assistant","content":[],"provider":"p","model":"m",{},"stopReason":"stop","timestamp":1}}}}"#,
            usage(1, 1.0)
        ),
        format!(
            r#"{{"type":"usage","kind":"cache","provider":"p","model":"m",{}}}"#,
            usage(2, 2.0)
        ),
        format!(
            r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"c","toolName":"t","content":[],"details":{{"a":1}},{},"isError":false,"timestamp":1}}}}"#,
            usage(4, 4.0)
        ),
        format!(
            r#"{{"type":"compaction","summary":"s","firstKeptEntryId":"c","tokensBefore":5,{}}}"#,
            usage(8, 8.0)
        ),
        format!(r#"{{"type":"branch_summary","fromId":"root","summary":"s",{}}}"#, usage(16, 16.0)),
    ];
    let entries: Vec<Entry> = lines.iter().map(|line| foreign(FORMAT_PI, line)).collect();
    let mut sum = bough_session::UsageByModel::default();
    entries.iter().for_each(|entry| sum.add_entry(entry));
    assert_eq!((sum.total.messages, sum.total.input, sum.total.output), (5, 31, 5));
    assert_eq!(sum.total.cost_usd.to_bits(), 31.0_f64.to_bits());
    assert_eq!(sum.models["m"].input, 3);
    assert_eq!(sum.models["tools and summaries"].input, 28);
    let mut state = bough_session::SessionState::new(bough_session::SessionId::from_stored("s"));
    for (at, entry) in (1..).zip(&entries) {
        state.apply(&bough_session::Record::Entry(entry.clone()), at, 1);
    }
    assert_eq!(state.usage, sum, "the fold and the path agree");
}

#[test]
fn pi_bookkeeping_becomes_ours() {
    let check = |line: &str, custom_type: &str, data: Value| {
        check_pi(line, json!({"custom_type": custom_type, "data": data}));
    };
    check(
        r#"{"type":"model_change","provider":"openai","modelId":"gpt"}"#,
        "bough.model_change",
        json!({"provider": "openai", "model_id": "gpt"}),
    );
    check(
        r#"{"type":"thinking_level_change","thinkingLevel":"high"}"#,
        "bough.thinking_level_change",
        json!({"thinking_level": "high"}),
    );
    check(
        r#"{"type":"compaction","summary":"s","firstKeptEntryId":"c","tokensBefore":50,"details":{"readFiles":[]},"fromHook":false}"#,
        "bough.compaction",
        json!({"summary": "s", "first_kept_entry_id": "c", "tokens_before": 50, "details": {"readFiles": []}, "from_hook": false}),
    );
    check(
        r#"{"type":"branch_summary","fromId":"root","summary":"s"}"#,
        "bough.branch_summary",
        json!({"from_id": "root", "summary": "s"}),
    );
    check(r#"{"type":"session_info","name":"n"}"#, "bough.session_info", json!({"name": "n"}));
    check(
        r#"{"type":"label","targetId":"a","label":"l"}"#,
        "bough.label",
        json!({"target_id": "a", "label": "l"}),
    );
    check(r#"{"type":"label","targetId":"a"}"#, "bough.label", json!({"target_id": "a"}));
    check(r#"{"type":"custom","customType":"ext","data":{"n":42}}"#, "ext", json!({"n": 42}));
}

#[test]
fn what_pi_adds_later_is_shown_as_it_is() {
    check_pi(
        r#"{"type":"context_edit","targetId":"a","replacement":null}"#,
        json!({"custom_type": "pi.context_edit", "data": {"type": "context_edit", "targetId": "a", "replacement": null}}),
    );
    let system = shown(
        FORMAT_PI,
        r#"{"type":"message","message":{"role":"system","sections":[1],"timestamp":1}}"#,
    );
    assert_eq!(
        (&system["custom_type"], &system["details"]["sections"]),
        (&json!("pi.system"), &json!([1]))
    );
    check_pi(
        r#"{"type":"message","message":{"role":"user","content":[{"type":"video","x":1}],"timestamp":1}}"#,
        json!({"role": "user", "content": [{"type": "text", "text": "[video]", "original": {"pi": {"type": "video", "x": 1}}}], "timestamp": 1}),
    );
    check_pi(r#"[1]"#, json!({"custom_type": "pi", "data": [1]}));
    assert_eq!(
        shown("other", r#"{"type":"x"}"#),
        json!({"custom_type": "other.x", "data": {"type": "x"}})
    );
}

#[test]
fn phi_messages_of_every_role() {
    check_phi(
        r#"{"content":[{"text":"q","type":"text"}],"role":"user","timestamp":1,"turnId":{"loopId":"l","turnIndex":0}}"#,
        json!({"role": "user", "content": [{"type": "text", "text": "q"}], "timestamp": 1,
               "phi": {"turnId": {"loopId": "l", "turnIndex": 0}}}),
    );
    check_phi(
        r#"{"content":[{"type":"thinking","thinking":"hm","signature":"s"}],"model":"m","provider":"p","role":"assistant","stopReason":"maxTurns","timestamp":2,"error_message":"bad","usage":{"input":1,"output":2,"reasoning":3,"cache_read":4,"cache_write":5,"total_tokens":15}}"#,
        json!({"role": "assistant", "content": [{"type": "thinking", "text": "hm", "signature": "s"}],
               "stop_reason": "length", "native_stop_reason": "maxTurns", "error_message": "bad", "model": "m", "provider": "p",
               "usage": {"input": 1, "output": 2, "reasoning": 3, "cache_read": 4, "cache_write": 5,
                         "phi": {"total_tokens": 15}}, "timestamp": 2}),
    );
    check_phi(
        r#"{"content":[],"isError":false,"role":"toolResult","timestamp":3,"toolCallId":"c","toolName":"t"}"#,
        json!({"role": "function_result", "function_call_id": "c", "function_id": "t", "content": [],
               "details": null, "is_error": false, "timestamp": 3}),
    );
    check_phi(
        r#"{"role":"extension","kind":"note","data":{"a":1}}"#,
        json!({"custom_type": "note", "data": {"a": 1}}),
    );
}

#[test]
fn phi_stop_reasons_map_to_ours() {
    let check = |native: &str, expected: &str| {
        let text = format!(r#"{{"role":"assistant","content":[],"stopReason":"{native}"}}"#);
        assert_eq!(shown(FORMAT_PHI, &text)["stop_reason"], json!(expected), "{native}");
    };
    check("stop", "end");
    check("length", "length");
    check("toolUse", "function_call");
    check("error", "error");
    check("aborted", "aborted");
    check("userStop", "aborted");
    check("guardRail", "error");
    check("handoff", "end");
    check("contextCompacted", "end");
    check("paused", "end");
}

#[test]
fn a_later_session_manager_message_is_read_by_what_is_known() {
    let later = r#"{"role":"assistant","agent":"pi","content":[{"type":"text","text":"a"},{"type":"file","name":"f"}],"stop_reason":"end","model":"m","provider":"p","timestamp":2}"#;
    assert_eq!(
        shown(FORMAT_SESSION_MANAGER, later),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "[file: f]", "original": {"bough": {"type": "file", "name": "f"}}},
        ], "stop_reason": "end", "model": "m", "provider": "p", "timestamp": 2, "agent": "pi"})
    );
    let unknown_role =
        shown(FORMAT_SESSION_MANAGER, r#"{"role":"judge","content":[],"timestamp":9}"#);
    assert_eq!(
        (&unknown_role["role"], &unknown_role["custom_type"]),
        (&json!("custom"), &json!("judge"))
    );
}

#[test]
fn a_message_that_no_value_can_hold_is_still_a_message() {
    check_pi(
        r#"{"type":"message","message":{"role":"user","content":"cut \ud83d","timestamp":1}}"#,
        json!({"role": "user", "content": [{"type": "text", "text": "cut \u{fffd}"}], "timestamp": 1}),
    );
    check_pi(
        r#"{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":"out","details":{"x":1E400},"timestamp":3}}"#,
        json!({"role": "function_result", "function_call_id": "c", "function_id": "bash",
               "content": [{"type": "text", "text": "out"}], "details": {"x": "1E400"}, "is_error": false, "timestamp": 3}),
    );
    let (open, close) = ("[".repeat(300), "]".repeat(300));
    let call = format!(
        r#"{{"type":"toolCall","id":"c","name":"bash","arguments":{{"x":{open}{close}}}}}"#
    );
    let line = format!(
        r#"{{"type":"message","message":{{"role":"assistant","content":[{call}],"timestamp":1}}}}"#
    );
    let shown = shown(FORMAT_PI, &line);
    assert_eq!(shown["content"][0]["id"], "c");
    assert!(shown.to_string().contains("not shown: nested"), "{shown}");
}

/// A number keeps its spelling when it goes through a value.
#[test]
fn numbers_are_kept_to_the_last_digit() {
    for text in ["121.48791951161945", "0.1", "2.2250738585072014e-308", "1.7976931348623157e308"] {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(value.as_f64(), text.parse::<f64>().ok(), "{text}");
    }
}
