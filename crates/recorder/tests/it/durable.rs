//! Recording into logs while the agent works.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::support::logs::{Logs, in_memory, with_notices};
use bough_recorder::{
    AgentEvent, DurableError, DurableOptions, DurableRecorder, LoopStatus, RecordedSession, Replay,
    SessionRecorder, SessionRecorderConfig, Translator,
};
use bough_session::{EntryBody, EntryId, Record};
use tokio::sync::Semaphore;

const REAL_RUN: &str = include_str!("../cases/events_real_run.jsonl");
const FULL: &str = include_str!("../cases/full-session-file.json");

fn real_run() -> Vec<AgentEvent> {
    REAL_RUN.lines().map(|line| AgentEvent::from_json(line).unwrap()).collect()
}

#[tokio::test]
async fn what_is_recorded_is_stored_and_equals_what_is_in_memory() {
    let logs = Arc::new(Logs::default());
    let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
    for event in real_run() {
        recorder.record(event).await.unwrap();
    }
    recorder.sync().await.unwrap();
    assert_eq!(recorder.done(), real_run().len() as u64);
    let recording = recorder.finish().await.unwrap();
    assert!(recording.failures.is_empty());
    assert_eq!(recording.sessions, in_memory(real_run()));
    for session in &recording.sessions {
        assert_eq!(logs.fold(&session.session_id).as_ref(), Some(session));
    }
    let appends = *logs.appends.lock().unwrap();
    assert!(appends < real_run().len(), "{appends} appends: events are stored together");
}

#[tokio::test]
async fn each_message_is_stored_once() {
    let logs = Arc::new(Logs::default());
    let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
    for event in real_run() {
        recorder.record(event).await.unwrap();
    }
    recorder.sync().await.unwrap();
    let log = logs.log("550e8400-e29b-41d4-a716-446655440000");
    let texts: Vec<String> = log.iter().map(|record| format!("{record:?}")).collect();
    let entries = log.iter().filter_map(Record::as_entry);
    let bodies: Vec<&str> = entries
        .filter_map(|entry| match &entry.body {
            EntryBody::Foreign(body) => Some(body.json.get()),
            _ => None,
        })
        .collect();
    assert_eq!(bodies.len(), 5, "the question, three answers and a tool's");
    for words in ["delegate this", "Again done."] {
        let times = texts.iter().filter(|text| text.contains(words)).count();
        assert_eq!(times, 1, "{words:?}");
    }
}

#[tokio::test]
async fn the_agent_waits_only_while_the_buffer_is_full() {
    let logs = Arc::new(Logs { gate: Semaphore::new(0), ..Logs::default() });
    let options = DurableOptions { buffer_events: 4, ..DurableOptions::default() };
    let recorder = DurableRecorder::start(Arc::clone(&logs), options);
    let mut events = real_run().into_iter();
    // The first goes to the sink, which does not answer; four more fit the buffer.
    let first = events.next().unwrap();
    recorder.record(first).await.unwrap();
    while Arc::strong_count(&logs) < 3 {
        tokio::task::yield_now().await;
    }
    for event in events.by_ref().take(4) {
        recorder.record(event).await.unwrap();
    }
    let next = events.next().unwrap();
    let mut waiting = Box::pin(recorder.record(next));
    let is_full = tokio::select! {
        biased;
        _ = &mut waiting => false,
        () = std::future::ready(()) => true,
    };
    assert!(is_full);
    assert_eq!(recorder.done(), 0);
    logs.gate.add_permits(100);
    waiting.await.unwrap();
    recorder.sync().await.unwrap();
    assert_eq!(recorder.done(), 6);
}

#[tokio::test]
async fn recording_goes_on_in_the_same_session_after_the_recorder_was_killed() {
    let logs = Arc::new(Logs::default());
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let events = real_run();
    let (before, after) = events.split_at(9);
    {
        let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
        for event in before {
            recorder.record(event.clone()).await.unwrap();
        }
        recorder.sync().await.unwrap();
    }
    assert_eq!(logs.fold(id).unwrap().loops.last().unwrap().status, LoopStatus::Running);
    let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
    let restart = after.iter().skip_while(|event| event.type_name() != "AgentStart");
    for event in restart {
        recorder.record(event.clone()).await.unwrap();
    }
    let recording = recorder.finish().await.unwrap();
    let session = logs.fold(id).unwrap();
    assert_eq!(recording.sessions, std::slice::from_ref(&session));
    let statuses: Vec<LoopStatus> = session.loops.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [LoopStatus::Aborted, LoopStatus::Completed]);
    let first = session.loops.iter().next().unwrap();
    assert_eq!(first.events.len(), 9, "up to the last acknowledged event");
    assert_eq!(first.children_loop_ids.len(), 1);
}

