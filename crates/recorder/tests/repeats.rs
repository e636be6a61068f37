//! Streams that are recorded a second time: what is there already is recognised, and nothing is recorded twice.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops where something is not as it should be"
)]

use std::collections::HashMap;

use bough_recorder::{
    AgentEvent, LoopStatus, Notice, Replay, Session, SessionRecorder, SessionRecorderConfig,
    Translator, fold_records,
};
use bough_session::Record;
use serde_json::Value;

/// Streams in which every loop that starts also ends.
const STREAMS: [(&str, &str); 9] = [
    ("a loop", include_str!("cases/01_simple_loop.json")),
    ("a chain", include_str!("cases/02_continuation_chain.json")),
    ("branches", include_str!("cases/04_branch_tree.json")),
    ("a group", include_str!("cases/06_parallel_select_second.json")),
    ("a loop that never started", include_str!("cases/08_parallel_pending_never_started.json")),
    ("sub-agents", include_str!("cases/12_sub_agent_spawn.json")),
    (
        "a sub-agent that comes late",
        include_str!("cases/14_sub_agent_tool_end_before_child_start.json"),
    ),
    ("a rejected input", include_str!("cases/18_input_rejected.json")),
    ("an id that is used again", include_str!("cases/26_standalone_compaction_pass.json")),
];

fn events_of(case: &str) -> Vec<AgentEvent> {
    let case: Value = serde_json::from_str(case).unwrap();
    let steps = case["steps"].as_array().unwrap().iter();
    let events = steps.filter_map(|step| step.get("event").cloned());
    events.map(|event| serde_json::from_value(event).unwrap()).collect()
}

fn real_run() -> Vec<AgentEvent> {
    let lines = include_str!("cases/events_real_run.jsonl").lines();
    lines.map(|line| AgentEvent::from_json(line).unwrap()).collect()
}

fn streams() -> Vec<(&'static str, Vec<AgentEvent>)> {
    let cases = STREAMS.iter().map(|(name, case)| (*name, events_of(case)));
    cases.chain([("a real run", real_run())]).collect()
}

fn config(include_streaming_events: bool) -> SessionRecorderConfig {
    SessionRecorderConfig { include_streaming_events, ..SessionRecorderConfig::default() }
}

fn is_recorded_already(notices: &[Notice]) -> bool {
    matches!(notices, [Notice::AlreadyRecorded { .. }])
}

fn drain(recorder: &mut SessionRecorder) -> Vec<Session> {
    recorder.flush();
    recorder.drain_completed()
}

#[test]
fn what_is_heard_again_is_recognised() {
    for (name, events) in streams() {
        let mut recorder = SessionRecorder::new(config(true));
        for event in &events {
            recorder.on_event(event.clone());
        }
        assert!(!drain(&mut recorder).is_empty());
        for _ in 0..2 {
            for event in &events {
                let report = recorder.on_event(event.clone());
                assert!(is_recorded_already(&report.notices), "{name}: {report:?} of {event:?}");
                assert!(!report.is_lost());
            }
        }
        assert!(drain(&mut recorder).is_empty(), "{name}: there is nothing new");
    }
}

/// The records of each session that an event stream adds to the logs.
struct Logs(HashMap<String, Vec<Record>>);

impl Logs {
    /// A recorder that begins with what the logs hold hears the events.
    fn record(&mut self, events: &[AgentEvent]) -> usize {
        let mut translator = Translator::new(config(false));
        for (session_id, log) in &self.0 {
            assert!(translator.resume(session_id, log).is_empty(), "no loop is open");
        }
        let mut added = 0;
        for event in events {
            for batch in translator.on_event(event.clone()).batches {
                added += batch.records.len();
                let log = self.0.entry(batch.session_id).or_default();
                log.extend(batch.records.into_iter().map(|record| record.record));
            }
        }
        added
    }

    fn folds(&self) -> HashMap<String, Option<Session>> {
        let logs = self.0.iter();
        logs.map(|(id, log)| (id.clone(), fold_records(id, log))).collect()
    }
}

#[test]
fn a_log_does_not_grow_when_its_events_come_again() {
    for (name, events) in streams() {
        let mut logs = Logs(HashMap::new());
        assert!(logs.record(&events) > 0);
        let before = logs.folds();
        assert_eq!(logs.record(&events), 0, "{name}");
        // A replay says everything that the session knows, and adds nothing either.
        for session in before.values().flatten() {
            let replay: Vec<AgentEvent> = Replay::of(session).events().collect();
            assert_eq!(logs.record(&replay), 0, "{name}");
        }
        assert_eq!(logs.folds(), before);
    }
}

