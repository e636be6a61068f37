//! Saving and loading session files.

use std::path::Path;
use std::time::Instant;

use super::events::{Script, Shape};
use super::{ORIGINAL, original, original_session, our_session, ours};
use crate::measure::{ROUNDS, median};
use crate::report::Row;
use crate::{Options, Outcome};
use original::session::SessionStore as _;

const LOOPS: [usize; 3] = [100, 1_000, 10_000];

/// From so many loops on the original is measured once: it takes many seconds.
const SLOW_LOOPS: usize = 10_000;

/// The original's `save_session` syncs nothing.
const UNSYNCED: &str = "phi_core_0.15.2_unsynced";

const ID: &str = "files";

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for loops in LOOPS {
        rows.extend(rows_of(&options.folder, loops)?);
    }
    Ok(rows)
}

fn rows_of(folder: &Path, loops: usize) -> Outcome<Vec<Row>> {
    let lines = Script::new(ID, "agent", Shape::Chained).lines(loops);
    let ours = Ours::new(folder, our_session(&lines)?)?;
    let original = Original::new(folder, original_session(&lines)?)?;
    drop(lines);
    let rounds = if loops >= SLOW_LOOPS { 1 } else { ROUNDS };
    let mut times = [const { Vec::new() }; 6];
    for round in 1..=ROUNDS {
        eprintln!("files of {loops} loops: round {round} of {ROUNDS}");
        let [save, load, look, peer_save, peer_unsynced, peer_load] = &mut times;
        save.push(milliseconds(|| ours.save())?);
        load.push(milliseconds(|| ours.load())?);
        look.push(milliseconds(|| ours.load_and_look())?);
        if round <= rounds {
            peer_save.push(milliseconds(|| original.save())?);
            peer_unsynced.push(milliseconds(|| original.save_unsynced())?);
            peer_load.push(milliseconds(|| original.load())?);
        }
    }
    let [save, load, look, peer_save, peer_unsynced, peer_load] = times.map(median);
    Ok(vec![
        Row::new(format!("saving {loops} loops"), "ms", save)
            .beside(ORIGINAL, peer_save)
            .beside(UNSYNCED, peer_unsynced),
        Row::new(format!("loading {loops} loops"), "ms", load).beside(ORIGINAL, peer_load),
        Row::new(format!("loading {loops} loops and looking at each event"), "ms", look)
            .beside(ORIGINAL, peer_load),
    ])
}

fn milliseconds(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

struct Ours {
    folder: tempfile::TempDir,
    session: ours::Session,
}

impl Ours {
    fn new(folder: &Path, session: ours::Session) -> Outcome<Self> {
        let made = Self { folder: tempfile::tempdir_in(folder)?, session };
        made.save()?;
        Ok(made)
    }

    fn save(&self) -> Outcome<()> {
        ours::save_session(&self.session, self.folder.path())?;
        Ok(())
    }

    fn load(&self) -> Outcome<()> {
        let session = ours::load_session(ID, self.folder.path())?;
        check(session.loops.len(), self.session.loops.len())
    }

    fn load_and_look(&self) -> Outcome<()> {
        let session = ours::load_session(ID, self.folder.path())?;
        let events = session.loops.iter().map(|record| record.events.len()).sum();
        check(events, session.loops.len() * super::events::EVENTS_OF_A_LOOP)
    }
}

struct Original {
    folder: tempfile::TempDir,
    session: original::session::Session,
    store: original::session::FileSystemSessionStore,
    runtime: tokio::runtime::Runtime,
}

impl Original {
    fn new(folder: &Path, session: original::session::Session) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(folder)?;
        let store = original::session::FileSystemSessionStore::new(folder.path());
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let made = Self { folder, session, store, runtime };
        made.save()?;
        Ok(made)
    }

    fn save(&self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.store.save(&self.session))?)
    }

    fn save_unsynced(&self) -> Outcome<()> {
        original::session::save_session(&self.session, self.folder.path())?;
        Ok(())
    }

    fn load(&self) -> Outcome<()> {
        let session = original::session::load_session(ID, self.folder.path())?;
        check(session.loops.len(), self.session.loops.len())
    }
}

fn check(found: usize, expected: usize) -> Outcome<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found} were loaded in place of {expected}").into())
}
