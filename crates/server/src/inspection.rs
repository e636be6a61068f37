//! Results of reading the store's files: how much they occupy, and whether every byte is what was written.
//!
//! Both take time in proportion to the store, so no request waits for them: they run in the background, and health
//! reports the last result with its time.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bough_platform::{Disk, Platform, RelPath};
use bough_search::INDEX_FILE;
use bough_store::shared_state::{
    Change, Expected, Persistence, SHARED_FILE, SharedState, SharedStateError,
};
use bough_store::{CATALOGUE_FILE, StoreError, VerifyReport};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::limits::{DAMAGED_SESSIONS_NAMED_MAX, MEASURE_ASKED_SHARE, MEASURE_FRESH};
use crate::shutdown::Shutdown;

/// The document with the result of the last verification.
const VERIFICATION_KEY: &str = "verification/last";

/// The last results of reading the store's files. Empty for a store without files here.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    directory: RwLock<Option<StoreDirectory>>,
    measured: RwLock<Option<Measured>>,
    running_since: Mutex<Option<i64>>,
    measurement_wanted: Notify,
}

/// Where the store's files are, and where results are kept.
#[derive(Clone, Debug)]
pub(crate) struct StoreDirectory {
    /// The store's own directory.
    pub(crate) path: PathBuf,
    pub(crate) platform: Platform,
    /// The server's data directory, where the shared documents are.
    pub(crate) server_disk: Arc<dyn Disk>,
    pub(crate) shared: Arc<dyn SharedState>,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) size: StoreSize,
    pub(crate) checkpoints: Checkpoints,
    /// How long it took.
    took: Duration,
}

impl Measured {
    /// Whether it is old enough to be made anew for somebody who looks at it.
    fn is_stale(&self, now_ms: i64) -> bool {
        let rest = self.took.saturating_mul(MEASURE_ASKED_SHARE).max(MEASURE_FRESH);
        let age = now_ms.saturating_sub(self.size.measured_at);
        u128::try_from(age).is_ok_and(|age| age > rest.as_millis())
    }
}

/// Bytes on the disk, by what they are for.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct StoreSize {
    pub(crate) measured_at: i64,
    pub(crate) total_bytes: u64,
    pub(crate) sessions_bytes: u64,
    pub(crate) trash_bytes: u64,
    pub(crate) staging_bytes: u64,
    pub(crate) catalogue_bytes: u64,
    pub(crate) search_bytes: u64,
    pub(crate) shared_bytes: u64,
}

/// Sessions by whether their newest checkpoint knows all their records.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Checkpoints {
    pub(crate) measured_at: i64,
    pub(crate) checkpointed: u64,
    pub(crate) dirty: u64,
    pub(crate) unreadable: u64,
}

/// The result of a verification, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verification {
    /// The directory that was checked: the server may store elsewhere by now.
    directory: PathBuf,
    pub(crate) started_at: i64,
    pub(crate) finished_at: i64,
    pub(crate) sessions: u64,
    pub(crate) bytes: u64,
    pub(crate) damaged: u64,
    /// The first of the damaged sessions.
    pub(crate) damaged_sessions: Vec<String>,
    /// Why it ended before every session was checked.
    pub(crate) failure: Option<String>,
}

impl Verification {
    /// The outcome, in one word.
    pub(crate) const fn status(&self) -> &'static str {
        match (&self.failure, self.damaged) {
            (_, 1..) => "damaged",
            (Some(_), 0) => "failed",
            (None, 0) => "well",
        }
    }

    fn note(&mut self, report: VerifyReport) {
        self.sessions += 1;
        self.bytes += report.bytes;
        if !report.is_well() {
            self.damaged += 1;
            if self.damaged_sessions.len() < DAMAGED_SESSIONS_NAMED_MAX {
                self.damaged_sessions.push(report.id);
            }
        }
    }
}

