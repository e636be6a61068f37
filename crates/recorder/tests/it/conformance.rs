//! Event streams with the sessions that phi-core made of them (`tests/cases`).
//!
//! A case is `conforming` (ours must be equal), `quirk` (the documents are silent; ours are equal unless there is a
//! reason) or `defect` (phi-core contradicts its documents: what ours must be instead is written here).

use std::path::Path;
use std::sync::{Arc, Mutex};

use bough_recorder::{
    AgentEvent, RecordedSession, SessionRecorder, SessionRecorderConfig, Timestamp,
};
use serde_json::{Map, Value, json};

struct Outcome {
    drains: Vec<Vec<RecordedSession>>,
    callbacks: Vec<Value>,
    /// The answers of `current_loop`, each as a status.
    looks: Vec<(String, Option<Value>)>,
    notices: Vec<String>,
}

fn load(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    #[expect(clippy::disallowed_methods, reason = "tests read their cases from the source tree")]
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn run(case: &Value) -> Outcome {
    let callbacks = Arc::new(Mutex::new(Vec::new()));
    let mut recorder = SessionRecorder::new(config(&case["recorder_config"], &callbacks));
    let (mut drains, mut looks, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for step in case["steps"].as_array().unwrap() {
        match step["op"].as_str() {
            None | Some("event") => {
                let event: AgentEvent = serde_json::from_value(step["event"].clone()).unwrap();
                let report = recorder.on_event(event);
                notices.extend(report.notices.iter().map(ToString::to_string));
            }
            Some("flush") => {
                recorder.flush();
            }
            Some("checkpoint") => {
                assert_eq!(json!(recorder.checkpoint()), step["expect_promoted"]);
            }
            Some("drain_completed") => drains.push(recorder.drain_completed()),
            Some("current_loop") => {
                let loop_id = step["loop_id"].as_str().unwrap();
                let look = recorder.current_loop(loop_id).map(|record| {
                    json!({
                        "status": record.status,
                        "events": record.events.len(),
                        "turns": record.turns.len(),
                        "messages": record.messages.len(),
                        "children_loop_ids": record.children_loop_ids,
                        "config": record.config,
                        "parallel_group": record.parallel_group,
                    })
                });
                looks.push((loop_id.to_owned(), look));
            }
            Some(other) => panic!("unknown step {other}"),
        }
    }
    let callbacks = callbacks.lock().unwrap().clone();
    Outcome { drains, callbacks, looks, notices }
}

fn config(asked: &Value, callbacks: &Arc<Mutex<Vec<Value>>>) -> SessionRecorderConfig {
    let mut config = SessionRecorderConfig {
        include_streaming_events: asked["include_streaming_events"].as_bool().unwrap(),
        ..SessionRecorderConfig::default()
    };
    if let Some(answer) = asked["before_task_returns"].as_bool() {
        let callbacks = Arc::clone(callbacks);
        config.before_task = Some(Arc::new(move |session| {
            callbacks.lock().unwrap().push(json!({
                "hook": "before_task",
                "session_id": session.session_id,
                "agent_id": session.agent_id,
                "loops_seen": session.loops.len(),
                "parent_spawn_ref_set": session.parent_spawn_ref.is_some(),
                "returned": answer,
            }));
            answer
        }));
    }
    if asked["after_task"] == json!(true) {
        let callbacks = Arc::clone(callbacks);
        config.after_task = Some(Arc::new(move |session| {
            callbacks.lock().unwrap().push(json!({
                "hook": "after_task",
                "session_id": session.session_id,
                "loops_seen": session.loops.len(),
            }));
        }));
    }
    config
}

/// JSON values in a form that can be compared: null is absent, a time is an instant.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), normal(value))).collect())
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::String(text) => match text.parse::<Timestamp>() {
            Ok(moment) => json!(moment),
            Err(_) => value.clone(),
        },
        other => other.clone(),
    }
}

/// Sorts what may be in any order: sessions by id, and a trailing run of aborted loops.
fn ordered(mut sessions: Vec<Value>) -> Vec<Value> {
    for session in &mut sessions {
        let loops = session["loops"].as_array_mut().unwrap();
        let aborted = |record: &&Value| record["status"] == json!("Aborted");
        let tail = loops.len() - loops.iter().rev().take_while(aborted).count();
        loops[tail..].sort_by_key(|record| record["loop_id"].to_string());
    }
    sessions.sort_by_key(|session| session["session_id"].to_string());
    sessions
}

fn documents(drain: &[RecordedSession]) -> Vec<Value> {
    ordered(drain.iter().map(|session| normal(&serde_json::to_value(session).unwrap())).collect())
}

