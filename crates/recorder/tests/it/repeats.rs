//! Streams that are recorded a second time: stored events are recognised, and nothing is recorded twice.

use std::collections::HashMap;

use bough_recorder::{
    AgentEvent, LoopStatus, Notice, ParallelLoopStart, RecordBatch, RecordedSession, Replay,
    SessionRecorder, SessionRecorderConfig, Timestamp, Translator, fold_records,
};
use bough_session::Record;
use serde_json::Value;

/// Streams in which every loop that starts also ends.
const STREAMS: [(&str, &str); 9] = [
    ("a loop", include_str!("../cases/01_simple_loop.json")),
    ("a chain", include_str!("../cases/02_continuation_chain.json")),
    ("branches", include_str!("../cases/04_branch_tree.json")),
    ("a group", include_str!("../cases/06_parallel_select_second.json")),
    ("a loop that never started", include_str!("../cases/08_parallel_pending_never_started.json")),
    ("sub-agents", include_str!("../cases/12_sub_agent_spawn.json")),
    (
        "a sub-agent that comes late",
        include_str!("../cases/14_sub_agent_tool_end_before_child_start.json"),
    ),
    ("a rejected input", include_str!("../cases/18_input_rejected.json")),
    ("an id that is used again", include_str!("../cases/26_standalone_compaction_pass.json")),
];

fn events_of(case: &str) -> Vec<AgentEvent> {
    let case: Value = serde_json::from_str(case).unwrap();
    let steps = case["steps"].as_array().unwrap().iter();
    let events = steps.filter_map(|step| step.get("event").cloned());
    events.map(|event| serde_json::from_value(event).unwrap()).collect()
}

fn real_run() -> Vec<AgentEvent> {
    let lines = include_str!("../cases/events_real_run.jsonl").lines();
    lines.map(|line| AgentEvent::from_json(line).unwrap()).collect()
}

fn streams() -> Vec<(&'static str, Vec<AgentEvent>)> {
    let cases = STREAMS.iter().map(|(name, case)| (*name, events_of(case)));
    let odd = [
        ("a real run", real_run()),
        ("a clock that is put back", clock_is_put_back()),
        ("the id of a loop of a group, used again", id_of_a_group_is_used_again()),
    ];
    cases.chain(odd).collect()
}

/// A group whose loops started, by their times, before it was announced.
fn clock_is_put_back() -> Vec<AgentEvent> {
    let mut events = events_of(STREAMS[3].1);
    for event in &mut events {
        if let AgentEvent::ParallelLoopStart(start) = event {
            *event = announced_later(start);
        }
    }
    events
}

/// A loop of a group starts and ends once more, under another time, before it is chosen.
fn id_of_a_group_is_used_again() -> Vec<AgentEvent> {
    let mut events = events_of(STREAMS[3].1);
    let chosen = events.iter().position(|event| event.type_name() == "ParallelLoopEnd").unwrap();
    let loop_id = chosen_of(&events);
    let of_it = events.iter().filter(|event| event.loop_id() == Some(&loop_id));
    let mut again: Vec<AgentEvent> = of_it.cloned().collect();
    for event in &mut again {
        if let AgentEvent::AgentStart(start) = event {
            let mut start = (**start).clone();
            start.timestamp = Timestamp::from_unix_ms(start.timestamp.unix_ms() + 60_000);
            *event = start.into();
        }
    }
    events.splice(chosen..chosen, again);
    events
}

fn chosen_of(events: &[AgentEvent]) -> String {
    let chosen = events.iter().find_map(|event| match event {
        AgentEvent::ParallelLoopEnd(end) => Some(end.selected_loop_id.clone()),
        _ => None,
    });
    chosen.unwrap()
}

#[test]
fn what_is_chosen_from_a_group_is_a_loop_of_the_group() {
    let events = id_of_a_group_is_used_again();
    let session = sessions_of(&events).into_values().next().unwrap();
    let chosen = session.get_loop(&chosen_of(&events)).unwrap();
    assert!(chosen.parallel_group.as_ref().is_some_and(|group| group.is_selected));
    let again = session.get_loop(&format!("{}-2", chosen.loop_id)).unwrap();
    assert_eq!(again.parallel_group, None);
}

fn announced_later(start: &ParallelLoopStart) -> AgentEvent {
    let timestamp = Timestamp::from_unix_ms(start.timestamp.unix_ms() + 60_000);
    ParallelLoopStart { timestamp, ..start.clone() }.into()
}

