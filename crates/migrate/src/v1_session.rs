//! A session that lives in its V1 file, read as any other.
//!
//! The file is the truth; an index in memory says where each record is and follows the file, also when pi writes to
//! it. Entries are appended as lines, synced before they are acknowledged, a batch in one write. What a V1
//! file has no place for is refused: migrate the session to have it.

use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Entropy;
use bough_session::{
    BranchHead, CustomPayload, Entry, EntryBody, EntryId, MetaChange, NewRecord, Record, SessionId,
};
use bough_store::{
    Appended, Durable, EntryQuery, Head, Loaded, PathPage, PathQuery, ReadStore, RecordPage,
    RecordQuery, Snapshot, StoreError, StoredEntry, Trashed, Write, new_incarnation,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::error::{MigrateError, Result};
use crate::pi_line::LEAF_TYPE;
use crate::served::blocking;
use crate::v1::{LiveV1, V1File};
use crate::v1_index::V1Index;

type Answer<T> = std::result::Result<T, StoreError>;

/// One session, served from its V1 file.
#[derive(Debug)]
pub struct V1Session {
    session: SessionId,
    is_database: bool,
    entropy: Arc<dyn Entropy>,
    served: Mutex<Served>,
}

#[derive(Debug)]
struct Served {
    live: LiveV1,
    index: V1Index,
}

impl V1Session {
    /// Serves a file. A file that was read already is read again.
    pub async fn open(live: LiveV1, entropy: Arc<dyn Entropy>) -> Result<Self> {
        Self::open_file(live.file().clone(), entropy).await
    }

    /// Serves a file that was not read yet.
    pub(crate) async fn open_file(file: V1File, entropy: Arc<dyn Entropy>) -> Result<Self> {
        blocking(move || Self::open_now(file, entropy)).await
    }

    /// The same, on the calling thread.
    pub(crate) fn open_now(file: V1File, entropy: Arc<dyn Entropy>) -> Result<Self> {
        let incarnation = new_incarnation(&*entropy)?;
        let mut live = LiveV1::unread(file);
        let mut index = V1Index::new(live.session_id(), incarnation);
        live.catch_up(&mut |taken| index.take(taken))?;
        live.require_session()?;
        index.name(live.session_id());
        let (session, is_database) = (live.session_id().clone(), live.is_database());
        let served = Mutex::new(Served { live, index });
        Ok(Self { session, is_database, entropy, served })
    }

    /// Whether the file is a database, which has to be read whole to see whether it changed.
    pub(crate) fn is_database(&self) -> bool {
        self.is_database
    }

    /// The session that it serves.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The session as it was when the file was last looked at; `None` while another caller uses it.
    pub(crate) fn snapshot_unless_busy(&self) -> Option<Snapshot> {
        self.served.try_lock().ok().map(|served| served.index.snapshot())
    }

    /// The session as its file is now: what pi wrote since is taken in first.
    async fn look(&self) -> Answer<MutexGuard<'_, Served>> {
        let mut served = self.served.lock().await;
        self.follow(&mut served)?;
        Ok(served)
    }

    /// The same for a caller that asks for a session by its id.
    async fn look_at(&self, session: &SessionId) -> Answer<MutexGuard<'_, Served>> {
        if *session != self.session {
            return Err(StoreError::NotFound { session: session.clone() });
        }
        self.look().await
    }

    /// Takes what pi wrote since.
    fn follow(&self, served: &mut Served) -> Answer<()> {
        let mut first = Vec::new();
        let anew = served.live.restart_if_rewritten(&mut |taken| first.push(taken));
        if anew.map_err(refused)? {
            self.forget(served)?;
            first.into_iter().for_each(|taken| served.index.take(taken));
        }
        let Served { live, index } = served;
        live.catch_up(&mut |taken| index.take(taken)).map_err(refused)
    }

    /// Another history is another incarnation, so that no cursor of the old one fits.
    fn forget(&self, served: &mut Served) -> Answer<()> {
        served.index = V1Index::new(&self.session, new_incarnation(&*self.entropy)?);
        Ok(())
    }

    /// Writes to the file: entries are appended, and everything else is refused.
    pub async fn write(&self, write: Write) -> Answer<Appended> {
        match write {
            Write::Append { expected, batch } => self.append(&expected, batch.records).await,
            Write::Create(_) => Err(StoreError::Exists { session: self.session.clone() }),
            Write::Step(_) => unsupported("be streamed to"),
            Write::Replace { .. } => unsupported("be put in the place of another"),
        }
    }

    /// Appends entries, and moves of the leaf, as lines.
    pub async fn append(&self, expected: &Head, records: Vec<NewRecord>) -> Answer<Appended> {
        let mut served = self.served.lock().await;
        let file = served.live.file().clone();
        let appended = || Ok(self.append_locked(&mut served, expected, records)?);
        file.locked(appended).map_err(refused)
    }

    /// Refused: the file is pi's.
    #[expect(clippy::unused_async, reason = "called in the place of a store's method")]
    pub async fn delete(&self, _session: &SessionId, _at_ms: i64) -> Answer<Option<Trashed>> {
        unsupported("be deleted")
    }

    /// Reads what is new in the file.
    pub(crate) async fn reopen(&self, _session: &SessionId) -> Answer<()> {
        self.look().await.map(drop)
    }

    /// Appends for a caller that holds the file's lock.
    fn append_locked(
        &self,
        served: &mut Served,
        expected: &Head,
        records: Vec<NewRecord>,
    ) -> Answer<Appended> {
        self.follow(served)?;
        let current = served.index.head();
        if current != *expected {
            return Err(StoreError::Conflict { current });
        }
        let records = with_leaf_line(served, records);
        let entries = entries_of(&records)?;
        served.index.check(&served.live, &entries)?;
        let landed = served.live.append_locked(&entries).map_err(refused)?;
        if landed.rewritten {
            return self.load_anew(served);
        }
        let Served { index, .. } = served;
        landed.before.into_iter().for_each(|taken| index.take(taken));
        let mut lines = landed.own.into_iter();
        for new in records {
            let line = new.record.as_entry().is_some().then(|| lines.next()).flatten();
            index.take_own(new, line);
        }
        let (head, position) = (index.head(), index.position());
        landed.after.into_iter().for_each(|taken| index.take(taken));
        Ok(Appended { head, position, durable: Durable::ready() })
    }

    /// Takes in a file that was written anew in the middle of an append, which is in it.
    fn load_anew(&self, served: &mut Served) -> Answer<Appended> {
        served.live = LiveV1::unread(served.live.file().clone());
        self.forget(served)?;
        self.follow(served)?;
        let (head, position) = (served.index.head(), served.index.position());
        Ok(Appended { head, position, durable: Durable::ready() })
    }
}

