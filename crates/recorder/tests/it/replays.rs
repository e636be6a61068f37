//! Replays: the events of a session again, in an order that makes the same session.

use crate::support::{Links, choices, differences, stream};
use bough_recorder::{
    AgentEvent, LoopStatus, RecordBatch, RecordFold, RecordedSession, Replay, SessionRecorder,
    SessionRecorderConfig, Translator, events_of_records,
};
use bough_session::Record;
use proptest::prelude::*;
use serde_json::json;

/// A session in short form: `start:LOOP<PARENT@SECOND`, `end:LOOP@SECOND`, `group:LOOP,LOOP@SECOND`,
/// `chosen:LOOP@SECOND`.
fn events_of(story: &str) -> Vec<AgentEvent> {
    story.split_whitespace().map(event).collect()
}

fn event(word: &str) -> AgentEvent {
    let (kind, rest) = word.split_once(':').unwrap();
    let (name, second) = rest.split_once('@').unwrap();
    let (loop_id, parent) = name.split_once('<').map_or((name, None), |(id, of)| (id, Some(of)));
    let timestamp = format!("2026-01-01T00:00:{second:0>2}Z");
    let usage = json!({"input": 1, "output": 1, "reasoning": 0, "cache_read": 0, "cache_write": 0, "total_tokens": 2});
    let value = match kind {
        "start" => {
            json!({"type": "AgentStart", "agent_id": "a", "session_id": "s", "loop_id": loop_id,
            "parent_loop_id": parent, "continuation_kind": "Default", "timestamp": timestamp, "metadata": null})
        }
        "end" => json!({"type": "AgentEnd", "loop_id": loop_id, "messages": [], "usage": usage,
            "timestamp": timestamp, "rejection": null}),
        "group" => json!({"type": "ParallelLoopStart", "session_id": "s", "timestamp": timestamp,
            "loop_ids": name.split(',').collect::<Vec<_>>()}),
        "chosen" => json!({"type": "ParallelLoopEnd", "session_id": "s", "selected_loop_id": name,
            "selected_config_index": 0, "evaluation_usage": usage, "timestamp": timestamp}),
        other => panic!("{other}"),
    };
    serde_json::from_value(value).unwrap()
}

fn config() -> SessionRecorderConfig {
    SessionRecorderConfig { include_streaming_events: true, ..SessionRecorderConfig::default() }
}

fn record(events: impl IntoIterator<Item = AgentEvent>) -> RecordedSession {
    let mut recorder = SessionRecorder::new(config());
    for event in events {
        recorder.on_event(event);
    }
    recorder.flush();
    recorder.drain_completed().remove(0)
}

/// A recorder records some events and ends, and another one continues with its log.
fn logged(events: &[AgentEvent], cut: usize) -> Vec<Record> {
    let mut log: Vec<Record> = Vec::new();
    let added = |batches: Vec<RecordBatch>| {
        batches.into_iter().flat_map(|batch| batch.records).map(|record| record.record)
    };
    let mut translator = Translator::new(config());
    for (at, event) in events.iter().enumerate() {
        if at == cut {
            translator = Translator::new(config());
            let broken_off = translator.resume("s", &log);
            log.extend(added(broken_off));
        }
        log.extend(added(translator.on_event(event.clone()).batches));
    }
    log.extend(added(translator.flush()));
    log
}

