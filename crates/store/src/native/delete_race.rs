//! Reads that race with a delete: a file that is missing then means a missing session, not a failing disk.

use std::io::ErrorKind;
use std::time::Duration;

use bough_log as log;
use bough_session::{Incarnation, SessionId, SessionState};

use super::Shared;
use super::convert::StoreResult;
use crate::StoreError;

/// How often something is read that another process may be moving.
const TRIES: u32 = 4;
/// How often to look whether a session has arrived in the trash. A deletion that was cut short is not waited for any longer.
const ARRIVAL_TRIES: u32 = 250;
/// How long to wait in between.
const ARRIVAL_PAUSE: Duration = Duration::from_millis(2);

impl Shared {
    /// Reads a session. One that was deleted meanwhile is `NotFound`; one that moved is read again.
    pub(super) fn retry_read<T>(
        &self,
        session: &SessionId,
        look: impl Fn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 1..TRIES {
            match look() {
                Err(error) if may_have_moved(&error) => self.or_gone(session, error).map(drop)?,
                seen => return seen,
            }
        }
        look()
    }

    /// `NotFound` when an error means that the session is gone; otherwise the error itself.
    pub(super) fn or_gone(
        &self,
        session: &SessionId,
        error: StoreError,
    ) -> Result<StoreError, StoreError> {
        if may_have_moved(&error) && matches!(self.log.contains(session.as_str()), Ok(false)) {
            return Err(StoreError::not_found(session));
        }
        Ok(error)
    }

    /// The same for a caller that does not retry.
    pub(super) fn explain(&self, session: &SessionId, error: StoreError) -> StoreError {
        self.or_gone(session, error).unwrap_or_else(|gone| gone)
    }

    /// Reads an incarnation that is in the trash, or on its way there.
    pub(super) fn in_trash<T>(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        look: impl FnOnce(&log::Reader<SessionState>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let reader = self.reader_of_trash(session, incarnation);
        reader.and_then(|reader| look(&reader)).map_err(|error| match error {
            // Removed for good, or brought back, while we looked.
            StoreError::Io(error) if error.kind() == ErrorKind::NotFound => {
                StoreError::not_found(session)
            }
            other => other,
        })
    }

    pub(super) fn reader_of_trash(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<log::Reader<SessionState>, StoreError> {
        let look = || self.log.read_trash(session.as_str(), incarnation);
        let mut seen = look();
        for _ in 0..ARRIVAL_TRIES {
            if !matches!(seen, Err(log::LogError::NotFound { .. })) {
                break;
            }
            // It may arrive between the two looks, so the last of them comes after this.
            let is_being_deleted = self.is_being_deleted(session);
            seen = look();
            if !is_being_deleted {
                break;
            }
            if seen.is_err() {
                self.platform.clock.sleep(ARRIVAL_PAUSE);
            }
        }
        seen.of(session)
    }

    /// Whether a session has its last record and has not been moved to the trash yet.
    fn is_being_deleted(&self, session: &SessionId) -> bool {
        matches!(self.log.contains(session.as_str()), Ok(true))
            && matches!(self.log.read(session.as_str()), Err(log::LogError::NotFound { .. }))
    }

    /// What is in the trash. Folders come and go while it is listed.
    pub(super) fn listed_trash(&self) -> Result<Vec<log::ListedLog>, StoreError> {
        retry_missing(|| self.log.trash().of_all())
    }
}

/// Retries work that found a file missing: another process may have moved it meanwhile.
pub(super) fn retry_missing<T>(work: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 1..TRIES {
        match work() {
            Err(StoreError::Io(error)) if error.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
    }
    work()
}

/// Whether an error may come from looking at files while they are moved.
fn may_have_moved(error: &StoreError) -> bool {
    match error {
        StoreError::Io(error) => error.kind() == ErrorKind::NotFound,
        StoreError::Corrupt { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
