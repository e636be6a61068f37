//! One session: its file, its stream, and the state that both give.

use std::sync::Arc;

use bough_platform::{Disk, RelPath, if_there};
use bough_session::{Delta, Incarnation, NewRecord, SessionId};

use super::file::{self, SessionFile};
use super::stream::Stream;
use super::{batch, compose, names};
use crate::StoreError;
use crate::memory_session::MemorySession;
use crate::types::{
    Appended, Durable, EntryQuery, IncarnationPosition, PathPage, PathQuery, RecordFilter,
    RecordPage, RecordQuery, Snapshot, StoredEntry, StoredRecord,
};
use bough_record::Head;

/// Where torn batches are put aside.
const TORN_DIR: &str = "bough-torn";
/// Where streams are.
const STREAM_DIR: &str = "bough-stream";

/// One session.
#[derive(Debug)]
pub(super) struct Slot {
    session: SessionId,
    pub(super) path: RelPath,
    stream_path: RelPath,
    pub(super) file: SessionFile,
    stream: Stream,
    /// Why nothing more is written until the session is reopened.
    latched: Option<String>,
}

impl Slot {
    /// The session in the file of its name.
    pub(super) fn new(session: &SessionId) -> Result<Self, StoreError> {
        let name = format!("{}{}", names::stem_of(session), names::SUFFIX);
        let root = RelPath::root();
        let path = root.join(&name).map_err(std::io::Error::from)?;
        Self::at(session, path)
    }

    /// The session in a file of another name.
    pub(super) fn at(session: &SessionId, path: RelPath) -> Result<Self, StoreError> {
        let streams = RelPath::root().join(STREAM_DIR).map_err(std::io::Error::from)?;
        let stream_path = streams.join(path.file_name()).map_err(std::io::Error::from)?;
        Ok(Self {
            session: session.clone(),
            path,
            stream_path,
            file: SessionFile::new(session.clone()),
            stream: Stream::default(),
            latched: None,
        })
    }

    /// The session, if the file holds one that was not deleted.
    pub(super) fn image(&self) -> Option<&MemorySession> {
        self.any_image().filter(|image| !image.state.deleted)
    }

    /// The session, deleted or not.
    pub(super) fn any_image(&self) -> Option<&MemorySession> {
        self.file.replay.image()
    }

    /// The id that the file gives itself.
    pub(super) fn own_id(&self) -> Option<&SessionId> {
        self.file.replay.own_id.as_ref()
    }

    pub(super) const fn is_latched(&self) -> bool {
        self.latched.is_some()
    }

    /// How long the stream's file is now.
    pub(super) fn stream_len(&self, disk: &dyn Disk) -> std::io::Result<u64> {
        Ok(disk.stat(&self.stream_path)?.map_or(0, |stat| stat.len))
    }

    /// Forgets what was read, so that it is read again.
    pub(super) fn forget(&mut self) {
        self.file = SessionFile::new(self.session.clone());
        self.stream = Stream::default();
        self.latched = None;
    }

    /// Updates the session to what is on the disk. After a failed write nothing new is trusted until the session is
    /// reopened: what was durable before stays readable.
    pub(super) fn refresh(&mut self, disk: &dyn Disk) -> Result<(), StoreError> {
        if self.is_latched() {
            return Ok(());
        }
        if self.file.end == 0 {
            self.sync_before_believing(disk)?;
        }
        self.read_unsynced(disk)
    }

    /// Reads what is on the disk, durable or not: for lists, which promise less.
    pub(super) fn read_unsynced(&mut self, disk: &dyn Disk) -> Result<(), StoreError> {
        let Some(found) = file::open_to_read(disk, &self.path)? else {
            self.forget();
            return Ok(());
        };
        if !self.file.is_same(found.as_ref())? {
            self.forget();
            self.sync_before_believing(disk)?;
        }
        let before = self.file.end;
        self.file.read_on(found.as_ref())?;
        let moved = self.file.end != before;
        if let Some(image) = self.file.replay.image()
            && (moved || self.stream.is_stale(disk, &self.stream_path)?)
        {
            self.stream = Stream::load(disk, &self.stream_path, image)?;
        }
        Ok(())
    }

