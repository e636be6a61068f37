//! Compacting a recorded session: every builder gives the same context.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Place, Server, answered};
use bough_platform::{OsEntropy, SystemClock};
use bough_recorder::{
    CompactionConfig, CompactionScope, HeuristicTokenCounter, RecordSink,
    build_context_from_session, fold_records,
};
use bough_service::{RecordingSink, Scope, Service};
use serde_json::{Value, json};
use std::sync::Arc;

const LOOP: &str = "sess.p.m.1";

/// The events of a loop of many turns.
fn events(turns: usize) -> Vec<Value> {
    loop_events((LOOP, None, json!("Initial")), LOOP, turns)
}

/// The events of a loop, given its id, its parent and how it continues that, with the questions of a loop.
fn loop_events(
    (id, parent, kind): (&str, Option<&str>, Value),
    asked_in: &str,
    turns: usize,
) -> Vec<Value> {
    let at = |second: usize| format!("2026-11-15T07:{:02}:{:02}Z", second / 60, second % 60);
    let mut events = vec![json!({"type": "AgentStart", "agent_id": "a", "session_id": "sess",
        "loop_id": id, "parent_loop_id": parent, "continuation_kind": kind,
        "timestamp": at(0), "metadata": null, "config_snapshot": null})];
    let mut messages = Vec::new();
    for turn in 0..turns {
        let answer = json!({"role": "assistant", "model": "m", "provider": "p", "timestamp": 1,
            "stopReason": "stop", "usage": {"input": 1, "output": 1, "cache_read": 0,
            "cache_write": 0, "reasoning": 0, "total_tokens": 2},
            "content": [{"type": "text", "text": format!("Answer {turn} of {id}: {}", "word ".repeat(60))}]});
        let question = json!({"role": "user", "timestamp": 1,
            "content": [{"type": "text", "text": format!("Question {turn} of {asked_in}")}]});
        events.push(json!({"type": "TurnStart", "loop_id": id, "turn_index": turn,
            "timestamp": at(turn), "triggered_by": "User"}));
        for message in [question, answer.clone()] {
            messages.push(message.clone());
            for kind in ["MessageStart", "MessageEnd"] {
                events.push(json!({"type": kind, "loop_id": id, "message": message}));
            }
        }
        events.push(json!({"type": "TurnEnd", "loop_id": id, "turn_index": turn,
            "timestamp": at(turn), "message": answer, "tool_results": [],
            "usage": {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0,
            "total_tokens": 2}}));
    }
    events.push(
        json!({"type": "AgentEnd", "loop_id": id, "messages": messages, "timestamp": at(turns),
        "usage": {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0,
        "total_tokens": 2}, "rejection": null}),
    );
    events
}

fn recorded() -> Place {
    let place = Place::new();
    record(&place, &events(20));
    place
}

