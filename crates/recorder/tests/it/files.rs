//! Session files: what is written, what is read back, and what is refused.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests look at the folder from outside"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bough_platform::{Access, Disk, File, OsDisk, RelPath};
use bough_recorder::{
    FileSystemSessionStore, LoopRecord, LoopStatus, MemorySessionStore, RecordedMessage,
    RecordedSession, SessionError, SessionFolder, SessionStore, Timestamp, delete_session,
    list_session_ids, load_session, load_sessions_for_agent, save_session,
};
use bough_testkit::pass_on;

const FULL: &str = include_str!("../cases/full-session-file.json");
const LATEST: &str = include_str!("../cases/session-file-0.15.2.json");

fn session(id: &str, agent: &str) -> RecordedSession {
    RecordedSession::explicit(id, agent, Timestamp::from_unix_ms(1))
}

fn add_loop(session: &mut RecordedSession, id: &str) {
    let at = Timestamp::from_unix_ms(1000);
    let record = LoopRecord::new(id, &session.session_id, "a", LoopStatus::Completed, at);
    session.loops.add(record).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_of_the_original_is_written_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let file = folder.path().join(format!("{id}.json"));
    fs::write(&file, FULL).unwrap();
    let session = load_session(id, folder.path()).unwrap();
    assert_eq!(session.loops.len(), 4);
    save_session(&session, folder.path()).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), FULL.trim_end());
    assert_eq!(names(folder.path()), [format!("{id}.json")], "nothing is left beside it");
}

/// A file of 0.15.2: no events, requests with the turns, messages that name their nodes.
#[test]
fn a_file_of_the_newest_version_loads_and_nothing_of_it_is_lost() {
    let session: RecordedSession = serde_json::from_str(LATEST).unwrap();
    assert_eq!(session.loops.len(), 2);
    let first = session.loops.iter().next().unwrap();
    assert!(first.events.is_empty());
    let request = first.turns[0].request_payload.as_ref().unwrap();
    assert_eq!(request["system_prompt"], "be kind");
    let written = serde_json::to_string(&session).unwrap();
    let mut written: serde_json::Value = serde_json::from_str(&written).unwrap();
    for record in written["loops"].as_array_mut().unwrap() {
        let events = record.as_object_mut().unwrap().remove("events").unwrap();
        assert_eq!(events, serde_json::json!([]), "files of ours always have the key");
    }
    let expected: serde_json::Value = serde_json::from_str(LATEST).unwrap();
    assert_eq!(written, expected);
    assert!(written["loops"][0]["messages"][1]["nodeId"].is_number());
}

#[test]
fn a_file_without_events_or_with_events_of_the_future_loads() {
    let mut document: serde_json::Value = serde_json::from_str(FULL).unwrap();
    for record in document["loops"].as_array_mut().unwrap() {
        record.as_object_mut().unwrap().remove("events");
    }
    let session: RecordedSession = serde_json::from_value(document.clone()).unwrap();
    assert!(session.loops.iter().all(|record| record.events.is_empty()));
    document["loops"][0]["events"] = serde_json::json!([
        {"sequence": 0, "event": {"type": "Dreamt", "depth": 3}},
        {"sequence": 1, "event": {"type": "TurnStart", "changed": "beyond recognition"}},
        {"sequence": 2, "event": 7},
    ]);
    let session: RecordedSession = serde_json::from_value(document.clone()).unwrap();
    let written = serde_json::to_value(&session).unwrap();
    for at in 0..2 {
        let expected = &document["loops"][0]["events"][at];
        assert_eq!(written["loops"][0]["events"][at], *expected);
    }
}

