//! What is at hand is what the log says, whatever happened to the session.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use bough_platform::Platform;
use bough_session::{
    AgentMessage, ContentBlock, ContentChange, Delta, Entry, EntryBody, EntryId, Incarnation,
    MetaChange, NewRecord, Record, SessionId, TextAppend, UserMessage,
};
use proptest::prelude::*;

use super::TailCache;
use crate::limits::{TAIL_CACHE_BATCH_BYTES_MAX, TAIL_CACHE_BATCHES_MAX, TAIL_CACHE_BYTES_MAX};
use crate::native::{NativeOptions, NativeStore};
use crate::{ChainHash, Head, Position, Store};

struct Bed {
    dir: tempfile::TempDir,
    store: NativeStore,
    session: SessionId,
    entries: u32,
}

async fn open(dir: &tempfile::TempDir) -> NativeStore {
    let platform = Platform::system(dir.path()).unwrap();
    let options = NativeOptions::default();
    NativeStore::open(platform, dir.path().to_owned(), options).await.unwrap()
}

fn says(number: u32, text: &str) -> NewRecord {
    let content = vec![ContentBlock::text(text)];
    let message = AgentMessage::User(UserMessage::new(content, 1));
    Record::Entry(Entry {
        id: EntryId::from_stored(number.to_string()),
        parent_id: None,
        timestamp: 1,
        revision: 0,
        origin: None,
        body: EntryBody::Message(message.into()),
    })
    .at(1)
}

fn titled(title: &str) -> Vec<NewRecord> {
    let change = MetaChange { title: Some(title.to_owned()), ..MetaChange::default() };
    vec![Record::Meta(change).at(1)]
}

impl Bed {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir).await;
        let session = SessionId::from_stored("s");
        store.create(&session, titled("t").into()).await.unwrap();
        Self { dir, store, session, entries: 0 }
    }

    async fn head(&self, store: &NativeStore) -> Head {
        store.state(&self.session).await.unwrap().unwrap().head
    }

    async fn append(&self, store: &NativeStore, records: Vec<NewRecord>) {
        let head = self.head(store).await;
        let appended = store.append(&self.session, &head, records.into()).await.unwrap();
        appended.durable.await.unwrap();
    }

    async fn say(&mut self, count: u32, text: &str) {
        let numbers = self.entries..self.entries + count;
        self.entries += count;
        self.append(&self.store, numbers.map(|number| says(number, text)).collect()).await;
    }

    /// One step of the newest message.
    async fn step(&self, store: &NativeStore) {
        let Some(last) = self.entries.checked_sub(1) else { return };
        let entry_id = EntryId::from_stored(last.to_string());
        let entry = store.entry(&self.session, &entry_id).await.unwrap().unwrap().entry;
        let delta = Delta {
            at_ms: 1,
            entry_id,
            revision: entry.revision + 1,
            change: ContentChange::Append(TextAppend { block: 0, text: "+".to_owned() }),
            details: None,
            origin: None,
        };
        store.append_delta(&self.session, delta).await.unwrap().durable.await.unwrap();
    }

    /// Another process does something to the session.
    async fn elsewhere(&mut self, steps: bool) {
        self.store.close().await.unwrap();
        let other = open(&self.dir).await;
        if steps && self.entries > 0 {
            self.step(&other).await;
        } else {
            self.append(&other, vec![says(self.entries, "elsewhere")]).await;
            self.entries += 1;
        }
        other.close().await.unwrap();
    }

    async fn live_again(&mut self, same: bool) {
        let trashed = self.store.delete(&self.session, 1).await.unwrap().unwrap();
        if same {
            self.store.undelete(&self.session, trashed.incarnation, 1).await.unwrap();
        } else {
            self.store.create(&self.session, titled("t").into()).await.unwrap();
            self.entries = 0;
        }
    }

    async fn act(&mut self, what: u8) {
        match what {
            0..=3 => self.say(u32::from(what % 3) + 1, "hello").await,
            4 => self.append(&self.store, titled("other")).await,
            5 | 6 => self.step(&self.store).await,
            7 => self.elsewhere(false).await,
            8 => self.elsewhere(true).await,
            9 => self.live_again(true).await,
            10 => self.live_again(false).await,
            11 => self.store.shared.settle_now(&self.session).unwrap(),
            _ => self.say(1, &"x".repeat(TAIL_CACHE_BATCH_BYTES_MAX)).await,
        }
    }

    /// Compares every place of the session; says how many were at hand.
    async fn check(&self) -> usize {
        let end = self.head(&self.store).await.seq;
        let mut at_hand = 0;
        let is_open = || self.store.shared.log.is_open(self.session.as_str());
        let was_open = is_open();
        for seq in 0..=end {
            for (step, limit) in [(0, 1), (0, 3), (0, 256), (1, 256), (u64::MAX, 256)] {
                let after = Position { seq, step };
                let shared = &self.store.shared;
                let said = shared.records(&self.session, after, limit).unwrap();
                at_hand +=
                    usize::from(shared.cached_records(&self.session, after, limit).is_some());
                let read = self.store.records(&self.session, after, limit).await.unwrap();
                assert_eq!(read.records, said.records, "after {after:?}, at most {limit}");
                assert_eq!((read.more, read.end.seq), (said.more, said.end.seq));
                assert!(said.end.covers(read.end));
            }
        }
        assert_eq!(is_open(), was_open, "reading opens nothing");
        at_hand
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_at_hand_is_what_the_log_says(acts in proptest::collection::vec(0..13_u8, 1..16)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut bed = Bed::new().await;
            let _watch = bed.store.watch();
            for what in acts {
                bed.act(what).await;
                bed.check().await;
            }
        });
    }
}

