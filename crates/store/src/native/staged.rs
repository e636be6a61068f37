//! One session that is built out of sight and shown whole: imports, large forks and migrations build theirs with it, and a
//! rollback of a damaged session reads what is whole of it here. Salvage uses the same [`log::StagedLog`] one layer down,
//! because it reads what no store can read.

use std::sync::Arc;

use bough_log as log;
use bough_record::{Envelope, Head};
use bough_session::{SessionId, SessionState};

use super::convert::StoreResult;
use super::directory::SessionDirectory;
use super::origin::Pointer;
use crate::StoreError;

/// A session that is being built in `staging/`. Dropped before it is published, it leaves nothing behind. Every call
/// may block.
#[derive(Debug)]
pub struct StagedSession {
    session: SessionId,
    staged: log::StagedLog<SessionState>,
}

impl StagedSession {
    pub(super) fn begin(
        log: &log::LogStore<SessionState>,
        session: &SessionId,
        name: &str,
    ) -> Result<Self, StoreError> {
        let staged = log.stage(name, session.as_str()).of(session)?;
        Ok(Self { session: session.clone(), staged })
    }

    /// The session that it becomes.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Whether it has records.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.staged.has_begun()
    }

    /// Adds records in their stored form; durable when the call returns. After an error it can only be dropped.
    pub fn add(&mut self, records: Vec<Envelope<'_>>) -> Result<(), StoreError> {
        self.add_folded(records, None)
    }

    /// The same with the state after the last of them, if the caller has it.
    pub(super) fn add_folded(
        &mut self,
        records: Vec<Envelope<'_>>,
        state: Option<Arc<SessionState>>,
    ) -> Result<(), StoreError> {
        let added = match state {
            Some(state) => self.staged.add_folded(records, state),
            None => self.staged.add(records),
        };
        added.of(&self.session)
    }

    /// The directory that it is built in, whole by itself: to read and to verify what was built, and for its ledger.
    #[must_use]
    pub fn directory(&self) -> SessionDirectory {
        SessionDirectory::over(self.staged.store().clone())
    }

    /// Takes what is whole of a damaged session of a directory; the report says what is not.
    pub fn add_whole_of(
        &mut self,
        damaged: &SessionDirectory,
    ) -> Result<log::SalvageReport, StoreError> {
        damaged.log.salvage_into(&mut self.staged).of(&self.session)
    }

    /// Says that the V1 file answers which it was made from, until the directory's pointer is
    /// [moved to the log](SessionDirectory::switch_to_log).
    pub fn present(&self, source: &Pointer) -> Result<(), StoreError> {
        self.staged.present(source).map(drop).of(&self.session)
    }

    /// Moves it among the sessions. `Exists` when its id is in use; a session that a V1 file answers for is
    /// replaced by one that was made from a V1 file.
    pub fn publish(&self) -> Result<(), StoreError> {
        self.staged.publish().of(&self.session)
    }

    /// Replaces the session that ends at `expected`.
    pub fn replace(&self, expected: Head) -> Result<(), StoreError> {
        self.staged.replace(expected).of(&self.session)
    }
}
