//! Deleting, and taking it back.

use bough_platform::RelPath;
use bough_session::{Incarnation, Record, SessionId};

use super::Shared;
use super::names::SUFFIX;
use super::slot::Slot;
use crate::StoreError;
use crate::memory_session::MemorySession;
use crate::sync::lock;
use crate::types::{IncarnationPosition, Snapshot, Trashed};
use bough_record::Position;

/// Where deleted sessions are.
const TRASH_DIR: &str = "bough-trash";

impl Shared {
    pub(super) fn delete(
        &self,
        session: &SessionId,
        at_ms: i64,
    ) -> Result<Option<Trashed>, StoreError> {
        // Check first, so that a process that only reads does not get a needless lock error.
        if self.with(session, |slot| Ok(slot.image().is_none()))? {
            return Ok(None);
        }
        self.take_lock()?;
        self.with(session, |slot| {
            if slot.image().is_none() {
                return Ok(None);
            }
            let before = slot.end();
            // The tombstone is durable before the file moves; a crash in between leaves a deleted
            // session in its old place, which is read as deleted.
            slot.append(self.platform.disk.as_ref(), None, vec![Record::Tombstone.at(at_ms)])?;
            let trashed = trashed_of(slot);
            self.move_to_trash(slot, before)?;
            Ok(trashed)
        })
    }

    pub(super) fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError> {
        self.take_lock()?;
        self.with(session, |slot| {
            let disk = self.platform.disk.as_ref();
            if slot.image().is_some() {
                return Err(StoreError::exists(session));
            }
            let here = slot.any_image().is_some_and(|image| image.incarnation == incarnation);
            if !here {
                self.take_from_trash(slot, session, incarnation)?;
            }
            let before = slot.end();
            slot.append(disk, None, vec![Record::Restored.at(at_ms)])?;
            self.announce(slot, before);
            slot.snapshot().ok_or_else(|| slot.not_found())
        })
    }

