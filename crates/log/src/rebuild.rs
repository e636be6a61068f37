//! What the segments say when a derived file cannot be read: offset rows, and a manifest to load with. Reads only.

use std::sync::Arc;

use bough_platform::Disk;

use crate::canary;
use crate::container::{Container, parse_container_name};
use crate::error::{DamageKind, LogError, Result};
use crate::files::{Files, row_damage};
use crate::format::{Manifest, OffsetRow, Phase, Pointer};
use crate::ids::Ids;
use crate::ledger::Ledger;
use crate::load::{Horizon, Loaded};
use crate::rows::Rows;
use crate::state::LogState;
use crate::tail::TailScan;
use bough_record::{Fold, Head};

/// The segments of one log.
#[derive(Debug)]
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    container: Container,
    /// Before the first record.
    start: Head,
}

impl Segments {
    pub(crate) fn of(files: &Files, manifest: &Manifest) -> Arc<Self> {
        let start = Head::genesis(&manifest.session_id, manifest.incarnation);
        let (disk, container) = (Arc::clone(&files.disk), files.container.clone());
        Arc::new(Self { disk, container, start })
    }

    /// The rows of the first `count` records. Every frame up to there is read and verified.
    pub(crate) fn rows(&self, count: u64) -> Result<Vec<OffsetRow>> {
        if canary::on(canary::INDEX_NOT_REBUILT) {
            return Err(row_damage(1, "the index is not made again").into());
        }
        let files = Files::new(Arc::clone(&self.disk), self.container.clone());
        let mut state = LogState::empty(self.start, Arc::new(()), Rows::default(), Ids::default());
        let stop = TailScan::new(&files, &mut state, count, 0).run(Horizon::UpTo(count))?;
        if state.head.seq < count {
            let missing = || row_damage(state.head.seq + 1, "the segments end before this record");
            return Err(stop.damage.unwrap_or_else(missing).into());
        }
        state.rows.range(1, count)
    }
}

/// A manifest to load with when the real one is unreadable: it knows the log's name and nothing else. `None` for a folder
/// that we did not name.
pub(crate) fn manifest_of_nothing(container: &Container, id: &str) -> Option<Manifest> {
    let (_, incarnation) = parse_container_name(container.dir.file_name())?;
    Some(Manifest::new(id, incarnation, 0))
}

/// Whether a log that was loaded without its manifest is certainly whole: its segments end after a batch, with nothing
/// behind it, and no V1 file answers for it. A manifest that is lost together with other things leaves doubt.
pub(crate) fn is_whole_without_manifest<F: Fold>(loaded: &Loaded<F>) -> Result<bool> {
    let report = &loaded.report;
    let whole = loaded.damage.is_none() && report.torn_records == 0 && report.torn_bytes == 0;
    Ok(whole && loaded.state.head.seq > 0 && way_back(&loaded.files)? != WayBack::Taken)
}

/// What the ledger says of the file that a log was migrated from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WayBack {
    /// The log was not migrated.
    None,
    /// It was, and answers for itself; a rollback returns to this file.
    Known(Pointer),
    /// The same, by an earlier version: only the manifest knows where the file is.
    Unnamed,
    /// The file answers, or it is not certain which of the two does.
    Taken,
}

pub(crate) fn way_back(files: &Files) -> Result<WayBack> {
    let ledger = Ledger::read(&*files.disk, &files.container)?;
    if !ledger.unreadable.is_empty() {
        return Ok(WayBack::Taken);
    }
    let newest = ledger.events.iter().rev().find(|event| event.phase != Phase::Recovery);
    Ok(match newest {
        None => WayBack::None,
        Some(event) if event.phase == Phase::Completed => {
            event.source().map_or(WayBack::Unnamed, WayBack::Known)
        }
        Some(_) => WayBack::Taken,
    })
}

/// A manifest for the next writer, after a load that found the log whole without one. `None` for a migrated log whose
/// ledger does not name the file to roll back to.
pub(crate) fn rebuilt_manifest<F: Fold>(loaded: &Loaded<F>) -> Result<Option<Manifest>> {
    if !is_whole_without_manifest(loaded)? {
        return Ok(None);
    }
    let previous = match way_back(&loaded.files)? {
        WayBack::None => None,
        WayBack::Known(file) => Some(file),
        WayBack::Unnamed | WayBack::Taken => return Ok(None),
    };
    let row = loaded.state.rows.get(1)?;
    let created_at_ms = loaded.files.frame(&row, |frame| frame.header.at_ms)?;
    Ok(Some(Manifest { created_at_ms, previous, ..loaded.manifest.clone() }))
}

/// Whether an error says that the manifest cannot be read, and not that it is of a newer version or contradicts itself.
pub(crate) fn is_manifest_damage(error: &LogError) -> bool {
    matches!(error, LogError::Corrupt(damage) if damage.kind == DamageKind::Manifest)
}