#[test]
fn sessions_are_listed_loaded_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("made/on/demand");
    assert_eq!(list_session_ids(&dir).unwrap(), Vec::<String>::new());
    assert!(matches!(load_session("a", &dir), Err(SessionError::NotFound { .. })));
    for (id, agent) in [("one", "x"), ("two", "y"), ("three", "x")] {
        let path = save_session(&session(id, agent), &dir).unwrap();
        assert!(path.ends_with(format!("{id}.json")));
    }
    // Other files in the folder do not matter.
    fs::create_dir(dir.join("folder.json")).unwrap();
    fs::write(dir.join("notes.txt"), "x").unwrap();
    fs::write(dir.join("torn.json"), "{\"session_id\": \"torn\", \"agent_id\": \"x\", ").unwrap();
    fs::copy(dir.join("one.json"), dir.join("copy.json")).unwrap();
    let mut ids = list_session_ids(&dir).unwrap();
    ids.sort();
    assert_eq!(ids, ["copy", "one", "three", "torn", "two"]);

    let found = load_sessions_for_agent("x", &dir).unwrap();
    let mut ids: Vec<_> = found.sessions.iter().map(|s| s.session_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["one", "three"]);
    let unreadable: Vec<_> = found.unreadable.keys().map(String::as_str).collect();
    assert_eq!(unreadable, ["copy", "torn"]);
    assert!(matches!(found.unreadable["copy"], SessionError::WrongSession { .. }));

    delete_session("one", &dir).unwrap();
    assert!(matches!(delete_session("one", &dir), Err(SessionError::NotFound { .. })));
    assert!(matches!(load_session("one", &dir), Err(SessionError::NotFound { .. })));
}

#[test]
fn the_last_changed_is_listed_first() {
    let folder = tempfile::tempdir().unwrap();
    for (id, second) in [("old", 100), ("new", 300), ("middle", 200), ("also-new", 300)] {
        let path = save_session(&session(id, "a"), folder.path()).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }
    let ids = list_session_ids(folder.path()).unwrap();
    assert_eq!(ids, ["also-new", "new", "middle", "old"]);
}

#[test]
fn ids_never_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("sessions");
    for id in ["../escaped", "/tmp/absolute", "a/b", "", ".", "..", "a\0b", &"x".repeat(250)] {
        let saved = save_session(&session(id, "a"), &dir);
        assert!(matches!(saved, Err(SessionError::UnsafeId { .. })), "{id:?}");
        assert!(matches!(load_session(id, &dir), Err(SessionError::UnsafeId { .. })));
        assert!(matches!(delete_session(id, &dir), Err(SessionError::UnsafeId { .. })));
    }
    assert_eq!(names(folder.path()), ["sessions"]);
    assert!(names(&dir).is_empty());
}

#[test]
fn a_second_writer_is_told_so_at_once_and_readers_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    save_session(&session("s", "a"), dir).unwrap();
    let disk = OsDisk::open(dir).unwrap();
    let lock = disk.lock(&RelPath::parse("s.json.lock").unwrap(), "somebody").unwrap();
    let locked = save_session(&session("s", "a"), dir);
    assert!(matches!(locked, Err(SessionError::Locked { session_id }) if session_id == "s"));
    assert!(matches!(delete_session("s", dir), Err(SessionError::Locked { .. })));
    load_session("s", dir).unwrap();
    drop(lock);
    save_session(&session("s", "a"), dir).unwrap();
}

#[tokio::test]
async fn a_lost_update_is_an_error_in_every_store() {
    let folder = tempfile::tempdir().unwrap();
    check_lost_update(&FileSystemSessionStore::new(folder.path())).await;
    check_lost_update(&MemorySessionStore::new()).await;
}

/// A store of another crate, with only the required methods.
struct Own(MemorySessionStore);

#[async_trait::async_trait]
impl SessionStore for Own {
    async fn save(&self, session: &RecordedSession) -> Result<(), SessionError> {
        self.0.save(session).await
    }

    async fn load(&self, session_id: &str) -> Result<RecordedSession, SessionError> {
        match session_id {
            "broken" => Err(SessionError::BrokenOff { session_id: session_id.to_owned() }),
            _ => self.0.load(session_id).await,
        }
    }

