//! Sessions that a recorder returns, and that a caller changes while the recorder continues.
#![expect(clippy::disallowed_methods, reason = "tests edit files from outside")]

use bough_recorder::{
    AgentEvent, FileSystemSessionStore, LoopRecord, LoopStatus, MemorySessionStore,
    RecordedSession, SessionError, SessionFormation, SessionRecorder, SessionRecorderConfig,
    SessionScope, SessionStore, TaskStatus,
};

fn loop_of(number: u32) -> Vec<AgentEvent> {
    let start = format!(
        r#"{{"type":"AgentStart","agent_id":"a","session_id":"s","loop_id":"s.c.{number}",
            "parent_loop_id":null,"timestamp":"2026-01-01T00:00:0{number}Z","metadata":null}}"#
    );
    let end = format!(
        r#"{{"type":"AgentEnd","loop_id":"s.c.{number}",
            "messages":[{{"role":"user","content":[{{"type":"text","text":"hi"}}],"timestamp":1}}],
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
const CHANGES: [(&str, Change); 11] = [
    ("another task name", |session| session.task_name = Some("mine".to_owned())),
    ("another task status", |session| session.stated_task_status = Some(TaskStatus::Failed)),
    ("another scope", |session| session.scope = SessionScope::Persistent),
    ("another agent", |session| session.agent_id = "b".to_owned()),
    ("another time of creation", |session| session.created_at = EARLIER.parse().unwrap()),
    ("another time of activity", |session| session.last_active_at = EARLIER.parse().unwrap()),
    ("another formation", |session| {
        session.formation = SessionFormation::FirstLoop { timestamp: EARLIER.parse().unwrap() };
    }),
    ("a loop \"by-hand\"", |session| {
        let mut record = session.loops.iter().next().unwrap().clone();
        record.loop_id = "by-hand".to_owned();
        session.loops.add(record).unwrap();
    }),
    ("another status of loop \"s.c.1\"", |session| {
        change_loop(session, |record| record.status = LoopStatus::Rejected);
    }),
    ("another status of loop \"s.c.1\"", |session| {
        change_loop(session, |record| record.status = LoopStatus::Aborted);
    }),
    ("another agent of loop \"s.c.1\"", |session| {
        change_loop(session, |record| record.agent_id = "b".to_owned());
    }),
];

const EARLIER: &str = "2025-01-01T00:00:00Z";

fn change_loop(session: &mut RecordedSession, change: fn(&mut LoopRecord)) {
    let mut record = session.loops.iter().next().unwrap().clone();
    change(&mut record);
    session.loops = [record].into_iter().collect();
}

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

/// A file is edited in a text editor while the recorder continues: what this version does not know is refused too.
#[tokio::test]
async fn an_edit_of_the_file_is_not_overwritten_by_the_recorder() {
    let edits = [
        (r#""agent_id": "a","#, r#""agent_id": "a", "note": "mine","#),
        (r#""status": "Completed","#, r#""status": "Completed", "note": "mine","#),
        (r#""text":"hi""#, r#""text":"hi","note":"mine""#),
        (r#"{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}"#, ""),
        (r#""metadata": null"#, r#""metadata": {"note": 1}"#),
        (r#""continuation_kind": "Initial""#, r#""continuation_kind": "Default""#),
    ];
    for (before, after) in edits {
        let folder = tempfile::tempdir().unwrap();
        let store = FileSystemSessionStore::new(folder.path());
        let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
        store.save(&drained(&mut recorder, 1)).await.unwrap();
        let file = folder.path().join("s.json");
        let text = std::fs::read_to_string(&file).unwrap();
        let edited = text.replacen(before, after, 1);
        assert_ne!(edited, text, "{before}");
        std::fs::write(&file, &edited).unwrap();
        let lost = store.save(&drained(&mut recorder, 2)).await.unwrap_err();
        assert!(matches!(lost, SessionError::LostUpdate { .. }), "{after}: {lost}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), edited);
    }
}
