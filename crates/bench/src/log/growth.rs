//! What opening a session and reading from it costs as the session grows: counted, not only timed.

use std::path::Path;
use std::sync::Arc;

use bough_log::{LogStore, Options, PathStart};
use bough_platform::Platform;
use bough_testkit::CountingDisk;
use stats_alloc::Region;

use super::bough::{Bough, platform};
use crate::entries::{Entries, session_name};
use crate::measure::{self, as_f64};
use crate::peers::{Peer, Sqlite, Synchronous, Syncing};
use crate::report::Row;
use crate::{ALLOCATOR, Outcome};

/// The lengths of session that are compared.
const LENGTHS: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Entries appended at a time while a session is built.
const BATCH: usize = 1000;

/// How many of the newest entries are read.
const LAST: usize = 50;

/// What one operation cost.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    bytes_read: f64,
    read_calls: f64,
    allocations: f64,
    bytes_allocated: f64,
    milliseconds: f64,
    sqlite_milliseconds: f64,
}

/// A session on disk, and where in it to read.
struct Built {
    folder: tempfile::TempDir,
    length: usize,
    /// An entry from the middle.
    middle: String,
}

pub(super) fn rows(options: &crate::Options) -> Outcome<Vec<Row>> {
    let mut opening = Vec::new();
    let mut finding = Vec::new();
    for length in LENGTHS {
        eprintln!("growth: building a session of {length} entries");
        let built = build(&options.folder, length)?;
        opening.push((length, open_and_read_last(&built)?));
        finding.push((length, open_and_find(&built)?));
    }
    let mut rows = cost_rows("open and read the last 50", &opening)?;
    rows.extend(cost_rows("open and read one by id", &finding)?);
    Ok(rows)
}

fn build(folder: &Path, length: usize) -> Outcome<Built> {
    let folder = tempfile::tempdir_in(folder)?;
    let bough = Bough::new(folder.path().join("bough"), Syncing::Never)?;
    let sqlite = Sqlite::new(folder.path().join("sqlite"), Synchronous::Off)?;
    let mut middle = String::new();
    {
        let (mut ours, mut theirs) = (bough.writer(0)?, sqlite.writer(0)?);
        let mut entries = Entries::of_session(0);
        for at in (0..length).step_by(BATCH) {
            let batch = entries.take(BATCH);
            if at <= length / 2 {
                middle = batch.first().map(|entry| entry.id.clone()).unwrap_or_default();
            }
            theirs.append(batch.clone())?;
            ours.append(batch)?;
        }
    }
    bough.finish()?;
    Ok(Built { folder, length, middle })
}

fn open_and_read_last(built: &Built) -> Outcome<Cost> {
    let cost = counted(built, |store, id| {
        let reader = store.read(id)?;
        let leaf = reader.active_leaf().ok_or("the session has no leaf")?;
        let page = reader.path(&leaf, PathStart::Leaf, LAST, |stored| stored.into_owned())?;
        let read = page.map_or(0, |page| page.entries.len());
        expect(read == LAST, built, "the last entries")
    })?;
    let sqlite_milliseconds = timed_sqlite(built, |sqlite| {
        expect(sqlite.open_and_read_last(0, LAST)?.len() == LAST, built, "the last entries")
    })?;
    Ok(Cost { sqlite_milliseconds, ..cost })
}

fn open_and_find(built: &Built) -> Outcome<Cost> {
    let cost = counted(built, |store, id| {
        let found = store.read(id)?.entry(&built.middle, |stored| stored.into_owned())?;
        expect(found.is_some(), built, "the entry")
    })?;
    let sqlite_milliseconds = timed_sqlite(built, |sqlite| {
        let found = sqlite.open_and_read_one(0, &built.middle)?;
        expect(!found.is_empty(), built, "the entry")
    })?;
    Ok(Cost { sqlite_milliseconds, ..cost })
}

fn expect(found: bool, built: &Built, what: &str) -> Outcome<()> {
    if found {
        return Ok(());
    }
    Err(format!("{what} of a session of {} were not read", built.length).into())
}

/// Counts one run of an operation on a store that was just opened, then times it by itself.
fn counted(built: &Built, operation: impl Fn(&LogStore, &str) -> Outcome<()>) -> Outcome<Cost> {
    let id = session_name(0);
    let folder = built.folder.path().join("bough");
    let plain = platform(&folder, Syncing::Real)?;
    let disk = CountingDisk::new(Arc::clone(&plain.disk));
    let counting = Platform { disk: Arc::new(disk.clone()), ..plain.clone() };
    let store = <LogStore>::open(counting, Options::default())?;
    disk.reset();
    let region = Region::new(ALLOCATOR);
    operation(&store, &id)?;
    let memory = region.change();
    let counts = disk.counts();
    let milliseconds = measure::milliseconds(|| {
        let store = <LogStore>::open(plain.clone(), Options::default())?;
        operation(&store, &id)
    })?;
    Ok(Cost {
        bytes_read: as_f64(usize::try_from(counts.bytes_read)?),
        read_calls: as_f64(usize::try_from(counts.read_calls)?),
        allocations: as_f64(memory.allocations + memory.reallocations),
        bytes_allocated: as_f64(memory.bytes_allocated),
        milliseconds,
        sqlite_milliseconds: 0.0,
    })
}

fn timed_sqlite(built: &Built, operation: impl Fn(&Sqlite) -> Outcome<()>) -> Outcome<f64> {
    let sqlite = Sqlite::new(built.folder.path().join("sqlite"), Synchronous::Full)?;
    measure::milliseconds(|| operation(&sqlite))
}

/// A row a kind of cost: the value is that of the longest session, its peers are the shorter ones, so that
/// a ratio of 1 means that the cost does not grow.
fn cost_rows(what: &str, costs: &[(usize, Cost)]) -> Outcome<Vec<Row>> {
    type Read = fn(&Cost) -> f64;
    let kinds: [(&str, &str, Read); 5] = [
        ("bytes read", "bytes", |cost| cost.bytes_read),
        ("read calls", "calls", |cost| cost.read_calls),
        ("allocations", "allocations", |cost| cost.allocations),
        ("memory allocated", "bytes", |cost| cost.bytes_allocated),
        ("time", "ms", |cost| cost.milliseconds),
    ];
    let ((longest, most), shorter) = costs.split_last().ok_or("nothing was measured")?;
    let mut rows = Vec::new();
    for (kind, unit, read) in kinds {
        let name = format!("{what} of {longest}: {kind}");
        let row = Row::new(name, unit, read(most));
        let row = shorter
            .iter()
            .fold(row, |row, (length, cost)| row.beside(&format!("of_{length}"), read(cost)));
        rows.push(match kind {
            "time" => row.beside("sqlite", most.sqlite_milliseconds),
            _ => row,
        });
    }
    Ok(rows)
}
