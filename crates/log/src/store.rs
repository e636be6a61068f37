use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak, mpsc};
use std::time::Duration;

use bough_platform::{Platform, RelPath};

use crate::container::{
    Container, SESSIONS, TRASH, check_id, escape_id, not_found, parse_container_name, shard_dir,
    unescape_id,
};
use crate::create;
use crate::error::{Damage, DamageKind, LogError, Result};
use crate::files::Files;
use crate::load::read_manifest;
use crate::maintain::{run_round, start_rounds};
use crate::open::{open_writer, take_lock};
use crate::options::{Maintenance, Options};
use crate::pending::Pending;
use crate::queue::{Batch, Expected, NewDelta};
use crate::reader::Reader;
use crate::rebuilt_logs::RebuiltLogs;
use crate::sync::lock;
use crate::writer::Writer;
use bough_record::{Envelope, Fold, Head, Incarnation};

/// A directory of logs.
///
/// Several processes may use one directory at the same time: each log has one writer among them, and any
/// number of readers.
#[derive(Clone, Debug)]
pub struct LogStore<F: Fold = ()> {
    pub(crate) inner: Arc<Inner<F>>,
}

pub(crate) struct Inner<F: Fold> {
    pub(crate) platform: Platform,
    pub(crate) options: Options,
    open: Mutex<HashMap<String, Slot<F>>>,
    /// Writers whose round is due; a thread of the store's takes them.
    due: Option<mpsc::Sender<Weak<Writer<F>>>>,
    /// Logs that readers had to make again.
    pub(crate) rebuilt: Arc<RebuiltLogs<F>>,
    /// Whether the disk took no writing when the folders were made. They are made before something is put into them.
    pub(crate) lacks_folders: AtomicBool,
}

/// The writer of one log, if it is open. Locked while the log is opened or closed, so that one slow log stalls no other.
type Slot<F> = Arc<Mutex<Option<Arc<Writer<F>>>>>;

/// What opening a log for writing found.
enum Opened<F: Fold> {
    Live(Box<Writer<F>>),
    /// A deletion that was cut short after its record: the move is left to be done.
    Deleted(Container),
}

impl<F: Fold> std::fmt::Debug for Inner<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStore").finish_non_exhaustive()
    }
}

/// One log in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedLog {
    /// Its id.
    pub id: String,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// When it was deleted, if it is in the trash.
    pub deleted_at_ms: Option<i64>,
}

