//! What holds for every stream of events.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::support::{Links, choices, differences, interleave, stream};
use bough_recorder::{
    AgentEvent, LoopStatus, RecordBatch, RecordedSession, Replay, SessionRecorder,
    SessionRecorderConfig, Translator, events_of_records, fold_records,
};
use bough_session::{EntryId, Record};
use proptest::prelude::*;

fn config() -> SessionRecorderConfig {
    SessionRecorderConfig { include_streaming_events: true, ..SessionRecorderConfig::default() }
}

fn record(events: impl IntoIterator<Item = AgentEvent>) -> BTreeMap<String, RecordedSession> {
    let mut recorder = SessionRecorder::new(config());
    for event in events {
        recorder.on_event(event);
    }
    recorder.flush();
    by_id(recorder.drain_completed())
}

fn by_id(sessions: Vec<RecordedSession>) -> BTreeMap<String, RecordedSession> {
    let sessions = sessions.into_iter();
    sessions.map(|session| (session.session_id.clone(), session)).collect()
}

/// Checks that both ends of every link agree.
fn check_links(sessions: &BTreeMap<String, RecordedSession>) {
    for session in sessions.values() {
        let mut ids = HashSet::new();
        for record in &session.loops {
            assert!(ids.insert(&record.loop_id), "two loops {}", record.loop_id);
            assert!(!record.status.is_open(), "a loop is open after a flush");
            if let Some(parent) = record.parent_loop_id.as_ref().and_then(|id| session.get_loop(id))
            {
                let times = parent.children_loop_ids.iter().filter(|id| **id == record.loop_id);
                assert_eq!(times.count(), 1, "{} in {}", record.loop_id, parent.loop_id);
            }
            for child in &record.children_loop_ids {
                let child = session.get_loop(child).unwrap();
                assert_eq!(child.parent_loop_id.as_ref(), Some(&record.loop_id));
            }
            check_group(session, record);
            for child in &record.child_loop_refs {
                if let Some(other) = sessions.get(&child.child_session_id)
                    && other.session_id != session.session_id
                    && other.get_loop(&child.child_loop_id).is_some()
                {
                    assert!(other.parent_spawn_ref.is_some(), "{child:?}");
                }
            }
            let sequences = record.events.iter().map(|event| event.sequence);
            assert!(sequences.eq(0..record.events.len() as u64));
            assert!(!session.loop_chain_to(&record.loop_id).is_empty());
        }
        check_spawn(sessions, session);
        assert!(session.loops.iter().is_sorted_by_key(|record| record.started_at));
    }
}

fn check_group(session: &RecordedSession, record: &bough_recorder::LoopRecord) {
    let Some(group) = &record.parallel_group else {
        return;
    };
    assert!(group.all_loop_ids.contains(&record.loop_id));
    assert_eq!(group.is_selected, group.selected_loop_id == record.loop_id);
    for sibling in session.parallel_siblings(&record.loop_id) {
        let other = sibling.parallel_group.as_ref().unwrap();
        assert_eq!(other.all_loop_ids, group.all_loop_ids);
        assert_eq!(other.selected_loop_id, group.selected_loop_id);
    }
}

fn check_spawn(sessions: &BTreeMap<String, RecordedSession>, session: &RecordedSession) {
    let Some(spawn) = &session.parent_spawn_ref else {
        return;
    };
    assert_ne!(spawn.parent_session_id, session.session_id);
    let Some(parent) = sessions.get(&spawn.parent_session_id) else {
        return;
    };
    let Some(record) = parent.get_loop(&spawn.parent_loop_id) else {
        return;
    };
    let back = record.child_loop_refs.iter().any(|child| {
        child.child_session_id == session.session_id && child.tool_call_id == spawn.tool_call_id
    });
    assert!(back, "{spawn:?} is not known to {:?}", record.child_loop_refs);
}

#[derive(Default)]
struct Logs(HashMap<String, Vec<Record>>);

impl Logs {
    fn append(&mut self, batches: Vec<RecordBatch>) {
        for batch in batches {
            let log = self.0.entry(batch.session_id).or_default();
            assert_eq!(batch.is_new, log.is_empty());
            log.extend(batch.records.into_iter().map(|record| record.record));
        }
    }

