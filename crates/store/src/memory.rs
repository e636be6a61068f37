//! The adapter that keeps everything in memory: for tests, and for sessions that need not last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bough_platform::Entropy;
use bough_session::{BranchHead, Delta, EntryId, Incarnation, NewRecord, Record, SessionId};
use tokio::sync::watch;

use crate::buffered_draft::BufferedDraft;
use crate::changes::{CHANGES_KEPT, ChangeHub};
use crate::listing::{self, ListItem};
use crate::memory_session::MemorySession;
use crate::store::Draft;
use crate::sync::lock;
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, Durable, EntryQuery, ListPage,
    ListQuery, Listed, Loaded, PathPage, PathQuery, RecordPage, RecordQuery, Snapshot, StoredEntry,
    Trashed, UsageQuery, UsageReport, Write,
};
use crate::{ReadStore, Store, StoreError};
use bough_record::{Head, Position};

/// Sessions in memory. Cheap to clone; clones share the sessions.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    entropy: Arc<dyn Entropy>,
    hub: ChangeHub,
    slots: Mutex<Slots>,
    /// Whether batches wait for [`MemoryStore::release`] before they are durable.
    held: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Slots {
    live: HashMap<SessionId, Slot>,
    trash: Vec<Trash>,
}

#[derive(Debug)]
struct Slot {
    /// What readers see.
    durable: Option<MemorySession>,
    /// What the next append builds on, where it is ahead of that.
    accepted: Option<MemorySession>,
    change: u64,
    /// The position up to which the feed was announced.
    announced: Position,
}

#[derive(Debug)]
struct Trash {
    image: MemorySession,
    deleted_at: i64,
}

impl MemoryStore {
    /// An empty store that draws its incarnations from `entropy`.
    pub fn new(entropy: Arc<dyn Entropy>) -> Result<Self, StoreError> {
        Self::keeping(entropy, CHANGES_KEPT)
    }

    /// The same, with another number of changes that the feed of all sessions keeps.
    pub fn keeping(entropy: Arc<dyn Entropy>, changes: usize) -> Result<Self, StoreError> {
        let epoch = new_incarnation(entropy.as_ref())?;
        Ok(Self {
            shared: Arc::new(Shared {
                entropy,
                hub: ChangeHub::keeping(epoch, changes),
                slots: Mutex::default(),
                held: watch::Sender::new(false),
            }),
        })
    }

    /// From now on batches are accepted but not durable, as on a slow disk. For tests of what must not happen before
    /// the acknowledgement.
    pub fn hold(&self) {
        self.shared.held.send_replace(true);
    }

    /// Makes everything durable that was held, and no longer holds.
    pub fn release(&self) {
        let mut slots = self.lock();
        for (session, slot) in &mut slots.live {
            if let Some(image) = slot.accepted.take() {
                slot.change = self.announce(session, slot.announced, &image, false);
                slot.announced = Position::at(image.seq());
                slot.durable = Some(image);
            }
        }
        // Still under the lock: no batch may be accepted as held after the release.
        self.shared.held.send_replace(false);
    }

    fn is_held(&self) -> bool {
        *self.shared.held.borrow()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        lock(&self.shared.slots)
    }

    fn announce(
        &self,
        session: &SessionId,
        announced: Position,
        image: &MemorySession,
        deleted: bool,
    ) -> u64 {
        let range = announced..Position::at(image.seq());
        self.shared.hub.publish(session, image.incarnation, range, deleted)
    }

    /// Puts a changed image in its slot: durable at once, or when it is released.
    fn settle(&self, session: &SessionId, slot: &mut Slot, image: MemorySession) -> Appended {
        let (head, position) = (image.head(), Position::at(image.seq()));
        if self.is_held() {
            slot.accepted = Some(image);
            let mut held = self.shared.held.subscribe();
            let durable = Durable::new(async move {
                // The store is gone when this fails, and with it what was held.
                let released = held.wait_for(|held| !held).await;
                released.map(|_| ()).map_err(|_| StoreError::Unavailable {
                    reason: "the store was dropped before the batch was durable".to_owned(),
                })
            });
            return Appended { head, position, durable };
        }
        slot.change = self.announce(session, slot.announced, &image, false);
        slot.announced = position;
        slot.durable = Some(image);
        Appended { head, position, durable: Durable::ready() }
    }