impl<F: Fold> LogStore<F> {
    /// Opens a directory of logs, making the folders that are missing. Where nothing can be written, the logs that are
    /// there can be read.
    pub fn open(platform: Platform, options: Options) -> Result<Self> {
        let lacks_folders = AtomicBool::new(!create::make_folders(&platform)?);
        let due = match options.maintenance {
            Maintenance::Background => Some(start_rounds()),
            Maintenance::Inline => None,
        };
        let open = Mutex::default();
        let inner = Inner { platform, options, open, due, rebuilt: Arc::default(), lacks_folders };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens a directory of logs for looking only: makes no folder, sweeps nothing, starts no thread.
    /// Writing through it is possible where the folders are there, and is not what it is for.
    #[must_use]
    pub fn open_to_look(platform: Platform, options: Options) -> Self {
        let open = Mutex::default();
        let (due, rebuilt, lacks_folders) = (None, Arc::default(), AtomicBool::new(false));
        let inner = Inner { platform, options, open, due, rebuilt, lacks_folders };
        Self { inner: Arc::new(inner) }
    }

    /// Makes a log with its first records; durable when it returns.
    pub fn create<'a>(&self, id: &str, records: impl AsRef<[Envelope<'a>]>) -> Result<Head> {
        create::create(self, id, records.as_ref())
    }

    /// Compare-and-append: durable when it returns.
    pub fn append<'a>(
        &self,
        id: &str,
        expected: Expected,
        records: impl AsRef<[Envelope<'a>]>,
    ) -> Result<Head> {
        let pending = self.enqueue(id, expected, &Batch::new(records.as_ref()))?;
        // The frames hold the payloads from here on: a large record is not held twice while it is written.
        drop(records);
        pending.wait()
    }

    /// Compare-and-append: ordered when it returns, durable when the answer says so. `expected` is
    /// compared with the head that everything accepted so far will give.
    pub fn enqueue(
        &self,
        id: &str,
        expected: Expected,
        batch: &Batch<'_, F>,
    ) -> Result<Pending<F>> {
        loop {
            let writer = self.live_writer(id)?;
            if let Some(ticket) = writer.accept(expected, batch)? {
                return Ok(Pending { writer, ticket, store: self.clone() });
            }
        }
    }

    /// Adds a delta to a message that streams; durable when the answer says so.
    pub fn enqueue_delta(&self, id: &str, delta: &NewDelta) -> Result<Pending<F>> {
        loop {
            let writer = self.live_writer(id)?;
            if let Some(ticket) = writer.accept_delta(delta)? {
                return Ok(Pending { writer, ticket, store: self.clone() });
            }
        }
    }

    /// Reads a log. Never writes, never waits for a writer.
    pub fn read(&self, id: &str) -> Result<Reader<F>> {
        check_id(id)?;
        if let Some(writer) = self.opened(id).filter(|writer| !writer.is_latched()) {
            let deleted = writer.read_state().deleted_at_ms.is_some();
            return if deleted { Err(not_found(id)) } else { Ok(Reader::live(writer)) };
        }
        let loaded = self.load_read_only(id)?;
        if loaded.state.deleted_at_ms.is_some() {
            return Err(not_found(id));
        }
        Ok(Reader::read_only(loaded).keeping(&self.inner.rebuilt))
    }

    /// Whether there is a log of this id.
    pub fn contains(&self, id: &str) -> Result<bool> {
        if self.opened(id).is_some() {
            return Ok(true);
        }
        Ok(self.locate(id)?.is_some())
    }

    /// How far a log reaches on the disk, as one number for comparing: it differs when the log has grown.
    /// Reads no file.
    pub fn extent(&self, id: &str) -> Result<u64> {
        const SEGMENT_SHIFT: u32 = 40;
        if let Some(writer) = self.opened(id) {
            let position = writer.read_state().position;
            return Ok((position.segment << SEGMENT_SHIFT) + position.bytes);
        }
        let container = self.existing(id)?;
        let files = self.files(container);
        let last = crate::load::segment_numbers(&files)?.pop().unwrap_or(0);
        let stat = files.disk.stat(&files.container.segment(last)?)?;
        Ok((last << SEGMENT_SHIFT) + stat.map_or(0, |stat| stat.len))
    }

    /// Whether this process has a log open for writing, so that appending to it does not touch the disk
    /// before the commit.
    #[must_use]
    pub fn is_open(&self, id: &str) -> bool {
        self.slots().get(id).is_some_and(|slot| slot.try_lock().is_ok_and(|slot| slot.is_some()))
    }

    /// Which opening of a log this is, while this process has it open for writing. Another number later: it was closed
    /// in between, and others may have written it.
    #[must_use]
    pub fn opening(&self, id: &str) -> Option<u64> {
        self.opened(id).map(|writer| writer.opening)
    }

    /// The head with everything accepted, durable or not, of a log that this process writes.
    pub fn accepted_head(&self, id: &str) -> Result<Head> {
        Ok(self.live_writer(id)?.accepted())
    }

    /// Takes the lock of a log now rather than at the first append; says what opening found.
    pub fn open_for_writing(&self, id: &str) -> Result<crate::OpenReport> {
        Ok(self.live_writer(id)?.report.clone())
    }

    /// Waits until everything accepted for a log is durable.
    pub fn flush(&self, id: &str) -> Result<()> {
        let Some(writer) = self.opened(id) else { return Ok(()) };
        writer.drive();
        writer.check_latch()
    }

    /// Makes a checkpoint of a log that this process writes.
    pub fn checkpoint(&self, id: &str) -> Result<()> {
        let writer = self.live_writer(id)?;
        writer.checkpoint().inspect_err(|error| writer.latch(error))
    }

    /// Closes a log that this process writes: checkpoint, lock given up. Others may write it then.
    pub fn close(&self, id: &str) -> Result<()> {
        let Some(slot) = self.slots().get(id).cloned() else {
            return Ok(());
        };
        let mut writer_slot = lock(&slot);
        let Some(writer) = writer_slot.take() else {
            return Ok(());
        };
        while !writer.shut() {
            writer.drive();
        }
        let closed = writer.close().inspect_err(|error| writer.latch(error));
        drop(writer_slot);
        self.drop_empty_slot(id, &slot);
        closed
    }

    /// Closes every log.
    pub fn close_all(&self) -> Result<()> {
        let ids: Vec<String> = self.slots().keys().cloned().collect();
        ids.iter().try_for_each(|id| self.close(id))
    }

    /// Forgets a log that latched, so that the next call opens it again.
    pub fn reopen(&self, id: &str) -> Result<()> {
        let Some(slot) = self.slots().get(id).cloned() else {
            return Ok(());
        };
        let mut writer_slot = lock(&slot);
        match writer_slot.take_if(|writer| writer.is_latched()) {
            Some(writer) => writer.release(),
            None => Ok(()),
        }
    }

    /// Closes logs without an append for `idle`, except those whose fold [keeps the lock](Fold::keeps_lock).
    pub fn release_idle(&self, idle: Duration) -> Result<usize> {
        let mut closed = 0;
        for (id, writer) in self.all_open() {
            if writer.idle_for() >= idle && may_close(&writer) {
                self.close(&id)?;
                closed += 1;
            }
        }
        Ok(closed)
    }

    /// Logs in `sessions/`, shard by shard; `visit` is called with each, in no particular order. A folder
    /// that cannot be read is passed to `visit` as an error and hides no other.
    pub fn visit(&self, visit: &mut dyn FnMut(Result<ListedLog>)) -> Result<()> {
        self.shards()?.iter().try_for_each(|dir| self.visit_folder(dir, visit))
    }

    /// The folders of `sessions/` that hold the live logs.
    pub(crate) fn shards(&self) -> Result<Vec<RelPath>> {
        let sessions = RelPath::parse(SESSIONS)?;
        let listed = self.inner.platform.disk.list(&sessions)?.into_iter();
        listed.filter(|shard| shard.is_dir).map(|shard| Ok(sessions.join(&shard.name)?)).collect()
    }

    pub(crate) fn visit_folder(
        &self,
        dir: &RelPath,
        visit: &mut dyn FnMut(Result<ListedLog>),
    ) -> Result<()> {
        for listed in self.inner.platform.disk.list_if_there(dir)? {
            if let Some((escaped, incarnation)) =
                parse_container_name(&listed.name).filter(|_| listed.is_dir)
            {
                let files = self.files(Container { dir: dir.join(&listed.name)? });
                // A live log can be read without its manifest, so it is listed. When one in the trash was deleted, only
                // its manifest says.
                let named = unescape_id(escaped).filter(|_| dir.as_str() != TRASH);
                visit(match (read_manifest(&files), named) {
                    (Err(LogError::Corrupt(_)), Some(id)) => {
                        Ok(ListedLog { id, incarnation, deleted_at_ms: None })
                    }
                    (read, _) => read.map(|manifest| ListedLog {
                        id: manifest.session_id,
                        incarnation,
                        deleted_at_ms: manifest.deleted_at_ms,
                    }),
                });
            }
        }
        Ok(())
    }

    /// Runs the round that is due, or hands it to the store's thread.
    pub(crate) fn maintain(&self, writer: &Arc<Writer<F>>) {
        let due = self.inner.options.checkpoint_every_bytes;
        if writer.unchecked_bytes.load(Ordering::Relaxed) < due && !writer.has_damaged_index() {
            return;
        }
        // Counted anew at once, so that one round is asked for and not one by every append meanwhile.
        writer.unchecked_bytes.store(0, Ordering::Relaxed);
        match &self.inner.due {
            Some(sender) => drop(sender.send(Arc::downgrade(writer))),
            None => run_round(writer),
        }
    }

    pub(crate) fn files(&self, container: Container) -> Files {
        Files::new(Arc::clone(&self.inner.platform.disk), container)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot<F>>> {
        lock(&self.inner.open)
    }

    /// The writer of a log that this process has open.
    fn opened(&self, id: &str) -> Option<Arc<Writer<F>>> {
        let slot = self.slots().get(id).cloned()?;
        lock(&slot).clone()
    }

    /// Every log that this process has open, without those that are being opened or closed.
    fn all_open(&self) -> Vec<(String, Arc<Writer<F>>)> {
        let slots: Vec<_> =
            self.slots().iter().map(|(id, s)| (id.clone(), Arc::clone(s))).collect();
        let open = slots.into_iter().filter_map(|(id, slot)| {
            let writer = slot.try_lock().ok()?.clone()?;
            Some((id, writer))
        });
        open.collect()
    }

    fn drop_empty_slot(&self, id: &str, slot: &Slot<F>) {
        let mut slots = self.slots();
        // Two: the map's and ours. With more, another thread is about to open the log.
        if Arc::strong_count(slot) == 2 {
            slots.remove(id);
        }
    }

    /// The container of the live log of an id.
    pub(crate) fn locate(&self, id: &str) -> Result<Option<Container>> {
        /// A mark says which of two incarnations answers. It may be removed, with the other incarnation, between listing
        /// the folder and reading it.
        const TRIES: u32 = 3;
        for _ in 1..TRIES {
            match self.locate_once(id) {
                Err(LogError::Corrupt(_)) => {}
                found => return found,
            }
        }
        self.locate_once(id)
    }

    fn locate_once(&self, id: &str) -> Result<Option<Container>> {
        let escaped = escape_id(id)?;
        let dir = shard_dir(id)?;
        let listed = self.inner.platform.disk.list_if_there(&dir)?;
        let mut names = listed.iter().filter(|listed| {
            parse_container_name(&listed.name).is_some_and(|(name, _)| name == escaped)
        });
        let Some(first) = names.next() else {
            return Ok(None);
        };
        if let Some(second) = names.next() {
            let [one, other] = [first, second].map(|listed| dir.join(&listed.name));
            let (one, other) = (Container { dir: one? }, Container { dir: other? });
            if let Some(answering) = self.answering(&one, &other)
                && names.next().is_none()
            {
                return Ok(Some(answering));
            }
            let text = format!("two incarnations of one id: {} and {}", first.name, second.name);
            return Err(Damage::new(DamageKind::Manifest, dir.as_str(), 0, text).into());
        }
        let container = Container { dir: dir.join(&first.name)? };
        if !first.is_dir {
            return Err(container.no_folder().into());
        }
        Ok(Some(container))
    }

    /// The open writer of a log, opening it if need be.
    pub(crate) fn writer(&self, id: &str) -> Result<Arc<Writer<F>>> {
        check_id(id)?;
        let slot = self.slot(id)?;
        let mut writer_slot = lock(&slot);
        if let Some(writer) = &*writer_slot {
            return Ok(Arc::clone(writer));
        }
        let deleted = match self.open_one(id) {
            Ok(Opened::Live(writer)) => {
                return Ok(Arc::clone(writer_slot.insert(Arc::new(*writer))));
            }
            Ok(Opened::Deleted(container)) => Ok(container),
            Err(error) => Err(error),
        };
        // The shard's lock is never waited for while a slot is locked.
        drop(writer_slot);
        self.drop_empty_slot(id, &slot);
        self.move_to_trash(id, &deleted?)?;
        Err(not_found(id))
    }

    /// The slot of a log, made if there is none; then an idle log is closed if too many are open.
    fn slot(&self, id: &str) -> Result<Slot<F>> {
        let found = self.slots().get(id).cloned();
        if let Some(slot) = found {
            return Ok(slot);
        }
        if self.slots().len() > self.inner.options.open_logs_max {
            self.close_one_idle()?;
        }
        Ok(Arc::clone(self.slots().entry(id.to_owned()).or_default()))
    }

    /// The writer of a log that is not deleted. A deletion that failed after its record is finished here.
    fn live_writer(&self, id: &str) -> Result<Arc<Writer<F>>> {
        let writer = self.writer(id)?;
        if writer.read_state().deleted_at_ms.is_none() {
            return Ok(writer);
        }
        if let Some(container) = self.locate(id)? {
            self.close(id)?;
            self.move_to_trash(id, &container)?;
        }
        Err(not_found(id))
    }

    fn open_one(&self, id: &str) -> Result<Opened<F>> {
        let Inner { platform, options, .. } = &*self.inner;
        // The container may move between finding and locking it: a deletion by another process.
        for _ in 0..3 {
            let container = self.existing(id)?;
            let Some(writer) = open_writer(platform, options, container.clone(), id)? else {
                continue;
            };
            if writer.id != id {
                let text = format!("the manifest is of {:?}", writer.id);
                return Err(Damage::new(DamageKind::Manifest, "manifest.json", 0, text).into());
            }
            if self.locate(id)?.as_ref() != Some(&container) {
                // Another incarnation replaced it before the lock was ours.
                writer.release()?;
                continue;
            }
            self.remove_replaced(id, &container)?;
            if writer.read_state().deleted_at_ms.is_some() {
                writer.close()?;
                return Ok(Opened::Deleted(container));
            }
            return Ok(Opened::Live(Box::new(writer)));
        }
        Err(not_found(id))
    }

    /// Closes the log that was idle longest, if there is one that may be closed.
    fn close_one_idle(&self) -> Result<()> {
        let open = self.all_open();
        let idle = open.iter().filter(|(_, writer)| may_close(writer));
        let longest = idle.max_by_key(|(_, writer)| writer.idle_for()).map(|(id, _)| id.clone());
        match longest {
            Some(id) => self.close(&id),
            None => Ok(()),
        }
    }

    /// Takes the lock under which logs of a shard come and go.
    pub(crate) fn lock_shard(&self, id: &str) -> Result<Box<dyn bough_platform::Lock>> {
        const TRIES: u32 = 2_500;
        self.ensure_folders()?;
        let Inner { platform, options, .. } = &*self.inner;
        let dir = shard_dir(id)?;
        platform.disk.ensure_dir(&dir)?;
        platform.disk.sync_dir(&dir.parent())?;
        take_lock(platform, options, &dir.join("lock")?, TRIES)?.ok_or_else(|| not_found(id))
    }
}

/// Whether an open log may be closed, so that other processes may write it.
fn may_close<F: Fold>(writer: &Writer<F>) -> bool {
    !writer.is_busy() && !writer.is_latched() && !writer.read_state().fold.keeps_lock()
}
