//! Deleting, undoing, purging. A deletion is a record and a move; nothing is removed before its
//! retention ends.

use bough_platform::RelPath;

use crate::container::{Container, STAGING, TRASH, not_found};
use crate::error::{LogError, Result};
use crate::head::Incarnation;
use crate::load::{Horizon, Trust};
use crate::open::open_writer;
use crate::queue::Expected;
use crate::reader::Reader;
use crate::record::{NewRecord, kind};
use crate::store::{ListedLog, LogStore};

impl LogStore {
    /// Deletes a log: its container goes to the trash, from where [`LogStore::undelete`] brings it back.
    /// `payload` is kept with the record of the deletion.
    pub fn delete(&self, id: &str, at_ms: i64, payload: &str) -> Result<()> {
        let tombstone = NewRecord::plain(kind::TOMBSTONE, at_ms, payload);
        self.append(id, Expected::Any, vec![tombstone])?;
        let Some(container) = self.locate(id)? else {
            return Err(not_found(id));
        };
        self.close(id)?;
        self.move_to_trash(&container)
    }

    pub(crate) fn move_to_trash(&self, container: &Container) -> Result<()> {
        let disk = &self.inner.platform.disk;
        let trashed = container.moved_to(TRASH)?.dir;
        match disk.rename(&container.dir, &trashed) {
            // Another process that opened it in between found the record and finished the move.
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && disk.stat(&trashed)?.is_some() => {}
            moved => moved?,
        }
        disk.sync_dir(&RelPath::parse(TRASH)?)?;
        Ok(disk.sync_dir(&container.dir.parent())?)
    }

    /// Brings back a life from the trash: the one named, or the one deleted last.
    pub fn undelete(
        &self,
        id: &str,
        incarnation: Option<Incarnation>,
        at_ms: i64,
        payload: &str,
    ) -> Result<Incarnation> {
        let shard = self.lock_shard(id)?;
        if self.locate(id)?.is_some() {
            return Err(LogError::Exists { id: id.to_owned() });
        }
        let mut lives: Vec<ListedLog> = self
            .trash()?
            .into_iter()
            .filter(|log| log.id == id)
            .filter(|log| incarnation.is_none_or(|wanted| wanted == log.incarnation))
            .collect();
        lives.sort_by_key(|log| log.deleted_at_ms);
        let Some(newest) = lives.pop() else {
            return Err(not_found(id));
        };
        let live = Container::live(id, newest.incarnation)?;
        let trashed = live.moved_to(TRASH)?;
        let restored = NewRecord::plain(kind::RESTORED, at_ms, payload);
        self.write_restored(trashed.clone(), id, restored)?;
        let disk = &self.inner.platform.disk;
        disk.rename(&trashed.dir, &live.dir)?;
        disk.sync_dir(&live.dir.parent())?;
        disk.sync_dir(&RelPath::parse(TRASH)?)?;
        drop(shard);
        Ok(newest.incarnation)
    }

    /// The record comes before the move: a log found among the live ones with its deletion as the last
    /// word would be put back into the trash.
    fn write_restored(&self, trashed: Container, id: &str, restored: NewRecord) -> Result<()> {
        let inner = &self.inner;
        let writer = open_writer(&inner.platform, &inner.options, trashed, Trust::Checkpoint)?
            .ok_or_else(|| not_found(id))?;
        if writer.read_state().deleted_at_ms.is_some() {
            let mut records = vec![restored];
            if let Some(ticket) = writer.accept(Expected::Any, &mut records)? {
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
    pub fn read_trash(&self, id: &str, incarnation: Incarnation) -> Result<Reader> {
        let container = Container::live(id, incarnation)?.moved_to(TRASH)?;
        if self.inner.platform.disk.stat(&container.dir)?.is_none() {
            return Err(not_found(id));
        }
        Ok(Reader::cold(self.load_once(id, container, Horizon::WholeTail)?))
    }

    /// Removes for good what was deleted before `before_ms`; says how many logs that were.
    pub fn purge(&self, before_ms: i64) -> Result<usize> {
        let due = |log: &ListedLog| log.deleted_at_ms.is_some_and(|at| at < before_ms);
        let doomed: Vec<ListedLog> = self.trash()?.into_iter().filter(due).collect();
        for log in &doomed {
            self.purge_one(&log.id, log.incarnation)?;
        }
        Ok(doomed.len())
    }

    /// Removes one deleted life for good; says whether it was there.
    pub fn purge_one(&self, id: &str, incarnation: Incarnation) -> Result<bool> {
        let disk = &self.inner.platform.disk;
        let container = Container::live(id, incarnation)?.moved_to(TRASH)?;
        if disk.stat(&container.dir)?.is_none() {
            return Ok(false);
        }
        // Out of the trash in one step, so that a crash leaves no half of a log there.
        let doomed = container.moved_to(STAGING)?;
        disk.rename(&container.dir, &doomed.dir)?;
        disk.sync_dir(&doomed.dir.parent())?;
        disk.sync_dir(&container.dir.parent())?;
        disk.remove_tree(&doomed.dir)?;
        Ok(true)
    }
}
