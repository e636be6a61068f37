//! Sessions that a recorder returns, and that a caller changes while the recorder continues.

use bough_recorder::{
    AgentEvent, FileSystemSessionStore, LoopStatus, MemorySessionStore, RecordedSession,
    SessionError, SessionRecorder, SessionRecorderConfig, SessionScope, SessionStore, TaskStatus,
};

fn loop_of(number: u32) -> Vec<AgentEvent> {
    let start = format!(
        r#"{{"type":"AgentStart","agent_id":"a","session_id":"s","loop_id":"s.c.{number}",
            "parent_loop_id":null,"timestamp":"2026-01-01T00:00:0{number}Z","metadata":null}}"#
    );
    let end = format!(
        r#"{{"type":"AgentEnd","loop_id":"s.c.{number}","messages":[],
            "usage":{{"input":{number},"output":1}},"timestamp":"2026-01-01T00:00:0{number}Z"}}"#
    );
    [start, end].map(|text| AgentEvent::from_json(&text).unwrap()).into()
}

/// Records a loop and drains the session, as the documents show it.
fn drained(recorder: &mut SessionRecorder, number: u32) -> RecordedSession {
    for event in loop_of(number) {
        assert!(recorder.on_event(event).is_clean());
    }
    recorder.checkpoint();
    let mut drained = recorder.drain_completed();
    assert_eq!(drained.len(), 1);
    drained.remove(0)
}

type Change = fn(&mut RecordedSession);

/// Changes that a caller may make to a session through the public API.
const CHANGES: [(&str, Change); 6] = [
    ("another task name", |session| session.task_name = Some("mine".to_owned())),
    ("another task status", |session| session.stated_task_status = Some(TaskStatus::Failed)),
    ("another scope", |session| session.scope = SessionScope::Persistent),
    ("another agent", |session| session.agent_id = "b".to_owned()),
    ("a loop \"by-hand\"", |session| {
        let mut record = session.loops.iter().next().unwrap().clone();
        record.loop_id = "by-hand".to_owned();
        session.loops.add(record).unwrap();
    }),
    ("another status of loop \"s.c.1\"", |session| {
        let mut record = session.loops.iter().next().unwrap().clone();
        record.status = LoopStatus::Rejected;
        session.loops = [record].into_iter().collect();
    }),
];

async fn a_change_by_hand_is_kept(store: &dyn SessionStore) {
    for (what, change) in CHANGES {
        let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
        let mut first = drained(&mut recorder, 1);
        store.save(&first).await.unwrap();
        change(&mut first);
        store.save(&first).await.unwrap();
        let second = drained(&mut recorder, 2);
        let lost = store.save(&second).await.unwrap_err();
        assert!(
            matches!(&lost, SessionError::LostUpdate { missing, .. } if missing == what),
            "{what}: {lost}"
        );
        assert_eq!(store.load("s").await.unwrap(), first, "{what}");
        store.delete("s").await.unwrap();
    }
}

#[tokio::test]
async fn a_change_by_hand_is_not_overwritten_by_the_recorder() {
    let folder = tempfile::tempdir().unwrap();
    a_change_by_hand_is_kept(&FileSystemSessionStore::new(folder.path())).await;
    a_change_by_hand_is_kept(&MemorySessionStore::new()).await;
}

#[tokio::test]
async fn an_older_version_does_not_replace_a_newer_one() {
    let store = MemorySessionStore::new();
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    let first = drained(&mut recorder, 1);
    let second = drained(&mut recorder, 2);
    store.save(&second).await.unwrap();
    let lost = store.save(&first).await.unwrap_err();
    assert!(matches!(lost, SessionError::LostUpdate { .. }), "{lost}");
}

#[tokio::test]
async fn a_recorder_whose_sessions_nobody_changes_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileSystemSessionStore::new(folder.path());
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    for number in 1..=4 {
        let session = drained(&mut recorder, number);
        // A session that is not saved, or a copy of one, does not matter.
        if number != 2 {
            store.save(&session.clone()).await.unwrap();
            assert_eq!(store.load("s").await.unwrap(), session);
        }
    }
}
