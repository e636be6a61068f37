//! Migration as a switch: planned, staged, verified, cut over by one pointer, completed; and back.

mod events;
mod lost;
mod mark;
mod meta;
pub(crate) mod native;
mod plan;
mod recover;
mod rollback;
mod run;
mod since;
mod target;
mod verify;
mod walk;

use self::native::{SessionLogs, StagedLogs};
use std::fmt;
use std::sync::Arc;

use bough_log::format::{ActiveStore, Manifest, Pointer};
use bough_log::{Options, Switch};
use bough_platform::{Platform, RelPath};
use bough_session::SessionId;

pub(crate) use mark::is_settled;

pub use lost::{Lost, LostKind};
pub use plan::{Plan, Standing};
pub use recover::Recovered;
pub use rollback::{RollbackOptions, RollbackSummary};
pub use run::{Outcome, Progress, Step, Summary};
pub use walk::{FileResult, Found};

use crate::error::{MigrateError, Result};
use crate::limits::BATCH_RECORDS;
use crate::v1::{LiveV1, V1File, V1Files};

/// Where logs are built out of sight.
const STAGING: &str = "staging";

/// Moves sessions between V1 files and native logs.
#[derive(Clone)]
pub struct Migrator {
    pub(crate) log: SessionLogs,
    pub(crate) platform: Platform,
    pub(crate) files: Arc<dyn V1Files>,
    batch_records: usize,
}

impl fmt::Debug for Migrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migrator").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Migrator {
    /// Works on a data directory. Checkpoints that it makes carry the fold, so that a large session opens
    /// at once after its migration.
    pub fn open(platform: Platform, files: Arc<dyn V1Files>) -> Result<Self> {
        let log = SessionLogs::open(platform.clone(), Options::default())?;
        Ok(Self::with_log(log, platform, files))
    }

    /// Looks at a data directory, which may be missing: for plans. Nothing is written.
    #[must_use]
    pub fn open_to_look(platform: Platform, files: Arc<dyn V1Files>) -> Self {
        let log = SessionLogs::open_to_look(platform.clone(), Options::default());
        Self::with_log(log, platform, files)
    }

    /// Works through a store of logs that is open already, with its options and its fold. `platform` is
    /// the one that the store was opened with.
    #[must_use]
    pub fn with_log(log: SessionLogs, platform: Platform, files: Arc<dyn V1Files>) -> Self {
        Self { log, platform, files, batch_records: BATCH_RECORDS }
    }

    /// Builds logs in batches of at most so many records. The default is meant for use; tests make it
    /// small, so that a short file has segments and checkpoints.
    #[must_use]
    pub fn in_batches_of(self, batch_records: usize) -> Self {
        Self { batch_records: batch_records.max(1), ..self }
    }

    /// The V1 file that answers for a session, live; [`MigrateError::NotLive`] when its log does.
    pub fn open_live(&self, session: &str) -> Result<LiveV1> {
        LiveV1::open(self.live_file(session)?)
    }

    pub(crate) fn live_file(&self, session: &str) -> Result<V1File> {
        self.recover_session(session)?;
        let manifest = self.manifest(session)?;
        self.refuse_failed(&manifest)?;
        match V1File::of_pointer(&manifest.pointer) {
            Some((address, _)) => self.files.locate(address),
            None => Err(MigrateError::NotLive { session: session.to_owned() }),
        }
    }

    /// A V1 file that no session of the data directory knows of, live.
    pub fn open_file(&self, address: &str) -> Result<LiveV1> {
        LiveV1::open(self.files.locate(address)?)
    }

    /// The session of a V1 file; only the beginning of the file is read.
    pub(crate) fn session_of(&self, address: &str) -> Result<(V1File, SessionId)> {
        let file = self.files.locate(address)?;
        let mut live = LiveV1::unread(file.clone());
        live.read_on(&mut |_| {})?;
        live.require_session()?;
        Ok((file, live.session_id().clone()))
    }

    /// Sessions of the data directory that a V1 file answers for.
    pub fn live_v1_sessions(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        self.log.visit(&mut |listed| ids.extend(listed.ok().map(|listed| listed.id)))?;
        ids.retain(|id| {
            let manifest = self.log.manifest(id).ok().flatten();
            manifest.is_some_and(|manifest| manifest.active_store != ActiveStore::NativeV2)
        });
        Ok(ids)
    }

    /// Removes what was built aside. Nobody reads it, so that a failure is not worth telling.
    pub(crate) fn discard(&self, staging: StagedLogs, name: &str) {
        // A log that cannot be closed, as on a full disk, must not keep its folder.
        if staging.discard().is_err() {
            self.remove_staging(name);
        }
    }

    pub(crate) fn remove_staging(&self, name: &str) {
        if let Ok(dir) = RelPath::parse(STAGING).and_then(|dir| dir.join(name)) {
            drop(self.platform.disk.remove_tree(&dir));
        }
    }

    /// Gives a session that was salvaged the way back to its V1 file that it had in the data directory that it came
    /// from: the pointer to the file, and the ledger. Says whether it had one.
    pub fn keep_way_back(&self, from: &Self, session: &str) -> Result<bool> {
        // A manifest that cannot be read points nowhere.
        let Some(old) = from.log.manifest(session).ok().flatten() else { return Ok(false) };
        let pointers = [old.previous, Some(old.pointer)];
        let is_file = |pointer: &Pointer| V1File::of_pointer(pointer).is_some();
        let Some(file) = pointers.into_iter().flatten().find(is_file) else { return Ok(false) };
        for event in from.log.ledger(session)? {
            self.log.record_event(session, &event)?;
        }
        let pointer = Pointer::NativeV2;
        let switch = Switch { through: &[], pointer, previous: Some(file), head: None };
        self.log.switch(session, &switch)?;
        Ok(true)
    }

    pub(crate) fn manifest(&self, session: &str) -> Result<Manifest> {
        let missing = || bough_log::LogError::NotFound { id: session.to_owned() };
        Ok(self.log.manifest(session)?.ok_or_else(missing)?)
    }

    pub(crate) fn refuse_failed(&self, manifest: &Manifest) -> Result<()> {
        if manifest.state != bough_log::format::StoreState::Failed {
            return Ok(());
        }
        let place = V1File::of_pointer(&manifest.pointer).map_or("", |(address, _)| address);
        Err(MigrateError::NeedsOperator {
            session: manifest.session_id.clone(),
            reason: format!(
                "its migration failed and {place} is not there to go back to; put that file back and run \
                 the command again, or copy what is whole with `bough salvage {} --to DIR`",
                manifest.session_id
            ),
        })
    }
}