/// What was on its way when everything was let go of is not taken for what follows it.
#[test]
fn a_run_has_no_hole() {
    let (tail_cache, session) = (TailCache::default(), SessionId::from_stored("s"));
    let head = |seq| Head {
        incarnation: Incarnation::new([1; 16]),
        seq,
        chain: ChainHash::from_bytes([u8::try_from(seq).unwrap(); 32]),
    };
    let accept = |seq: u64| {
        let batch = vec![says(u32::try_from(seq).unwrap(), "hello")];
        tail_cache.accepted(&session, (&head(seq - 1), &head(seq)), (batch, 10)).unwrap()
    };
    let read = |end: u64| tail_cache.read(&session, &head(end), Position::at(end - 1), 9);
    let first = accept(5);
    tail_cache.lock().forget(&session);
    let second = accept(6);
    tail_cache.keep(&session, first);
    assert_eq!(read(6), None, "nothing is durable that is kept");
    tail_cache.keep(&session, second);
    assert_eq!(read(6), None, "the run ended with the hole");
    tail_cache.keep(&session, accept(7));
    let page = read(7).unwrap();
    assert_eq!((page.records.len(), page.records[0].position()), (1, Position::at(7)));
    let later = accept(9);
    assert_eq!(
        tail_cache.read(&session, &head(9), Position::at(6), 9),
        None,
        "8 was somebody else's"
    );
    tail_cache.keep(&session, later);
    assert_eq!(read(9).unwrap().records[0].position(), Position::at(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_somebody_follows_is_at_hand() {
    let mut bed = Bed::new().await;
    bed.say(1, "nobody").await;
    assert_eq!(bed.check().await, 0);
    let watch = bed.store.watch_session(&bed.session);
    bed.say(1, "somebody").await;
    assert_eq!(bed.check().await, 5, "the last record, in each kind of page");
    drop(watch);
    bed.say(1, "nobody").await;
    assert_eq!(bed.check().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_at_hand_is_bounded() {
    let mut bed = Bed::new().await;
    let _watch = bed.store.watch();
    for _ in 0..TAIL_CACHE_BATCHES_MAX + 5 {
        bed.say(2, "hello").await;
    }
    let pages = 5;
    assert_eq!(bed.check().await, TAIL_CACHE_BATCHES_MAX * 2 * pages);
    let held = |bed: &Bed| bed.store.shared.tail_cache.lock().bytes;
    let small = held(&bed);
    let text = "x".repeat(TAIL_CACHE_BATCH_BYTES_MAX / 2);
    let large = u32::try_from(TAIL_CACHE_BYTES_MAX / text.len()).unwrap();
    let mut most = 0;
    for number in 0..large {
        let session = SessionId::from_stored(format!("other {number}"));
        let head = bed.store.create(&session, titled("t").into()).await.unwrap().head;
        let appended =
            bed.store.append(&session, &head, vec![says(0, &text)].into()).await.unwrap();
        appended.durable.await.unwrap();
        most = most.max(held(&bed));
    }
    assert!(small < most && most <= TAIL_CACHE_BYTES_MAX, "{most}");
    assert!(held(&bed) < most, "what was too much was let go of");
    bed.store.shared.tail_cache.lock().forget(&bed.session);
    for number in 0..large {
        bed.store
            .shared
            .tail_cache
            .lock()
            .forget(&SessionId::from_stored(format!("other {number}")));
    }
    assert_eq!(held(&bed), 0, "each byte is counted once");
}
