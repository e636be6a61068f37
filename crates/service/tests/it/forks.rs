//! What a fork costs: memory for a part of the session at a time, whatever the session's length and whatever is said in it.

use bough_store::StoreExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::ALLOCATOR;
use crate::common::stores::{self, DiskKind};
use crate::common::{CountingEntropy, HandClock, TestService};
use bough_platform::{Clock, OsDisk, Platform};
use bough_service::limits::BUILD_BATCH_BYTES;
use bough_service::{Scope, Service};
use bough_session::limits::{BATCH_BYTES_MAX, MESSAGE_BYTES_MAX};
use bough_session::{
    AgentMessage, ContentBlock, Entry, EntryBody, EntryId, MetaChange, Record, SessionId,
    UserMessage,
};
use bough_testkit::{SlowSync, SyncDelay};
use serde_json::json;

/// Looks at how much memory is in use whenever the disk is asked to sync: then a part of the session is on its way there. No
/// time passes.
#[derive(Debug, Default)]
struct Gauge {
    most: AtomicUsize,
}

impl Gauge {
    fn in_use() -> usize {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
    }
}

impl Clock for Gauge {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) {
        self.most.fetch_max(Self::in_use(), Ordering::SeqCst);
    }
}

/// A native store whose memory is looked at.
struct Gauged {
    bed: TestService,
    gauge: Arc<Gauge>,
    _directory: tempfile::TempDir,
}

impl Gauged {
    async fn new() -> Self {
        let (directory, gauge) = (tempfile::tempdir().unwrap(), Arc::new(Gauge::default()));
        let (clock, entropy) = (HandClock::at(1), Arc::new(CountingEntropy::default()));
        let disk = Arc::new(OsDisk::create(directory.path()).unwrap());
        let delay = SyncDelay::Instead(Duration::ZERO);
        let disk = Arc::new(SlowSync::new(disk, delay, gauge.clone()));
        let platform = Platform { disk, clock: clock.clone(), entropy: entropy.clone() };
        let store = DiskKind::Native.open_on(platform, directory.path().to_owned()).await;
        let bed = TestService {
            service: Service::new(store, clock.clone(), entropy.clone()),
            scope: Scope::owner(),
            clock,
            entropy,
            factory: stores::memory(),
        };
        Self { bed, gauge, _directory: directory }
    }

    /// A session of so many messages, past the rules: making it is not what is measured. Its last entry.
    async fn fill(&self, session: &SessionId, messages: usize, bytes: usize) -> EntryId {
        let store = self.bed.service.store();
        let first = vec![Record::Meta(MetaChange::default()).at(1)];
        let mut head = store.create(session, first.into()).await.unwrap().head;
        let mut last = None;
        for number in 0..messages {
            let content = vec![ContentBlock::text("x".repeat(bytes))];
            let entry = Entry::new(
                EntryId::from_stored(number.to_string()),
                last.take(),
                1,
                EntryBody::Message(AgentMessage::User(UserMessage::new(content, 1)).into()),
            );
            last = Some(entry.id.clone());
            let appended =
                store.append(session, &head, vec![Record::Entry(entry).at(1)].into()).await;
            let appended = appended.unwrap();
            appended.durable.await.unwrap();
            head = appended.head;
        }
        last.unwrap()
    }

    /// How much memory a fork of a session of so many messages takes up at once: of the path, or of the whole tree.
    async fn peak_of_a_fork(&self, messages: usize, bytes: usize) -> usize {
        let session = SessionId::from_stored(format!("{messages} of {bytes}"));
        let last = self.fill(&session, messages, bytes).await;
        let path = self.peak_of(messages, json!({"session_id": session, "entry_id": last})).await;
        let whole = self.peak_of(messages, json!({"session_id": session, "whole": true})).await;
        path.max(whole)
    }

    async fn peak_of(&self, messages: usize, request: serde_json::Value) -> usize {
        let before = Gauge::in_use();
        self.gauge.most.store(0, Ordering::SeqCst);
        let fork = self.bed.ok("session::fork", request).await;
        assert_eq!(fork["meta"]["message_count"], json!(messages));
        self.gauge.most.load(Ordering::SeqCst).saturating_sub(before)
    }
}

#[tokio::test]
async fn a_fork_of_a_longer_session_needs_no_more_memory() {
    const MESSAGE: usize = BUILD_BATCH_BYTES / 16;
    let gauged = Gauged::new().await;
    gauged.peak_of_a_fork(1, MESSAGE).await;
    let short = gauged.peak_of_a_fork(72, MESSAGE).await;
    let long = gauged.peak_of_a_fork(120, MESSAGE).await;
    assert!(short > BUILD_BATCH_BYTES, "{short} bytes: the gauge sees what is on its way");
    assert!(long < short + BUILD_BATCH_BYTES, "{long} bytes at once, instead of {short}");
}

/// Together these are more than any batch may be.
#[tokio::test]
async fn a_fork_of_the_largest_messages_is_made_one_after_the_other() {
    const MESSAGE: usize = MESSAGE_BYTES_MAX - 1000;
    let messages = BATCH_BYTES_MAX / MESSAGE + 1;
    let peak = Gauged::new().await.peak_of_a_fork(messages, MESSAGE).await;
    assert!(peak < 4 * MESSAGE_BYTES_MAX, "{peak} bytes at once");
}
