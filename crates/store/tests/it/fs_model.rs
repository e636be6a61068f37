//! Random work on the fs adapter and on the memory adapter comes to the same, with reopening; and the
//! session-manager would see the same in the files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::support::{AsOriginal, id, says, step, titled};
use bough_platform::{OsEntropy, Platform};
use bough_session::{
    Bookkeeping, ContentBlock, CustomPayload, Entry, EntryBody, EntryId, FORMAT_PI, ForeignBody,
    Label, LoopEvent, LoopId, LoopPhase, MetaChange, NewRecord, RawJson, Record, Revision,
    SessionStatus, StatusChange,
};
use bough_store::{FsStore, MemoryStore, Position, Snapshot, Store, StoreError, StoreExt};
use proptest::prelude::*;
use serde_json::json;

#[derive(Clone, Debug)]
enum Op {
    Say { parent: u8, text: String, late: bool },
    Note { parent: u8, kind: u8 },
    Title(String),
    Status(bool),
    Archive(bool),
    Leaf(Option<u8>),
    Loop(bool),
    Step { entry: u8, text: String },
    Replace { entry: u8, text: String },
    DeleteAndUndo,
    Settle,
    Reopen,
}

fn any_op() -> impl Strategy<Value = Op> {
    let text = "[a-c\n\"é]{0,5}";
    prop_oneof![
        4 => (any::<u8>(), text, any::<bool>())
            .prop_map(|(parent, text, late)| Op::Say { parent, text, late }),
        2 => (any::<u8>(), 0..3_u8).prop_map(|(parent, kind)| Op::Note { parent, kind }),
        1 => text.prop_map(Op::Title),
        1 => any::<bool>().prop_map(Op::Status),
        1 => any::<bool>().prop_map(Op::Archive),
        1 => any::<Option<u8>>().prop_map(Op::Leaf),
        1 => any::<bool>().prop_map(Op::Loop),
        4 => (any::<u8>(), text).prop_map(|(entry, text)| Op::Step { entry, text }),
        2 => (any::<u8>(), text).prop_map(|(entry, text)| Op::Replace { entry, text }),
        1 => Just(Op::DeleteAndUndo),
        1 => Just(Op::Settle),
        1 => Just(Op::Reopen),
    ]
}

struct World {
    dir: tempfile::TempDir,
    memory: MemoryStore,
    fs: FsStore,
    /// The names of all entries, and which of them are messages.
    entries: Vec<(String, bool)>,
    clock: i64,
}