/// The agent outlives its recorder: its next events name a loop and no session.
#[tokio::test]
async fn events_of_a_loop_that_was_broken_off_are_kept_with_it() {
    let logs = Arc::new(Logs::default());
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let events = real_run();
    let first_loop = events.iter().position(|event| event.type_name() == "AgentEnd").unwrap() + 1;
    let (before, after) = events.split_at(first_loop - 3);
    for part in [before, after] {
        let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
        let nobody = r#"{"type":"InputRejected","loop_id":"nobody.x.1","reason":"x"}"#;
        recorder.record(AgentEvent::from_json(nobody).unwrap()).await.unwrap();
        for event in part {
            recorder.record(event.clone()).await.unwrap();
        }
        recorder.sync().await.unwrap();
    }
    let session = logs.fold(id).unwrap();
    let statuses: Vec<LoopStatus> = session.loops.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [LoopStatus::Aborted, LoopStatus::Completed]);
    let heard: usize = session.loops.iter().map(|record| record.events.len()).sum();
    let streamed = |event: &&AgentEvent| matches!(event, AgentEvent::MessageUpdate(_));
    assert_eq!(heard, events.len() - events.iter().filter(streamed).count());
    assert_eq!(logs.logs.lock().unwrap().len(), 1, "a name alone makes no session");
}

#[tokio::test]
async fn a_session_that_cannot_be_stored_holds_up_no_other() {
    let logs = Arc::new(Logs {
        broken: HashSet::from(["550e8400-e29b-41d4-a716-446655440000".to_owned()]),
        ..Logs::default()
    });
    let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
    for event in real_run() {
        recorder.record(event).await.unwrap();
    }
    let other =
        crate::support::stream("other", &[(0, 0, 0), (9, 0, 1)], crate::support::Links::default());
    for event in other.clone() {
        recorder.record(event).await.unwrap();
    }
    let failed = recorder.sync().await.unwrap_err();
    assert!(matches!(failed, DurableError::NotStored { .. }), "{failed}");
    let recording = recorder.finish().await.unwrap();
    assert_eq!(recording.failures.len(), 1);
    assert_eq!(logs.fold("other").unwrap(), in_memory(other.clone())[0]);
    assert_eq!(recording.sessions, in_memory(other), "only what is stored is reported as stored");
    let pieces = |event: &&AgentEvent| matches!(event, AgentEvent::MessageUpdate(_));
    let kept = real_run().len() - real_run().iter().filter(pieces).count();
    assert_eq!(recording.events_not_stored, kept as u64);
}

#[tokio::test]
async fn a_sink_that_panics_is_a_failure_of_its_session() {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let explosive = HashSet::from([id.to_owned()]);
    let logs = Arc::new(Logs { explosive, ..Logs::default() });
    let recorder = DurableRecorder::start(Arc::clone(&logs), DurableOptions::default());
    let other =
        crate::support::stream("other", &[(0, 0, 0), (9, 0, 1)], crate::support::Links::default());
    for event in real_run().into_iter().chain(other.clone()) {
        recorder.record(event).await.unwrap();
    }
    let failed = recorder.sync().await.unwrap_err();
    let DurableError::Panicked { session_id, message } = failed else {
        panic!("{failed}");
    };
    assert_eq!((session_id.as_str(), message.as_str()), (id, "the sink is badly written"));
    assert_eq!(recorder.finish().await.unwrap().failures.len(), 1);
    assert_eq!(logs.fold("other").unwrap(), in_memory(other)[0]);
}

#[tokio::test]
async fn notices_say_which_event_they_are_about() {
    let (options, heard) = with_notices();
    let recorder = DurableRecorder::start(Arc::new(Logs::default()), options);
    let lost = r#"{"type":"InputRejected","loop_id":"nobody","reason":"x"}"#;
    let mut events = real_run();
    events.insert(3, AgentEvent::from_json(lost).unwrap());
    for event in events {
        recorder.record(event).await.unwrap();
    }
    recorder.finish().await.unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!(*heard, ["4: InputRejected of a loop that never started: \"nobody\""]);
}

