//! Giving a long session back to its V1 file.

use std::sync::Arc;
use std::time::Instant;

use bough_migrate::{Migrator, OsV1Files, RollbackOptions};
use bough_platform::Platform;
use bough_session::SessionId;

use super::files;
use crate::memory::{peak_megabytes, reset_peak};
use crate::report::Row;
use crate::{Options, Outcome};

const ENTRIES: usize = 1_000_000;
const ENTRY_BYTES: usize = 50;

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let file = folder.path().join("long.jsonl");
    eprintln!("rollback: writing {ENTRIES} entries");
    files::write(&file, "long", ENTRIES, ENTRY_BYTES)?;
    let platform = Platform::system(folder.path().join("data"))?;
    let migrator = Migrator::open(platform, Arc::new(OsV1Files))?;
    let address = file.to_str().ok_or("the folder's name is not text")?;
    eprintln!("rollback: migrating");
    let (migrating, _) = measured(|| {
        let plan = migrator.plan(address, &mut |_| {})?;
        migrator.migrate(plan, None, &mut |_| {})?;
        Ok(())
    })?;
    let began = Instant::now();
    files::read_once(&file)?;
    let reading = began.elapsed().as_secs_f64() * 1000.0;
    let (time, memory) = measured(|| {
        migrator.rollback(&SessionId::from_stored("long"), &RollbackOptions::default())?;
        Ok(())
    })?;
    let name = |what: &str| format!("{what} {ENTRIES} entries");
    Ok(vec![
        Row::new(name("migrate"), "ms", migrating).beside("reading_it_once", reading),
        Row::new(name("roll back"), "ms", time).beside("reading_it_once", reading),
        Row::new(name("memory to roll back"), "MB", memory),
    ])
}

/// Milliseconds, and megabytes above what there was.
fn measured(work: impl FnOnce() -> Outcome<()>) -> Outcome<(f64, f64)> {
    reset_peak()?;
    let before = peak_megabytes()?;
    let began = Instant::now();
    work()?;
    let time = began.elapsed().as_secs_f64() * 1000.0;
    Ok((time, peak_megabytes()? - before))
}
