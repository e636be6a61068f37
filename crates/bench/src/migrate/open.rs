//! Serving a large V1 file: until its session can be read, and the memory that it takes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use bough_migrate::{OsV1Files, ServedStore};
use bough_platform::Platform;
use bough_store::{NativeOptions, NativeStore, Store, StoreExt};
use tokio::runtime::Runtime;

use super::files;
use crate::memory::{peak_megabytes, reset_peak};
use crate::report::Row;
use crate::{Options, Outcome};

const ENTRIES: usize = 200_000;
const ENTRY_BYTES: usize = 2_000;

/// What pi prints: milliseconds and megabytes.
const PI: &str = "\
const { SessionManager } = await import(process.env.PI_SESSION_MANAGER);
const began = performance.now();
const pi = SessionManager.open(process.argv[1]);
if (!pi.getLeafId()) throw new Error('nothing was read');
const rss = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify([performance.now() - began, rss]));";

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let file = folder.path().join("large.jsonl");
    eprintln!("open: writing {ENTRIES} entries");
    files::write(&file, "large", ENTRIES, ENTRY_BYTES)?;
    let size = std::fs::metadata(&file)?.len() / 1_000_000;
    let began = Instant::now();
    files::read_once(&file)?;
    let reading = began.elapsed().as_secs_f64() * 1000.0;
    reset_peak()?;
    let before = peak_megabytes()?;
    let time = Runtime::new()?.block_on(serve(folder.path(), &file))?;
    let memory = peak_megabytes()? - before;
    let mut times = Row::new(format!("serve a V1 file of {size} MB"), "ms", time);
    let mut peaks = Row::new(format!("memory to serve a V1 file of {size} MB"), "MB", memory);
    times = times.beside("reading_it_once", reading);
    if let Some((time, memory)) = by_pi(&file)? {
        times = times.beside("pi", time);
        peaks = peaks.beside("pi", memory);
    }
    Ok(vec![times, peaks])
}

async fn serve(folder: &Path, file: &Path) -> Outcome<f64> {
    let data = folder.join("data");
    let platform = Platform::system(&data)?;
    let native = NativeStore::open(platform.clone(), data, NativeOptions::default()).await?;
    let served = ServedStore::over(native, platform, Arc::new(OsV1Files));
    let began = Instant::now();
    let address = file.to_str().ok_or("the folder's name is not text")?;
    let session = served.serve_file(address).await?;
    let state = served.state(&session).await?.ok_or("the file is not served")?;
    let time = began.elapsed().as_secs_f64() * 1000.0;
    if state.state.entry_count != ENTRIES as u64 {
        return Err("the file was not read whole".into());
    }
    served.close().await?;
    Ok(time)
}

fn by_pi(file: &Path) -> Outcome<Option<(f64, f64)>> {
    if std::env::var_os("PI_SESSION_MANAGER").is_none() {
        return Ok(None);
    }
    let ran = Command::new("node").args(["--input-type=module", "-e", PI]).arg(file).output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned().into());
    }
    Ok(Some(serde_json::from_slice(&ran.stdout)?))
}
