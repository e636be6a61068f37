//! The sides of a row: one service, over the two stores that keep sessions on a disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{Disk, OsDisk, OsEntropy, Platform, SystemClock};
use bough_service::{Scope, Service};
use bough_session::{
    AgentMessage, ContentBlock, Entry, EntryBody, EntryId, MetaChange, NewRecord, Record,
    SessionId, UserMessage,
};
use bough_store::{Durability, FsStore, NativeOptions, NativeStore, Store, StoreExt};
use bough_testkit::{CountingDisk, SlowSync, SyncDelay};
use serde_json::{Value, json};
use stats_alloc::Region;

use crate::measure::{as_f64, milliseconds};
use crate::{ALLOCATOR, Outcome};

/// A store that keeps sessions on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Bough's log.
    Native,
    /// One file a session, with the lines of the original; synced as ours is, which the original is not.
    Fs,
}

/// Whether what was answered survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Safety {
    /// It does.
    Synced,
    /// It need not: for making what is measured later.
    Unsynced,
}

/// A service in a folder, with its reads counted.
pub(super) struct Served {
    pub(super) service: Service,
    pub(super) scope: Scope,
    disk: CountingDisk,
}

/// What one call cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) bytes_read: f64,
    pub(super) allocations: f64,
    pub(super) bytes_allocated: f64,
    pub(super) milliseconds: f64,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Native, Self::Fs];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "bough",
            Self::Fs => "fs",
        }
    }

    /// A service on this store, in a folder.
    pub(super) async fn serve(self, folder: &Path, safety: Safety) -> Outcome<Served> {
        let clock = Arc::new(SystemClock::new());
        let own: Arc<dyn Disk> = Arc::new(OsDisk::create(folder)?);
        let delay = SyncDelay::Instead(Duration::ZERO);
        let own: Arc<dyn Disk> = match safety {
            Safety::Synced => own,
            Safety::Unsynced => Arc::new(SlowSync::new(own, delay, clock.clone())),
        };
        let disk = CountingDisk::new(own);
        let platform = Platform {
            disk: Arc::new(disk.clone()),
            clock: clock.clone(),
            entropy: Arc::new(OsEntropy),
        };
        let store: Arc<dyn Store> = match self {
            Self::Fs => Arc::new(FsStore::open(platform, folder.to_owned())?),
            Self::Native => {
                let durability = match safety {
                    Safety::Synced => Durability::Synced,
                    Safety::Unsynced => Durability::MayLoseNewestOnPowerCut,
                };
                let options = NativeOptions { durability, ..NativeOptions::default() };
                Arc::new(NativeStore::open(platform, folder.to_owned(), options).await?)
            }
        };
        let service = Service::new(store, clock, Arc::new(OsEntropy));
        Ok(Served { service, scope: Scope::owner(), disk })
    }
}

impl Served {
    pub(super) async fn call(&self, function: &str, request: Value) -> Outcome<Value> {
        Ok(self.service.call(&self.scope, function, request).await?)
    }

    pub(super) async fn close(&self) -> Outcome<()> {
        Ok(self.service.store().close().await?)
    }

    /// Counts one call that was made once before, so that what is opened once is open; then times it.
    pub(super) fn cost_of(
        &self,
        runtime: &tokio::runtime::Runtime,
        function: &str,
        request: &Value,
        fits: impl Fn(&Value) -> bool,
    ) -> Outcome<Cost> {
        let ask = || -> Outcome<()> {
            let answer = runtime.block_on(self.call(function, request.clone()))?;
            if fits(&answer) { Ok(()) } else { Err(format!("{function}: {answer}").into()) }
        };
        ask()?;
        self.disk.reset();
        let region = Region::new(ALLOCATOR);
        ask()?;
        let memory = region.change();
        let counts = self.disk.counts();
        Ok(Cost {
            bytes_read: as_f64(usize::try_from(counts.bytes_read)?),
            allocations: as_f64(memory.allocations + memory.reallocations),
            bytes_allocated: as_f64(memory.bytes_allocated),
            milliseconds: milliseconds(ask)?,
        })
    }
}

/// A message of about 400 bytes, as JSON.
pub(super) fn message(number: usize) -> Value {
    json!({
        "role": "user", "timestamp": 1_795_000_000_000_i64,
        "content": [{"type": "text", "text": text(number)}],
    })
}

fn text(number: usize) -> String {
    let words = "the parser reads a line and keeps its offset so that the index knows it again ";
    format!("{number}: {}", words.repeat(4))
}

/// Writes a session of a given length past the rules, in large batches: how it came to be is not what is measured.
pub(super) async fn fill(served: &Served, session: &str, length: usize) -> Outcome<()> {
    const BATCH: usize = 5000;
    let session = SessionId::from_stored(session);
    let store = served.service.store();
    let first = MetaChange { title: Some("a long one".to_owned()), ..MetaChange::default() };
    let created = store.create(&session, vec![Record::Meta(first).at(1)].into()).await?;
    created.durable.await?;
    let mut head = created.head;
    let mut parent: Option<EntryId> = None;
    for start in (0..length).step_by(BATCH) {
        let batch: Vec<NewRecord> = (start..length.min(start + BATCH))
            .map(|number| {
                let id = entry_id(number);
                let parent = parent.replace(id.clone());
                Record::Entry(entry(id, parent, number)).at(1_795_000_000_000)
            })
            .collect();
        let appended = store.append(&session, &head, batch.into()).await?;
        appended.durable.await?;
        head = appended.head;
    }
    Ok(())
}

/// The id of the entry with this number in a session that was [`fill`]ed.
pub(super) fn entry_id(number: usize) -> EntryId {
    EntryId::from_stored(format!("e_{number:032x}"))
}

fn entry(id: EntryId, parent_id: Option<EntryId>, number: usize) -> Entry {
    let content = vec![ContentBlock::text(text(number))];
    let timestamp = 1_795_000_000_000;
    Entry::new(
        id,
        parent_id,
        timestamp,
        EntryBody::Message(AgentMessage::User(UserMessage::new(content, timestamp)).into()),
    )
}
