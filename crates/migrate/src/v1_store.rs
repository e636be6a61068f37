//! A session that lives in its V1 file, as a [`Store`]: what reads and writes sessions need not know.
//!
//! The file is the truth; a copy in memory answers the reads and follows the file, also when pi writes to
//! it. Entries are appended as lines, synced before they are acknowledged, a batch in one write. What a V1
//! file has no place for is refused: migrate the session to have it.

use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Entropy;
use bough_session::{
    BranchHead, CustomPayload, Entry, EntryBody, EntryId, Incarnation, MetaChange, NewRecord,
    Record, SessionId, codec,
};
use bough_store::{
    Appended, Capabilities, ChangeCursor, ChangePage, ChangeWatch, Draft, Durable, EntryQuery,
    Head, ListPage, ListQuery, Loaded, MemoryStore, PathPage, PathQuery, RecordPage, RecordQuery,
    SessionWatch, Snapshot, Store, StoreError, StoreExt, StoredEntry, Trashed, UsageQuery,
    UsageReport, Write,
};
use tokio::sync::Mutex;

use crate::error::{MigrateError, Result};
use crate::limits::{BATCH_BYTES, BATCH_RECORDS};
use crate::pi_line::LEAF_TYPE;
use crate::served::blocking;
use crate::v1::{LiveV1, V1File, V1Format};

/// One session, served from its V1 file.
#[derive(Debug)]
pub struct V1Store {
    session: SessionId,
    format: V1Format,
    live: Mutex<LiveV1>,
    memory: MemoryStore,
}

impl V1Store {
    /// Serves a file. A file that was read already is read again.
    pub async fn open(live: LiveV1, entropy: Arc<dyn Entropy>) -> Result<Self> {
        Self::open_file(live.file().clone(), entropy).await
    }

    /// Serves a file that was not read yet. Its records are taken in while it is read, so that they are in memory once.
    pub(crate) async fn open_file(file: V1File, entropy: Arc<dyn Entropy>) -> Result<Self> {
        let memory = MemoryStore::new(entropy)?;
        let format = file.format();
        let mut live = LiveV1::unread(file);
        loop {
            let (read, news, is_end) = blocking(move || live.read_batch()).await?;
            live = read;
            remember(&memory, live.session_id(), news).await?;
            if is_end {
                break;
            }
        }
        live.require_session()?;
        Ok(Self { session: live.session_id().clone(), format, live: Mutex::new(live), memory })
    }

    /// Whether the file is a database, which has to be read whole to see whether it changed.
    pub(crate) fn is_database(&self) -> bool {
        self.format == V1Format::SqliteV1
    }

    /// The session that it serves.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Takes what pi wrote since.
    async fn follow(&self, live: &mut LiveV1) -> std::result::Result<(), StoreError> {
        let mut news = Vec::new();
        let anew = live.restart_if_rewritten(&mut |_, new| news.push(new)).map_err(refused)?;
        if anew {
            self.forget().await?;
            remember(&self.memory, &self.session, news).await?;
        }
        loop {
            let mut news = Vec::new();
            let is_end = live.read_on(&mut |_, new| news.push(new)).map_err(refused)?;
            remember(&self.memory, &self.session, news).await?;
            if is_end {
                return Ok(());
            }
        }
    }

    /// Another history is another incarnation, so that no cursor of the old one fits.
    async fn forget(&self) -> std::result::Result<(), StoreError> {
        if let Some(old) = self.memory.delete(&self.session, 0).await? {
            self.memory.purge(&self.session, old.incarnation, None).await?;
        }
        Ok(())
    }

    async fn looked(&self) -> std::result::Result<&MemoryStore, StoreError> {
        let mut live = self.live.lock().await;
        self.follow(&mut live).await?;
        Ok(&self.memory)
    }

    /// Appends for a caller that holds the file's lock.
    async fn append_locked(
        &self,
        live: &mut LiveV1,
        expected: &Head,
        records: Vec<NewRecord>,
    ) -> std::result::Result<Appended, StoreError> {
        self.follow(live).await?;
        let current = self.head().await?;
        if current != *expected {
            return Err(StoreError::Conflict { current });
        }
        let records = with_leaf_line(live, records);
        let landed = live.append_locked(&entries_of(&records)?).map_err(refused)?;
        if landed.rewritten {
            return self.load_anew(live).await;
        }
        remember(&self.memory, &self.session, landed.before).await?;
        let appended =
            self.memory.append(&self.session, &self.head().await?, records.into()).await?;
        remember(&self.memory, &self.session, landed.after).await?;
        Ok(appended)
    }

    /// Takes in a file that was written anew in the middle of an append, which is in it.
    async fn load_anew(&self, live: &mut LiveV1) -> std::result::Result<Appended, StoreError> {
        *live = LiveV1::unread(live.file().clone());
        self.forget().await?;
        self.follow(live).await?;
        let state = self.memory.state(&self.session).await?.ok_or_else(|| self.missing())?;
        let durable = Durable::ready();
        Ok(Appended { head: state.head, position: state.position, durable })
    }

    async fn head(&self) -> std::result::Result<Head, StoreError> {
        let state = self.memory.state(&self.session).await?;
        Ok(state.ok_or_else(|| self.missing())?.head)
    }

    fn missing(&self) -> StoreError {
        StoreError::NotFound { session: self.session.clone() }
    }
}