#[test]
fn a_session_as_a_value_is_played_in_an_order_that_makes_it_again() {
    for story in [
        // A loop started, others were announced, and then a group that contains it.
        "start:a@1 end:a@1 group:b,c@1 group:a,d,e@1 start:f@1",
        // The choice from the second of two groups with an id came first.
        "start:a@0 end:a@0 group:b,c@0 start:b<a@0 end:b@0 group:b,d,e@1 start:b<a@3 chosen:b@5 chosen:b@5",
        // The parent of a loop that never started became known after its announcement.
        "group:a,b,c@2 start:d@2 group:e,f@2 start:g<d@2 end:g@3 start:a<g@2 chosen:a@2",
        // A loop in between shows which of two choices came first.
        "start:a@0 group:b,c@0 end:a@0 start:c<a@0 end:c@0 group:c,d,e@2 chosen:c@3 start:a<a@3 end:a@3 \
         start:d<a@3 end:d@3 chosen:c@3",
        // Nothing started, and the clock was put back.
        "group:a,b@2 group:c,d,e@1",
        // A loop continues the second loop of an id.
        "start:a@1 end:a@2 start:a@3 end:a@4 start:b<a@5 end:b@6 start:a@7 end:a@8",
        // A loop continues the first loop of an id, and by the clock it came after the second.
        "start:a@3 end:a@4 start:b<a@9 end:b@9 start:a@5 end:a@6 start:c@7 end:c@7",
    ] {
        let session = record(events_of(story));
        let again = record(Replay::of(&session).events());
        assert!(again == session, "{story}: {}", differences(&again, &session));
    }
}

#[test]
fn a_loop_goes_on_from_the_newest_loop_of_the_id_that_it_names() {
    let session = record(events_of(
        "start:a@1 end:a@2 start:a@3 end:a@4 start:b<a@5 end:b@6 start:a<a@7 end:a@8",
    ));
    let parent = |id: &str| session.get_loop(id).unwrap().parent_loop_id.as_deref();
    assert_eq!(parent("b"), Some("a-2"));
    assert_eq!(parent("a-3"), Some("a-2"));
    assert_eq!(session.get_loop("a-2").unwrap().children_loop_ids, ["b", "a-3"]);
    let alone = record(events_of("start:a<a@1 end:a@2"));
    assert_eq!(alone.get_loop("a").unwrap().parent_loop_id, None, "there is none before it");
}

#[test]
fn a_group_that_was_announced_before_a_break_starts_after_it() {
    let events = events_of(
        "start:a@1 end:a@2 group:b,c@3 start:b<a@4 end:b@5 start:c<a@6 end:c@7 chosen:c@8 start:d<c@9 end:d@9",
    );
    let whole = record(events.clone());
    for cut in [3, 5] {
        let log = logged(&events, cut);
        let found = bough_recorder::fold_records("s", &log).unwrap();
        assert!(found == whole, "cut at {cut}: {}", differences(&found, &whole));
    }
}

#[test]
fn what_came_after_a_break_is_played_after_it() {
    let events = events_of("start:a@1 end:a@2 start:b<a@3 end:b@4");
    let log = logged(&events, 3);
    let (recorded, again) = played(&log);
    assert_eq!(recorded.get_loop("b").unwrap().status, LoopStatus::Aborted);
    assert!(again == recorded, "{}", differences(&again, &recorded));
}

#[test]
fn a_log_is_played_as_it_came() {
    let story = "start:a@1 end:a@2 group:b,c@3 start:b<a@5 start:c<a@6 end:c@7 end:b@8 chosen:c@59";
    let events = events_of(story);
    let log = logged(&events, usize::MAX);
    let mut fold = RecordFold::to_replay("s");
    log.iter().for_each(|record| fold.read(record));
    assert_eq!(fold.replay().unwrap().events().collect::<Vec<_>>(), events);
}

/// The session of a log, and the session that recording its replay makes.
fn played(log: &[Record]) -> (RecordedSession, RecordedSession) {
    let mut fold = RecordFold::to_replay("s");
    log.iter().for_each(|record| fold.read(record));
    (fold.session().unwrap().clone(), record(fold.replay().unwrap().events()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_that_was_interrupted_is_played_in_its_own_order(one in choices(80), cut in any::<u8>()) {
        let events = stream("s", &one, Links::default());
        let log = logged(&events, usize::from(cut) % (events.len() + 1));
        let mut fold = RecordFold::to_replay("s");
        log.iter().for_each(|record| fold.read(record));
        let Some(replay) = fold.replay() else { return Ok(()) };
        let replayed: Vec<AgentEvent> = replay.clone().without_facts().events().collect();
        prop_assert_eq!(replayed, events_of_records(&log).collect::<Vec<_>>());
        let (recorded, again) = (fold.session().unwrap(), record(replay.events()));
        prop_assert!(again == *recorded, "{}", differences(&again, recorded));
    }
}