/// Our refusals in the store's words.
pub(crate) fn refused(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Store(error) => error,
        MigrateError::Io(error) => error.into(),
        MigrateError::Locked { holder, .. } | MigrateError::SessionLocked { holder, .. } => {
            StoreError::Locked { holder }
        }
        MigrateError::Contended { .. } => StoreError::Unavailable { reason: error.to_string() },
        other => StoreError::invalid(other.to_string()),
    }
}

fn unsupported<T>(capability: &'static str) -> Answer<T> {
    Err(StoreError::Unsupported { capability })
}

/// A batch with a line for the leaf in it, where it needs one. A V1 file goes on from its last line; where a
/// batch leaves the leaf elsewhere, a line that hangs from there says so, as after a rollback: pi passes over
/// it and goes on from it.
fn with_leaf_line(served: &Served, mut records: Vec<NewRecord>) -> Vec<NewRecord> {
    let Some((to, at_ms)) = moved_to(&served.live, &records) else { return records };
    let line = Entry::new(
        fresh_leaf_id(served),
        to,
        at_ms,
        EntryBody::Custom(CustomPayload {
            custom_type: LEAF_TYPE.to_owned(),
            data: serde_json::json!({}),
        }),
    );
    // Before the move itself, so that for readers of this process the leaf is what was asked for.
    let end = records.iter().rposition(|new| matches!(new.record.known(), Record::Leaf(_)));
    records.insert(end.unwrap_or_default(), Record::Entry(line).at(at_ms));
    records
}

/// Where a batch leaves the leaf, and when, if that is not the last line that the file has then.
fn moved_to(live: &LiveV1, records: &[NewRecord]) -> Option<(Option<EntryId>, i64)> {
    let mut last = live.leaf();
    let mut moved = None;
    for new in records {
        match new.record.known() {
            Record::Entry(entry) => (last, moved) = (Some(&entry.id), None),
            Record::Leaf(to) => moved = Some((to, new.at_ms)),
            _ => {}
        }
    }
    let (to, at_ms) = moved?;
    (to.as_ref() != last).then(|| (to.clone(), at_ms))
}

/// Lines are only added, so their number is new, unless another program wrote the file anew.
fn fresh_leaf_id(served: &Served) -> EntryId {
    let named = |number: u64| EntryId::from_stored(format!("bough-leaf-{number}"));
    let numbers = served.live.record_count()..;
    let mut fresh = numbers.map(named).filter(|id| !served.live.contains(id));
    fresh.next().unwrap_or_else(|| named(0))
}

/// The entries of a batch, if a V1 file can hold everything in it. What the session is doing is of the moment:
/// pi does not store it either.
fn entries_of(records: &[NewRecord]) -> Answer<Vec<Entry>> {
    let mut entries = Vec::new();
    for new in records {
        match new.record.known() {
            Record::Entry(entry) => entries.push(entry.clone()),
            Record::Leaf(_) => {}
            Record::Meta(change) if is_of_the_moment(change) => {}
            Record::Meta(_) => return unsupported("be renamed, described or archived"),
            Record::Revision(_) => return unsupported("have its messages changed"),
            Record::Loop(_) => return unsupported("hold events of loops"),
            _ => return unsupported("hold this kind of record"),
        }
    }
    Ok(entries)
}

fn is_of_the_moment(change: &MetaChange) -> bool {
    let rest = MetaChange { status: None, updated_at: None, ..change.clone() };
    rest.is_empty()
}

#[async_trait]
impl ReadStore for V1Session {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Answer<Loaded> {
        if *session != self.session {
            return Ok(Loaded::Absent);
        }
        let served = self.look().await?;
        if known == Some(&served.index.head()) {
            return Ok(Loaded::Unchanged);
        }
        Ok(Loaded::found(Some(served.index.snapshot())))
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Answer<Option<StoredEntry>> {
        if *session != self.session {
            return Ok(None);
        }
        let served = self.look().await?;
        served.index.read_entry(&served.live, query)
    }

    async fn read_records(&self, session: &SessionId, query: &RecordQuery) -> Answer<RecordPage> {
        let served = self.look_at(session).await?;
        served.index.records(&served.live, query)
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Answer<PathPage> {
        let mut served = self.look_at(session).await?;
        let Served { live, index } = &mut *served;
        index.path(live, query)
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Answer<Vec<BranchHead>> {
        let served = self.look_at(session).await?;
        served.index.branch_heads(&served.live, before, limit)
    }
}