fn record(place: &Place, events: &[Value]) {
    let mut child = place
        .command(&["record"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let done = answered(child.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
}

fn texts(context: &Value) -> Vec<String> {
    let messages = context["messages"].as_array().unwrap().iter();
    let text = |item: &Value| item["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    messages.map(text).collect()
}

/// The context as the recorder's loader builds it from the same log.
fn loaded(place: &Place) -> Vec<String> {
    loaded_at(place, LOOP)
}

fn loaded_at(place: &Place, id: &str) -> Vec<String> {
    place.with_store(async |store| {
        let clock = Arc::new(SystemClock::new());
        let service = Service::new(Arc::new(store.clone()), clock, Arc::new(OsEntropy));
        let sink = RecordingSink::new(&service, &Scope::owner());
        let records = sink.load("sess").await.unwrap();
        let session = fold_records("sess", &records).unwrap();
        let config = CompactionConfig {
            compaction_scope: CompactionScope::FixedCount(usize::MAX),
            ..CompactionConfig::default()
        };
        let counter = HeuristicTokenCounter;
        let context = build_context_from_session(&session, id, &config, usize::MAX, &counter);
        context.messages.iter().map(bough_recorder::RecordedMessage::text).collect()
    })
}

#[test]
fn blocks_are_written_and_every_context_honours_them() {
    let place = recorded();
    let whole = texts(&place.json(&["context", "sess"])["context"]);
    assert_eq!(whole.len(), 40);
    assert_eq!(whole, loaded(&place));
    let planned = place.json(&["compact", "sess", "--keep-recent", "500", "--dry-run"]);
    assert_eq!((&planned["written"], &planned["loops"]), (&json!(false), &json!([LOOP])));
    assert_eq!(texts(&place.json(&["context", "sess"])["context"]), whole, "nothing was written");
    let before = place.json(&["context", "sess"])["tokens"].clone();
    let done = place.json(&["compact", "sess", "--keep-recent", "500", "--yes"]);
    assert_eq!((&done["written"], &done["tokens_before"]), (&json!(true), &before));
    let compacted = texts(&place.json(&["context", "sess"])["context"]);
    assert!(compacted.iter().any(|text| text.starts_with("[Summary]")), "{compacted:?}");
    assert!(compacted.concat().len() < whole.concat().len());
    assert_eq!(compacted, loaded(&place), "the library's loader says the same");
    {
        let server = Server::start(&place);
        let address = ["--server", &server.address];
        let args: Vec<&str> = ["context", "sess"].into_iter().chain(address).collect();
        assert_eq!(texts(&place.json(&args)["context"]), compacted, "and so does a server");
    }
    place.ok(&["compact", "sess", "--undo"]);
    assert_eq!(texts(&place.json(&["context", "sess"])["context"]), whole);
    assert_eq!(
        place.json(&["compact", "sess", "--undo"])["nothing_to_do"],
        "no compaction is in force"
    );
}

/// Continuations, a branch, and other tries with another question and with the same; each after the loops before it, and again
/// when what is older is compacted.
#[test]
fn every_builder_follows_the_branches_of_a_recorded_session_alike() {
    let place = recorded();
    let id = |number: usize| format!("sess.p.m.{number}");
    let tagged = |kind: &str| json!({kind: {"tag": "again"}});
    let kinds = [
        (2, 1, 2, json!("Default")),
        (3, 1, 3, tagged("Branch")),
        (4, 3, 4, json!("Default")),
        (5, 3, 5, tagged("Rerun")),
        (6, 5, 6, json!("Default")),
        (7, 6, 6, tagged("Rerun")),
        (8, 7, 8, json!("Default")),
    ];
    for (number, parent, asked_in, kind) in kinds {
        let (own, parent) = (id(number), id(parent));
        record(&place, &loop_events((&own, Some(&parent), kind), &id(asked_in), 3));
        let context = texts(&place.json(&["context", "sess"])["context"]);
        assert_eq!(context, loaded_at(&place, &own), "after {own}");
        assert!(context.last().unwrap().contains(&own), "{context:?}");
    }
    place.ok(&["compact", "sess", "--keep-recent", "500", "--yes"]);
    let compacted = texts(&place.json(&["context", "sess"])["context"]);
    assert!(compacted.iter().any(|text| text.starts_with("[Summary]")), "{compacted:?}");
    assert_eq!(compacted, loaded_at(&place, &id(8)));
}

/// What the command prints for programs is what HTTP answers, of a conversation and of a recorded session.
#[test]
fn the_command_prints_what_http_answers() {
    let place = recorded();
    let (session, _) = place.with(async |sessions| sessions.conversation("Date parser").await);
    let server = Server::start(&place);
    for (session, keep) in [(session.as_str(), "5"), ("sess", "500")] {
        let path = format!("/v1/sessions/{session}/compaction");
        let by_command = |args: &[&str]| {
            let base = ["compact", session, "--server", &server.address];
            place.json(&[&base[..], args].concat())
        };
        let planned = server.http("GET", &format!("{path}?keep_recent_tokens={keep}"), None);
        assert_eq!(by_command(&["--keep-recent", keep, "--dry-run"]), planned);
        let mut written = by_command(&["--keep-recent", keep, "--digest", "--yes"]);
        assert_eq!(written["written"], json!(true));
        let mut undone = by_command(&["--undo"]);
        let request = json!({"keep_recent_tokens": keep.parse::<u64>().unwrap(), "digest": true});
        let mut by_http = server.http("POST", &path, Some(&request));
        let mut undone_by_http = server.http("DELETE", &path, None);
        // Each compaction is an entry of its own.
        for answer in [&mut written, &mut by_http, &mut undone, &mut undone_by_http] {
            for field in ["entry_id", "active_leaf", "undone"] {
                answer.as_object_mut().unwrap().remove(field);
            }
        }
        assert_eq!(written, by_http);
        assert_eq!(undone, undone_by_http);
        assert_eq!(by_command(&["--undo"]), server.http("DELETE", &path, None));
    }
}

#[test]
fn a_summary_of_somebody_else_stands_for_the_turns() {
    let place = recorded();
    let summary = place.file("summary.md").display().to_string();
    {
        #![expect(clippy::disallowed_methods, reason = "a test makes files of its own")]
        std::fs::write(&summary, "They asked, and were answered.").unwrap();
    }
    place.ok(&["compact", "sess", "--keep-recent", "500", "--summary-file", &summary, "--yes"]);
    let context = texts(&place.json(&["context", "sess"])["context"]);
    let summaries = context.iter().filter(|text| *text == "They asked, and were answered.");
    assert_eq!(summaries.count(), 1, "{context:?}");
    assert_eq!(context, loaded(&place));
}