/// The tree of a recorded session: for each entry its parent and its loop.
struct Tree(HashMap<EntryId, (Option<EntryId>, String)>, Option<EntryId>);

impl Tree {
    fn of(events: impl IntoIterator<Item = AgentEvent>, session_id: &str) -> Self {
        let mut translator = Translator::new(SessionRecorderConfig::default());
        let (mut entries, mut leaf) = (HashMap::new(), None);
        for event in events {
            for batch in translator.on_event(event).batches {
                assert_eq!(batch.session_id, session_id);
                for record in batch.records {
                    match record.record {
                        Record::Entry(entry) => {
                            let message = entry.message().unwrap();
                            leaf = Some(entry.id.clone());
                            let text = serde_json::to_value(&message).unwrap();
                            let text = text["content"][0]["text"]
                                .as_str()
                                .unwrap_or("(a call)")
                                .to_owned();
                            entries.insert(entry.id, (entry.parent_id, text));
                        }
                        Record::Leaf(moved) => leaf = moved,
                        _ => {}
                    }
                }
            }
        }
        Self(entries, leaf)
    }

    /// The words on the active path.
    fn path(&self) -> String {
        let mut words = Vec::new();
        let mut at = self.1.clone();
        while let Some(id) = at {
            let (parent, text) = &self.0[&id];
            words.push(text.as_str());
            at = parent.clone();
        }
        words.reverse();
        words.join(" | ")
    }
}

fn case(name: &str) -> Vec<AgentEvent> {
    let text = match name {
        "04" => include_str!("../cases/04_branch_tree.json"),
        _ => include_str!("../cases/06_parallel_select_second.json"),
    };
    let case: serde_json::Value = serde_json::from_str(text).unwrap();
    let steps = case["steps"].as_array().unwrap().iter();
    steps
        .filter(|step| step.get("event").is_some())
        .map(|step| serde_json::from_value(step["event"].clone()).unwrap())
        .collect()
}

#[test]
fn branches_of_the_conversation_are_branches_of_the_tree() {
    let tree = Tree::of(case("04"), "sess-a");
    assert_eq!(tree.0.len(), 8);
    assert_eq!(tree.path(), "q | a | alt 2 | c | more | d");
}

#[test]
fn the_chosen_parallel_loop_is_the_active_path() {
    let mut events = case("06");
    let tree = Tree::of(events.clone(), "sess-a");
    let chosen = tree.path();
    assert_eq!(tree.0.len(), 6);
    // Choosing the first instead moves the leaf back to it.
    let Some(AgentEvent::ParallelLoopEnd(end)) = events.last_mut() else {
        panic!("the case ends with the choice");
    };
    Arc::make_mut(end).selected_loop_id = "sess-a.haiku.1".to_owned();
    let other = Tree::of(events, "sess-a").path();
    assert_ne!(chosen, other);
    assert!(chosen.starts_with("q | a | ") && other.starts_with("q | a | "), "{chosen} {other}");
}

#[test]
fn a_rerun_hangs_below_the_question_that_it_answers_again() {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    // The tool's answer was the model's last input before it answered again.
    let path = Tree::of(real_run(), id).path();
    assert_eq!(path, "delegate this | (a call) | child says hi | Again done.");
}

#[test]
fn a_real_session_is_replayed_as_it_was() {
    let session: RecordedSession = serde_json::from_str(FULL).unwrap();
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        include_streaming_events: true,
        ..SessionRecorderConfig::default()
    });
    for event in Replay::of(&session).events() {
        let report = recorder.on_event(event);
        assert!(report.is_clean(), "{report:?}");
    }
    recorder.flush();
    let again = recorder.drain_completed().remove(0);
    let mut expected = session.clone();
    // phi-core put tool results among the inputs of the turn that asked for them.
    expected.loops = expected
        .loops
        .iter()
        .map(|record| {
            let mut record = record.clone();
            for turn in &mut record.turns {
                turn.input_messages.retain(|message| message.role() != "toolResult");
            }
            record
        })
        .collect();
    assert_eq!(crate::support::differences(&again, &expected), "");
    let one = session.loops.iter().nth(1).unwrap();
    let events: Vec<AgentEvent> = Replay::of(&session).only_loop(&one.loop_id).events().collect();
    assert_eq!(events.len(), one.events.len());
    let rest = Replay::of(&session).from_event(&one.loop_id, 2);
    assert_eq!(rest.events().next().unwrap(), one.events[2].event);
}