    async fn list_ids(&self) -> Result<Vec<String>, SessionError> {
        self.0.list_ids().await
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionError> {
        self.0.delete(session_id).await
    }
}

#[tokio::test]
async fn a_store_of_ones_own_lists_the_sessions_of_an_agent() {
    let store = Own(MemorySessionStore::new());
    for (id, agent) in [("one", "a"), ("other", "b"), ("broken", "a"), ("two", "a")] {
        store.save(&session(id, agent)).await.unwrap();
    }
    let found = store.list_for_agent("a").await.unwrap();
    let ids: Vec<&str> = found.sessions.iter().map(|session| session.session_id.as_str()).collect();
    assert_eq!(ids, ["two", "one"]);
    assert_eq!(found.unreadable.into_keys().collect::<Vec<_>>(), ["broken"]);
}

async fn check_lost_update(store: &dyn SessionStore) {
    store.save(&session("s", "a")).await.unwrap();
    let mut one = store.load("s").await.unwrap();
    let mut two = store.load("s").await.unwrap();
    add_loop(&mut one, "one");
    add_loop(&mut two, "two");
    store.save(&one).await.unwrap();
    store.save(&one).await.unwrap();
    let lost = store.save(&two).await.unwrap_err();
    assert!(
        matches!(&lost, SessionError::LostUpdate { missing, .. } if missing == "a loop \"one\""),
        "{lost}"
    );
    // The solution is to read again and repeat the change.
    let mut two = store.load("s").await.unwrap();
    add_loop(&mut two, "two");
    store.save(&two).await.unwrap();
    assert_eq!(store.load("s").await.unwrap(), two);
    // Two copies that change independently are two writers, too.
    let mut copy = two.clone();
    add_loop(&mut two, "three");
    add_loop(&mut copy, "four");
    store.save(&two).await.unwrap();
    assert!(store.save(&copy).await.is_err());
    // An unrelated session with the same id must not replace the stored one either.
    assert!(store.save(&session("s", "b")).await.is_err());
    assert_eq!(store.list_ids().await.unwrap(), ["s"]);
    assert_eq!(store.list_for_agent("a").await.unwrap().sessions.len(), 1);
    assert!(store.list_for_agent("b").await.unwrap().sessions.is_empty());
    store.delete("s").await.unwrap();
    assert!(matches!(store.load("s").await, Err(SessionError::NotFound { .. })));
    assert!(matches!(store.delete("s").await, Err(SessionError::NotFound { .. })));
}

#[tokio::test]
async fn taking_a_compaction_off_is_no_lost_update() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileSystemSessionStore::new(folder.path());
    let mut original: RecordedSession = serde_json::from_str(FULL).unwrap();
    store.save(&original).await.unwrap();
    let loop_id = original.loops.iter().next().unwrap().loop_id.clone();
    original.set_compaction_block(&loop_id, None);
    store.save(&original).await.unwrap();
    let loaded = store.load(&original.session_id).await.unwrap();
    assert_eq!(loaded.get_loop(&loop_id).unwrap().compaction_block, None);
}

/// A disk that fails after this many operations, as if the machine had stopped.
#[derive(Debug)]
struct Stopping {
    disk: OsDisk,
    left: Arc<AtomicUsize>,
}

impl Stopping {
    fn step(&self) -> std::io::Result<()> {
        step(&self.left)
    }
}

fn step(left: &AtomicUsize) -> std::io::Result<()> {
    let took = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    took.map(drop).map_err(|_| std::io::Error::other("stopped"))
}

#[derive(Debug)]
struct StoppingFile(Box<dyn File>, Arc<AtomicUsize>);

impl File for StoppingFile {
    pass_on! { 0: len, read_at, set_len }

    fn write_at(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        if let Err(stopped) = step(&self.1) {
            // Half of it reached the disk.
            self.0.write_at(at, &bytes[..bytes.len() / 2])?;
            return Err(stopped);
        }
        self.0.write_at(at, bytes)
    }
    fn sync(&self) -> std::io::Result<()> {
        step(&self.1)?;
        self.0.sync()
    }
}

impl Disk for Stopping {
    pass_on! { disk: create_dir, remove_dir, list, stat, lock, lock_holder }

    fn create(&self, path: &RelPath) -> std::io::Result<Box<dyn File>> {
        self.step()?;
        let file = self.disk.create(path)?;
        Ok(Box::new(StoppingFile(file, Arc::clone(&self.left))))
    }
    fn open(&self, path: &RelPath, access: Access) -> std::io::Result<Box<dyn File>> {
        self.disk.open(path, access)
    }
    fn rename(&self, from: &RelPath, to: &RelPath) -> std::io::Result<()> {
        self.step()?;
        self.disk.rename(from, to)
    }
    fn remove_file(&self, path: &RelPath) -> std::io::Result<()> {
        self.step()?;
        self.disk.remove_file(path)
    }
    fn sync_dir(&self, path: &RelPath) -> std::io::Result<()> {
        self.step()?;
        self.disk.sync_dir(path)
    }
}

