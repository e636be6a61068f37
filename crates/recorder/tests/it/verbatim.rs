//! Messages, results and other data of events come back byte for byte, whatever this version knows of them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Links, choices, stream};
use bough_recorder::{
    AgentEvent, RecordFold, SessionRecorderConfig, Translator, events_of_records,
};
use bough_session::{EntryBody, Record};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Strings that stand for numbers which no value holds.
const NUMBERS: [(&str, &str); 2] =
    [("\"@long\"", "123456789012345678901234567890"), ("\"@spelled\"", "1.10")];

/// How the writer of a stream spells JSON.
#[derive(Clone, Copy, Debug)]
enum Spelling {
    Sorted,
    /// The members from the last to the first.
    Reversed,
    /// With blanks after colons and commas, and escapes for everything but ASCII.
    Spaced,
}

const SPELLINGS: [Spelling; 3] = [Spelling::Sorted, Spelling::Reversed, Spelling::Spaced];

fn written(value: &Value, spelling: Spelling) -> String {
    let mut text = String::new();
    write(value, spelling, &mut text);
    NUMBERS.iter().fold(text, |text, (name, number)| text.replace(name, number))
}

fn write(value: &Value, spelling: Spelling, text: &mut String) {
    let blank = if matches!(spelling, Spelling::Spaced) { " " } else { "" };
    let mut list = |items: Vec<(Option<&String>, &Value)>, brackets: [char; 2]| {
        text.push(brackets[0]);
        for (at, (key, item)) in items.into_iter().enumerate() {
            if at > 0 {
                *text += &format!(",{blank}");
            }
            if let Some(key) = key {
                *text += &format!("{}:{blank}", json!(key));
            }
            write(item, spelling, text);
        }
        text.push(brackets[1]);
    };
    match value {
        Value::Array(items) => list(items.iter().map(|item| (None, item)).collect(), ['[', ']']),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(key, item)| (Some(key), item)).collect();
            if matches!(spelling, Spelling::Reversed) {
                members.reverse();
            }
            list(members, ['{', '}']);
        }
        Value::String(words) if matches!(spelling, Spelling::Spaced) => {
            for character in json!(words).to_string().chars() {
                match character {
                    ' '..='~' => text.push(character),
                    _ => character
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .for_each(|unit| *text += &format!("\\u{unit:04x}")),
                }
            }
        }
        other => *text += &other.to_string(),
    }
}

/// Adds members that this version does not know at every level of the messages and results of an event.
fn decorate(event: &mut Value) {
    let type_name = event["type"].as_str().unwrap().to_owned();
    for name in ["message", "result", "partial_result"] {
        if let Some(one) = event.get_mut(name).filter(|one| one.is_object()) {
            decorate_message(one);
        }
    }
    for name in ["messages", "tool_results"] {
        let list = event.get_mut(name).and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(decorate_message);
    }
    let list = event.pointer_mut("/payload/messages").and_then(Value::as_array_mut);
    list.into_iter().flatten().for_each(decorate_message);
    match type_name.as_str() {
        "AgentStart" => event["metadata"] = json!({"n": "@long", "z": "@spelled"}),
        "ToolExecutionStart" => event["args"] = json!({"n": "@long", "a": {"z": "@spelled"}}),
        _ => {}
    }
}

fn decorate_message(message: &mut Value) {
    message["x_after"] = json!({"n": "@long", "z": "@spelled"});
    if let Some(usage) = message.get_mut("usage") {
        usage["service_tier"] = json!("std");
    }
    if message.get("details").is_some() {
        message["details"] = json!({"n": "@long"});
    }
    for block in message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        block["cache_control"] = json!({"type": "ephemeral", "ttl": "@spelled"});
        if block["type"] == "toolCall" {
            block["arguments"]["n"] = json!("@long");
        }
    }
}

