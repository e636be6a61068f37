//! A log that is built in `staging/`, where no reader looks, and shown whole: large forks, imports, migrations, salvage.
//!
//! ```text
//!   staging/<name>/sessions/...   built and closed like any log, by a store of its own
//!   --- publish ---               the log stands in sessions/ and answers (one rename)
//! ```
//!
//! A migration says in the manifest that the V1 file answers before it publishes, and moves the pointer after it; see
//! [`migration`](crate::migration). A log can also be put in the place of a live one; see [`replace`](crate::replace).

use std::sync::Arc;
use std::time::Duration;

use bough_platform::{Platform, RelPath};
use bough_record::{Envelope, Fold};

use crate::container::{STAGING, TRASH, shard_dir};
use crate::error::{LogError, Result};
use crate::format::{ActiveStore, Manifest, Pointer, StoreState};
use crate::limits::STAGING_ALIVE_EVERY;
use crate::load::read_manifest;
use crate::migration::Switch;
use crate::options::{Maintenance, Options};
use crate::queue::{Batch, Expected};
use crate::record::invalid;
use crate::store::LogStore;
use crate::subdir::Subdir;

/// A log that is being built out of sight. Dropped, it leaves nothing behind in `staging/`.
#[derive(Debug)]
pub struct StagedLog<F: Fold = ()> {
    pub(crate) id: String,
    pub(crate) outer: LogStore<F>,
    pub(crate) inner: LogStore<F>,
    pub(crate) dir: RelPath,
    has_begun: bool,
    alive_at: Duration,
    is_removed: bool,
}

impl<F: Fold> LogStore<F> {
    /// Begins a log in a folder of `staging/`, with a store of its own there. What an earlier attempt of the same
    /// folder's name left is removed.
    pub fn stage(&self, name: &str, id: &str) -> Result<StagedLog<F>> {
        self.ensure_folders()?;
        let disk = &self.inner.platform.disk;
        let dir = RelPath::parse(STAGING)?.join(name)?;
        if disk.stat(&dir)?.is_some() {
            disk.remove_tree(&dir)?;
        }
        let begun = self.begin_staging(&dir);
        let inner = begun.inspect_err(|_| drop(disk.remove_tree(&dir)))?;
        Ok(StagedLog {
            id: id.to_owned(),
            outer: self.clone(),
            inner,
            dir,
            has_begun: false,
            alive_at: self.inner.platform.clock.monotonic(),
            is_removed: false,
        })
    }

    fn begin_staging(&self, dir: &RelPath) -> Result<Self> {
        let Platform { disk, clock, entropy } = &self.inner.platform;
        disk.create_dir(dir)?;
        let subdir = Subdir { disk: Arc::clone(disk), dir: dir.clone() };
        let platform = Platform {
            disk: Arc::new(subdir),
            clock: Arc::clone(clock),
            entropy: Arc::clone(entropy),
        };
        let options = Options { maintenance: Maintenance::Inline, ..self.inner.options.clone() };
        Self::open(platform, options)
    }
}

impl<F: Fold> StagedLog<F> {
    /// The store in which the log is built.
    #[must_use]
    pub fn store(&self) -> &LogStore<F> {
        &self.inner
    }

    /// Whether it has records.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Adds records: the first of them make the log.
    pub fn add<'a>(&mut self, records: impl AsRef<[Envelope<'a>]>) -> Result<()> {
        if self.has_begun {
            self.inner.append(&self.id, Expected::Any, records)?;
        } else {
            self.inner.create(&self.id, records)?;
            self.has_begun = true;
        }
        self.keep_alive()
    }

    /// The same with the fold after the last of them, which the caller has.
    pub fn add_folded(&mut self, records: Vec<Envelope<'_>>, fold: Arc<F>) -> Result<()> {
        let mut rest = records.as_slice();
        if let (false, Some((first, others))) = (self.has_begun, records.split_first()) {
            // Opening a log folds what is in it: not more than one record.
            self.inner.create(&self.id, std::slice::from_ref(first))?;
            (self.has_begun, rest) = (true, others);
        }
        if !rest.is_empty() {
            let batch = Batch { records: rest, fold: Some(fold) };
            let pending = self.inner.enqueue(&self.id, Expected::Any, &batch)?;
            // The frames hold the payloads from here on.
            drop(records);
            pending.wait()?;
        }
        self.keep_alive()
    }

    /// Marks the folder as in use now and then, so that no process removes it as a leftover.
    fn keep_alive(&mut self) -> Result<()> {
        let Platform { disk, clock, .. } = &self.outer.inner.platform;
        let now = clock.monotonic();
        if now.saturating_sub(self.alive_at) <= STAGING_ALIVE_EVERY {
            return Ok(());
        }
        self.alive_at = now;
        let mark = self.dir.join("alive")?;
        if disk.stat(&mark)?.is_some() {
            disk.remove_file(&mark)?;
        }
        drop(disk.create(&mark)?);
        Ok(())
    }

    /// Closes the log, and says in its manifest that the V1 file is live that it was made from, not the log.
    pub fn present(&self, source: &Pointer) -> Result<Manifest> {
        if source.marker() == ActiveStore::NativeV2 {
            let reason = "a staged log presents the V1 file that it was made from";
            return Err(invalid(reason.to_owned()));
        }
        self.inner.close(&self.id)?;
        let through = &[StoreState::MigrationStaging];
        let pointer = source.clone();
        self.inner.switch(&self.id, &Switch { through, pointer, previous: None, head: None })
    }

    /// Closes the log and moves it among the live ones. [`LogError::Exists`] when one of the same id is there. Only a
    /// log that a V1 file answers for is replaced, and only by another that presents a V1 file: by the next migration.
    pub fn publish(&self) -> Result<()> {
        let (id, outer) = (self.id.as_str(), &self.outer);
        self.inner.close(id)?;
        let shard = outer.lock_shard(id)?;
        let staged = self.inner.existing(id)?;
        let name = staged.dir.file_name().to_owned();
        if let Some(old) = outer.locate(id)? {
            let new = read_manifest(&self.inner.files(staged.clone()))?;
            let manifest = read_manifest(&outer.files(old.clone()))?;
            if [new.active_store, manifest.active_store].contains(&ActiveStore::NativeV2) {
                return Err(LogError::Exists { id: id.to_owned() });
            }
            let lock = outer.take_writer_lock(&old, id)?;
            lock.remove()?;
            outer.move_container(&old.dir, &old.moved_to(TRASH)?.dir)?;
        }
        let from = RelPath::parse(&format!("{}/{}", self.dir, staged.dir))?;
        outer.move_container(&from, &shard_dir(id)?.join(&name)?)?;
        drop(shard);
        Ok(())
    }

    /// Removes what is left of the folder.
    pub fn discard(mut self) -> Result<()> {
        self.remove()
    }

    fn remove(&mut self) -> Result<()> {
        self.is_removed = true;
        // A log that cannot be closed, as on a full disk, must not keep its folder.
        let closed = self.inner.close_all();
        let disk = &self.outer.inner.platform.disk;
        // Once more where it fails: what is left otherwise lies there for an hour.
        disk.remove_tree(&self.dir).or_else(|_| disk.remove_tree(&self.dir))?;
        closed
    }
}

impl<F: Fold> Drop for StagedLog<F> {
    fn drop(&mut self) {
        if !self.is_removed {
            // What cannot be removed now is swept away later, as what a crash leaves is.
            drop(self.remove());
        }
    }
}