fn expected_documents(drain: &Value) -> Vec<Value> {
    let sessions = drain.as_array().unwrap().iter();
    ordered(sessions.map(|expected| normal(&expected["session"])).collect())
}

/// The answers of a session to every query.
fn answers(session: &RecordedSession) -> Value {
    let ids = |records: &mut dyn Iterator<Item = &bough_recorder::LoopRecord>| -> Value {
        records.map(|record| json!(record.loop_id)).collect()
    };
    let mut children = Map::new();
    let mut siblings = Map::new();
    let mut chains = Map::new();
    for record in &session.loops {
        let id = record.loop_id.as_str();
        children.insert(id.to_owned(), ids(&mut session.children_of(id)));
        siblings.insert(id.to_owned(), ids(&mut session.parallel_siblings(id)));
        chains.insert(id.to_owned(), json!(session.loop_chain_to(id)));
    }
    json!({
        "children_of": children,
        "parallel_siblings": siblings,
        "loop_chain_to": chains,
        "loop_chain_to_unknown": session.loop_chain_to("no-such-loop"),
        "loop_ids_in_order": ids(&mut session.loops.iter()),
        "root_loops": ids(&mut session.root_loops()),
        "total_usage": figures(&session.total_usage()),
    })
}

fn check_looks(case: &Value, outcome: &Outcome) {
    let steps = case["steps"].as_array().unwrap().iter();
    let looked = steps.filter(|step| step["op"] == json!("current_loop"));
    for (step, (loop_id, look)) in looked.zip(&outcome.looks) {
        let look = look.as_ref().map_or(Value::Null, normal);
        assert_eq!(look, normal(&step["expect"]), "{loop_id}");
    }
}

/// Ours must be equal to phi-core's in every respect.
fn check_equal(name: &str) {
    let case = load(name);
    let outcome = run(&case);
    let drains = case["expected"]["drains"].as_array().unwrap();
    assert_eq!(outcome.drains.len(), drains.len(), "{name}");
    for (drain, expected) in outcome.drains.iter().zip(drains) {
        assert_eq!(documents(drain), expected_documents(expected), "{name}");
        for expected in expected.as_array().unwrap() {
            let id = expected["session"]["session_id"].as_str().unwrap();
            let session = drain.iter().find(|session| session.session_id == id).unwrap();
            assert_eq!(normal(&answers(session)), normal(&expected["queries"]), "{name}");
        }
    }
    assert_eq!(json!(outcome.callbacks), case["expected"]["callbacks"], "{name}");
    check_looks(&case, &outcome);
}

#[test]
fn conforming_cases_are_equal() {
    for name in [
        "01_simple_loop.json",
        "02_continuation_chain.json",
        "04_branch_tree.json",
        "06_parallel_select_second.json",
        "12_sub_agent_spawn.json",
        "18_input_rejected.json",
        "19_flush_aborts_open_loop.json",
        "23_streaming_off.json",
        "38_config_snapshot.json",
        "39_message_shapes.json",
    ] {
        assert_eq!(load(name)["class"], json!("conforming"), "{name}");
        check_equal(name);
    }
}

/// Turns that begin or end alone are no turns, and their events stay (decision 0021).
#[test]
fn quirk_41_unpaired_turns_are_no_turns_and_are_reported() {
    check_equal("41_turn_edges.json");
    let notices = run(&load("41_turn_edges.json")).notices;
    assert_eq!(
        notices,
        [
            "a turn of \"sess-a.cfg.1\" ended that had not begun",
            "turn 0 of \"sess-a.cfg.1\" did not end",
        ]
    );
}

/// The sessions of a defect's case: those of phi-core, changed as its documents demand.
fn check_changed(name: &str, change: impl Fn(&mut Vec<Value>)) -> Outcome {
    let case = load(name);
    assert_eq!(case["class"], json!("defect"), "{name}");
    let outcome = run(&case);
    let last = outcome.drains.last().unwrap();
    let drains = case["expected"]["drains"].as_array().unwrap();
    let mut expected = expected_documents(drains.last().unwrap());
    change(&mut expected);
    assert_eq!(documents(last), ordered(expected), "{name}");
    outcome
}

#[test]
fn defect_08_announced_loops_are_pending_and_never_vanish() {
    let outcome = check_changed("08_parallel_pending_never_started.json", |sessions| {
        let loops = sessions[0]["loops"].as_array_mut().unwrap();
        let mut group = loops[1]["parallel_group"].clone();
        group["is_selected"] = json!(false);
        let gone = json!({
            "loop_id": "sess-a.gone.3", "session_id": "sess-a", "agent_id": "agent-1",
            "continuation_kind": "Initial", "started_at": "2026-01-01T00:00:00Z",
            "status": "Aborted", "messages": [], "turns": [], "events": [],
            "usage": {"input": 0, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0,
                "total_tokens": 0},
            "children_loop_ids": [], "child_loop_refs": [], "parallel_group": group,
        });
        loops.insert(0, gone);
    });
    for (loop_id, look) in &outcome.looks {
        assert_eq!(look.as_ref().unwrap()["status"], json!("Pending"), "{loop_id}");
    }
    let session = &outcome.drains[0][0];
    assert_eq!(session.parallel_siblings("sess-a.opus.2").count(), 3);
}