/// Puts records behind those that are in memory, in batches that it takes.
async fn remember(
    memory: &MemoryStore,
    session: &SessionId,
    news: Vec<NewRecord>,
) -> std::result::Result<(), StoreError> {
    let mut head = memory.state(session).await?.map(|snapshot| snapshot.head);
    let mut news = news.into_iter().peekable();
    while news.peek().is_some() {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(new) = news.next_if(|new| {
            bytes += size_of(new);
            batch.is_empty() || (batch.len() < BATCH_RECORDS && bytes <= BATCH_BYTES)
        }) {
            batch.push(new);
        }
        let appended = match &head {
            None => memory.create(session, batch.into()).await?,
            Some(head) => memory.append(session, head, batch.into()).await?,
        };
        head = Some(appended.head);
        appended.durable.await?;
    }
    Ok(())
}

fn size_of(new: &NewRecord) -> usize {
    match new.record.as_entry() {
        Some(entry) => entry.bytes(),
        None => codec::encode(&new.record, new.at_ms).payload.len(),
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

fn unsupported<T>(capability: &'static str) -> std::result::Result<T, StoreError> {
    Err(StoreError::Unsupported { capability })
}

/// A batch with a line for the leaf in it, where it needs one. A V1 file goes on from its last line; where a
/// batch leaves the leaf elsewhere, a line that hangs from there says so, as after a rollback: pi passes over
/// it and goes on from it.
fn with_leaf_line(live: &LiveV1, mut records: Vec<NewRecord>) -> Vec<NewRecord> {
    let Some((to, at_ms)) = moved_to(live, &records) else { return records };
    let line = Entry::new(
        fresh_leaf_id(live),
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
fn fresh_leaf_id(live: &LiveV1) -> EntryId {
    let named = |number: u64| EntryId::from_stored(format!("bough-leaf-{number}"));
    let mut number = live.state().seq;
    while live.contains(&named(number)) {
        number += 1;
    }
    named(number)
}

/// The entries of a batch, if a V1 file can hold everything in it. What the session is doing is of the moment:
/// pi does not store it either.
fn entries_of(records: &[NewRecord]) -> std::result::Result<Vec<Entry>, StoreError> {
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
impl Store for V1Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "v1",
            survives_restart: true,
            other_processes: true,
            keeps_change_cursor: false,
            keeps_unknown_records: false,
        }
    }

    async fn write(
        &self,
        session: &SessionId,
        write: Write,
    ) -> std::result::Result<Appended, StoreError> {
        let is_here = *session == self.session;
        match write {
            Write::Create(_) if is_here => Err(StoreError::Exists { session: session.clone() }),
            Write::Create(_) => unsupported("have others beside it"),
            Write::Step(_) => unsupported("be streamed to"),
            Write::Append { .. } if !is_here => {
                Err(StoreError::NotFound { session: session.clone() })
            }
            Write::Append { expected, batch } => {
                let mut live = self.live.lock().await;
                let lock = live.file().lock().map_err(refused)?;
                let appended = self.append_locked(&mut live, &expected, batch.records).await;
                if let Some(lock) = lock {
                    lock.remove()?;
                }
                appended
            }
        }
    }

    async fn draft(&self, _: &SessionId) -> std::result::Result<Box<dyn Draft>, StoreError> {
        unsupported("have others beside it")
    }

    async fn load(
        &self,
        session: &SessionId,
        known: Option<&Head>,
    ) -> std::result::Result<Loaded, StoreError> {
        self.looked().await?.load(session, known).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> std::result::Result<Option<StoredEntry>, StoreError> {
        self.looked().await?.read_entry(session, query).await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> std::result::Result<RecordPage, StoreError> {
        self.looked().await?.read_records(session, query).await
    }

    async fn path(
        &self,
        session: &SessionId,
        query: &PathQuery,
    ) -> std::result::Result<PathPage, StoreError> {
        self.looked().await?.path(session, query).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> std::result::Result<Vec<BranchHead>, StoreError> {
        self.looked().await?.branch_heads(session, before, limit).await
    }

    async fn delete(
        &self,
        _: &SessionId,
        _: i64,
    ) -> std::result::Result<Option<Trashed>, StoreError> {
        unsupported("be deleted")
    }

    async fn undelete(
        &self,
        session: &SessionId,
        _: Incarnation,
        _: i64,
    ) -> std::result::Result<Snapshot, StoreError> {
        Err(StoreError::NotFound { session: session.clone() })
    }

    async fn purge(
        &self,
        _: &SessionId,
        _: Incarnation,
        _: Option<i64>,
    ) -> std::result::Result<bool, StoreError> {
        Ok(false)
    }

    async fn trash(&self, _: Option<&SessionId>) -> std::result::Result<Vec<Trashed>, StoreError> {
        Ok(Vec::new())
    }

    async fn list(&self, query: &ListQuery) -> std::result::Result<ListPage, StoreError> {
        self.looked().await?.list(query).await
    }

    async fn usage(&self, query: &UsageQuery) -> std::result::Result<UsageReport, StoreError> {
        self.looked().await?.usage(query).await
    }

    fn watch(&self) -> ChangeWatch {
        self.memory.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.memory.watch_session(session)
    }

    async fn changes(
        &self,
        after: Option<&ChangeCursor>,
        limit: usize,
    ) -> std::result::Result<ChangePage, StoreError> {
        self.looked().await?.changes(after, limit).await
    }

    async fn reopen(&self, session: &SessionId) -> std::result::Result<(), StoreError> {
        self.looked().await?.reopen(session).await
    }

    async fn close(&self) -> std::result::Result<(), StoreError> {
        Ok(())
    }
}
