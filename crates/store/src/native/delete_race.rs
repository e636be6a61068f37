//! Sessions that go away while somebody looks at them: what is missing then is the session, not the disk's fault.

use std::io::ErrorKind;
use std::time::Duration;

use bough_log as log;
use bough_session::{Incarnation, SessionId, SessionState};

use super::{Shared, convert};
use crate::StoreError;

/// How often something is looked at again that moved meanwhile.
const TRIES: u32 = 4;
/// How often to look whether a session has arrived in the trash. A deletion that was cut short is not waited for any longer.
const ARRIVAL_TRIES: u32 = 250;
/// How long to wait in between.
const ARRIVAL_PAUSE: Duration = Duration::from_millis(2);

impl Shared {
    /// Looks at a session. One that was deleted meanwhile is not found; one that moved is looked at again.
    pub(super) fn looking<T>(
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

    /// What an error means: that there is no such session any more, or something else, which is given back.
    pub(super) fn or_gone(
        &self,
        session: &SessionId,
        error: StoreError,
    ) -> Result<StoreError, StoreError> {
        if may_have_moved(&error) && matches!(self.log.contains(session.as_str()), Ok(false)) {
            return Err(StoreError::NotFound { session: session.clone() });
        }
        Ok(error)
    }

    /// The same for who does not look again.
    pub(super) fn explain(&self, session: &SessionId, error: StoreError) -> StoreError {
        self.or_gone(session, error).unwrap_or_else(|gone| gone)
    }

    /// Looks at an incarnation that is in the trash, or on its way there.
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
                StoreError::NotFound { session: session.clone() }
            }
            other => other,
        })
    }

    pub(super) fn reader_of_trash(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<log::Reader<SessionState>, StoreError> {
        let life = incarnation;
        let look = || self.log.read_trash(session.as_str(), life);
        let mut seen = look();
        for _ in 0..ARRIVAL_TRIES {
            if !matches!(seen, Err(log::LogError::NotFound { .. })) {
                break;
            }
            // It may arrive between the two looks, so the last of them comes after this.
            let is_going = self.is_going(session);
            seen = look();
            if !is_going {
                break;
            }
            if seen.is_err() {
                self.platform.clock.sleep(ARRIVAL_PAUSE);
            }
        }
        seen.map_err(|error| convert::error(error, session))
    }

    /// Whether a session has its last record and has not been moved to the trash yet.
    fn is_going(&self, session: &SessionId) -> bool {
        matches!(self.log.contains(session.as_str()), Ok(true))
            && matches!(self.log.read(session.as_str()), Err(log::LogError::NotFound { .. }))
    }

    /// What is in the trash. Folders come and go while it is listed.
    pub(super) fn listed_trash(&self) -> Result<Vec<log::ListedLog>, StoreError> {
        let whole = SessionId::from_stored("(trash)");
        again(|| self.log.trash().map_err(|error| convert::error(error, &whole)))
    }
}

/// Does something once more where a file was missing that another moved away meanwhile.
pub(super) fn again<T>(work: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
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