fn config(include_streaming_events: bool) -> SessionRecorderConfig {
    SessionRecorderConfig { include_streaming_events, ..SessionRecorderConfig::default() }
}

fn is_recorded_already(notices: &[Notice]) -> bool {
    matches!(notices, [Notice::AlreadyRecorded { .. }])
}

fn drain(recorder: &mut SessionRecorder) -> Vec<RecordedSession> {
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
    /// A recorder that begins with the logs records the events.
    fn record(&mut self, events: &[AgentEvent]) -> usize {
        self.record_with(config(false), events)
    }

    fn record_with(&mut self, config: SessionRecorderConfig, events: &[AgentEvent]) -> usize {
        let mut translator = Translator::new(config);
        let mut broken_off = Vec::new();
        for (session_id, log) in &self.0 {
            broken_off.extend(translator.resume(session_id, log));
        }
        let mut added = self.append(broken_off);
        for event in events {
            added += self.append(translator.on_event(event.clone()).batches);
        }
        added
    }

    fn append(&mut self, batches: Vec<RecordBatch>) -> usize {
        let mut added = 0;
        for batch in batches {
            added += batch.records.len();
            let log = self.0.entry(batch.session_id).or_default();
            log.extend(batch.records.into_iter().map(|record| record.record));
        }
        added
    }

    /// Checks that no two entries of a loop hold the same message, unless it was sent twice.
    fn check_messages_are_stored_once(&self, name: &str) {
        for (session_id, session) in self.folds() {
            let log = self.0[&session_id].iter();
            let entries = log.filter(|record| matches!(record.known(), Record::Entry(_))).count();
            let loops = session.iter().flat_map(|session| session.loops.iter());
            let messages: usize = loops.map(|record| record.messages.len()).sum();
            assert!(entries <= messages, "{name}: {entries} entries hold {messages} messages");
        }
    }

    fn folds(&self) -> HashMap<String, Option<RecordedSession>> {
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
        // A replay has everything that the session knows, and adds nothing either.
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

#[test]
fn another_loop_with_the_same_id_is_another_loop() {
    let events = events_of(STREAMS[0].1);
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events {
        recorder.on_event(event.clone());
    }
    let mut later = start_of(&events);
    later.timestamp = Timestamp::from_unix_ms(later.timestamp.unix_ms() + 1);
    let report = recorder.on_event(later.into());
    assert!(matches!(report.notices[..], [Notice::LoopRenamed { .. }]), "{report:?}");
}

/// The sessions of an uninterrupted recording, by id.
fn sessions_of(events: &[AgentEvent]) -> HashMap<String, RecordedSession> {
    let mut recorder = SessionRecorder::new(config(false));
    for event in events {
        recorder.on_event(event.clone());
    }
    by_id(drain(&mut recorder))
}

fn by_id(sessions: Vec<RecordedSession>) -> HashMap<String, RecordedSession> {
    sessions.into_iter().map(|session| (session.session_id.clone(), session)).collect()
}

#[test]
fn a_loop_that_was_broken_off_goes_on_where_it_was() {
    let events = events_of(STREAMS[0].1);
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events[..3] {
        recorder.on_event(event.clone());
    }
    let broken_off = drain(&mut recorder).remove(0);
    assert_eq!(broken_off.loops.last().unwrap().status, LoopStatus::Aborted);
    for event in &events[..3] {
        let report = recorder.on_event(event.clone());
        assert!(is_recorded_already(&report.notices), "{report:?}");
    }
    assert!(drain(&mut recorder).is_empty(), "it was broken off in the same place");
    for (at, event) in events.iter().enumerate() {
        let report = recorder.on_event(event.clone());
        assert_eq!(is_recorded_already(&report.notices), at < 3, "{report:?}");
        assert!(at < 3 || report.is_clean(), "{report:?}");
    }
    assert_eq!(by_id(drain(&mut recorder)), sessions_of(&events));
}

/// Recording an interrupted stream again gives the sessions of an uninterrupted recording.
#[test]
fn a_stream_that_was_interrupted_anywhere_can_be_recorded_again() {
    for (name, events) in streams() {
        let expected = sessions_of(&events);
        for cut in 0..=events.len() {
            let mut recorder = SessionRecorder::new(config(false));
            for event in &events[..cut] {
                recorder.on_event(event.clone());
            }
            let mut found = by_id(drain(&mut recorder));
            for event in &events {
                recorder.on_event(event.clone());
            }
            found.extend(by_id(drain(&mut recorder)));
            assert!(found == expected, "{name}, interrupted after {cut} events");
        }
    }
}

/// The same for a recorder that is killed, and another one that continues with its logs; and twice.
#[test]
fn a_recorder_that_was_killed_anywhere_leaves_logs_that_can_be_recorded_again() {
    for (name, events) in streams() {
        let expected = sessions_of(&events);
        for cut in 0..=events.len() {
            let mut logs = Logs(HashMap::new());
            logs.record(&events[..cut / 2]);
            logs.record(&events[..cut]);
            logs.record(&events);
            let found = logs.folds().into_iter().filter_map(|(id, fold)| Some((id, fold?)));
            let found: HashMap<String, RecordedSession> = found.collect();
            assert!(found == expected, "{name}, killed after {cut} events");
            assert_eq!(logs.record(&events), 0, "{name}: it is all there");
            logs.check_messages_are_stored_once(&format!("{name}, killed after {cut} events"));
        }
    }
}

/// A later run that uses the same ids is not a repetition of the aborted one.
#[test]
fn a_group_with_the_ids_of_one_that_was_broken_off_is_another_group() {
    let events = events_of(STREAMS[3].1);
    let start = events.iter().position(|event| event.type_name() == "ParallelLoopStart").unwrap();
    let mut recorder = SessionRecorder::new(config(false));
    for event in &events[..=start] {
        recorder.on_event(event.clone());
    }
    drain(&mut recorder);
    let AgentEvent::ParallelLoopStart(first) = &events[start] else { panic!("not a group") };
    let report = recorder.on_event(announced_later(first));
    let renamed = report.notices.iter().filter(|n| matches!(n, Notice::LoopRenamed { .. }));
    assert_eq!(renamed.count(), first.loop_ids.len(), "{report:?}");
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
    let count = |session: &RecordedSession| session.loops.last().unwrap().events.len();
    assert_eq!(count(&after), count(&before) + 1);
}

/// Recording again without streamed pieces, after they were kept, adds nothing.
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

/// Pieces that were not kept at first are added once, when a later recording keeps them.
#[test]
fn pieces_that_are_added_later_are_added_once() {
    let events = real_run();
    let pieces = events.iter().filter(|event| event.type_name() == "MessageUpdate").count();
    assert!(pieces > 0);
    let mut logs = Logs(HashMap::new());
    logs.record(&events);
    for _ in 0..3 {
        logs.record_with(config(true), &events);
        let sessions = logs.folds().into_values().flatten();
        let loops: Vec<_> = sessions
            .flat_map(|session| session.loops.iter().cloned().collect::<Vec<_>>())
            .collect();
        let kept = loops.iter().flat_map(|record| record.events.iter());
        let kept = kept.filter(|event| event.event.type_name() == "MessageUpdate");
        assert_eq!(kept.count(), pieces);
    }
}

/// An event before the start of its loop is left out. When the file is recorded again, the loop is known and has ended,
/// and the event is left out all the same.
#[test]
fn an_event_before_its_start_is_left_out_every_time() {
    let early = r#"{"type":"ProgressMessage","loop_id":"s.c.1","tool_call_id":"t","tool_name":"n","text":"early"}"#;
    let start = r#"{"type":"AgentStart","agent_id":"a","session_id":"s","loop_id":"s.c.1","parent_loop_id":null,"timestamp":"2026-01-01T00:00:00Z","metadata":null}"#;
    let end = r#"{"type":"AgentEnd","loop_id":"s.c.1","messages":[],"usage":{"input":0,"output":0},"timestamp":"2026-01-01T00:00:01Z"}"#;
    let file: Vec<AgentEvent> =
        [early, early, start, end, early].map(|text| AgentEvent::from_json(text).unwrap()).into();
    let mut session: Option<RecordedSession> = None;
    let mut counts = Vec::new();
    for _ in 0..4 {
        let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
        if let Some(session) = session.clone() {
            recorder.resume(session);
        }
        for event in file.clone() {
            recorder.on_event(event);
        }
        recorder.flush();
        session = recorder.drain_completed().pop().or(session);
        counts.push(session.as_ref().unwrap().loops.last().unwrap().events.len());
    }
    assert_eq!(counts, [3, 3, 3, 3], "what came too early is left out every time");
}
