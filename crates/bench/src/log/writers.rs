//! How many entries a second writers append: alone, on many sessions, on one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bough::Bough;
use crate::entries::Entries;
use crate::measure::{self, Side};
use crate::peers::{JsonlRewrite, Peer, Raw, RawGroup, Redb, Sqlite, Synchronous, Syncing, Work};
use crate::report::Row;
use crate::{Options, Outcome};

/// The injected sync: long enough that the machine's own noise does not show beside it.
const INJECTED: Syncing = Syncing::Wait(Duration::from_millis(2));

/// How many writers "many" are.
const MANY: usize = 64;

/// Sessions have a past: what rewrites whole files must have something to rewrite.
const ENTRIES_BEFORE: usize = 1000;

const UNIT: &str = "entries/s";

/// Who writes where.
#[derive(Clone, Copy)]
struct Load {
    writers: usize,
    sessions: usize,
}

const ONE: Load = Load { writers: 1, sessions: 1 };
const MANY_ON_MANY: Load = Load { writers: MANY, sessions: MANY };
const MANY_ON_ONE: Load = Load { writers: MANY, sessions: 1 };

/// One side of a row: what it is called, who writes where, and how the store is made.
type Contender = (&'static str, Load, fn(PathBuf) -> Outcome<Box<dyn Peer>>);

/// On the disk as it is.
pub(super) fn real_rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = options.folder.as_path();
    Ok(vec![
        row(folder, "one durable writer", &one_writer())?,
        row(folder, "64 durable writers on 64 sessions", &many_on_many())?,
        row(folder, "64 durable writers on one session", &many_on_one())?,
    ])
}

/// With a sync that takes the same time on every side. SQLite is missing: it reaches the disk through C,
/// where nothing can be injected without unsafe code.
pub(super) fn injected_rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = options.folder.as_path();
    let name = |writers: &str| format!("{writers}, injected sync of 2 ms");
    Ok(vec![
        row(folder, &name("one writer"), &one_injected())?,
        row(folder, &name("64 writers on 64 sessions"), &many_injected())?,
        row(folder, &name("64 writers on one session"), &shared_injected())?,
    ])
}

/// Without any sync: what the program itself costs.
pub(super) fn unsynced_rows(options: &Options) -> Outcome<Vec<Row>> {
    Ok(vec![row(&options.folder, "one writer without sync", &one_unsynced())?])
}

fn one_writer() -> Vec<Contender> {
    vec![
        ("bough", ONE, |at| Ok(Box::new(Bough::new(at, Syncing::Real)?))),
        ("raw", ONE, |at| Ok(Box::new(Raw::new(at, Syncing::Real)?))),
        ("sqlite_full", ONE, |at| Ok(Box::new(Sqlite::new(at, Synchronous::Full)?))),
        ("sqlite_normal", ONE, |at| Ok(Box::new(Sqlite::new(at, Synchronous::Normal)?))),
        ("redb", ONE, |at| Ok(Box::new(Redb::new(at, Syncing::Real)?))),
        ("v1_rewrite", ONE, |at| Ok(Box::new(JsonlRewrite::new(at, Syncing::Real)?))),
    ]
}

fn many_on_many() -> Vec<Contender> {
    let load = MANY_ON_MANY;
    vec![
        ("bough", load, |at| Ok(Box::new(Bough::new(at, Syncing::Real)?))),
        ("raw", load, |at| Ok(Box::new(Raw::new(at, Syncing::Real)?))),
        ("sqlite_full", load, |at| Ok(Box::new(Sqlite::new(at, Synchronous::Full)?))),
        ("sqlite_normal", load, |at| Ok(Box::new(Sqlite::new(at, Synchronous::Normal)?))),
        ("redb", load, |at| Ok(Box::new(Redb::new(at, Syncing::Real)?))),
        ("v1_rewrite", load, |at| Ok(Box::new(JsonlRewrite::new(at, Syncing::Real)?))),
    ]
}

