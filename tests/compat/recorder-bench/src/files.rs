//! Saving and loading session files.

use std::path::Path;

use bough_platform::{Disk as _, OsDisk, RelPath};

use super::events::{Script, Shape};
use super::{
    PHI_CORE, QUICK_ROUNDS, SLOW_ROUNDS, in_turns, milliseconds, our_session, ours, phi_session,
};
use crate::measure::{ROUNDS, median};
use crate::report::Row;
use crate::{Options, Outcome};
use phi_core::session::SessionStore as _;

const LOOPS: [usize; 3] = [100, 1_000, 10_000];

/// From so many loops on phi-core is measured once.
const SLOW_LOOPS: usize = 1_000;

/// phi-core's `save_session` syncs nothing.
const UNSYNCED: &str = "phi_core_0.15.2_unsynced";

/// What the disk takes to make as many bytes durable as ours writes, with nobody making them: a save cannot be faster.
const DISK_ALONE: &str = "disk_alone_for_ours";

const ID: &str = "files";

const PIECE_BYTES: usize = 1 << 20;

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
    let phi = PhiCore::new(folder, phi_session(&lines)?)?;
    drop(lines);
    let rounds = if loops >= SLOW_LOOPS { SLOW_ROUNDS } else { QUICK_ROUNDS };
    let what = |did: &str| format!("{did} {loops} loops");
    let time = |what: &str, ours: &dyn Fn() -> Outcome<()>, phi: &dyn Fn() -> Outcome<()>| {
        in_turns(what, rounds, || milliseconds(ours), || milliseconds(phi))
    };
    let (save, peer_save) = time(&what("saving"), &|| ours.save(), &|| phi.save())?;
    let (load, peer_load) = time(&what("loading"), &|| ours.load(), &|| phi.load())?;
    let look =
        median((0..ROUNDS).map(|_| milliseconds(|| ours.load_and_look())).collect::<Outcome<_>>()?);
    let alone =
        median((0..ROUNDS).map(|_| milliseconds(|| ours.write_alone())).collect::<Outcome<_>>()?);
    let mut saving =
        Row::new(what("saving"), "ms", save).beside(PHI_CORE, peer_save).beside(DISK_ALONE, alone);
    if loops < SLOW_LOOPS {
        saving = saving.beside(UNSYNCED, milliseconds(|| phi.save_unsynced())?);
    }
    Ok(vec![
        saving,
        Row::new(what("loading"), "ms", load).beside(PHI_CORE, peer_load),
        Row::new(what("loading and looking at each event of"), "ms", look)
            .beside(PHI_CORE, peer_load),
    ])
}

struct Ours {
    folder: tempfile::TempDir,
    session: ours::RecordedSession,
}

impl Ours {
    fn new(folder: &Path, session: ours::RecordedSession) -> Outcome<Self> {
        let made = Self { folder: tempfile::tempdir_in(folder)?, session };
        made.save()?;
        Ok(made)
    }

    fn save(&self) -> Outcome<()> {
        ours::save_session(&self.session, self.folder.path())?;
        Ok(())
    }

    /// As many bytes as the session's file has, made durable in the same steps.
    fn write_alone(&self) -> Outcome<()> {
        let disk = OsDisk::open(self.folder.path())?;
        let root = RelPath::root();
        let (file, temp, copy) = (format!("{ID}.json"), root.join("temp")?, root.join("copy")?);
        let len = disk.stat(&root.join(&file)?)?.ok_or("the session is not saved")?.len;
        let piece = vec![b' '; PIECE_BYTES];
        let written = disk.create(&temp)?;
        let mut at = 0;
        while at < len {
            let part = usize::try_from(len - at)?.min(piece.len());
            written.write_at(at, piece.get(..part).unwrap_or_default())?;
            at += u64::try_from(part)?;
        }
        written.sync()?;
        disk.rename(&temp, &copy)?;
        disk.sync_dir(&root)?;
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

struct PhiCore {
    folder: tempfile::TempDir,
    session: phi_core::session::Session,
    store: phi_core::session::FileSystemSessionStore,
    runtime: tokio::runtime::Runtime,
}

impl PhiCore {
    fn new(folder: &Path, session: phi_core::session::Session) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(folder)?;
        let store = phi_core::session::FileSystemSessionStore::new(folder.path());
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self { folder, session, store, runtime })
    }

    fn save(&self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.store.save(&self.session))?)
    }

    fn save_unsynced(&self) -> Outcome<()> {
        phi_core::session::save_session(&self.session, self.folder.path())?;
        Ok(())
    }

    fn load(&self) -> Outcome<()> {
        let session = phi_core::session::load_session(ID, self.folder.path())?;
        check(session.loops.len(), self.session.loops.len())
    }
}

fn check(found: usize, expected: usize) -> Outcome<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found} were loaded in place of {expected}").into())
}