    /// A process that ended may have left bytes that are only in the page cache. They are made durable before any
    /// reader sees them; if the file is read-only, no process of ours has written it.
    fn sync_before_believing(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        match file::open(disk, &self.path) {
            Ok(Some(file)) => Ok(file.sync()?),
            Ok(None) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the first batch of a session; the caller has checked that there is none.
    pub(super) fn create(
        &mut self,
        disk: &dyn Disk,
        incarnation: Incarnation,
        records: &[NewRecord],
    ) -> Result<Appended, StoreError> {
        let image = MemorySession::new(&self.session, incarnation);
        image.check(records)?;
        let lines = compose::first_lines(&image, incarnation, records)?;
        self.clear_place(disk, incarnation)?;
        self.write(disk, &lines, records.len() as u64)
    }

    /// Makes an empty file in the session's place. A file that holds no session (after a crash of session-manager, or
    /// of ours) is moved aside whole.
    fn clear_place(&mut self, disk: &dyn Disk, incarnation: Incarnation) -> Result<(), StoreError> {
        match file::open_to_read(disk, &self.path)? {
            Some(found) if found.is_empty()? => return Ok(()),
            Some(_) => {
                let name = format!("{}.{incarnation}", self.path.file_name());
                disk.rename(&self.path, &torn_path(disk, &name)?)?;
                self.forget();
            }
            None => {}
        }
        drop(disk.create(&self.path)?);
        disk.sync_dir(&RelPath::root())?;
        Ok(())
    }

    /// Appends a batch at a head, after the records of the streams.
    pub(super) fn append(
        &mut self,
        disk: &dyn Disk,
        expected: Option<&Head>,
        records: Vec<NewRecord>,
    ) -> Result<Appended, StoreError> {
        self.check_latch()?;
        let image = self.any_image().ok_or_else(|| self.not_found())?;
        if expected.is_some_and(|expected| *expected != image.head()) {
            let current = image.head();
            return Err(StoreError::Conflict { current });
        }
        let (mut all, last_steps) = self.stream.settled(image);
        all.extend(records);
        image.check(&all)?;
        let lines = compose::lines(image, &all, &last_steps)?;
        let appended = self.write(disk, &lines, all.len() as u64)?;
        if !self.stream.is_empty() {
            self.stream.clear(disk, &self.stream_path);
        }
        Ok(appended)
    }

    /// Appends one step of a stream.
    pub(super) fn append_delta(
        &mut self,
        disk: &dyn Disk,
        delta: Delta,
    ) -> Result<Appended, StoreError> {
        self.check_latch()?;
        let image = self.file.replay.image();
        let image = image.ok_or_else(|| StoreError::not_found(&self.session))?;
        self.stream.check(&delta, image)?;
        let written = self.stream.append(disk, &self.stream_path, delta, image);
        if let Err(error) = written {
            self.latched = Some(error.to_string());
            return Err(error.into());
        }
        if self.stream.is_large() {
            self.settle(disk)?;
        }
        self.accepted()
    }

    /// Puts the steps of the streams into the session file as records.
    pub(super) fn settle(&mut self, disk: &dyn Disk) -> Result<bool, StoreError> {
        if self.stream.is_empty() {
            return Ok(false);
        }
        self.append(disk, None, Vec::new())?;
        Ok(true)
    }

    /// Removes the stream of a session that is being deleted.
    pub(super) fn remove_stream(&mut self, disk: &dyn Disk) -> Result<(), StoreError> {
        self.stream = Stream::default();
        Ok(if_there(disk.remove_file(&self.stream_path)).map(drop)?)
    }

    /// The end of the session's feed, deleted or not.
    pub(super) fn end(&self) -> Option<IncarnationPosition> {
        let image = self.any_image()?;
        let position = self.stream.position(image.seq());
        Some(IncarnationPosition::new(image.incarnation, position))
    }

    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let image = self.image()?;
        let mut snapshot = image.snapshot();
        snapshot.position = self.stream.position(image.seq());
        if let Some(at_ms) = self.stream.last_at() {
            Arc::make_mut(&mut snapshot.state).meta.touch(at_ms);
        }
        Some(snapshot)
    }

    pub(super) fn read_entry(
        &self,
        image: &MemorySession,
        query: &EntryQuery,
    ) -> Option<StoredEntry> {
        let Some(revision) = query.revision else {
            return image.entry(&query.id).map(|stored| self.streamed(stored));
        };
        let steps: Vec<StoredRecord> = self.stream.records_after(image.seq(), 0).collect();
        image.entry_at(&query.id, revision, &steps)
    }

    pub(super) fn path(&self, query: &PathQuery) -> Result<PathPage, StoreError> {
        let image = self.image().ok_or_else(|| self.not_found())?;
        let mut page = image.path(query)?;
        page.entries = page.entries.into_iter().map(|stored| self.streamed(stored)).collect();
        Ok(page)
    }

    pub(super) fn records(&self, image: &MemorySession, query: &RecordQuery) -> RecordPage {
        let mut page = image.records(query);
        page.end = self.stream.position(image.seq());
        if query.filter == RecordFilter::All && query.after.seq <= image.seq() {
            let missing = query.limit.max(1) - page.records.len();
            let mut steps = self.stream.records_after(image.seq(), query.after.step);
            page.records.extend(steps.by_ref().take(missing));
            page.more |= steps.next().is_some();
        }
        page
    }

    pub(super) fn not_found(&self) -> StoreError {
        StoreError::not_found(&self.session)
    }

    fn streamed(&self, stored: StoredEntry) -> StoredEntry {
        let now = self.stream.entries.get(&stored.entry.id);
        StoredEntry { entry: now.cloned().unwrap_or(stored.entry), ..stored }
    }

    fn write(
        &mut self,
        disk: &dyn Disk,
        lines: &[String],
        count: u64,
    ) -> Result<Appended, StoreError> {
        self.check_latch()?;
        let before = self.any_image().map_or(0, MemorySession::seq);
        let written = self.try_write(disk, lines);
        if let Err(error) = written {
            // From here on, the content of the disk is in doubt.
            self.latched = Some(error.to_string());
            return Err(error.into());
        }
        let after = self.any_image().map_or(0, MemorySession::seq);
        if after != before + count {
            self.latched = Some("the batch does not read as it was written".to_owned());
            let what = format!("a batch of {count} records reads as {}", after - before);
            return Err(StoreError::corrupt(what, self.path.to_string()));
        }
        self.accepted()
    }

    fn try_write(&mut self, disk: &dyn Disk, lines: &[String]) -> std::io::Result<()> {
        let file = file::open(disk, &self.path)?;
        let file = file.ok_or(std::io::ErrorKind::NotFound)?;
        let name = format!("{}.{}", self.path.file_name(), self.file.end);
        self.file.append(file.as_ref(), &batch::write(lines), |torn| put_aside(disk, &name, torn))
    }

    fn accepted(&self) -> Result<Appended, StoreError> {
        let image = self.any_image().ok_or_else(|| self.not_found())?;
        Ok(Appended {
            head: image.head(),
            position: self.stream.position(image.seq()),
            durable: Durable::ready(),
        })
    }

    fn check_latch(&self) -> Result<(), StoreError> {
        match &self.latched {
            None => Ok(()),
            Some(reason) => Err(StoreError::Latched { reason: reason.clone() }),
        }
    }
}

fn put_aside(disk: &dyn Disk, name: &str, torn: &[u8]) -> std::io::Result<()> {
    let path = torn_path(disk, name)?;
    let temp = path.parent().join("put-aside.tmp")?;
    disk.replace(&path, &temp, torn)
}

/// The path to which a file of that name is moved aside.
fn torn_path(disk: &dyn Disk, name: &str) -> std::io::Result<RelPath> {
    let folder = RelPath::root().join(TORN_DIR)?;
    if disk.ensure_dir(&folder)? {
        disk.sync_dir(&RelPath::root())?;
    }
    // A long id has a long name; its end has the position or the incarnation, and is kept.
    let start = name.len().saturating_sub(200);
    Ok(folder.join(name.get(start..).unwrap_or(name))?)
}
