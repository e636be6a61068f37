//! Every bound holds at one below, at, and one above.

use bough_session::limits::*;
use bough_session::{
    AgentMessage, ContentBlock, CustomPayload, EntryId, FunctionResultBlock, JsonMap, LoopId,
    Record, SessionId, UnknownMembers, codec, json_bytes,
};
use serde_json::{Value, json};

use crate::common::{entry, user};

/// `measure(n)` is within the bound for `limit - 1` and `limit`, and over it for `limit + 1`.
#[track_caller]
fn check(limit: usize, measure: impl Fn(usize) -> Result<(), LimitError>) {
    measure(limit - 1).unwrap();
    measure(limit).unwrap();
    let over = measure(limit + 1).unwrap_err();
    match over {
        LimitError::TooLarge { limit: named, actual, .. } => {
            assert_eq!((named, actual), (limit, limit + 1));
        }
        other => panic!("{other}"),
    }
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// An array of arrays, `depth` levels deep.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(0), |inner, _| json!([inner]))
}

fn metadata(key: &str, value: Value) -> JsonMap {
    [(key.to_owned(), value)].into_iter().collect()
}

#[test]
fn texts() {
    check(TITLE_BYTES_MAX, |n| check_title(&text(n)));
    check(DESCRIPTION_BYTES_MAX, |n| check_description(&text(n)));
    check(REASON_BYTES_MAX, |n| check_reason(&text(n)));
    check(TASK_NAME_BYTES_MAX, |n| check_task_name(&text(n)));
    check(LABEL_BYTES_MAX, |n| check_label(&text(n)));
}

#[test]
fn ids() {
    check(SESSION_ID_BYTES_MAX, |n| SessionId::parse(text(n)).map(drop));
    check(ENTRY_ID_BYTES_MAX, |n| EntryId::parse(text(n)).map(drop));
    check(LOOP_ID_BYTES_MAX, |n| LoopId::parse(text(n)).map(drop));
}

#[test]
fn metadata_and_origin() {
    let frame = json_bytes(&metadata("k", json!("")));
    check(METADATA_BYTES_MAX, |n| check_metadata(&metadata("k", json!(text(n - frame)))));
    check(ORIGIN_BYTES_MAX, |n| check_origin(&metadata("k", json!(text(n - frame)))));
    check(METADATA_KEYS_MAX, |n| {
        check_metadata(&(0..n).map(|key| (key.to_string(), json!(1))).collect())
    });
    check(JSON_DEPTH_MAX, |n| check_metadata(&metadata("k", nested(n - 1))));
    check(JSON_DEPTH_MAX, |n| check_origin(&metadata("k", nested(n - 1))));
}

#[test]
fn messages() {
    let frame = json_bytes(&user("", 1));
    check(MESSAGE_BYTES_MAX, |n| check_message(&user(&text(n - frame), 1)));
    let blocks = |n| vec![ContentBlock::text(""); n];
    check(CONTENT_BLOCKS_MAX, |n| check_content(&blocks(n), None));
    // A block is two levels, so the bound falls between two numbers of blocks.
    check_content(&[nested_block(JSON_DEPTH_MAX / 2 - 1)], None).unwrap();
    check_content(&[nested_block(JSON_DEPTH_MAX / 2)], None).unwrap_err();
    check(JSON_DEPTH_MAX, |n| check_content(&[], Some(&nested(n).into())));
    check(JSON_DEPTH_MAX, |n| {
        let message = json!({"role": "custom", "custom_type": "x", "content": [], "details": nested(n), "timestamp": 1});
        check_message(&serde_json::from_value::<AgentMessage>(message).unwrap())
    });
    check(JSON_DEPTH_MAX, |n| {
        let call = json!({"type": "function_call", "id": "c", "function_id": "f", "arguments": nested(n - 2)});
        check_content(&[serde_json::from_value(call).unwrap()], None)
    });
}

/// What the bounds accept can be read again, with everything that is put around it.
#[test]
fn the_deepest_message_survives_the_log_and_a_wrapped_answer() {
    let deep = json!({"role": "custom", "custom_type": "x", "content": [], "details": nested(JSON_DEPTH_MAX), "timestamp": 1});
    let mut nest = user("", 1);
    *nest.content_mut() = vec![nested_block(JSON_DEPTH_MAX / 2 - 1)];
    for message in [serde_json::from_value::<AgentMessage>(deep).unwrap(), nest] {
        check_message(&message).unwrap();
        let record = Record::Entry(entry("e", None, message.clone()));
        assert_eq!(codec::decode(codec::encode(&record, 1)), record);
        let wrapped = json!({"result": {"events": [{"payload": {"entry": {"message": message}}}]}});
        serde_json::from_str::<Value>(&wrapped.to_string()).unwrap();
    }
}

/// A result inside a result, `levels` times around a text.
fn nested_block(levels: usize) -> ContentBlock {
    (0..levels).fold(ContentBlock::text(""), |inner, _| {
        ContentBlock::FunctionResult(FunctionResultBlock {
            function_call_id: String::new(),
            content: vec![inner],
            is_error: None,
            unknown: UnknownMembers::default(),
        })
    })
}

#[test]
fn custom_entries() {
    let custom = |custom_type: String, data| CustomPayload { custom_type, data };
    check(CUSTOM_TYPE_BYTES_MAX, |n| check_custom(&custom(text(n), json!(null))));
    check(JSON_DEPTH_MAX, |n| check_custom(&custom(text(1), nested(n))));
    let frame = json_bytes(&custom(text(1), json!("")));
    check(MESSAGE_BYTES_MAX, |n| check_custom(&custom(text(1), json!(text(n - frame)))));
}

#[test]
fn batches() {
    check(BATCH_RECORDS_MAX, check_batch_records);
    check(BATCH_BYTES_MAX, check_batch_bytes);
}

#[test]
fn pages_are_clamped() {
    let check = |asked, default, max, expected| {
        assert_eq!(clamp_page(asked, default, max), expected, "{asked:?} {default} {max}");
    };
    check(None, PAGE_DEFAULT, PAGE_MAX, 50);
    check(Some(0), PAGE_DEFAULT, PAGE_MAX, 1);
    check(Some(500), PAGE_DEFAULT, PAGE_MAX, 500);
    check(Some(501), PAGE_DEFAULT, PAGE_MAX, 500);
    check(None, 50, 0, 1);
    check(Some(9), 50, 0, 1);
    check(None, 0, 10, 1);
}
