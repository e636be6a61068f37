//! Putting a log that was built in `staging/` in the place of a live one of the same id.
//!
//! ```text
//!   staging/<name>/...            built and closed like any log; the mark `replaces` names the old incarnation
//!   --- rename ---                two incarnations of the id are in the shard; the mark says which one answers
//!   --- rename, remove ---        the old incarnation is gone, then the mark
//! ```
//!
//! The first rename is the switch. It happens under the writer's lock of the old incarnation, after its head was compared.
//! A writer that takes that lock later checks again which incarnation answers, so that none appends to the old one.

use bough_platform::{RelPath, if_there};

use crate::container::{Container, STAGING, parse_container_name, shard_dir};
use crate::error::{LogError, Result};
use crate::load::{Horizon, Trust, load, read_manifest};
use crate::staged::StagedLog;
use crate::store::LogStore;
use bough_record::{Fold, Head, Incarnation};

/// Bytes of an incarnation in a mark, and a few more than that.
const MARK_BYTES_MAX: u64 = 64;

impl<F: Fold> StagedLog<F> {
    /// Puts the log that was built here in the place of the live one, if that ends at `expected`. The old one is
    /// removed. [`LogError::Conflict`] when it ends elsewhere, [`LogError::Locked`] while another process writes it.
    pub fn replace(&self, expected: Head) -> Result<()> {
        let id = self.id.as_str();
        self.inner.close(id)?;
        let staged = self.inner.existing(id)?;
        self.inner.mark_as_replacing(&staged, expected.incarnation)?;
        let outer = &self.outer;
        outer.close(id)?;
        let _shard = outer.lock_shard(id)?;
        let old = outer.existing(id)?;
        let lock = outer.take_writer_lock(&old, id)?;
        if let Err(error) = outer.expect_end(&old, expected) {
            lock.remove()?;
            return Err(error);
        }
        // A third incarnation that an earlier crash left is removed before the second comes.
        outer.remove_replaced(id, &old)?;
        let from = RelPath::parse(&format!("{}/{}", self.dir, staged.dir))?;
        let new = Container { dir: shard_dir(id)?.join(staged.dir.file_name())? };
        outer.move_container(&from, &new.dir)?;
        // The new log answers. What is left to do the next writer does too; the lock goes with the folder that it lies in.
        drop(outer.remove_replaced(id, &new));
        drop(lock);
        Ok(())
    }
}

impl<F: Fold> LogStore<F> {
    fn mark_as_replacing(&self, container: &Container, old: Incarnation) -> Result<()> {
        let disk = &self.inner.platform.disk;
        let file = disk.create(&container.replaces()?)?;
        file.write_at(0, old.to_string().as_bytes())?;
        file.sync()?;
        Ok(disk.sync_dir(&container.dir)?)
    }

    /// Refuses a log that does not end where the caller believes.
    pub(crate) fn expect_end(&self, container: &Container, expected: Head) -> Result<()> {
        let files = self.files(container.clone());
        let manifest = read_manifest(&files)?;
        let current =
            load::<()>(files, manifest, Trust::Checkpoint, Horizon::WholeTail)?.state.head;
        if current == expected { Ok(()) } else { Err(LogError::Conflict { current }) }
    }

    /// Of two incarnations of an id, the one that answers: its mark says that it replaces the other.
    pub(crate) fn answering(&self, first: &Container, second: &Container) -> Option<Container> {
        let replaces = |new: &Container, old: &Container| {
            let named = parse_container_name(old.dir.file_name()).map(|(_, named)| named);
            named.is_some() && self.replaced_by(new) == named
        };
        if replaces(first, second) {
            return Some(first.clone());
        }
        replaces(second, first).then(|| second.clone())
    }

    /// The incarnation that a container replaces, as its mark says.
    fn replaced_by(&self, container: &Container) -> Option<Incarnation> {
        let path = container.replaces().ok()?;
        let bytes = self.inner.platform.disk.read_all(&path, MARK_BYTES_MAX).ok()?;
        std::str::from_utf8(&bytes).ok()?.parse().ok()
    }

    /// Removes the incarnation that a container replaces, if it is still there, and then the mark. The caller holds the
    /// container's lock, or the shard's.
    pub(crate) fn remove_replaced(&self, id: &str, container: &Container) -> Result<()> {
        let Some(incarnation) = self.replaced_by(container) else {
            return Ok(());
        };
        self.ensure_folders()?;
        let disk = &self.inner.platform.disk;
        let old = Container::live(id, incarnation)?;
        // The new incarnation must be certain to stand here before the old one goes.
        disk.sync_dir(&container.dir.parent())?;
        let doomed = old.moved_to(STAGING)?;
        // Another process may finish the same replacement.
        let is_moved = if_there(disk.rename(&old.dir, &doomed.dir))?.is_some();
        // A move between folders is certain only when both are synced, and the mark is needed until it is.
        disk.sync_dir(&container.dir.parent())?;
        disk.sync_dir(&doomed.dir.parent())?;
        if is_moved {
            disk.remove_tree(&doomed.dir)?;
        }
        Ok(if_there(disk.remove_file(&container.replaces()?)).map(drop)?)
    }
}