impl Inspection {
    /// Sets the directory of the store's files.
    pub(crate) fn set_directory(&self, directory: Option<StoreDirectory>) {
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = directory;
        *self.measured.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn directory(&self) -> Option<StoreDirectory> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last measurement.
    pub(crate) fn measured(&self) -> Option<Measured> {
        *self.measured.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the files measured soon if the last measurement is old; `now_ms` is the time of the look at it.
    pub(crate) fn refresh_measurement(&self, now_ms: i64) {
        if self.measured().is_some_and(|measured| measured.is_stale(now_ms)) {
            // Whoever is measuring at this moment need not measure again.
            self.measurement_wanted.notify_waiters();
        }
    }

    /// Waits until somebody wants a newer measurement.
    pub(crate) async fn measurement_wanted(&self) {
        self.measurement_wanted.notified().await;
    }

    /// Since when a verification runs.
    pub(crate) fn running_since(&self) -> Option<i64> {
        *self.running_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures every file. Blocks.
    pub(crate) fn measure(&self, shutdown: &Shutdown) -> Result<(), StoreError> {
        let Some(directory) = self.directory() else { return Ok(()) };
        let Some(measured) = directory.measure(shutdown)? else { return Ok(()) };
        let now = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        if now.as_ref().is_some_and(|now| now.path == directory.path) {
            *self.measured.write().unwrap_or_else(PoisonError::into_inner) = Some(measured);
        }
        Ok(())
    }

    /// Notes that a verification begins at `at_ms`; `None` if one is running already.
    pub(crate) fn begin_verification(&self, at_ms: i64) -> Option<i64> {
        let mut running = self.running_since.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return None;
        }
        *running = Some(at_ms);
        Some(at_ms)
    }

    /// Notes that it has ended.
    pub(crate) fn end_verification(&self) {
        *self.running_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl StoreDirectory {
    fn measure(&self, shutdown: &Shutdown) -> Result<Option<Measured>, StoreError> {
        let begun = self.platform.clock.monotonic();
        let go_on = &mut || go_on(shutdown);
        let Some(logs) = bough_store::measure(self.platform.clone(), go_on)? else {
            return Ok(None);
        };
        let catalogue_bytes = files_bytes(&*self.platform.disk, CATALOGUE_FILE)?;
        let search_bytes = files_bytes(&*self.platform.disk, INDEX_FILE)?;
        let shared_bytes = files_bytes(&*self.server_disk, SHARED_FILE)?;
        let measured_at = self.platform.clock.now_ms();
        let total = [logs.live_bytes, logs.trash_bytes, logs.staging_bytes, catalogue_bytes];
        let size = StoreSize {
            measured_at,
            total_bytes: total.iter().sum::<u64>() + search_bytes + shared_bytes,
            sessions_bytes: logs.live_bytes,
            trash_bytes: logs.trash_bytes,
            staging_bytes: logs.staging_bytes,
            catalogue_bytes,
            search_bytes,
            shared_bytes,
        };
        let checkpoints = Checkpoints {
            measured_at,
            checkpointed: logs.checkpointed,
            dirty: logs.dirty,
            unreadable: logs.unreadable,
        };
        let took = self.platform.clock.monotonic().saturating_sub(begun);
        Ok(Some(Measured { size, checkpoints, took }))
    }

    /// Checks every byte of every session. Blocks. `None` if the server ended first.
    pub(crate) fn verify(&self, started_at: i64, shutdown: &Shutdown) -> Option<Verification> {
        let mut found = Verification {
            directory: self.path.clone(),
            started_at,
            finished_at: started_at,
            sessions: 0,
            bytes: 0,
            damaged: 0,
            damaged_sessions: Vec::new(),
            failure: None,
        };
        let checked = bough_store::verify(self.platform.clone(), None, &mut |report| {
            found.note(report);
            go_on(shutdown)
        });
        found.failure = checked.err().map(|error| error.to_string());
        found.finished_at = self.platform.clock.now_ms();
        (!shutdown.has_begun()).then_some(found)
    }

    /// Stores a result, for this server and later ones.
    pub(crate) async fn keep(&self, found: &Verification) -> Result<(), SharedStateError> {
        let value = serde_json::to_value(found).ok();
        let change = Change { key: VERIFICATION_KEY.to_owned(), expected: Expected::Any, value };
        self.shared.apply(vec![change], Persistence::Synced).await.map(drop)
    }

    /// The last result for this directory; `None` when it was never verified.
    pub(crate) async fn last_verification(&self) -> Result<Option<Verification>, SharedStateError> {
        let document = self.shared.get(VERIFICATION_KEY).await?;
        let found = document.and_then(|document| serde_json::from_value(document.value).ok());
        Ok(found.filter(|found: &Verification| found.directory == self.path))
    }
}

fn go_on(shutdown: &Shutdown) -> ControlFlow<()> {
    if shutdown.has_begun() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What a database occupies: its file and those that SQLite puts beside it.
fn files_bytes(disk: &dyn Disk, name: &str) -> std::io::Result<u64> {
    let mut bytes = 0;
    for suffix in ["", "-wal", "-shm"] {
        bytes += disk.allocated(&RelPath::parse(&format!("{name}{suffix}"))?)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(took: Duration) -> Inspection {
        let size = StoreSize {
            measured_at: 1_000_000,
            total_bytes: 0,
            sessions_bytes: 0,
            trash_bytes: 0,
            staging_bytes: 0,
            catalogue_bytes: 0,
            search_bytes: 0,
            shared_bytes: 0,
        };
        let checkpoints =
            Checkpoints { measured_at: 1_000_000, checkpointed: 0, dirty: 0, unreadable: 0 };
        let inspection = Inspection::default();
        *inspection.measured.write().unwrap() = Some(Measured { size, checkpoints, took });
        inspection
    }

    /// Whether a look so many seconds after the measurement has another one made.
    async fn is_wanted(inspection: &Inspection, seconds: i64) -> bool {
        let wanted = inspection.measurement_wanted();
        tokio::pin!(wanted);
        assert!(futures_util::poll!(&mut wanted).is_pending());
        inspection.refresh_measurement(1_000_000 + seconds * 1000);
        futures_util::poll!(wanted).is_ready()
    }

    #[tokio::test]
    async fn an_old_measurement_is_made_anew_for_who_looks_at_it() {
        let quick = measured(Duration::from_millis(5));
        assert!(!is_wanted(&quick, 9).await);
        assert!(is_wanted(&quick, 11).await);
        let slow = measured(Duration::from_secs(30));
        assert!(!is_wanted(&slow, 200).await, "measuring must not take most of the time");
        assert!(is_wanted(&slow, 301).await);
        assert!(!is_wanted(&Inspection::default(), 100).await, "the first one is on its way");
    }
}