    fn fold(&self, session_id: &str) -> Option<RecordedSession> {
        fold_records(session_id, self.0.get(session_id)?)
    }
}

/// Checks that a store accepts the log: it begins with the session, and parents of entries exist.
fn check_log(log: &[Record]) {
    assert!(matches!(log[0], Record::Meta(_)));
    let mut known: HashSet<&EntryId> = HashSet::new();
    let mut bodies = HashSet::new();
    for record in log {
        match record {
            Record::Entry(entry) => {
                assert!(entry.parent_id.as_ref().is_none_or(|parent| known.contains(parent)));
                assert!(known.insert(&entry.id), "{} twice", entry.id);
                bodies.insert(&entry.id);
            }
            Record::Leaf(Some(leaf)) => assert!(known.contains(leaf)),
            Record::Loop(event) => {
                assert!(event.entry_id.as_ref().is_none_or(|id| known.contains(id)));
            }
            _ => {}
        }
    }
}

/// A session without the order of its aborted loops, which is arbitrary.
fn unordered(session: RecordedSession) -> serde_json::Value {
    let mut session = serde_json::to_value(session).unwrap();
    for record in session["loops"].as_array_mut().unwrap() {
        let children = record["children_loop_ids"].as_array_mut().unwrap();
        children.sort_by_key(ToString::to_string);
    }
    session
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn independent_sessions_do_not_depend_on_each_others_events(
        one in choices(60), two in choices(60), three in choices(30), turns in any::<[u8; 32]>(),
    ) {
        let streams = vec![
            stream("a", &one, Links::default()),
            stream("b", &two, Links::default()),
            stream("c", &three, Links::default()),
        ];
        let mut apart = BTreeMap::new();
        for stream in streams.clone() {
            apart.extend(record(stream));
        }
        let together = record(interleave(streams, &turns));
        prop_assert!(together == apart, "{}", differences(&together, &apart));
        check_links(&together);
    }

    #[test]
    fn links_agree_on_both_sides_whatever_comes_first(
        one in choices(60), two in choices(60), turns in any::<[u8; 32]>(),
    ) {
        let streams = vec![
            stream("a", &one, Links { other: Some("b") }),
            stream("b", &two, Links { other: Some("a") }),
        ];
        check_links(&record(interleave(streams, &turns)));
    }

    #[test]
    fn recording_a_replay_gives_an_equal_session(
        one in choices(80), two in choices(60), turns in any::<[u8; 32]>(),
    ) {
        let streams = vec![
            stream("a", &one, Links { other: Some("b") }),
            stream("b", &two, Links { other: Some("a") }),
        ];
        for (id, session) in record(interleave(streams, &turns)) {
            let again = record(Replay::of(&session).events());
            prop_assert!(again.get(&id) == Some(&session), "{}", differences(&again.get(&id), &Some(&session)));
        }
    }

    #[test]
    fn a_session_survives_its_file(one in choices(60)) {
        for session in record(stream("a", &one, Links::default())).into_values() {
            let text = serde_json::to_string_pretty(&session).unwrap();
            let read: RecordedSession = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read, session);
        }
    }

    #[test]
    fn the_fold_of_the_log_equals_the_recorder(
        one in choices(80), two in choices(60), turns in any::<[u8; 32]>(), cut in any::<u8>(),
    ) {
        let streams = vec![
            stream("a", &one, Links { other: Some("b") }),
            stream("b", &two, Links { other: Some("a") }),
        ];
        let events = interleave(streams, &turns);
        let cut = usize::from(cut) % (events.len() + 1);
        let mut translator = Translator::new(config());
        let mut logs = Logs::default();
        for (at, event) in events.iter().enumerate() {
            if at == cut {
                for id in ["a", "b"] {
                    let held = translator.recorder().get_session(id);
                    let folded = logs.fold(id);
                    prop_assert!(folded.as_ref() == held, "{}", differences(&folded.as_ref(), &held));
                }
            }
            logs.append(translator.on_event(event.clone()).batches);
        }
        logs.append(translator.flush());
        let recorded = record(events.clone());
        for id in ["a", "b"] {
            let folded = logs.fold(id);
            let recorded = recorded.get(id);
            prop_assert!(folded.as_ref() == recorded, "{}", differences(&folded.as_ref(), &recorded));
            prop_assert_eq!(translator.recorder().get_session(id), recorded);
        }
        for log in logs.0.values() {
            check_log(log);
        }
    }

    #[test]
    fn a_log_holds_the_events_as_they_came(one in choices(80)) {
        let events = stream("a", &one, Links::default());
        let mut translator = Translator::new(config());
        let mut logs = Logs::default();
        let mut kept = Vec::new();
        for event in events {
            let translation = translator.on_event(event.clone());
            if !translation.report.is_lost() && !translation.batches.is_empty() {
                kept.push(event);
            }
            logs.append(translation.batches);
        }
        let log = logs.0.remove("a").unwrap_or_default();
        prop_assert_eq!(events_of_records(&log).collect::<Vec<_>>(), kept);
    }

    #[test]
    fn recording_goes_on_after_a_break(
        one in choices(80), two in choices(60), cut in any::<u8>(),
    ) {
        let before = stream("a", &one, Links::default());
        let after = stream("a", &two, Links::default());
        let cut = usize::from(cut) % (before.len() + 1);
        let mut logs = Logs::default();
        let mut translator = Translator::new(config());
        for event in &before[..cut] {
            logs.append(translator.on_event(event.clone()).batches);
        }
        // The machine stops here.
        let mut translator = Translator::new(config());
        let stored = logs.0.get("a").cloned().unwrap_or_default();
        logs.append(translator.resume("a", &stored));
        if let Some(session) = logs.fold("a") {
            prop_assert!(session.loops.iter().all(|record| !record.status.is_open()));
            prop_assert_eq!(translator.recorder().get_session("a").unwrap_or(&session), &session);
        }
        for event in after {
            logs.append(translator.on_event(event).batches);
        }
        logs.append(translator.flush());
        let (folded, held) = (logs.fold("a"), translator.recorder().get_session("a"));
        if held.is_some() {
            prop_assert!(folded.as_ref() == held, "{}", differences(&folded.as_ref(), &held));
        }
        if let Some(log) = logs.0.get("a") {
            check_log(log);
            let session = logs.fold("a").unwrap();
            check_links(&BTreeMap::from([("a".to_owned(), session)]));
        }
    }

    #[test]
    fn hearing_it_all_again_after_a_break_gives_the_session_of_one_recording(
        one in choices(80), cut in any::<u8>(),
    ) {
        let events = stream("a", &one, Links::default());
        let cut = usize::from(cut) % (events.len() + 1);
        let mut logs = Logs::default();
        let mut translator = Translator::new(config());
        for event in &events[..cut] {
            logs.append(translator.on_event(event.clone()).batches);
        }
        let mut translator = Translator::new(config());
        let stored = logs.0.get("a").cloned().unwrap_or_default();
        logs.append(translator.resume("a", &stored));
        for event in &events {
            logs.append(translator.on_event(event.clone()).batches);
        }
        logs.append(translator.flush());
        let (folded, expected) = (logs.fold("a"), record(events).remove("a"));
        let (folded, expected) = (folded.map(unordered), expected.map(unordered));
        prop_assert!(folded == expected, "{}", differences(&folded, &expected));
        logs.0.values().for_each(|log| check_log(log));
    }

    /// The state that everybody else folds from the log knows when a loop is open.
    #[test]
    fn phases_in_the_log_agree_with_the_sessions(one in choices(60)) {
        let mut translator = Translator::new(config());
        let mut logs = Logs::default();
        for event in stream("a", &one, Links::default()) {
            logs.append(translator.on_event(event).batches);
        }
        let Some(log) = logs.0.get("a") else { return Ok(()) };
        let mut tally = bough_session::LoopTally::default();
        for record in log {
            if let Record::Loop(event) = record
                && let Some(phase) = event.phase
            {
                tally.note(&event.loop_id, phase);
            }
        }
        let session = translator.recorder().get_session("a").unwrap();
        let open = session.loops.iter().filter(|record| record.status.is_open());
        let running = session.loops.iter().any(|record| record.status == LoopStatus::Running);
        prop_assert_eq!(tally.open.len(), open.count());
        prop_assert_eq!(tally.task_status() == Some(bough_session::TaskStatus::Running), running);
    }
}

proptest! {
    // Each of these saves several sessions several times.
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]
}
