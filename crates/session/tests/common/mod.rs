//! What several tests need.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "shared by tests that use different parts"
)]

use bough_session::{
    AgentMessage, AssistantMessage, Bookkeeping, ContentBlock, CustomMessage, Entry, EntryBody,
    EntryId, FunctionCallBlock, FunctionResultBlock, FunctionResultMessage, ImageBlock, JsonMap,
    RawJson, StopReason, ThinkingBlock, UnknownMembers, Usage, UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

pub fn map(value: Value) -> JsonMap {
    value.as_object().unwrap().clone()
}

pub fn user(text: &str, timestamp: i64) -> AgentMessage {
    AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], timestamp))
}

pub fn assistant(text: &str, model: &str, usage: Option<Usage>) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content: vec![ContentBlock::text(text)],
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_message: None,
        error_kind: None,
        warnings: None,
        usage,
        model: model.to_owned(),
        provider: "p".to_owned(),
        timestamp: 1,
        unknown: UnknownMembers::default(),
    })
}

pub fn result(text: &str) -> AgentMessage {
    AgentMessage::FunctionResult(FunctionResultMessage {
        function_call_id: "c".into(),
        function_id: "f".into(),
        content: vec![ContentBlock::text(text)],
        details: RawJson::default(),
        is_error: false,
        timestamp: 1,
        unknown: UnknownMembers::default(),
    })
}

pub fn entry(id: &str, parent: Option<&str>, message: AgentMessage) -> Entry {
    Entry::new(
        EntryId::from_stored(id),
        parent.map(EntryId::from_stored),
        1,
        EntryBody::Message(message.into()),
    )
}

pub fn kept(id: &str, parent: Option<&str>, kind: &Bookkeeping) -> Entry {
    Entry { body: EntryBody::Custom(kind.to_payload()), ..entry(id, parent, user("", 1)) }
}

pub fn any_block() -> impl Strategy<Value = ContentBlock> {
    let leaf = prop_oneof![
        ".{0,12}".prop_map(ContentBlock::text),
        (".{0,8}", proptest::option::of(".{0,4}")).prop_map(|(text, signature)| {
            ContentBlock::Thinking(ThinkingBlock {
                text,
                signature,
                unknown: UnknownMembers::default(),
            })
        }),
        "[a-z]{0,4}".prop_map(|data| ContentBlock::Image(ImageBlock {
            mime: "image/png".into(),
            data,
            unknown: UnknownMembers::default()
        })),
        ("[a-z]{1,4}", any_json()).prop_map(|(id, arguments)| {
            ContentBlock::FunctionCall(FunctionCallBlock {
                id,
                function_id: "f::g".into(),
                arguments: arguments.into(),
                unknown: UnknownMembers::default(),
            })
        }),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        (proptest::collection::vec(inner, 0..3), any::<Option<bool>>()).prop_map(
            |(content, is_error)| {
                ContentBlock::FunctionResult(FunctionResultBlock {
                    function_call_id: "c".into(),
                    content,
                    is_error,
                    unknown: UnknownMembers::default(),
                })
            },
        )
    })
}

pub fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!({"a": [1, 2.5, {"b": null}]})),
    ]
}

pub fn any_message() -> impl Strategy<Value = AgentMessage> {
    let content = || proptest::collection::vec(any_block(), 0..4);
    prop_oneof![
        (content(), any::<i64>()).prop_map(|(content, timestamp)| AgentMessage::User(
            UserMessage { content, timestamp, unknown: UnknownMembers::default() }
        )),
        (content(), any::<Option<u64>>(), proptest::option::of(".{0,5}")).prop_map(
            |(content, input, native_stop_reason)| {
                AgentMessage::Assistant(AssistantMessage {
                    content,
                    stop_reason: StopReason::FunctionCall,
                    native_stop_reason,
                    error_message: None,
                    error_kind: None,
                    warnings: Some(vec!["w".into()]),
                    usage: Some(Usage { input, ..Usage::default() }),
                    model: "m".into(),
                    provider: "p".into(),
                    timestamp: 1,
                    unknown: UnknownMembers::default(),
                })
            }
        ),
        (content(), any_json(), any::<bool>()).prop_map(|(content, details, is_error)| {
            AgentMessage::FunctionResult(FunctionResultMessage {
                function_call_id: "c".into(),
                function_id: "f".into(),
                content,
                details: details.into(),
                is_error,
                timestamp: -1,
                unknown: UnknownMembers::default(),
            })
        }),
        (content(), proptest::option::of(".{0,5}")).prop_map(|(content, display)| {
            AgentMessage::Custom(CustomMessage {
                custom_type: "x".into(),
                content,
                display,
                details: Some(json!({"k": 1}).into()),
                timestamp: 0,
                unknown: UnknownMembers::default(),
            })
        }),
    ]
}
