//! Checking a data directory and saving what is whole of a damaged one.

use std::ops::ControlFlow;

use bough_log as log;
use bough_platform::Platform;
use bough_session::{SessionId, SessionState};

use super::convert::StoreResult;
use crate::StoreError;

/// Checks every byte of one session, or of all of them, live and in the trash; `visit` is called with each
/// report and says whether to go on. Reads only, also while other processes write.
pub fn verify(
    platform: Platform,
    session: Option<&SessionId>,
    visit: &mut dyn FnMut(log::VerifyReport) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let store = <log::LogStore<SessionState>>::open_to_look(platform, log::Options::default());
    match session {
        Some(session) => {
            // There is no other to go on to.
            let _ = visit(store.verify(session.as_str()).of(session)?);
            Ok(())
        }
        None => store.verify_all(visit).of_all(),
    }
}

/// Measures what the sessions of a data directory occupy. It looks at every file, so it takes time in proportion to the
/// sessions; `pause` is called after each; when it returns `Break`, the result is `None`. Reads only.
pub fn measure(
    platform: Platform,
    pause: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<log::LogSizes>, StoreError> {
    <log::LogStore<SessionState>>::open_to_look(platform, log::Options::default())
        .measure(pause)
        .of_all()
}

/// Copies what is whole of one session, or of all of them, into another data directory; `visit` is called
/// with each report. The damaged directory is only read.
pub fn salvage(
    from: Platform,
    to: Platform,
    session: Option<&SessionId>,
    visit: &mut dyn FnMut(log::SalvageReport),
) -> Result<(), StoreError> {
    let damaged = <log::LogStore<SessionState>>::open_to_look(from, log::Options::default());
    let target = <log::LogStore<SessionState>>::open(to, log::Options::default()).of_all()?;
    match session {
        Some(session) => visit(damaged.salvage(session.as_str(), &target).of(session)?),
        None => damaged.salvage_all(&target, visit).of_all()?,
    }
    target.close_all().of_all()
}

/// Whether a data directory holds sessions, whole or damaged. The directory is only read.
pub fn holds_sessions(directory: Platform) -> Result<bool, StoreError> {
    <log::LogStore<SessionState>>::open_to_look(directory, log::Options::default())
        .holds_logs()
        .of_all()
}
