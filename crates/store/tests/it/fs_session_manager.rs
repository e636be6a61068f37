//! Files of session-manager: opened, carried on, and readable by it afterwards.

use std::path::{Path, PathBuf};

use crate::support::{AsOriginal, create, entry_id, id, push, says, step, text_of, titled};
use bough_platform::Platform;
use bough_session::{ContentBlock, Record, Revision, SessionStatus};
use bough_store::{
    FsStore, ListOrder, ListQuery, PathQuery, PathStart, Position, ReadStore, Store, StoreError,
    StoreExt,
};
use serde_json::{Value, json};

const SESSION_FILE: &str = r#"{"type":"meta","meta":{"session_id":"s_1","title":"py","description":"","status":"idle","metadata":{"owner":"u"},"created_at":1,"updated_at":1,"message_count":0}}
{"type":"entry","entry":{"kind":"message","id":"e_1","parent_id":null,"timestamp":2,"revision":0,"origin":{"turn_id":"t"},"message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1}}}
{"type":"leaf","entry_id":"e_1"}
{"type":"meta","meta":{"session_id":"s_1","title":"py","description":"","status":"working","metadata":{"owner":"u"},"created_at":1,"updated_at":2,"message_count":1}}
{"type":"entry","entry":{"kind":"custom","id":"e_2","parent_id":"e_1","timestamp":3,"revision":0,"custom_type":"x","data":null}}
{"type":"leaf","entry_id":"e_2"}
{"type":"entry","entry":{"kind":"message","id":"e_3","parent_id":"e_2","timestamp":4,"revision":0,"message":{"role":"assistant","content":[],"stop_reason":"end","model":"m","provider":"p","timestamp":4}}}
{"type":"leaf","entry_id":"e_3"}
{"type":"entry","entry":{"kind":"message","id":"e_3","parent_id":"e_2","timestamp":4,"revision":1,"message":{"role":"assistant","content":[{"type":"text","text":"hello"}],"stop_reason":"end","model":"m","provider":"p","timestamp":4}}}
{"type":"meta","meta":{"session_id":"s_1","title":"py","description":"","status":"done","metadata":{"owner":"u"},"created_at":1,"updated_at":9,"message_count":2}}
"#;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let dir = Self::new();
        std::fs::write(dir.path(name), content).unwrap();
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self) -> FsStore {
        let root = self.0.path();
        FsStore::open(Platform::system(root).unwrap(), root.to_owned()).unwrap()
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

#[tokio::test]
async fn a_file_of_the_original_is_read() {
    let dir = Dir::with("s_1.jsonl", SESSION_FILE);
    let store = dir.open();
    let snapshot = store.state(&id("s_1")).await.unwrap().unwrap();
    let meta = serde_json::to_value(&snapshot.state.meta).unwrap();
    let last = SESSION_FILE.lines().last().unwrap();
    assert_eq!(meta, serde_json::from_str::<Value>(last).unwrap()["meta"]);
    assert_eq!(snapshot.state.leaf, Some(entry_id("e_3")));
    let query = PathQuery { leaf: None, start: PathStart::Root, limit: 9 };
    let path = store.path(&id("s_1"), &query).await.unwrap();
    let first = serde_json::to_value(path.entries[0].entry.to_wire()).unwrap();
    let line: Value = serde_json::from_str(SESSION_FILE.lines().nth(1).unwrap()).unwrap();
    assert_eq!(first, line["entry"]);
    assert_eq!(path.entries[2].entry.revision, 1);
    assert_eq!(text_of(&store, &id("s_1"), "e_3").await.as_deref(), Some("hello"));
    assert!(!dir.path("bough.lock").exists(), "reading writes nothing");
}

#[tokio::test]
async fn an_append_writes_the_lines_of_the_original() {
    let dir = Dir::with("s_1.jsonl", SESSION_FILE);
    let store = dir.open();
    push(&store, &id("s_1"), vec![says("e_4", Some("e_3"), "more", 10)]).await;
    let written = lines(&dir.path("s_1.jsonl")).split_off(SESSION_FILE.lines().count());
    assert_eq!(
        written,
        [
            r#"{"type":"entry","entry":{"kind":"message","id":"e_4","parent_id":"e_3","timestamp":10,"revision":0,"message":{"role":"user","content":[{"type":"text","text":"more"}],"timestamp":10}}}"#,
            r#"{"type":"leaf","entry_id":"e_4"}"#,
            r#"{"type":"meta","meta":{"session_id":"s_1","title":"py","description":"","status":"done","metadata":{"owner":"u"},"created_at":1,"updated_at":10,"message_count":3}}"#,
        ]
    );
    let before = store.state(&id("s_1")).await.unwrap();
    drop(store);
    assert_eq!(dir.open().state(&id("s_1")).await.unwrap(), before);
}

#[tokio::test]
async fn what_the_original_appends_meanwhile_is_seen() {
    let dir = Dir::with("s_1.jsonl", SESSION_FILE);
    let store = dir.open();
    let head = store.state(&id("s_1")).await.unwrap().unwrap().head;
    let more = r#"{"type":"meta","meta":{"session_id":"s_1","title":"new","description":"","status":"error","status_reason":"why","created_at":1,"updated_at":12,"message_count":2}}"#;
    std::fs::write(dir.path("s_1.jsonl"), format!("{SESSION_FILE}{more}\n")).unwrap();
    let stale = store.append(&id("s_1"), &head, vec![says("x", None, "", 13)].into()).await;
    assert!(matches!(stale, Err(StoreError::Conflict { .. })), "{stale:?}");
    let state = store.state(&id("s_1")).await.unwrap().unwrap().state;
    assert_eq!((state.meta.title.as_str(), state.meta.status), ("new", SessionStatus::Error));
    assert_eq!((state.meta.status_reason.as_deref(), state.meta.updated_at), (Some("why"), 12));
    std::fs::remove_file(dir.path("s_1.jsonl")).unwrap();
    assert!(store.state(&id("s_1")).await.unwrap().is_none());
    std::fs::write(dir.path("s_1.jsonl"), SESSION_FILE.replace("\"hi\"", "\"ho\"")).unwrap();
    assert_eq!(text_of(&store, &id("s_1"), "e_1").await.as_deref(), Some("ho"));
}

#[tokio::test]
async fn a_torn_end_is_mended_and_nothing_is_lost() {
    let torn = r#"{"type":"entry","entry":{"kind":"message","id":"e_9","par"#;
    let dir = Dir::with("s_1.jsonl", format!("{SESSION_FILE}{torn}"));
    let store = dir.open();
    push(&store, &id("s_1"), vec![says("e_4", Some("e_3"), "kept", 10)]).await;
    drop(store);
    let store = dir.open();
    assert_eq!(text_of(&store, &id("s_1"), "e_4").await.as_deref(), Some("kept"));
    let file = dir.path("s_1.jsonl");
    assert!(lines(&file).contains(&torn.to_owned()), "the torn bytes are still there");
    let seen = AsOriginal::read(&file);
    assert_eq!((seen.unreadable, seen.leaf.as_deref()), (1, Some("e_4")));
}

#[tokio::test]
async fn a_last_line_without_a_line_break_counts() {
    let dir = Dir::with("s_1.jsonl", SESSION_FILE.trim_end());
    let store = dir.open();
    let state = store.state(&id("s_1")).await.unwrap().unwrap().state;
    assert_eq!(state.meta.status, SessionStatus::Done);
    let head = push(&store, &id("s_1"), vec![says("e_4", Some("e_3"), "kept", 10)]).await;
    drop(store);
    assert_eq!(dir.open().state(&id("s_1")).await.unwrap().unwrap().head, head);
    assert_eq!(AsOriginal::read(&dir.path("s_1.jsonl")).unreadable, 0);
}

/// session-manager glues the next record to a torn line, and then reads neither; here the whole one is read.
#[tokio::test]
async fn a_record_that_was_glued_to_a_torn_line_is_found_again() {
    let glued = format!(
        "{SESSION_FILE}{}{}{}\n",
        r#"{"type":"entry","entry":{"kind":"custom","id":"e_8","data":{"type":"leaf"},"#,
        r#"{"type":"entry","entry":{"kind":"message","id":"e_4","parent_id":"e_3","timestamp":10,"revision":0,"message":{"role":"user","content":[{"type":"text","text":"lost"}],"timestamp":10}}}"#,
        r#"{"type":"leaf","entry_id":"e_4"}"#,
    );
    let dir = Dir::with("s_1.jsonl", glued);
    let store = dir.open();
    assert_eq!(text_of(&store, &id("s_1"), "e_4").await.as_deref(), Some("lost"));
    let state = store.state(&id("s_1")).await.unwrap().unwrap().state;
    assert_eq!((state.leaf.clone(), state.meta.message_count), (Some(entry_id("e_4")), 3));
}

#[tokio::test]
async fn bad_files_hide_no_others() {
    let dir = Dir::with("s_1.jsonl", SESSION_FILE);
    std::fs::write(dir.path("binary.jsonl"), [0xff, 0xfe, 0, 10, 0xff]).unwrap();
    std::fs::write(dir.path("%zz.jsonl"), SESSION_FILE).unwrap();
    std::fs::write(dir.path("empty.jsonl"), "").unwrap();
    std::fs::write(dir.path("no-meta.jsonl"), SESSION_FILE.lines().nth(1).unwrap()).unwrap();
    std::fs::write(dir.path("notes.txt"), "hello").unwrap();
    std::fs::create_dir(dir.path("folder.jsonl")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path("link.jsonl")).unwrap();
    let mixed = [SESSION_FILE.replace("s_1", "mixed").as_bytes(), b"\xff\xfe\n{}\n[]\n\n"].concat();
    std::fs::write(dir.path("mixed.jsonl"), mixed).unwrap();
    let store = dir.open();
    let query = ListQuery { order: ListOrder::CreatedAsc, limit: 99, ..ListQuery::default() };
    let page = store.list(&query).await.unwrap();
    let ids: Vec<_> = page.sessions.iter().map(|s| s.meta.session_id.as_str()).collect();
    assert_eq!(ids, ["mixed", "s_1"]);
    assert!(store.state(&id("binary")).await.unwrap().is_none());
    assert_eq!(store.trash(None).await.unwrap(), Vec::new());
}

#[tokio::test]
async fn one_process_writes_and_another_reads() {
    let dir = Dir::new();
    let (one, two) = (dir.open(), dir.open());
    create(&one, &id("s")).await;
    let refused = two.create(&id("t"), vec![titled("t", 1)].into()).await;
    match refused {
        Err(StoreError::Locked { holder }) => {
            assert!(holder.contains(&std::process::id().to_string()));
        }
        other => panic!("{other:?}"),
    }
    push(&one, &id("s"), vec![says("a", None, "", 2)]).await;
    one.append_delta(&id("s"), step("a", 1, "streamed")).await.unwrap().durable.await.unwrap();
    assert_eq!(text_of(&two, &id("s"), "a").await.as_deref(), Some("streamed"));
    assert!(two.delete(&id("nobody"), 1).await.unwrap().is_none());
    one.close().await.unwrap();
    push(&two, &id("s"), vec![says("b", Some("a"), "mine", 3)]).await;
    assert_eq!(text_of(&one, &id("s"), "b").await.as_deref(), Some("mine"));
    assert_eq!(text_of(&one, &id("s"), "a").await.as_deref(), Some("streamed"));
}

#[tokio::test]
async fn a_stream_costs_about_its_text() {
    let dir = Dir::new();
    let store = dir.open();
    create(&store, &id("s")).await;
    push(&store, &id("s"), vec![says("a", None, "", 2)]).await;
    let before = std::fs::metadata(dir.path("s.jsonl")).unwrap().len();
    for revision in 1..=2000 {
        store.append_delta(&id("s"), step("a", revision, "six ch")).await.unwrap();
    }
    let streamed = std::fs::metadata(dir.path("bough-stream/s.jsonl")).unwrap().len();
    assert!(streamed < 2000 * 100, "{streamed} bytes while it streams");
    store.close().await.unwrap();
    let after = std::fs::metadata(dir.path("s.jsonl")).unwrap().len();
    let cost = after - before;
    assert!(cost < 3 * 12_000, "{cost} bytes for a reply of 12 kB");
    assert_eq!(std::fs::metadata(dir.path("bough-stream/s.jsonl")).unwrap().len(), 0);
    let seen = AsOriginal::read(&dir.path("s.jsonl"));
    assert_eq!(seen.entries["a"]["revision"], json!(2000));
    assert_eq!(seen.meta.unwrap()["updated_at"], json!(50));
}

/// A crash after the streamed message was put into the file, and before its steps were dropped.
#[tokio::test]
async fn steps_that_the_file_knows_are_passed_over() {
    let dir = Dir::new();
    let store = dir.open();
    create(&store, &id("s")).await;
    push(&store, &id("s"), vec![says("a", None, "", 2)]).await;
    for revision in 1..=3 {
        store.append_delta(&id("s"), step("a", revision, "x")).await.unwrap();
    }
    let steps = std::fs::read(dir.path("bough-stream/s.jsonl")).unwrap();
    let head = push(&store, &id("s"), vec![says("b", Some("a"), "", 3)]).await;
    drop(store);
    std::fs::write(dir.path("bough-stream/s.jsonl"), &steps).unwrap();
    let store = dir.open();
    let snapshot = store.state(&id("s")).await.unwrap().unwrap();
    assert_eq!((snapshot.head, snapshot.position.step), (head, 3));
    assert_eq!(text_of(&store, &id("s"), "a").await.as_deref(), Some("xxx"));
    drop(store);

    // Steps cut off in the middle of a line: the whole ones count.
    let store = dir.open();
    store.append_delta(&id("s"), step("a", 4, "y")).await.unwrap();
    store.append_delta(&id("s"), step("a", 5, "z")).await.unwrap();
    drop(store);
    let steps = std::fs::read(dir.path("bough-stream/s.jsonl")).unwrap();
    std::fs::write(dir.path("bough-stream/s.jsonl"), &steps[..steps.len() - 5]).unwrap();
    let store = dir.open();
    assert_eq!(text_of(&store, &id("s"), "a").await.as_deref(), Some("xxxy"));
    store.append_delta(&id("s"), step("a", 5, "w")).await.unwrap();
    drop(store);
    let store = dir.open();
    assert_eq!(text_of(&store, &id("s"), "a").await.as_deref(), Some("xxxyw"));

    // Steps of another incarnation are ignored.
    store.delete(&id("s"), 9).await.unwrap().unwrap();
    create(&store, &id("s")).await;
    push(&store, &id("s"), vec![says("a", None, "new", 2)]).await;
    drop(store);
    std::fs::write(dir.path("bough-stream/s.jsonl"), &steps).unwrap();
    let store = dir.open();
    assert_eq!(text_of(&store, &id("s"), "a").await.as_deref(), Some("new"));
    store.append_delta(&id("s"), step("a", 1, "!")).await.unwrap();
    drop(store);
    assert_eq!(text_of(&dir.open(), &id("s"), "a").await.as_deref(), Some("new!"));
}

/// A crash between the tombstone and the move to the trash.
#[tokio::test]
async fn a_deletion_cut_short_is_a_deletion() {
    let dir = Dir::new();
    let store = dir.open();
    create(&store, &id("s")).await;
    push(&store, &id("s"), vec![says("a", None, "old", 2)]).await;
    let incarnation = store.delete(&id("s"), 9).await.unwrap().unwrap().incarnation;
    drop(store);
    let trashed = dir.path("bough-trash").join(format!("{incarnation}.jsonl"));
    let cut_short = || std::fs::rename(&trashed, dir.path("s.jsonl")).unwrap();
    cut_short();
    let store = dir.open();
    assert!(store.state(&id("s")).await.unwrap().is_none());
    assert_eq!(store.trash(Some(&id("s"))).await.unwrap().len(), 1);
    create(&store, &id("s")).await;
    assert!(trashed.exists());
    store.delete(&id("s"), 10).await.unwrap().unwrap();
    let back = store.undelete(&id("s"), incarnation, 11).await.unwrap();
    assert_eq!(back.state.meta.message_count, 1);
    store.delete(&id("s"), 12).await.unwrap().unwrap();
    drop(store);
    cut_short();
    let store = dir.open();
    store.undelete(&id("s"), incarnation, 13).await.unwrap();
    assert_eq!(text_of(&store, &id("s"), "a").await.as_deref(), Some("old"));
    store.delete(&id("s"), 14).await.unwrap().unwrap();
    drop(store);
    cut_short();
    let store = dir.open();
    assert!(store.purge(&id("s"), incarnation, None).await.unwrap());
    assert!(!dir.path("s.jsonl").exists() && !trashed.exists());
}

/// Lines of later versions of session-manager: an entry and a meta in one line, fields and blocks that the
/// published shape does not know. They are read, and kept when the message changes.
#[tokio::test]
async fn what_a_later_original_wrote_is_read_and_kept() {
    let later = concat!(
        r#"{"type":"append","entry":{"kind":"message","id":"e_5","parent_id":"e_3","timestamp":10,"revision":0,"message":{"role":"assistant","agent":"pi","content":[{"type":"text","text":"a"},{"type":"file","name":"f"}],"stop_reason":"end","model":"m","provider":"p","timestamp":2}},"meta":{"session_id":"s_1","title":"later","description":"","status":"done","created_at":1,"updated_at":10,"message_count":3,"kind":"x"}}"#,
        "\n",
        r#"{"type":"commit","n":1}"#,
        "\n",
    );
    let dir = Dir::with("s_1.jsonl", format!("{SESSION_FILE}{later}"));
    let store = dir.open();
    let state = store.state(&id("s_1")).await.unwrap().unwrap().state;
    assert_eq!((state.meta.title.as_str(), state.meta.message_count), ("later", 3));
    let stored = store.entry(&id("s_1"), &entry_id("e_5")).await.unwrap().unwrap();
    assert_eq!(stored.entry.message().unwrap().content().len(), 2);

    let revision = Revision::replace(&stored.entry, &[ContentBlock::text("b")], None);
    push(&store, &id("s_1"), vec![Record::Revision(revision).at(11)]).await;
    let seen = AsOriginal::read_lenient(&dir.path("s_1.jsonl"));
    let message = &seen.entries["e_5"]["message"];
    assert_eq!((&message["agent"], &message["content"][0]["text"]), (&json!("pi"), &json!("b")));
    drop(store);
    let store = dir.open();
    assert_eq!(text_of(&store, &id("s_1"), "e_5").await.as_deref(), Some("b"));
}

#[tokio::test]
async fn asking_for_what_is_not_there_writes_nothing() {
    let dir = Dir::new();
    let store = dir.open();
    assert!(store.state(&id("nobody")).await.unwrap().is_none());
    assert!(store.delete(&id("nobody"), 1).await.unwrap().is_none());
    assert!(store.records(&id("nobody"), Position::default(), 9).await.is_err());
    assert_eq!(
        store.list(&ListQuery { limit: 9, ..ListQuery::default() }).await.unwrap().sessions.len(),
        0
    );
    assert_eq!(std::fs::read_dir(dir.0.path()).unwrap().count(), 0);
}