    /// Reads a given incarnation of a session; `None` is the present one.
    fn read<T>(
        &self,
        session: &SessionId,
        incarnation: Option<Incarnation>,
        read: impl FnOnce(&MemorySession) -> T,
    ) -> Option<T> {
        let slots = self.lock();
        let present = slots.live.get(session).and_then(|slot| slot.durable.as_ref());
        let image = match incarnation {
            None => present,
            Some(asked) => present
                .filter(|image| image.incarnation == asked)
                .or_else(|| slots.in_trash(session, asked).map(|trash| &trash.image)),
        };
        image.map(read)
    }

    fn begin(&self, session: &SessionId, batch: Batch) -> Result<Appended, StoreError> {
        let incarnation = new_incarnation(self.shared.entropy.as_ref())?;
        let mut slots = self.lock();
        if slots.live.contains_key(session) {
            return Err(StoreError::exists(session));
        }
        let image = MemorySession::with_records(session, incarnation, batch.records)?;
        let announced = Position::default();
        let mut slot = Slot { durable: None, accepted: None, change: 0, announced };
        let appended = self.settle(session, &mut slot, image);
        slots.live.insert(session.clone(), slot);
        Ok(appended)
    }

    /// Puts a session in the place of another.
    fn replace(
        &self,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> Result<Appended, StoreError> {
        let incarnation = new_incarnation(self.shared.entropy.as_ref())?;
        let mut slots = self.lock();
        let slot = slots.live.get_mut(session).ok_or_else(|| StoreError::not_found(session))?;
        slot.newest().ok_or_else(|| StoreError::not_found(session))?.expect_head(expected)?;
        let image = MemorySession::with_records(session, incarnation, batch.records)?;
        slot.announced = Position::default();
        Ok(self.settle(session, slot, image))
    }

    /// Appends the records that `make` returns for the newest image, if they fit.
    fn append_made(
        &self,
        session: &SessionId,
        make: impl FnOnce(&MemorySession) -> Result<Vec<NewRecord>, StoreError>,
    ) -> Result<Appended, StoreError> {
        let mut slots = self.lock();
        let slot = slots.live.get_mut(session).ok_or_else(|| StoreError::not_found(session))?;
        let newest = slot.newest().ok_or_else(|| StoreError::not_found(session))?;
        let records = make(newest)?;
        newest.check(&records)?;
        let mut image =
            slot.take_newest(self.is_held()).ok_or_else(|| StoreError::not_found(session))?;
        for new in records {
            image.push(new);
        }
        Ok(self.settle(session, slot, image))
    }

    fn items(&self) -> Vec<ListItem> {
        let slots = self.lock();
        let shown = slots.live.values().filter_map(|slot| {
            let state = &slot.durable.as_ref()?.state;
            Some(ListItem { listed: Listed::of(state), change: slot.change })
        });
        shown.collect()
    }
}

/// A fresh incarnation.
pub fn new_incarnation(entropy: &dyn Entropy) -> Result<Incarnation, StoreError> {
    let mut random = [0; 16];
    entropy.fill(&mut random)?;
    Ok(Incarnation::new(random))
}

impl Slot {
    fn newest(&self) -> Option<&MemorySession> {
        self.accepted.as_ref().or(self.durable.as_ref())
    }
}

#[async_trait]
impl ReadStore for MemoryStore {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        let is_known = {
            let slots = self.lock();
            let newest = slots.live.get(session).and_then(Slot::newest).map(MemorySession::head);
            newest.is_some() && newest.as_ref() == known
        };
        if is_known {
            return Ok(Loaded::Unchanged);
        }
        Ok(Loaded::found(self.read(session, None, MemorySession::snapshot)))
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        Ok(self.read(session, query.incarnation, |image| image.read_entry(query)).flatten())
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        let page = self.read(session, query.incarnation, |image| image.records(query));
        page.ok_or_else(|| StoreError::not_found(session))
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let page = self.read(session, None, |image| image.path(query));
        page.ok_or_else(|| StoreError::not_found(session))?
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let heads = self.read(session, None, |image| image.branch_heads(before, limit));
        heads.ok_or_else(|| StoreError::not_found(session))?
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            survives_restart: false,
            other_processes: false,
            keeps_change_cursor: false,
            keeps_unknown_records: true,
        }
    }

    async fn write(&self, session: &SessionId, write: Write) -> Result<Appended, StoreError> {
        write.check()?;
        match write {
            Write::Create(batch) => self.begin(session, batch),
            Write::Append { expected, batch } => self.append_made(session, |newest| {
                newest.expect_head(&expected).map(|()| batch.records)
            }),
            Write::Replace { expected, batch } => self.replace(session, &expected, batch),
            Write::Step(delta) => {
                self.append_made(session, |newest| Ok(vec![delta_record(newest, delta)?]))
            }
        }
    }

    async fn draft(&self, session: &SessionId) -> Result<Box<dyn Draft>, StoreError> {
        Ok(BufferedDraft::begin(self.clone(), session))
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError> {
        let mut slots = self.lock();
        let Some(slot) = slots.live.remove(session) else {
            return Ok(None);
        };
        let announced = slot.announced;
        let Some(mut image) = slot.into_newest() else {
            return Ok(None);
        };
        image.push(Record::Tombstone.at(at_ms));
        self.announce(session, announced, &image, true);
        let trash = Trash { image, deleted_at: at_ms };
        let trashed = trash.shown();
        slots.trash.push(trash);
        Ok(Some(trashed))
    }

    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError> {
        let mut slots = self.lock();
        if slots.live.contains_key(session) {
            return Err(StoreError::exists(session));
        }
        let at = slots.trash.iter().position(|trash| trash.is_of(session, incarnation));
        let at = at.ok_or_else(|| StoreError::not_found(session))?;
        let mut image = slots.trash.remove(at).image;
        let announced = Position::at(image.seq());
        image.push(Record::Restored.at(at_ms));
        let snapshot = image.snapshot();
        let slot = Slot {
            change: self.announce(session, announced, &image, false),
            announced: snapshot.position,
            durable: Some(image),
            accepted: None,
        };
        slots.live.insert(session.clone(), slot);
        Ok(snapshot)
    }

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        let mut slots = self.lock();
        let before = slots.trash.len();
        slots.trash.retain(|trash| {
            let is_it = trash.is_of(session, incarnation);
            !(is_it && deleted_at.is_none_or(|at| at == trash.deleted_at))
        });
        Ok(slots.trash.len() < before)
    }

    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        let slots = self.lock();
        let shown = slots.trash.iter().map(Trash::shown);
        let asked = |trashed: &Trashed| session.is_none_or(|id| *id == trashed.session_id);
        Ok(shown.filter(asked).collect())
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        // The cursor is read first: what changes after it counts as changed since.
        let now = self.shared.hub.cursor();
        listing::list(&self.items(), query, now)
    }

    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError> {
        Ok(listing::sums(self.items().iter().map(|item| &item.listed), query))
    }

    fn hub(&self) -> &ChangeHub {
        &self.shared.hub
    }

    async fn changes(
        &self,
        after: Option<&ChangeCursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        Ok(self.shared.hub.changes(after, limit))
    }

    async fn reopen(&self, _session: &SessionId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A step of a stream as a record, if the message is where the step starts from.
pub(crate) fn delta_record(image: &MemorySession, delta: Delta) -> Result<NewRecord, StoreError> {
    let entry = image.entry_ref(&delta.entry_id);
    let current = entry.map(|entry| entry.revision);
    let current =
        current.ok_or_else(|| StoreError::EntryNotFound { entry: delta.entry_id.clone() })?;
    if delta.revision != current + 1 {
        let entry = delta.entry_id;
        return Err(StoreError::RevisionConflict { entry, current });
    }
    let at_ms = delta.at_ms;
    Ok(Record::Revision(delta.into_revision()).at(at_ms))
}

impl Slot {
    fn into_newest(self) -> Option<MemorySession> {
        self.accepted.or(self.durable)
    }

    /// The image to build on: its own if nothing is held, a copy if readers must still see the
    /// durable one. [`MemoryStore::settle`] puts it back.
    fn take_newest(&mut self, held: bool) -> Option<MemorySession> {
        let durable = &mut self.durable;
        let accepted = self.accepted.take();
        accepted.or_else(|| if held { durable.clone() } else { durable.take() })
    }
}

impl Slots {
    fn in_trash(&self, session: &SessionId, incarnation: Incarnation) -> Option<&Trash> {
        self.trash.iter().find(|trash| trash.is_of(session, incarnation))
    }
}

impl Trash {
    fn is_of(&self, session: &SessionId, incarnation: Incarnation) -> bool {
        self.image.incarnation == incarnation && self.image.state.meta.session_id == *session
    }

    fn shown(&self) -> Trashed {
        Trashed {
            session_id: self.image.state.meta.session_id.clone(),
            incarnation: self.image.incarnation,
            deleted_at: Some(self.deleted_at),
            state: self.image.state.clone(),
        }
    }
}
