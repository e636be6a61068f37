//! Opening a log for writing: lock, load, repair.

use std::time::Duration;

use bough_platform::{Access, Lock, LockError, Platform, RelPath, host_facts};

use bough_record::Fold;

use crate::canary;
use crate::container::Container;
use crate::error::{LogError, Result};
use crate::files::Files;
use crate::format::{
    ActiveStore, FORMAT_VERSION, LedgerEvent, Manifest, ROW_BYTES, STREAM_HEADER_BYTES, StoreState,
};
use crate::ledger::Ledger;
use crate::limits;
use crate::load::{Horizon, Loaded, Trust, load, read_manifest};
use crate::options::Options;
use crate::rebuild::{is_manifest_damage, manifest_of_nothing, rebuilt_manifest};
use crate::state::LogState;
use crate::writer::Writer;

/// A reader may hold a lock for an instant to see whether it is taken; a lock that stays taken is a writer's.
pub(crate) const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// This process, as text for the lock file.
fn holder(platform: &Platform, options: &Options) -> String {
    let facts = host_facts();
    serde_json::json!({
        "pid": facts.pid,
        "boot_id": facts.boot_id,
        "address": options.address,
        "since_ms": platform.clock.now_ms(),
    })
    .to_string()
}

/// Takes a lock, trying again for a moment.
pub(crate) fn take_lock(
    platform: &Platform,
    options: &Options,
    path: &RelPath,
    tries: u32,
) -> Result<Option<Box<dyn Lock>>> {
    let text = holder(platform, options);
    let mut last = String::new();
    for attempt in 0..tries {
        if attempt > 0 {
            platform.clock.sleep(LOCK_PAUSE);
        }
        match platform.disk.lock(path, &text) {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Held { holder }) => last = holder,
            Err(LockError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(LockError::Io(error)) => return Err(error.into()),
        }
    }
    Err(LogError::Locked { holder: last })
}

/// A lock that excludes no one, to show that the real one is needed.
#[derive(Debug)]
struct PretendedLock;

impl Lock for PretendedLock {
    fn remove(self: Box<Self>) -> std::io::Result<()> {
        Ok(())
    }
}

/// Opens a container for writing; `None` when it is not there any more.
pub(crate) fn open_writer<F: Fold>(
    platform: &Platform,
    options: &Options,
    container: Container,
    id: &str,
) -> Result<Option<Writer<F>>> {
    let lock: Option<Box<dyn Lock>> = if canary::on(canary::NO_LOCK) {
        Some(Box::new(PretendedLock))
    } else {
        take_lock(platform, options, &container.lock()?, LOCK_TRIES)?
    };
    let Some(lock) = lock else { return Ok(None) };
    sync_names(&*platform.disk, &container)?;
    let files = Files::new(platform.disk.clone(), container);
    match open_locked(platform, files, id) {
        Ok((loaded, repair)) => {
            let writer = Writer::new(platform.clone(), options.clone(), loaded, lock);
            if repair {
                writer.checkpoint()?;
            }
            writer.touch();
            Ok(Some(writer))
        }
        Err(error) => {
            // A refusal leaves the folder as it was.
            lock.remove()?;
            Err(error)
        }
    }
}

/// A writer syncs every name that it relies on before it acknowledges anything: an earlier process may have ended before
/// it synced what it made.
fn sync_names(disk: &dyn bough_platform::Disk, container: &Container) -> Result<()> {
    disk.sync_dir(&container.dir.parent())?;
    for dir in [container.dir.clone(), container.segments()?, container.index()?] {
        if disk.stat(&dir)?.is_some() {
            disk.sync_dir(&dir)?;
        }
    }
    Ok(())
}

fn open_locked<F: Fold>(platform: &Platform, files: Files, id: &str) -> Result<(Loaded<F>, bool)> {
    let manifest = match read_manifest(&files) {
        Err(error) if is_manifest_damage(&error) => {
            return open_without_manifest(platform, files, id, error);
        }
        read => read?,
    };
    files.container.check_incarnation(&manifest)?;
    check_native(&manifest)?;
    check_not_failed(&manifest)?;
    let mut loaded = load(files, manifest, Trust::Checkpoint, Horizon::Writer)?;
    if let Some(damage) = loaded.damage.take() {
        return Err(damage.into());
    }
    let LogState { rows, ids, .. } = &loaded.state;
    rows.check(u64::MAX, limits::INDEX_CHECK_ROWS)?;
    // Each opening that wrote made a checkpoint, so that openings take turns with the parts of the index.
    let turn = loaded.manifest.checkpoint_seq;
    rows.check_in_turn(turn, limits::INDEX_CHECK_ROWS)?;
    ids.check_in_turn(rows, turn, limits::TABLE_CHECK_BYTES)?;
    let tiny = loaded.manifest.checkpoint_seq == 0;
    let damaged = rows.is_damaged() || ids.is_damaged();
    let rebuilt = loaded.report.rows_rebuilt > 0 && !tiny || damaged;
    let distrusted = loaded.trust == Trust::Segments || loaded.report.checkpoint_skipped;
    let is_older = loaded.manifest.format < FORMAT_VERSION;
    loaded.manifest.format = FORMAT_VERSION;
    let repair = !loaded.report.clean || rebuilt || distrusted || is_older;
    // Deltas do not move the head, so a clean head says nothing about them.
    repair_stream(&loaded)?;
    if repair {
        repair_segments(&loaded)?;
        repair_rows(&mut loaded)?;
        if rebuilt {
            let rows = loaded.report.rows_rebuilt;
            let reason =
                format!("the index was made again from the segments, {rows} rows differed");
            record_repair(platform, &loaded, reason)?;
        }
    }
    Ok((loaded, repair))
}

