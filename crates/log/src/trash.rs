//! Deleting, undoing, purging. A deletion is a record and a move; nothing is removed before its
//! retention ends.

use bough_platform::{Lock, RelPath};

use crate::container::{Container, STAGING, TRASH, not_found};
use crate::error::{LogError, Result};
use crate::load::{Horizon, read_manifest};
use crate::open::open_writer;
use crate::queue::{Batch, Expected};
use crate::reader::Reader;
use crate::store::{ListedLog, LogStore};
use crate::writer::Writer;
use bough_record::{Envelope, Fold, Incarnation, kind};

impl<F: Fold> LogStore<F> {
    /// Deletes a log: its container goes to the trash, from where [`LogStore::undelete`] brings it back.
    /// `payload` is kept with the record of the deletion.
    pub fn delete(&self, id: &str, at_ms: i64, payload: &str) -> Result<()> {
        self.delete_where(id, Expected::Any, at_ms, payload)
    }

    /// The same, only where the log is what the caller believes: a new incarnation of the id is not what it meant.
    pub fn delete_where(
        &self,
        id: &str,
        expected: Expected,
        at_ms: i64,
        payload: &str,
    ) -> Result<()> {
        let tombstone = Envelope::plain(kind::TOMBSTONE, at_ms, payload);
        self.append(id, expected, &[tombstone])?;
        let Some(container) = self.locate(id)? else {
            // Another process found the record and has finished the move.
            return Ok(());
        };
        self.close(id)?;
        self.move_to_trash(id, &container)
    }

    /// The second half of a deletion; its record is durable and its manifest says so. Another process may have found the
    /// record, moved the log and even brought it back since: then there is nothing left to do.
    pub(crate) fn move_to_trash(&self, id: &str, container: &Container) -> Result<()> {
        let _shard = self.lock_shard(id)?;
        let disk = &self.inner.platform.disk;
        if disk.stat(&container.dir)?.is_some()
            && read_manifest(&self.files(container.clone()))?.deleted_at_ms.is_some()
        {
            disk.rename(&container.dir, &container.moved_to(TRASH)?.dir)?;
        }
        disk.sync_dir(&RelPath::parse(TRASH)?)?;
        Ok(disk.sync_dir(&container.dir.parent())?)
    }