/// Saves a session with one more loop, on a disk that stops after this many steps.
fn stops_after(steps: usize, session: &mut RecordedSession) {
    let folder = tempfile::tempdir().unwrap();
    save_session(session, folder.path()).unwrap();
    let old = session.clone();
    add_loop(session, &format!("l{steps}"));
    let disk = OsDisk::open(folder.path()).unwrap();
    let left = Arc::new(AtomicUsize::new(steps));
    let stopping = SessionFolder::new(Arc::new(Stopping { disk, left }));
    let saved = stopping.save(session);
    let found = load_session("s", folder.path()).unwrap();
    if saved.is_ok() {
        assert_eq!(found, *session);
    } else {
        assert!(found == old || found == *session, "after {steps} steps");
    }
    // Whatever is left on the disk, the next save succeeds.
    save_session(session, folder.path()).unwrap();
    assert_eq!(load_session("s", folder.path()).unwrap(), *session);
    assert_eq!(names(folder.path()), ["s.json"]);
}

#[test]
fn a_write_that_stops_anywhere_leaves_the_old_session_or_the_new_one() {
    for steps in 0..8 {
        stops_after(steps, &mut session("s", "a"));
    }
}

/// A session whose file is written in many pieces, which the disk begins to store before all are made, and which is
/// read on several threads.
fn long_session(loops: i64) -> RecordedSession {
    let mut session = session("s", "a");
    // The separator between two loops of a file may be in a message, too.
    let words = format!("\n    }},\n    {{\n{}", "x".repeat(900_000));
    for at in 0..loops {
        let started = Timestamp::from_unix_ms(at);
        let id = format!("long {at}");
        let mut record = LoopRecord::new(id, "s", "a", LoopStatus::Completed, started);
        record.messages = vec![RecordedMessage::user(words.as_str(), 1)];
        session.loops.add(record).unwrap();
    }
    session
}

#[test]
fn a_long_session_is_written_and_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let session = long_session(19);
    save_session(&session, folder.path()).unwrap();
    let text = fs::read(folder.path().join("s.json")).unwrap();
    assert!(text.len() > 16 << 20, "the disk may begin to write before the end");
    assert!(load_session("s", folder.path()).unwrap() == session);
}

#[test]
fn a_long_write_that_would_lose_an_update_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let stale = long_session(2);
    save_session(&stale, folder.path()).unwrap();
    let text = fs::read(folder.path().join("s.json")).unwrap();
    assert!(text == serde_json::to_vec_pretty(&stale).unwrap());
    let mut newer = load_session("s", folder.path()).unwrap();
    add_loop(&mut newer, "new");
    save_session(&newer, folder.path()).unwrap();
    let lost = save_session(&stale, folder.path()).unwrap_err();
    assert!(matches!(lost, SessionError::LostUpdate { .. }), "{lost}");
    assert_eq!(names(folder.path()), ["s.json"], "what was written beside it is gone");
    assert_eq!(load_session("s", folder.path()).unwrap(), newer);
}

#[test]
fn a_long_write_that_stops_anywhere_leaves_the_old_session_or_the_new_one() {
    let mut session = long_session(2);
    for steps in [1, 5, 8, 9, 10] {
        stops_after(steps, &mut session);
    }
}

#[test]
fn readers_never_see_half_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_owned();
    let mut session = session("s", "a");
    save_session(&session, &dir).unwrap();
    let reading = std::thread::spawn({
        let dir = dir.clone();
        move || {
            for _ in 0..200 {
                load_session("s", &dir).unwrap();
            }
        }
    });
    for at in 0..40 {
        add_loop(&mut session, &format!("l{at}"));
        save_session(&session, &dir).unwrap();
    }
    reading.join().unwrap();
    assert_eq!(load_session("s", &dir).unwrap().loops.len(), 40);
}