/// Everything that a manifest says of a log is in its segments, in its folder's name and, if it was migrated, in its ledger.
fn open_without_manifest<F: Fold>(
    platform: &Platform,
    files: Files,
    id: &str,
    unreadable: LogError,
) -> Result<(Loaded<F>, bool)> {
    let Some(nothing) = manifest_of_nothing(&files.container, id) else {
        return Err(unreadable);
    };
    let mut loaded = load(files, nothing, Trust::Segments, Horizon::Writer)?;
    let Some(manifest) = rebuilt_manifest(&loaded)? else {
        return Err(unreadable);
    };
    loaded.manifest = manifest;
    repair_stream(&loaded)?;
    repair_segments(&loaded)?;
    record_repair(platform, &loaded, "the manifest was made again from the segments".to_owned())?;
    Ok((loaded, true))
}

/// A log that a V1 file answers for is not written here.
pub(crate) fn check_native(manifest: &Manifest) -> Result<()> {
    if manifest.active_store == ActiveStore::NativeV2 {
        return Ok(());
    }
    let reason = "this session is served from its V1 file; migrate it to write here".to_owned();
    Err(LogError::Invalid { reason })
}

/// A cut-over that failed after its commit is rolled back before anything is written.
fn check_not_failed(manifest: &Manifest) -> Result<()> {
    if manifest.state != StoreState::Failed {
        return Ok(());
    }
    let reason = "this session's migration failed; roll it back before writing".to_owned();
    Err(LogError::Invalid { reason })
}

/// Frames that no witness knows may be in the page cache and not on the disk: after a failed sync the
/// system believes them clean, and a later sync would not write them. Writing the same bytes again makes
/// them dirty, and the sync after it means what it says.
fn repair_segments<F: Fold>(loaded: &Loaded<F>) -> Result<()> {
    if canary::on(canary::TRUST_PAGE_CACHE) {
        return Ok(());
    }
    let disk = &loaded.files.disk;
    let mut seq = loaded.witness + 1;
    while seq <= loaded.state.head.seq {
        let first = loaded.state.rows.get(seq)?;
        let mut end = first.offset;
        let file = disk.open(&loaded.files.container.segment(first.segment)?, Access::ReadWrite)?;
        while seq <= loaded.state.head.seq {
            let row = loaded.state.rows.get(seq)?;
            if row.segment != first.segment {
                break;
            }
            end = row.offset + row.len;
            seq += 1;
        }
        rewrite(&*file, first.offset, end)?;
    }
    Ok(disk.sync_dir(&loaded.files.container.segments()?)?)
}

fn rewrite(file: &dyn bough_platform::File, from: u64, to: u64) -> Result<()> {
    let len = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    let read = file.read_at(from, &mut bytes)?;
    bytes.truncate(read);
    file.write_at(from, &bytes)?;
    Ok(file.sync()?)
}

/// The same for deltas.
fn repair_stream<F: Fold>(loaded: &Loaded<F>) -> Result<()> {
    let Some(end) = loaded.state.streams.unsettled_end() else {
        return Ok(());
    };
    let path = loaded.files.container.stream()?;
    let file = loaded.files.disk.open(&path, Access::ReadWrite)?;
    rewrite(&*file, STREAM_HEADER_BYTES as u64, end)?;
    Ok(file.set_len(end)?)
}

/// Writes the rows that the scan made, and cuts off what stands after them.
fn repair_rows<F: Fold>(loaded: &mut Loaded<F>) -> Result<()> {
    let head = loaded.state.head.seq;
    if loaded.state.rows.file().is_some() {
        loaded.state.rows.flush()?;
    }
    match loaded.state.rows.file().filter(|_| !loaded.state.rows.is_damaged()) {
        Some(file) if file.len()? > head * ROW_BYTES as u64 => {
            Ok(file.set_len(head * ROW_BYTES as u64)?)
        }
        _ => Ok(()),
    }
}

/// Notes in the ledger that something derived had to be made again.
fn record_repair<F: Fold>(platform: &Platform, loaded: &Loaded<F>, reason: String) -> Result<()> {
    let mut random = [0; 8];
    platform.entropy.fill(&mut random)?;
    let id = format!("recovery-{:016x}", u64::from_be_bytes(random));
    let event = LedgerEvent::recovery(&id, reason, platform.clock.now_ms());
    Ledger::read(&*loaded.files.disk, &loaded.files.container)?.append(&event)
}