fn many_on_one() -> Vec<Contender> {
    let load = MANY_ON_ONE;
    vec![
        ("bough", load, |at| Ok(Box::new(Bough::new(at, Syncing::Real)?))),
        ("bough_one_writer", ONE, |at| Ok(Box::new(Bough::new(at, Syncing::Real)?))),
        ("raw_group", load, |at| Ok(Box::new(RawGroup::new(at, Syncing::Real)?))),
        ("sqlite_full", load, |at| Ok(Box::new(Sqlite::new(at, Synchronous::Full)?))),
        ("redb", load, |at| Ok(Box::new(Redb::new(at, Syncing::Real)?))),
    ]
}

fn one_injected() -> Vec<Contender> {
    vec![
        ("bough", ONE, |at| Ok(Box::new(Bough::new(at, INJECTED)?))),
        ("raw", ONE, |at| Ok(Box::new(Raw::new(at, INJECTED)?))),
        ("redb", ONE, |at| Ok(Box::new(Redb::new(at, INJECTED)?))),
        ("v1_rewrite", ONE, |at| Ok(Box::new(JsonlRewrite::new(at, INJECTED)?))),
    ]
}

fn many_injected() -> Vec<Contender> {
    let load = MANY_ON_MANY;
    vec![
        ("bough", load, |at| Ok(Box::new(Bough::new(at, INJECTED)?))),
        ("raw", load, |at| Ok(Box::new(Raw::new(at, INJECTED)?))),
        ("redb", load, |at| Ok(Box::new(Redb::new(at, INJECTED)?))),
    ]
}

fn shared_injected() -> Vec<Contender> {
    let load = MANY_ON_ONE;
    vec![
        ("bough", load, |at| Ok(Box::new(Bough::new(at, INJECTED)?))),
        ("bough_one_writer", ONE, |at| Ok(Box::new(Bough::new(at, INJECTED)?))),
        ("raw_group", load, |at| Ok(Box::new(RawGroup::new(at, INJECTED)?))),
        ("redb", load, |at| Ok(Box::new(Redb::new(at, INJECTED)?))),
    ]
}

fn one_unsynced() -> Vec<Contender> {
    vec![
        ("bough", ONE, |at| Ok(Box::new(Bough::new(at, Syncing::Never)?))),
        ("raw_write", ONE, |at| Ok(Box::new(Raw::new(at, Syncing::Never)?))),
        ("raw_chained", ONE, |at| {
            Ok(Box::new(Raw::new(at, Syncing::Never)?.working(Work::Chained)))
        }),
        ("sqlite_off", ONE, |at| Ok(Box::new(Sqlite::new(at, Synchronous::Off)?))),
        ("redb_none", ONE, |at| Ok(Box::new(Redb::new(at, Syncing::Never)?))),
        ("v1_rewrite", ONE, |at| Ok(Box::new(JsonlRewrite::new(at, Syncing::Never)?))),
    ]
}

/// Measures all contenders in turns; the first one is Bough.
fn row(folder: &Path, name: &str, contenders: &[Contender]) -> Outcome<Row> {
    let sides = contenders.iter().map(|contender| Side {
        name: contender.0,
        measure: Box::new(move || once(folder, contender)),
    });
    let measured = measure::in_turns(name, sides.collect())?;
    let mut measured = measured.into_iter();
    let (_, bough) = measured.next().ok_or("a row needs a side")?;
    let row = Row::new(name, UNIT, bough);
    Ok(measured.fold(row, |row, (peer, value)| row.beside(peer, value)))
}

/// One round of one side, in a fresh folder that is removed afterwards.
fn once(folder: &Path, (_, load, make): &Contender) -> Outcome<f64> {
    let folder = tempfile::tempdir_in(folder)?;
    let peer = make(folder.path().join("data"))?;
    let mut sessions = Vec::new();
    for session in 0..load.sessions {
        let mut entries = Entries::of_session(session);
        peer.writer(session)?.append(entries.take(ENTRIES_BEFORE))?;
        sessions.push(entries);
    }
    let rate = measure::rate(load.writers, |number| {
        let session = number % load.sessions;
        let mut writer = peer.writer(session)?;
        let mut entries = sessions.get(session).ok_or("no such session")?.of_writer(number);
        Ok(Box::new(move |_| writer.append(vec![entries.one()])))
    })?;
    peer.finish()?;
    Ok(rate)
}