#[test]
fn a_longer_stream_adds_what_is_new() {
    let events = events_of(STREAMS[1].1);
    let ends = events.iter().position(|event| event.type_name() == "AgentEnd").unwrap();
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events[..=ends] {
        recorder.on_event(event.clone());
    }
    drain(&mut recorder);
    let reports = events.iter().map(|event| recorder.on_event(event.clone()));
    let already: Vec<bool> = reports.map(|report| is_recorded_already(&report.notices)).collect();
    assert!(already.iter().enumerate().all(|(at, is_already)| *is_already == (at <= ends)));
    let mut at_once = SessionRecorder::new(config(false));
    for event in events {
        at_once.on_event(event);
    }
    assert_eq!(drain(&mut recorder), drain(&mut at_once));
}

fn start_of(events: &[AgentEvent]) -> bough_recorder::AgentStart {
    match &events[0] {
        AgentEvent::AgentStart(start) => (**start).clone(),
        other => panic!("{other:?}"),
    }
}

fn ids(session: &Session) -> Vec<&str> {
    session.loops.iter().map(|record| record.loop_id.as_str()).collect()
}

#[test]
fn another_loop_with_the_same_id_is_another_loop() {
    let events = events_of(STREAMS[0].1);
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events {
        recorder.on_event(event.clone());
    }
    let mut later = start_of(&events);
    later.timestamp = bough_recorder::Timestamp::from_unix_ms(later.timestamp.unix_ms() + 1);
    let report = recorder.on_event(later.into());
    assert!(matches!(report.notices[..], [Notice::LoopRenamed { .. }]), "{report:?}");
}

#[test]
fn a_loop_that_was_broken_off_may_come_to_its_end() {
    let events = events_of(STREAMS[0].1);
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events[..3] {
        recorder.on_event(event.clone());
    }
    drain(&mut recorder);
    for event in &events {
        recorder.on_event(event.clone());
    }
    let session = drain(&mut recorder).remove(0);
    let statuses: Vec<LoopStatus> = session.loops.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [LoopStatus::Aborted, LoopStatus::Completed]);
    let id = ids(&session)[0];
    assert_eq!(ids(&session)[1], format!("{id}-2"));
    let mut copy = SessionRecorder::new(config(false));
    for event in Replay::of(&session).events() {
        copy.on_event(event);
    }
    assert_eq!(drain(&mut copy), std::slice::from_ref(&session));
    for event in &events {
        let report = recorder.on_event(event.clone());
        assert!(is_recorded_already(&report.notices), "{report:?}");
    }
}

#[test]
fn what_a_loop_says_otherwise_is_kept_and_reported() {
    let events = events_of(STREAMS[0].1);
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events {
        recorder.on_event(event.clone());
    }
    let before = drain(&mut recorder).remove(0);
    let rejected = r#"{"type":"InputRejected","loop_id":"","reason":"new"}"#;
    let mut rejected: Value = serde_json::from_str(rejected).unwrap();
    rejected["loop_id"] = start_of(&events).loop_id.into();
    recorder.on_event(events[0].clone());
    let report = recorder.on_event(serde_json::from_value(rejected).unwrap());
    assert!(matches!(report.notices[..], [Notice::LateEvent { .. }]), "{report:?}");
    let report = recorder.on_event(events[1].clone());
    assert!(is_recorded_already(&report.notices), "{report:?}");
    let after = drain(&mut recorder).remove(0);
    let count = |session: &Session| session.loops.last().unwrap().events.len();
    assert_eq!(count(&after), count(&before) + 1);
}

/// Whoever kept the pieces of messages and then records without them hears nothing new.
#[test]
fn pieces_that_are_not_heard_again_make_no_difference() {
    let events = real_run();
    let mut recorder = SessionRecorder::new(config(true));
    for event in &events {
        recorder.on_event(event.clone());
    }
    let session = drain(&mut recorder).remove(0);
    let mut without = SessionRecorder::new(config(false));
    without.resume(session);
    for event in &events {
        let report = without.on_event(event.clone());
        let is_piece = matches!(event, AgentEvent::MessageUpdate(_));
        assert!(is_piece || is_recorded_already(&report.notices), "{report:?}");
    }
    assert!(drain(&mut without).is_empty());
}
