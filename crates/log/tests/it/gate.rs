//! A disk on which a thread can be held at a chosen step.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bough_platform::{
    Access, Disk, File, Lock, LockError, OsDisk, OsEntropy, Platform, RelPath, SystemClock,
};
use bough_testkit::pass_on;

/// Longer than any machine needs; a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(120);

/// A gate in front of the syncs of some files, of some renames, or of some locks: a thread that comes waits until it is opened.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    /// What contains this has to wait.
    about: Option<String>,
    waiting: usize,
}

impl Gate {
    pub(crate) fn close_for(&self, about: &str) {
        self.state.lock().unwrap().about = Some(about.to_owned());
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().about = None;
        self.changed.notify_all();
    }

    pub(crate) fn until_somebody_waits(&self) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_timeout_while(state, DEADLINE, |s| s.waiting == 0).unwrap();
        assert!(!waited.1.timed_out(), "no thread came to the gate");
    }

    fn pass(&self, path: &str) {
        let mut state = self.state.lock().unwrap();
        if state.about.as_ref().is_none_or(|about| !path.contains(about.as_str())) {
            return;
        }
        state.waiting += 1;
        self.changed.notify_all();
        let closed = |s: &mut GateState| s.about.is_some();
        let (mut state, waited) = self.changed.wait_timeout_while(state, DEADLINE, closed).unwrap();
        state.waiting -= 1;
        assert!(!waited.timed_out(), "the gate was never opened");
    }
}

#[derive(Debug)]
struct GatedDisk {
    disk: OsDisk,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct GatedFile {
    file: Box<dyn File>,
    path: String,
    gate: Arc<Gate>,
}

impl GatedDisk {
    fn gated(&self, file: Box<dyn File>, path: &RelPath) -> Box<dyn File> {
        let (path, gate) = (path.as_str().to_owned(), Arc::clone(&self.gate));
        Box::new(GatedFile { file, path, gate })
    }
}

impl File for GatedFile {
    pass_on! { file: len, read_at, write_at, set_len }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass(&self.path);
        self.file.sync()
    }
}

impl Disk for GatedDisk {
    pass_on! { disk: create_dir, remove_file, remove_dir, list, stat, sync_dir, lock_holder }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        self.gate.pass(&format!("lock {path}"));
        self.disk.lock(path, holder)
    }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        Ok(self.gated(self.disk.create(path)?, path))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.gated(self.disk.open(path, access)?, path))
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        self.gate.pass(&format!("rename to {to}"));
        self.disk.rename(from, to)
    }
}

pub(crate) fn gated(dir: &Path, gate: &Arc<Gate>) -> Platform {
    let disk = GatedDisk { disk: OsDisk::create(dir).unwrap(), gate: Arc::clone(gate) };
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    Platform { disk: Arc::new(disk), clock, entropy }
}
