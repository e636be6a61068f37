//! Migration as a switch: planned, staged, verified, cut over by one pointer, completed; and back.

mod events;
mod log_records;
mod lost;
mod mark;
mod meta;
mod plan;
mod recover;
mod rollback;
mod run;
mod since;
mod target;
mod verify;
mod walk;

use std::fmt;
use std::sync::Arc;

use bough_platform::Platform;
use bough_session::SessionId;
use bough_store::origin::{Origin, StoreState};
use bough_store::{LogOptions, SessionDirectory, StoreError};

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

/// Moves sessions between V1 files and native logs.
#[derive(Clone)]
pub struct Migrator {
    pub(crate) sessions: SessionDirectory,
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
        let sessions = SessionDirectory::open(platform.clone(), LogOptions::default())?;
        Ok(Self::over(sessions, platform, files))
    }

    /// Looks at a data directory, which may be missing: for plans. Nothing is written.
    #[must_use]
    pub fn open_to_look(platform: Platform, files: Arc<dyn V1Files>) -> Self {
        let sessions = SessionDirectory::open_to_look(platform.clone());
        Self::over(sessions, platform, files)
    }

    /// Works on a directory that is open already. `platform` is the one that it was opened with.
    #[must_use]
    pub fn over(sessions: SessionDirectory, platform: Platform, files: Arc<dyn V1Files>) -> Self {
        Self { sessions, platform, files, batch_records: BATCH_RECORDS }
    }

    /// Builds logs in batches of at most so many records. The default is meant for use; tests make it
    /// small, so that a short file has segments and checkpoints.
    #[must_use]
    pub fn in_batches_of(self, batch_records: usize) -> Self {
        Self { batch_records: batch_records.max(1), ..self }
    }

    /// The V1 file that answers for a session, live; [`MigrateError::NotLive`] when its log does.
    pub fn open_live(&self, session: &SessionId) -> Result<LiveV1> {
        LiveV1::open(self.live_file(session)?)
    }

    pub(crate) fn live_file(&self, session: &SessionId) -> Result<V1File> {
        self.recover_session(session)?;
        let origin = self.origin(session)?;
        refuse_failed(session, &origin)?;
        match V1File::of_pointer(&origin.pointer) {
            Some((address, _)) => self.files.locate(address),
            None => Err(MigrateError::NotLive { session: session.to_string() }),
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

    /// Who answers for a session.
    pub(crate) fn origin(&self, session: &SessionId) -> Result<Origin> {
        let missing = || StoreError::NotFound { session: session.clone() };
        Ok(self.sessions.origin(session)?.ok_or_else(missing)?)
    }
}

fn refuse_failed(session: &SessionId, origin: &Origin) -> Result<()> {
    if origin.state != StoreState::Failed {
        return Ok(());
    }
    let place = V1File::of_pointer(&origin.pointer).map_or("", |(address, _)| address);
    Err(MigrateError::NeedsOperator {
        session: session.to_string(),
        reason: format!(
            "its migration failed and {place} is not there to go back to; put that file back and run \
             the command again, or copy what is whole with `bough salvage {session} --to DIR`"
        ),
    })
}
