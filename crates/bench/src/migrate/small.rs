//! Migrating many small V1 files.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bough_migrate::{Migrator, OsV1Files};
use bough_platform::Platform;

use super::files;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

const FILES: usize = 1_000;
const ENTRIES: usize = 5;
const ENTRY_BYTES: usize = 100;

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let sources = folder.path().join("v1");
    std::fs::create_dir(&sources)?;
    for number in 0..FILES {
        let name = format!("s{number:04}");
        files::write(&sources.join(format!("{name}.jsonl")), &name, ENTRIES, ENTRY_BYTES)?;
    }
    eprintln!("small: migrating {FILES} files");
    let platform = Platform::system(folder.path().join("data"))?;
    let migrator = Migrator::open(platform, Arc::new(OsV1Files))?;
    let address = sources.to_str().ok_or("the folder's name is not text")?;
    let began = Instant::now();
    let results = migrator.migrate_all(address, &mut |_, _| {}, &mut |_| {})?;
    let ours = per_minute(began);
    if results.iter().any(|result| result.summary.is_none()) {
        return Err("a file was not migrated".into());
    }
    let raw = raw_files(&folder.path().join("raw"))?;
    let row = Row::new(format!("migrate {FILES} small V1 files"), "files/min", ours);
    Ok(vec![row.beside("one_file_and_sync_each", raw)])
}

fn per_minute(began: Instant) -> f64 {
    as_f64(FILES) / began.elapsed().as_secs_f64() * 60.0
}

/// The least that is durable: each session one file that is written and synced, one after another.
fn raw_files(folder: &Path) -> Outcome<f64> {
    std::fs::create_dir(folder)?;
    let began = Instant::now();
    for number in 0..FILES {
        let mut file = std::fs::File::create(folder.join(number.to_string()))?;
        file.write_all(&[b'x'; ENTRIES * ENTRY_BYTES])?;
        file.sync_data()?;
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(per_minute(began))
}
