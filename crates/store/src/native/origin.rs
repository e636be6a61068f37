//! What answers for a session, its log or the V1 file that it came from, and the ledger of how that changed.
//!
//! The one pointer is in the manifest of the session's log. Each of the `switch` functions moves it with one rename,
//! under the writer's lock.

use bough_log as log;
use bough_record::Head;
use bough_session::SessionId;

use super::directory::SessionDirectory;
use crate::StoreError;

pub use log::format::schema::MIGRATION_EVENT;
pub use log::format::{LedgerEvent, Outcome, Phase, Pointer, StoreState, Verification};

/// What answers for a session, as its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What answers: the log, or a V1 file.
    pub pointer: Pointer,
    /// What answered before, and what a switch back would return to.
    pub previous: Option<Pointer>,
    /// The state of the log.
    pub state: StoreState,
}

impl Origin {
    /// Whether the log answers.
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.pointer == Pointer::NativeV2
    }
}

impl SessionDirectory {
    /// What answers for a session; `None` when the directory does not have it.
    pub fn origin(&self, session: &SessionId) -> Result<Option<Origin>, StoreError> {
        let manifest = self.of_session(session, |log, id| log.manifest(id))?;
        Ok(manifest.map(|found| {
            let log::format::Manifest { pointer, previous, state, .. } = found;
            Origin { pointer, previous, state }
        }))
    }

    /// From now on the log answers that was made from `file`, if it ends at `head`.
    pub fn switch_to_log(
        &self,
        session: &SessionId,
        file: Pointer,
        head: Option<Head>,
    ) -> Result<(), StoreError> {
        let (through, pointer) = (&[StoreState::Migrated], Pointer::NativeV2);
        self.switch(session, &log::Switch { through, pointer, previous: Some(file), head })
    }

    /// From now on the file answers. With `head`, only if the log ends there: what the file holds was read up to it.
    pub fn switch_to_file(
        &self,
        session: &SessionId,
        file: Pointer,
        head: Option<Head>,
    ) -> Result<(), StoreError> {
        self.switch_from(session, &[StoreState::RolledBack], file, head)
    }

    /// The same where the log is damaged, or is not what it should be.
    pub fn switch_from_failed_log(
        &self,
        session: &SessionId,
        file: Pointer,
    ) -> Result<(), StoreError> {
        self.switch_from(session, &[StoreState::Failed, StoreState::RolledBack], file, None)
    }

    /// Nothing answers until a person helps: the log failed, and so did the file.
    pub fn switch_to_failed(&self, session: &SessionId, file: Pointer) -> Result<(), StoreError> {
        self.switch_from(session, &[StoreState::Failed], file, None)
    }

    fn switch_from(
        &self,
        session: &SessionId,
        through: &[StoreState],
        pointer: Pointer,
        head: Option<Head>,
    ) -> Result<(), StoreError> {
        let origin = self.origin(session)?;
        let previous = origin.and_then(|origin| match origin.is_log() {
            true => Some(Pointer::NativeV2),
            false => origin.previous,
        });
        self.switch(session, &log::Switch { through, pointer, previous, head })
    }

    fn switch(&self, session: &SessionId, switch: &log::Switch<'_>) -> Result<(), StoreError> {
        self.of_session(session, |log, id| log.switch(id, switch).map(drop))
    }

    /// The ledger of a session: every line that can be believed, in order.
    pub fn ledger(&self, session: &SessionId) -> Result<Vec<LedgerEvent>, StoreError> {
        self.of_session(session, |log, id| log.ledger(id))
    }

    /// Adds an event to the ledger; durable when the call returns.
    pub fn record_event(&self, session: &SessionId, event: &LedgerEvent) -> Result<(), StoreError> {
        self.of_session(session, |log, id| log.record_event(id, event))
    }

    /// Whether a crash left a torn tail of the ledger.
    pub fn has_torn_ledger(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.of_session(session, |log, id| Ok(log.torn_ledger_bytes(id)? > 0))
    }

    /// Cuts off a torn tail of the ledger. The caller knows that no process is adding to it.
    pub fn repair_ledger(&self, session: &SessionId) -> Result<(), StoreError> {
        self.of_session(session, |log, id| log.repair_ledger(id).map(drop))
    }

    /// Finishes a publication that a crash cut short: the session that was being replaced is brought back or filed as
    /// deleted.
    pub fn settle_replaced(&self, session: &SessionId) -> Result<(), StoreError> {
        self.of_session(session, |log, id| log.settle_replaced(id).map(drop))
    }
}