#[test]
fn defect_14_a_sub_agent_that_comes_late_is_linked_on_both_sides() {
    check_changed("14_sub_agent_tool_end_before_child_start.json", |sessions| {
        let child = sessions.iter_mut().find(|s| s["session_id"] == json!("sess-child"));
        child.unwrap()["parent_spawn_ref"] = json!({
            "parent_session_id": "sess-parent", "parent_loop_id": "sess-parent.cfg.1",
            "tool_call_id": "tc-1", "tool_name": "sub_agent",
        });
    });
}

#[test]
fn defect_22_loops_are_in_the_order_of_their_start() {
    let outcome = check_changed("22_child_ends_before_parent.json", |sessions| {
        sessions[0]["loops"].as_array_mut().unwrap().reverse();
    });
    check_looks(&load("22_child_ends_before_parent.json"), &outcome);
    let order = &answers(&outcome.drains[0][0])["loop_ids_in_order"];
    assert_eq!(*order, json!(["sess-a.cfg.1", "sess-a.cfg.2"]));
}

#[test]
fn defect_26_a_loop_id_that_is_used_again_is_another_loop() {
    let outcome = check_changed("26_standalone_compaction_pass.json", |sessions| {
        let loops = sessions[0]["loops"].as_array_mut().unwrap();
        loops[0]["children_loop_ids"] = json!(["sess-a.cfg.1-2"]);
        loops[1]["loop_id"] = json!("sess-a.cfg.1-2");
    });
    let session = &outcome.drains[0][0];
    assert_eq!(session.root_loops().count(), 1);
    assert_eq!(session.loop_chain_to("sess-a.cfg.1-2"), ["sess-a.cfg.1", "sess-a.cfg.1-2"]);
    assert_eq!(outcome.notices.len(), 1, "{:?}", outcome.notices);
}

#[test]
fn defect_29_a_refused_session_is_not_recorded() {
    let outcome = check_changed("29_before_task_reject.json", Vec::clear);
    assert_eq!(outcome.callbacks.len(), 1);
    assert_eq!(outcome.callbacks[0]["hook"], json!("before_task"));
    assert_eq!(outcome.notices.len(), 16, "every event is accounted for");
}

#[test]
fn defect_31_a_session_that_comes_back_is_continued() {
    let outcome = check_changed("31_reopen_after_checkpoint.json", |sessions| {
        let first = load("31_reopen_after_checkpoint.json");
        let mut whole = expected_documents(&first["expected"]["drains"][0])[0].clone();
        let later = &mut sessions[0];
        whole["loops"][0]["children_loop_ids"] = json!(["sess-a.cfg.2"]);
        let second = later["loops"][0].take();
        whole["loops"].as_array_mut().unwrap().push(second);
        whole["last_active_at"] = later["last_active_at"].take();
        *later = whole;
    });
    assert_eq!(outcome.callbacks.len(), 1, "before_task is asked once");
    let first = load("31_reopen_after_checkpoint.json");
    let expected = expected_documents(&first["expected"]["drains"][0]);
    assert_eq!(documents(&outcome.drains[0]), expected);
}

#[test]
fn defect_36_a_parent_in_the_same_session_is_known_whatever_its_id_looks_like() {
    check_changed("36_opaque_loop_ids.json", |sessions| {
        sessions[0].as_object_mut().unwrap().remove("parent_spawn_ref");
    });
}

#[test]
fn every_case_in_the_folder_is_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    #[expect(clippy::disallowed_methods, reason = "tests read their cases from the source tree")]
    let names = std::fs::read_dir(path).unwrap();
    let here = include_str!("conformance.rs");
    for name in names {
        let name = name.unwrap().file_name().into_string().unwrap();
        if name.as_bytes()[0].is_ascii_digit() {
            assert!(here.contains(&name), "{name} is not run");
        }
    }
}

fn figures(usage: &bough_session::Usage) -> Value {
    json!({"input": usage.input, "output": usage.output, "reasoning": usage.reasoning,
        "cache_read": usage.cache_read, "cache_write": usage.cache_write,
        "total_tokens": bough_recorder::total_tokens(usage)})
}