    /// Finishes a deletion that was cut short after its record: no reader is shown the log, and it is still among the
    /// live ones. Returns whether it found one.
    pub fn finish_deletion(&self, id: &str) -> Result<bool> {
        if !matches!(self.read(id), Err(LogError::NotFound { .. })) || !self.contains(id)? {
            return Ok(false);
        }
        match self.open_for_writing(id) {
            Ok(_) => Ok(false),
            Err(LogError::NotFound { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock under which a log of this id may be put among the live ones. A deletion that was cut short is
    /// finished first.
    pub(crate) fn lock_unused_id(&self, id: &str) -> Result<Box<dyn Lock>> {
        /// Another process may create the id again meanwhile.
        const TRIES: u32 = 3;
        for _ in 0..TRIES {
            let shard = self.lock_shard(id)?;
            if self.locate(id)?.is_none() {
                return Ok(shard);
            }
            // Not under the lock: finishing a deletion takes it too.
            drop(shard);
            if !self.finish_deletion(id)? {
                break;
            }
        }
        Err(LogError::Exists { id: id.to_owned() })
    }

    /// Brings back an incarnation from the trash: the one named, or the one deleted last.
    pub fn undelete(
        &self,
        id: &str,
        incarnation: Option<Incarnation>,
        at_ms: i64,
        payload: &str,
    ) -> Result<Incarnation> {
        let shard = self.lock_unused_id(id)?;
        let is_asked = |log: &ListedLog| {
            log.id == id && incarnation.is_none_or(|asked| asked == log.incarnation)
        };
        let found = self.trash()?.into_iter().filter(is_asked);
        let newest = found.max_by_key(|log| log.deleted_at_ms).ok_or_else(|| not_found(id))?;
        let live = Container::live(id, newest.incarnation)?;
        let trashed = live.moved_to(TRASH)?;
        let restored = Envelope::plain(kind::RESTORED, at_ms, payload);
        self.write_restored(trashed.clone(), id, restored)?;
        self.move_container(&trashed.dir, &live.dir)?;
        drop(shard);
        Ok(newest.incarnation)
    }

    /// The record comes before the move: a log found among the live ones with its deletion as the last
    /// word would be put back into the trash.
    fn write_restored(&self, trashed: Container, id: &str, restored: Envelope<'_>) -> Result<()> {
        let inner = &self.inner;
        let writer: Writer<F> = open_writer(&inner.platform, &inner.options, trashed, id)?
            .ok_or_else(|| not_found(id))?;
        if writer.read_state().deleted_at_ms.is_some() {
            let records = [restored];
            if let Some(ticket) = writer.accept(Expected::Any, &Batch::new(&records))? {
                writer.wait(ticket)?;
            }
        }
        writer.close()
    }

    /// What is in the trash. A folder that cannot be read is left out here; `verify` names it.
    pub fn trash(&self) -> Result<Vec<ListedLog>> {
        let mut found = Vec::new();
        let mut failed = None;
        self.visit_folder(&RelPath::parse(TRASH)?, &mut |log| match log {
            Ok(log) => found.push(log),
            Err(LogError::Corrupt(_) | LogError::NewerFormat { .. }) => {}
            Err(error) => failed = Some(error),
        })?;
        failed.map_or(Ok(found), Err)
    }

    /// Reads a log that is in the trash.
    pub fn read_trash(&self, id: &str, incarnation: Incarnation) -> Result<Reader<F>> {
        let container = Container::live(id, incarnation)?.moved_to(TRASH)?;
        if self.inner.platform.disk.stat(&container.dir)?.is_none() {
            return Err(not_found(id));
        }
        Ok(Reader::read_only(self.load_once(id, container, Horizon::WholeTail)?))
    }

    /// Removes for good what was deleted before `before_ms`; says how many logs that were.
    pub fn purge(&self, before_ms: i64) -> Result<usize> {
        let due = |log: &ListedLog| log.deleted_at_ms.is_some_and(|at| at < before_ms);
        let mut purged = 0;
        for log in self.trash()?.into_iter().filter(due) {
            purged += usize::from(self.purge_one(&log.id, log.incarnation, log.deleted_at_ms)?);
        }
        Ok(purged)
    }

    /// Removes one deleted incarnation for good; says whether it did. With `deleted_at_ms`, only while that is when it was
    /// deleted. An incarnation whose undoing was cut short is not deleted: it waits for [`LogStore::undelete`].
    pub fn purge_one(
        &self,
        id: &str,
        incarnation: Incarnation,
        deleted_at_ms: Option<i64>,
    ) -> Result<bool> {
        let disk = &self.inner.platform.disk;
        let container = Container::live(id, incarnation)?.moved_to(TRASH)?;
        // Undoing the deletion takes it too.
        let _shard = self.lock_shard(id)?;
        if disk.stat(&container.dir)?.is_none() {
            return Ok(false);
        }
        let found = self.deletion_of(id, &container)?;
        if found.is_none() || deleted_at_ms.is_some() && found != deleted_at_ms {
            return Ok(false);
        }
        // Out of the trash in one step, so that a crash leaves no half of a log there.
        let doomed = container.moved_to(STAGING)?;
        self.move_container(&container.dir, &doomed.dir)?;
        disk.remove_tree(&doomed.dir)?;
        Ok(true)
    }

    /// When a log in the trash was deleted; `None` when it is not any more. Where its records cannot be read, its
    /// manifest speaks for it.
    fn deletion_of(&self, id: &str, container: &Container) -> Result<Option<i64>> {
        let Some(filed) = read_manifest(&self.files(container.clone()))?.deleted_at_ms else {
            return Ok(None);
        };
        match self.load_once(id, container.clone(), Horizon::WholeTail) {
            Ok(loaded) => Ok(loaded.deleted_at_ms()),
            Err(LogError::Corrupt(_)) => Ok(Some(filed)),
            Err(error) => Err(error),
        }
    }
}