/// The parts of an event that must come back as they were sent.
fn parts(event: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Parts<'a> {
        r#type: String,
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
        #[serde(borrow, default)]
        messages: Option<Vec<&'a RawValue>>,
        #[serde(borrow, default)]
        tool_results: Option<Vec<&'a RawValue>>,
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        partial_result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        metadata: Option<&'a RawValue>,
        #[serde(borrow, default)]
        args: Option<&'a RawValue>,
        #[serde(borrow, default)]
        payload: Option<&'a RawValue>,
    }
    let parts: Parts<'_> = serde_json::from_str(event).unwrap();
    let single = [
        parts.message,
        parts.result,
        parts.partial_result,
        parts.metadata,
        parts.args,
        parts.payload,
    ];
    let lists = [parts.messages, parts.tool_results].into_iter().flatten().flatten();
    let texts = single.into_iter().flatten().chain(lists).map(|part| part.get().to_owned());
    std::iter::once(parts.r#type).chain(texts).collect()
}

/// Records a stream, and checks that every part of it comes back: in the entries, in the log and in a replay.
fn check(events: &[Value], spelling: Spelling, what: &str) {
    let config = SessionRecorderConfig {
        include_streaming_events: true,
        ..SessionRecorderConfig::default()
    };
    let mut translator = Translator::new(config);
    let mut logs: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    let (mut sent, mut messages) = (Vec::new(), Vec::new());
    for event in events {
        let text = written(event, spelling);
        let translation = translator.on_event(AgentEvent::from_json(&text).unwrap());
        let records = translation.batches.iter().flat_map(|batch| &batch.records);
        let is_event = |record: &Record| matches!(record, Record::Loop(event) if !event.event.get().contains("\"bough:"));
        if records.clone().any(|record| is_event(&record.record)) {
            messages.extend(parts(&text).into_iter().skip(1));
            sent.push(parts(&text));
        }
        for batch in translation.batches {
            let records = batch.records.into_iter().map(|record| record.record);
            logs.entry(batch.session_id).or_default().extend(records);
        }
    }
    let mut logged: Vec<_> = logs.values().flat_map(events_of_records).map(|e| back(&e)).collect();
    let mut replayed: Vec<Vec<String>> = Vec::new();
    for (session_id, log) in &logs {
        let mut fold = RecordFold::to_replay(session_id.as_str());
        log.iter().for_each(|record| fold.read(record));
        let steps =
            fold.replay().into_iter().flat_map(|replay| replay.events().collect::<Vec<_>>());
        replayed.extend(
            steps.filter(|event| !event.type_name().starts_with("bough:")).map(|e| back(&e)),
        );
    }
    sent.sort();
    logged.sort();
    replayed.sort();
    assert_eq!(logged, sent, "{what}, {spelling:?}: the log");
    assert_eq!(replayed, sent, "{what}, {spelling:?}: the replay");
    for record in logs.values().flatten() {
        if let Record::Entry(entry) = record
            && let EntryBody::Foreign(body) = &entry.body
        {
            assert!(messages.iter().any(|sent| sent == body.json.get()), "{what}: {}", body.json);
        }
    }
}

fn back(event: &AgentEvent) -> Vec<String> {
    parts(&serde_json::to_string(event).unwrap())
}

fn streams() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    #[expect(clippy::disallowed_methods, reason = "tests read their cases from the source tree")]
    let files = std::fs::read_dir(folder).unwrap().map(|file| {
        let path = file.unwrap().path();
        (
            path.file_name().unwrap().to_string_lossy().into_owned(),
            std::fs::read_to_string(path).unwrap(),
        )
    });
    files.filter_map(|(name, text)| Some((name, events_of(&text)?))).collect()
}

/// The events of a case, or of a file of events.
fn events_of(text: &str) -> Option<Vec<Value>> {
    if let Ok(case) = serde_json::from_str::<Value>(text) {
        let steps = case.get("steps")?.as_array()?.iter();
        return Some(steps.filter_map(|step| step.get("event").cloned()).collect());
    }
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn every_case_comes_back_byte_for_byte() {
    let streams = streams();
    assert!(streams.len() >= 20, "{}", streams.len());
    for (name, mut events) in streams {
        for spelling in SPELLINGS {
            check(&events, spelling, &name);
        }
        events.iter_mut().for_each(decorate);
        for spelling in SPELLINGS {
            check(&events, spelling, &format!("{name} with unknown members"));
        }
    }
}

proptest! {
    #[test]
    fn every_stream_comes_back_byte_for_byte(choices in choices(60), spelling in 0..3_usize) {
        let events = stream("s", &choices, Links::default());
        let mut events: Vec<Value> =
            events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        events.iter_mut().for_each(decorate);
        check(&events, SPELLINGS[spelling], "generated");
    }
}