fn open(root: &Path) -> FsStore {
    FsStore::open(Platform::system(root).unwrap(), root.to_owned()).unwrap()
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fs = open(dir.path());
        let memory = MemoryStore::new(Arc::new(OsEntropy)).unwrap();
        for store in [&memory as &dyn Store, &fs] {
            store.create(&id("s"), vec![titled("t", 1)].into()).await.unwrap();
        }
        Self { dir, memory, fs, entries: Vec::new(), clock: 1 }
    }

    fn pick(&self, choice: u8) -> Option<&(String, bool)> {
        let index = usize::from(choice) % self.entries.len().max(1);
        self.entries.get(index)
    }

    async fn both(&self, record: NewRecord) {
        for store in [&self.memory as &dyn Store, &self.fs] {
            let head = store.state(&id("s")).await.unwrap().unwrap().head;
            store.append(&id("s"), &head, vec![record.clone()].into()).await.unwrap();
        }
    }

    async fn apply(&mut self, op: Op) {
        self.clock += 1;
        let at = self.clock;
        match op {
            Op::Say { parent, text, late } => {
                let at_ms = if late { at + 100 } else { at };
                let mut new = self.entry(parent, &text, at);
                new.at_ms = at_ms;
                self.clock = at_ms;
                self.both(new).await;
                self.entries.push((format!("e{}", self.entries.len()), true));
            }
            Op::Note { parent, kind } => {
                let new = self.note(parent, kind, at);
                let is_message = new.record.as_entry().unwrap().is_message();
                self.both(new).await;
                self.entries.push((format!("e{}", self.entries.len()), is_message));
            }
            Op::Title(title) => self.both(titled(&title, at)).await,
            Op::Status(failed) => self.both(status(failed, at)).await,
            Op::Archive(archived) => self.both(archive(archived, at)).await,
            Op::Leaf(choice) => {
                let leaf = choice.and_then(|choice| self.pick(choice));
                let leaf = leaf.map(|(name, _)| EntryId::from_stored(name.as_str()));
                self.both(Record::Leaf(leaf).at(at)).await;
            }
            Op::Loop(running) => self.both(loop_event(running, at)).await,
            Op::Step { entry, text } => self.stream(entry, &text).await,
            Op::Replace { entry, text } => self.replace(entry, &text, at).await,
            Op::DeleteAndUndo => self.delete_and_undo(at).await,
            Op::Settle => self.fs.close().await.unwrap(),
            Op::Reopen => self.reopen(),
        }
    }

    fn entry(&self, parent: u8, text: &str, at: i64) -> NewRecord {
        let parent = self.pick(parent).map(|(name, _)| name.as_str());
        says(&format!("e{}", self.entries.len()), parent, text, at)
    }

    /// Bookkeeping, an application's own entry, or a line of another system.
    fn note(&self, parent: u8, kind: u8, at: i64) -> NewRecord {
        let mut new = self.entry(parent, "", at);
        let body = match kind {
            0 => {
                EntryBody::Custom(CustomPayload { custom_type: "x".into(), data: json!([1, null]) })
            }
            1 => {
                let target_id = EntryId::from_stored("e0");
                let label = Label { target_id, label: Some("l".into()) };
                EntryBody::Custom(Bookkeeping::Label(label).to_payload())
            }
            _ => {
                let line = r#"{"type":"message","message":{"role":"user","content":"pi","timestamp":1.0e1}}"#;
                EntryBody::Foreign(ForeignBody::new(FORMAT_PI, RawJson::parse(line).unwrap()))
            }
        };
        if let Record::Entry(entry) = &mut new.record {
            entry.body = body;
        }
        new
    }

    async fn stream(&mut self, entry: u8, text: &str) {
        let Some((name, true)) = self.pick(entry).cloned() else { return };
        let stored = self.memory.entry(&id("s"), &EntryId::from_stored(name.as_str())).await;
        let revision = stored.unwrap().unwrap().entry.revision + 1;
        let mut delta = step(&name, revision, text);
        delta.at_ms = self.clock;
        for store in [&self.memory as &dyn Store, &self.fs] {
            match store.append_delta(&id("s"), delta.clone()).await {
                Ok(_) => {}
                // A message without blocks has none to add to; both stores say so.
                Err(StoreError::Invalid { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn replace(&mut self, entry: u8, text: &str, at: i64) {
        let Some((name, true)) = self.pick(entry).cloned() else { return };
        // What is streamed counts as a revision; the fs adapter settles it first.
        self.fs.close().await.unwrap();
        let stored = self.memory.entry(&id("s"), &EntryId::from_stored(name.as_str())).await;
        let entry: Entry = stored.unwrap().unwrap().entry;
        let revision = Revision::replace(&entry, &[ContentBlock::text(text)], None);
        self.both(Record::Revision(revision).at(at)).await;
    }

    async fn delete_and_undo(&mut self, at: i64) {
        for store in [&self.memory as &dyn Store, &self.fs] {
            let trashed = store.delete(&id("s"), at).await.unwrap().unwrap();
            store.undelete(&id("s"), trashed.incarnation, at).await.unwrap();
        }
    }

    fn reopen(&mut self) {
        // The lock goes with the last clone of the old one, so that is dropped first.
        let elsewhere = tempfile::tempdir().unwrap();
        self.fs = open(elsewhere.path());
        self.fs = open(self.dir.path());
    }

    async fn compare(&self) {
        let (mine, theirs) = (snapshot(&self.fs).await, snapshot(&self.memory).await);
        let comparable = |snapshot: &Snapshot| {
            let mut state = (*snapshot.state).clone();
            state.seq = 0;
            state
        };
        assert_eq!(comparable(&mine), comparable(&theirs));
        for (name, _) in &self.entries {
            let entry = EntryId::from_stored(name.as_str());
            let mine = self.fs.entry(&id("s"), &entry).await.unwrap().unwrap();
            let theirs = self.memory.entry(&id("s"), &entry).await.unwrap().unwrap();
            assert_eq!(mine.entry, theirs.entry);
        }
        // A feed from the start ends where the snapshot says.
        let page = self.fs.records(&id("s"), Position::default(), 10_000).await.unwrap();
        assert_eq!((page.end, page.more), (mine.position, false));
    }

    async fn compare_with_the_original(&self) {
        // The next batch puts what is streamed into the file, also after a restart.
        self.both(titled("the end", self.clock + 1)).await;
        let seen = AsOriginal::read(&self.dir.path().join("s.jsonl"));
        assert_eq!(seen.unreadable, 0);
        let state = snapshot(&self.fs).await.state;
        assert_eq!(seen.meta, Some(serde_json::to_value(&state.meta).unwrap()));
        assert_eq!(seen.leaf.as_deref(), state.leaf.as_ref().map(EntryId::as_str));
        let mut expected = BTreeMap::new();
        for (name, _) in &self.entries {
            let entry = EntryId::from_stored(name.as_str());
            let stored = self.fs.entry(&id("s"), &entry).await.unwrap().unwrap();
            expected.insert(name.as_str(), serde_json::to_value(stored.entry.to_wire()).unwrap());
        }
        let plain = seen.plain();
        assert_eq!(plain.len(), expected.len());
        for (name, entry) in &expected {
            assert_eq!(plain[name], entry);
        }
    }
}

async fn snapshot(store: &dyn Store) -> Snapshot {
    store.state(&id("s")).await.unwrap().unwrap()
}

fn status(failed: bool, at: i64) -> NewRecord {
    let status = if failed { SessionStatus::Error } else { SessionStatus::Done };
    let reason = Some("why".to_owned());
    Record::Meta(MetaChange {
        status: Some(StatusChange { status, reason }),
        metadata: json!({"at": at}).as_object().cloned(),
        ..MetaChange::default()
    })
    .at(at)
}

fn archive(archived: bool, at: i64) -> NewRecord {
    Record::Meta(MetaChange {
        archived: Some(archived),
        task_name: archived.then(|| "task".to_owned()),
        ..MetaChange::default()
    })
    .at(at)
}

fn loop_event(running: bool, at: i64) -> NewRecord {
    let phase = if running { LoopPhase::Running } else { LoopPhase::Completed };
    Record::Loop(LoopEvent {
        loop_id: LoopId::from_stored("l"),
        phase: Some(phase),
        entry_id: None,
        event: RawJson::parse(r#"{"n": 1.50}"#).unwrap(),
    })
    .at(at)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_fs_adapter_does_what_the_memory_adapter_does(
        ops in proptest::collection::vec(any_op(), 1..25),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for op in ops {
                world.apply(op).await;
                world.compare().await;
            }
            world.compare_with_the_original().await;
            world.reopen();
            world.compare().await;
        });
    }
}
