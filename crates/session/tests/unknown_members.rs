//! Members that the canonical shapes do not know come back as they came; what callers may leave out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use bough_session::limits::{JSON_DEPTH_MAX, check_message};
use bough_session::{AgentMessage, ContentChange, NewMessage, SessionEntry};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Spelling that goes through no value: large and long numbers, key order, spaces, half a surrogate pair.
const SPELLING: &str =
    r#"{"z":123456789012345678901234567890,"a":1.0e2,"s":[ 1 ,"\ud83d"],"n":-0.10}"#;

fn read(text: &str) -> AgentMessage {
    serde_json::from_str(text).unwrap()
}

#[test]
fn unknown_members_of_every_shape_are_written_behind_the_known_ones() {
    let check = |text: String| assert_eq!(serde_json::to_string(&read(&text)).unwrap(), text);
    check(format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"hi","cache_control":{SPELLING}}},{{"type":"image","mime":"m","data":"d","detail":"low"}}],"timestamp":1,"x":{SPELLING}}}"#
    ));
    check(format!(
        r#"{{"role":"assistant","content":[{{"type":"thinking","text":"t","x":1}},{{"type":"function_call","id":"c","function_id":"f","arguments":{SPELLING},"x":2}}],"stop_reason":"end","usage":{{"input":1,"tier":{SPELLING}}},"model":"m","provider":"p","timestamp":1,"id":"msg"}}"#
    ));
    check(format!(
        r#"{{"role":"function_result","function_call_id":"c","function_id":"f","content":[{{"type":"function_result","function_call_id":"c","content":[],"x":[]}}],"details":{SPELLING},"is_error":false,"timestamp":1,"name":"n"}}"#
    ));
    check(format!(
        r#"{{"role":"custom","custom_type":"x","content":[],"details":{SPELLING},"timestamp":1,"usage":1}}"#
    ));
}

#[test]
fn a_member_that_only_another_role_knows_is_unknown_here() {
    let message = read(r#"{"usage":"none","content":[],"role":"user","timestamp":1,"model":7}"#);
    assert_eq!(
        serde_json::to_string(&message).unwrap(),
        r#"{"role":"user","content":[],"timestamp":1,"usage":"none","model":7}"#
    );
}

#[test]
fn the_tag_may_come_last() {
    let message = read(
        r#"{"timestamp":1,"content":[{"text":"a","data":0,"type":"text"}],"custom_type":"x","role":"custom"}"#,
    );
    assert_eq!(
        serde_json::to_string(&message).unwrap(),
        r#"{"role":"custom","custom_type":"x","content":[{"type":"text","text":"a","data":0}],"timestamp":1}"#
    );
    let entry: SessionEntry = serde_json::from_str(
        r#"{"message":{"content":[],"timestamp":1,"role":"user","k":1.50},"id":"e","timestamp":2,"kind":"message"}"#,
    )
    .unwrap();
    assert!(serde_json::to_string(&entry).unwrap().contains(r#""k":1.50"#));
}

#[test]
fn a_message_goes_through_a_value_too() {
    let given = json!({"role": "user", "content": [{"type": "text", "text": "a", "k": {"b": 1}}], "timestamp": 1, "m": [2]});
    let message: AgentMessage = serde_json::from_value(given.clone()).unwrap();
    assert_eq!(serde_json::to_value(&message).unwrap(), given);
}

#[test]
fn a_change_of_unknown_members_alone_is_a_change() {
    let content = |mark: u64| {
        let text = format!(r#"[{{"type":"text","text":"same text","mark":{mark}}}]"#);
        serde_json::from_str::<Vec<_>>(&text).unwrap()
    };
    let mut changed = content(1);
    ContentChange::between(&content(1), &content(2)).apply(&mut changed).unwrap();
    assert_eq!(changed, content(2));
}

#[test]
fn unknown_members_count_for_the_depth() {
    let check = |place: &str| {
        let text = |levels: usize| {
            let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            read(&place.replace("DEEP", &deep))
        };
        assert!(check_message(&text(JSON_DEPTH_MAX - 4)).is_ok(), "{place}");
        assert!(check_message(&text(JSON_DEPTH_MAX + 1)).is_err(), "{place}");
    };
    check(r#"{"role":"user","content":[],"timestamp":1,"x":DEEP}"#);
    check(r#"{"role":"user","content":[{"type":"text","text":"","x":DEEP}],"timestamp":1}"#);
    check(
        r#"{"role":"assistant","content":[],"stop_reason":"end","model":"","provider":"","timestamp":1,"usage":{"x":DEEP}}"#,
    );
}

fn new(text: &str) -> Value {
    let message: NewMessage = serde_json::from_str(text).unwrap();
    serde_json::to_value(message.into_message(77)).unwrap()
}

#[test]
fn a_new_message_may_leave_things_out() {
    assert_eq!(
        new(r#"{"role":"user","content":"hi"}"#),
        json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 77})
    );
    assert_eq!(new(r#"{"role":"user","content":[],"timestamp":5}"#)["timestamp"], 5);
    assert_eq!(
        new(r#"{"role":"assistant","content":[]}"#),
        json!({"role": "assistant", "content": [], "stop_reason": "end", "model": "", "provider": "", "timestamp": 77})
    );
    assert_eq!(
        new(r#"{"role":"system","content":"be brief","name":"n"}"#),
        json!({"role": "custom", "custom_type": "system", "content": [{"type": "text", "text": "be brief"}],
               "timestamp": 77, "name": "n"})
    );
}

#[test]
fn a_new_message_still_needs_what_makes_it_one() {
    let refused = |text: &str| serde_json::from_str::<NewMessage>(text).unwrap_err().to_string();
    assert!(refused(r#"{"role":"user"}"#).contains("content"));
    assert!(refused(r#"{"content":"hi"}"#).contains("role"));
    assert!(refused(r#"{"role":"robot","content":""}"#).contains("robot"));
    assert!(refused(r#"{"role":"function_result","content":""}"#).contains("function_call_id"));
    assert!(refused(r#"{"role":"user","content":7}"#).contains("expected a sequence"));
}

proptest! {
    #[test]
    fn any_message_with_unknown_members_is_read_as_it_was_written(
        message in common::any_message(),
        unknown in proptest::collection::vec(("[a-z]{9,12}", common::any_json()), 0..4),
    ) {
        let mut message = message;
        for (key, value) in unknown {
            message.unknown_mut().set(key.clone(), value.clone().into());
            for block in message.content_mut() {
                block.unknown_mut().set(key.clone(), value.clone().into());
            }
        }
        let text = serde_json::to_string(&message).unwrap();
        let back = read(&text);
        prop_assert_eq!(&back, &message);
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }
}