    pub(super) fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        self.take_lock()?;
        let disk = self.platform.disk.as_ref();
        self.with(session, |slot| {
            let deleted = slot.image().is_none();
            let here = slot.any_image().is_some_and(|image| image.incarnation == incarnation);
            if deleted && here {
                self.move_to_trash(slot, slot.end())?;
            }
            Ok(())
        })?;
        let path = trash_path(incarnation)?;
        let is_asked = |trashed: &Trashed| {
            trashed.session_id == *session
                && (deleted_at.is_none() || trashed.deleted_at == deleted_at)
        };
        if !self.read_trash(&path)?.as_ref().is_some_and(is_asked) {
            return Ok(false);
        }
        disk.remove_file(&path)?;
        disk.sync_dir(&path.parent())?;
        Ok(true)
    }

    pub(super) fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        let mut found = self.unmoved()?;
        let folder = trash_dir()?;
        if self.platform.disk.stat(&folder)?.is_some() {
            for name in self.platform.disk.list(&folder)? {
                let path = folder.join(&name.name).map_err(std::io::Error::from)?;
                // A file that cannot be read hides no other.
                found.extend(self.read_trash(&path).ok().flatten());
            }
        }
        found.retain(|trashed| session.is_none_or(|session| trashed.session_id == *session));
        found.sort_by_key(|trashed| (trashed.deleted_at, trashed.incarnation));
        Ok(found)
    }

    /// Moves a deleted session to the trash; the slot is empty afterwards. `before` is its position before the
    /// deletion.
    pub(super) fn move_to_trash(
        &self,
        slot: &mut Slot,
        before: Option<IncarnationPosition>,
    ) -> Result<(), StoreError> {
        let disk = self.platform.disk.as_ref();
        let Some(image) = slot.any_image() else { return Ok(()) };
        let session = image.state.meta.session_id.clone();
        let end = IncarnationPosition::new(image.incarnation, Position::at(image.seq()));
        let folder = trash_dir()?;
        if disk.ensure_dir(&folder)? {
            disk.sync_dir(&RelPath::root())?;
        }
        disk.rename(&slot.path, &trash_path(end.incarnation)?)?;
        // Sync the new folder first: then a crash may show the file in both places or in the new
        // one.
        disk.sync_dir(&folder)?;
        disk.sync_dir(&RelPath::root())?;
        slot.remove_stream(disk)?;
        slot.forget();
        self.announce_gone(&session, before, end, slot.path.file_name());
        Ok(())
    }

    fn take_from_trash(
        &self,
        slot: &mut Slot,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<(), StoreError> {
        let path = trash_path(incarnation)?;
        let trashed = self.read_trash(&path)?;
        if trashed.is_none_or(|trashed| trashed.session_id != *session) {
            return Err(slot.not_found());
        }
        // Another incarnation may be in the place, deleted and not yet moved.
        self.move_to_trash(slot, slot.end())?;
        let disk = self.platform.disk.as_ref();
        disk.rename(&path, &slot.path)?;
        disk.sync_dir(&RelPath::root())?;
        disk.sync_dir(&path.parent())?;
        slot.refresh(disk)
    }

    /// A deleted session in the trash; `None` when there is none in that file.
    fn read_trash(&self, path: &RelPath) -> Result<Option<Trashed>, StoreError> {
        Ok(self.slot_in_trash(path)?.and_then(|slot| trashed_of(&slot)))
    }

    fn slot_in_trash(&self, path: &RelPath) -> Result<Option<Slot>, StoreError> {
        let disk = self.platform.disk.as_ref();
        let mut slot = Slot::at(&SessionId::from_stored(""), path.clone())?;
        slot.read_unsynced(disk)?;
        let Some(session) = slot.own_id().cloned() else {
            return Ok(None);
        };
        let mut slot = Slot::at(&session, path.clone())?;
        slot.read_unsynced(disk)?;
        Ok(Some(slot))
    }

    /// Reads a given incarnation of a session: the present one, or a deleted one.
    pub(super) fn read_incarnation<T>(
        &self,
        session: &SessionId,
        incarnation: Option<Incarnation>,
        read: impl Fn(&Slot, &MemorySession) -> T,
    ) -> Result<Option<T>, StoreError> {
        let here = self.with(session, |slot| {
            let image = match incarnation {
                None => slot.image(),
                Some(asked) => slot.any_image().filter(|image| image.incarnation == asked),
            };
            Ok(image.map(|image| read(slot, image)))
        })?;
        let (None, Some(asked)) = (&here, incarnation) else { return Ok(here) };
        let Some(slot) = self.slot_in_trash(&trash_path(asked)?)? else { return Ok(None) };
        let image = slot.any_image().filter(|image| image.state.meta.session_id == *session);
        Ok(image.map(|image| read(&slot, image)))
    }

    /// Deleted sessions that a crash has left in their old place.
    fn unmoved(&self) -> Result<Vec<Trashed>, StoreError> {
        self.items()?;
        let hidden = lock(&self.summaries).hidden();
        let mut found = Vec::new();
        for name in hidden {
            let path = RelPath::root().join(&name).map_err(std::io::Error::from)?;
            found.extend(self.read_trash(&path).ok().flatten());
        }
        Ok(found)
    }
}

fn trash_dir() -> Result<RelPath, StoreError> {
    Ok(RelPath::root().join(TRASH_DIR).map_err(std::io::Error::from)?)
}

/// The incarnation names its file in the trash, because the same id may be deleted many times.
fn trash_path(incarnation: Incarnation) -> Result<RelPath, StoreError> {
    let name = format!("{incarnation}{SUFFIX}");
    Ok(trash_dir()?.join(&name).map_err(std::io::Error::from)?)
}

fn trashed_of(slot: &Slot) -> Option<Trashed> {
    let image = slot.any_image().filter(|image| image.state.deleted)?;
    let tombstone = image
        .records
        .iter()
        .rev()
        .find(|stored| matches!(stored.record.known(), Record::Tombstone));
    Some(Trashed {
        session_id: image.state.meta.session_id.clone(),
        incarnation: image.incarnation,
        deleted_at: tombstone.map(|stored| stored.at_ms),
        state: image.state.clone(),
    })
}
