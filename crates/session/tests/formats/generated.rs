//! Generated messages of every format, and JSON that is not a message.

use bough_session::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, Format, FunctionCallBlock,
    FunctionResultMessage, ImageBlock, RawJson, StopReason, ThinkingBlock, UnknownMembers, Usage,
    UserMessage, entry_to_format,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::mappings::check_through;
use crate::{entry_in, message_of};

fn any_text() -> impl Strategy<Value = ContentBlock> {
    "[a-zA-Z é\"\\\\\n{}世😀]{1,12}".prop_map(ContentBlock::text)
}

fn any_image() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        "[A-Za-z0-9+/]{4,8}".prop_map(|data| ContentBlock::Image(ImageBlock {
            mime: "image/png".into(),
            data,
            unknown: UnknownMembers::default(),
        })),
        "[a-z]{1,6}".prop_map(|name| {
            let mut unknown = UnknownMembers::default();
            unknown.set("url", json!(format!("https://example.org/{name}.png")).into());
            ContentBlock::Image(ImageBlock { mime: String::new(), data: String::new(), unknown })
        }),
    ]
}

fn any_call() -> impl Strategy<Value = ContentBlock> {
    ("[a-z]{1,6}", "[a-z0-9]{4,8}", -1000_i64..1000).prop_map(|(name, id, number)| {
        let arguments = RawJson::parse(format!(
            r#"{{"z": {number}, "a":[1.50, 123456789012345678901234567890], "t":"\"x\""}}"#
        ));
        ContentBlock::FunctionCall(FunctionCallBlock::new(id, name, arguments.unwrap()))
    })
}

fn any_thought() -> impl Strategy<Value = ContentBlock> {
    ("[a-z]{1,6}", proptest::option::of("[a-z]{3}")).prop_map(|(text, signature)| {
        let unknown = UnknownMembers::default();
        ContentBlock::Thinking(ThinkingBlock { text, signature, unknown })
    })
}

/// A message that every format can express.
fn any_plain_message() -> impl Strategy<Value = AgentMessage> {
    let said = proptest::collection::vec(prop_oneof![any_text(), any_image()], 1..4);
    let result = said.clone();
    // Calls after texts: some formats have no other order.
    let reply = (
        proptest::collection::vec(any_thought(), 0..2),
        proptest::collection::vec(any_text(), 0..3),
        proptest::collection::vec(any_call(), 0..3),
    );
    let figures = proptest::option::of((0_u64..1_000_000, 0_u64..1000, 0_u64..1000, 0_u64..1000));
    prop_oneof![
        said.prop_map(|content| AgentMessage::User(UserMessage::new(content, 1))),
        (reply, figures).prop_map(|((thoughts, texts, calls), figures)| {
            let calls = distinct(calls);
            let stop_reason =
                if calls.is_empty() { StopReason::End } else { StopReason::FunctionCall };
            let content = [thoughts, texts, calls].concat();
            let usage = figures.map(|(input, output, cache_read, reasoning)| Usage {
                input: Some(input),
                output: Some(output + reasoning),
                cache_read: Some(cache_read),
                reasoning: Some(reasoning),
                ..Usage::default()
            });
            AgentMessage::Assistant(AssistantMessage {
                stop_reason,
                usage,
                ..AssistantMessage::new(content, String::new(), "m".into(), 1)
            })
        }),
        (result, "[a-z]{1,6}", any::<bool>()).prop_map(|(content, name, is_error)| {
            // An error of the AI SDK is a text.
            let has_image = content.iter().any(|block| block.as_text().is_none());
            AgentMessage::FunctionResult(FunctionResultMessage {
                is_error: is_error && !has_image,
                ..FunctionResultMessage::new("call_1".into(), name, texts_first(content), 1)
            })
        }),
    ]
}

fn distinct(calls: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let mut calls = calls;
    for (index, block) in calls.iter_mut().enumerate() {
        if let ContentBlock::FunctionCall(call) = block {
            call.id = format!("{}{index}", call.id);
        }
    }
    calls
}

/// A response of Gemini has its text before its pictures.
fn texts_first(mut content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    content.sort_by_key(|block| block.as_text().is_none());
    content
}

/// Adds members that no format has to every object of a JSON value, with numbers that no value holds exactly.
fn with_odd_members(value: Value, odd: &str) -> String {
    fn mark(value: Value) -> Value {
        match value {
            Value::Object(members) => {
                let mut marked: Map<String, Value> =
                    members.into_iter().map(|(key, value)| (key, mark(value))).collect();
                marked.insert("zz_odd".to_owned(), json!("ODD"));
                Value::Object(marked)
            }
            Value::Array(items) => items.into_iter().map(mark).collect(),
            other => other,
        }
    }
    mark(value).to_string().replace("\"ODD\"", odd)
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "type",
        "role",
        "content",
        "parts",
        "text",
        "message",
        "user",
        "assistant",
        "tool",
        "output",
        "object",
        "response",
        "choices",
        "candidates",
        "functionCall",
        "functionResponse",
        "usage",
        "tool_calls",
        "tool_use",
        "tool_result",
        "reasoning",
        "function_call",
        "id",
        "input",
        "source",
        "image",
        "image_url",
        "name",
        "state",
        "tool-x",
        "output-available",
        "model",
        "system",
        "custom",
    ];
    let word = proptest::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_message_of_any_format_is_given_back_byte_for_byte(
        message in any_plain_message(),
        odd in prop_oneof![Just("12345678901234567890123"), Just("[ 1.50 ,{\"b\":1,\"a\":2}]"), Just("-0.0")],
    ) {
        for format in Format::ALL {
            for json in format.from_canonical(&message).messages {
                let text = with_odd_members(json.value(), odd);
                let entry = entry_in(format, "e", &text);
                let mapped = entry_to_format(&entry, format).unwrap();
                prop_assert_eq!(mapped.messages[0].get(), text.as_str());
                // And nothing of it is lost in the canonical message.
                let shown = serde_json::to_string(&*entry.message().unwrap()).unwrap();
                let (given, kept) = (text.matches("zz_odd").count(), shown.matches("zz_odd").count());
                prop_assert!(kept >= given.min(1), "{} of {}: {}", kept, given, shown);
            }
        }
    }

    #[test]
    fn any_message_through_any_two_formats_keeps_what_matters(message in any_plain_message()) {
        for from in Format::ALL {
            let there = from.from_canonical(&message);
            for json in &there.messages {
                let message = message_of(from, json);
                for to in Format::ALL {
                    check_through(&message, from, to);
                }
            }
        }
    }

    #[test]
    fn mappings_are_total(value in any_json()) {
        let json = RawJson::from(value);
        for format in Format::ALL {
            let passes = format.check(&json).is_ok();
            let canonical = format.to_canonical(&json, 1);
            if let Canonical::Message(message) = &canonical {
                for to in Format::ALL {
                    drop(to.from_canonical(message));
                }
            }
            let is_line = matches!(format, Format::Pi | Format::Phi);
            prop_assert!(is_line || !passes || matches!(canonical, Canonical::Message(_)), "{}: {}", format, json);
        }
    }
}
