//! Deleting, undoing, purging. A deletion is a record and a move; nothing is removed before its
//! retention ends.

use bough_platform::RelPath;

use crate::container::{Container, STAGING, TRASH, not_found, parse_container_name};
use crate::error::{LogError, Result};
use crate::head::Incarnation;
use crate::load::{Trust, read_manifest};
use crate::open::open_writer;
use crate::queue::Expected;
use crate::record::{NewRecord, kind};
use crate::store::{ListedLog, LogStore};

impl LogStore {
    /// Deletes a log: its container goes to the trash, from where [`LogStore::undelete`] brings it back.
    /// `payload` is kept with the record of the deletion.
    pub fn delete(&self, id: &str, payload: &str) -> Result<()> {
        let now = self.inner.platform.clock.now_ms();
        let tombstone = NewRecord::plain(kind::TOMBSTONE, now, payload);
        self.append(id, Expected::Any, vec![tombstone])?;
        let Some(container) = self.locate(id)? else {
            return Err(not_found(id));
        };
        self.close(id)?;
        self.move_to_trash(&container)
    }

    pub(crate) fn move_to_trash(&self, container: &Container) -> Result<()> {
        let disk = &self.inner.platform.disk;
        disk.rename(&container.dir, &container.moved_to(TRASH)?.dir)?;
        disk.sync_dir(&RelPath::parse(TRASH)?)?;
        Ok(disk.sync_dir(&container.dir.parent())?)
    }

    /// Brings back a life from the trash: the one named, or the one deleted last.
    pub fn undelete(
        &self,
        id: &str,
        incarnation: Option<Incarnation>,
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
        self.write_restored(trashed.clone(), id, payload)?;
        let disk = &self.inner.platform.disk;
        disk.rename(&trashed.dir, &live.dir)?;
        disk.sync_dir(&live.dir.parent())?;
        disk.sync_dir(&RelPath::parse(TRASH)?)?;
        drop(shard);
        Ok(newest.incarnation)
    }

    /// The record comes before the move: a log found among the live ones with its deletion as the last
    /// word would be put back into the trash.
    fn write_restored(&self, trashed: Container, id: &str, payload: &str) -> Result<()> {
        let inner = &self.inner;
        let writer = open_writer(&inner.platform, &inner.options, trashed, Trust::Checkpoint)?
            .ok_or_else(|| not_found(id))?;
        if writer.read_state().deleted_at_ms.is_some() {
            let now = inner.platform.clock.now_ms();
            let mut records = vec![NewRecord::plain(kind::RESTORED, now, payload)];
            if let Some(ticket) = writer.accept(Expected::Any, &mut records)? {
                writer.wait(ticket)?;
            }
        }
        writer.close()
    }

    /// What is in the trash. A folder that cannot be read is left out here; `verify` names it.
    pub fn trash(&self) -> Result<Vec<ListedLog>> {
        let mut found = Vec::new();
        self.visit_folder(&RelPath::parse(TRASH)?, &mut |log| found.extend(log.ok()))?;
        Ok(found)
    }

    /// Removes for good what was deleted before `before_ms`; says how many logs that were.
    pub fn purge(&self, before_ms: i64) -> Result<usize> {
        let disk = &self.inner.platform.disk;
        let trash = RelPath::parse(TRASH)?;
        let mut purged = 0;
        for listed in disk.list(&trash)? {
            if parse_container_name(&listed.name).is_none() {
                continue;
            }
            let container = Container { dir: trash.join(&listed.name)? };
            let due = read_manifest(&self.files(container.clone()))
                .is_ok_and(|m| m.deleted_at_ms.is_some_and(|at| at < before_ms));
            if due {
                // Out of the trash in one step, so that a crash leaves no half of a log there.
                let doomed = container.moved_to(STAGING)?;
                disk.rename(&container.dir, &doomed.dir)?;
                disk.sync_dir(&doomed.dir.parent())?;
                disk.sync_dir(&trash)?;
                disk.remove_tree(&doomed.dir)?;
                purged += 1;
            }
        }
        Ok(purged)
    }
}
