//! Checking a data directory and saving what is whole of a damaged one.

use std::ops::ControlFlow;

use bough_log as log;
use bough_platform::Platform;
use bough_session::{SessionId, SessionState};

use super::convert;
use crate::StoreError;

/// Checks every byte of one session, or of all of them, live and in the trash; `visit` is called with each
/// report and says whether to go on. Reads only, also while other processes write.
pub fn verify(
    platform: Platform,
    session: Option<&SessionId>,
    visit: &mut dyn FnMut(log::VerifyReport) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let store = <log::LogStore<SessionState>>::open_to_look(platform, log::Options::default());
    let result = match session {
        Some(session) => store.verify(session.as_str()).map(|report| {
            // There is no other to go on to.
            let _ = visit(report);
        }),
        None => store.verify_all(visit),
    };
    result.map_err(|error| convert::error(error, &named(session)))
}

/// Measures what the sessions of a data directory occupy. It looks at every file, so it takes time in proportion to the
/// sessions; `pause` is called after each and says whether to go on. `None` when it said no. Reads only.
pub fn measure(
    platform: Platform,
    pause: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<log::LogSizes>, StoreError> {
    <log::LogStore<SessionState>>::open_to_look(platform, log::Options::default())
        .measure(pause)
        .map_err(|error| convert::error(error, &named(None)))
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
    let fail = |error| convert::error(error, &named(session));
    let target = <log::LogStore<SessionState>>::open(to, log::Options::default()).map_err(fail)?;
    match session {
        Some(session) => visit(damaged.salvage(session.as_str(), &target).map_err(fail)?),
        None => damaged.salvage_all(&target, visit).map_err(fail)?,
    }
    target.close_all().map_err(fail)
}

/// Whether a data directory holds sessions, whole or damaged. The directory is only read.
pub fn holds_sessions(directory: Platform) -> Result<bool, StoreError> {
    <log::LogStore<SessionState>>::open_to_look(directory, log::Options::default())
        .holds_logs()
        .map_err(|error| convert::error(error, &named(None)))
}

fn named(session: Option<&SessionId>) -> SessionId {
    session.cloned().unwrap_or_else(|| SessionId::from_stored("(all)"))
}
