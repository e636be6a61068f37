//! Forks: time and memory as the path becomes long.

use serde_json::json;
use stats_alloc::Region;
use tokio::runtime::Runtime;

use super::sides::{Safety, Side, entry_id, fill};
use crate::measure::{as_f64, milliseconds};
use crate::report::Row;
use crate::{ALLOCATOR, Options, Outcome};

/// The lengths of path that are compared.
const SHORT: usize = 1000;
const LONG: usize = 20_000;

struct Fork {
    milliseconds: f64,
    /// Bytes that were allocated and not given back when the call returned.
    kept: f64,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let short = fork(options, Side::Native, SHORT)?;
    let long = fork(options, Side::Native, LONG)?;
    let fs = fork(options, Side::Fs, SHORT)?;
    let per_entry = |time: f64, length: usize| time * 1000.0 / as_f64(length);
    Ok(vec![
        Row::new(format!("fork of {SHORT} entries"), "ms", short.milliseconds)
            .beside("fs", fs.milliseconds),
        Row::new(
            format!("fork of {LONG} entries: time per entry"),
            "us",
            per_entry(long.milliseconds, LONG),
        )
        .beside(&format!("of_{SHORT}"), per_entry(short.milliseconds, SHORT)),
        Row::new(format!("fork of {LONG} entries: memory kept"), "bytes", long.kept)
            .beside(&format!("of_{SHORT}"), short.kept)
            .beside(&format!("fs_of_{SHORT}"), fs.kept),
    ])
}

fn fork(options: &Options, side: Side, length: usize) -> Outcome<Fork> {
    eprintln!("fork: of {length} entries, {}", side.name());
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let building = side.serve(folder.path(), Safety::Unsynced).await?;
        fill(&building, "s", length).await?;
        building.close().await?;
        side.serve(folder.path(), Safety::Synced).await
    })?;
    let request = json!({"session_id": "s", "entry_id": entry_id(length - 1)});
    let once = || -> Outcome<()> {
        runtime.block_on(served.call("session::fork", request.clone())).map(drop)
    };
    once()?;
    let region = Region::new(ALLOCATOR);
    once()?;
    let memory = region.change();
    let kept = memory.bytes_allocated.saturating_sub(memory.bytes_deallocated);
    let time = milliseconds(once)?;
    runtime.block_on(served.close())?;
    Ok(Fork { milliseconds: time, kept: as_f64(kept) })
}
