use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_platform::{Access, Clock, Disk, File, Listed, Lock, LockError, RelPath, Stat};

use super::content::Content;
use super::fault::{Call, CallCounts, Fault, FaultPlan, Faults, Fired};
use super::file::{SimFile, SimLock};
use super::images::{Enumerated, Image, ImageRules, enumerate};
use super::operation::{Change, InodeId, Operation, Purpose, Step};
use super::recording::Recording;
use super::state::{Inode, Settled, State, View};

/// A disk in memory. A clone is another handle of the same process on the same disk;
/// [`SimDisk::another_process`] is another process; [`SimDisk::copy`] is another disk.
#[derive(Clone)]
pub struct SimDisk {
    pub(crate) shared: Arc<Mutex<Inner>>,
    pub(crate) process: u64,
}

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) process: u64,
    pub(crate) ticket: u64,
    pub(crate) holder: String,
}

/// What all handles of one disk share.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) faults: Faults,
    pub(crate) locks: HashMap<InodeId, Held>,
    recording: Option<Recording>,
    operations: usize,
    dead: HashSet<u64>,
    processes: u64,
    tickets: u64,
    clock: Option<Arc<dyn Clock>>,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::of(State::empty())
    }

    pub(crate) fn of(state: State) -> Self {
        let inner = Inner {
            state,
            faults: Faults::default(),
            locks: HashMap::new(),
            recording: None,
            operations: 0,
            dead: HashSet::new(),
            processes: 0,
            tickets: 0,
            clock: None,
        };
        Self { shared: Arc::new(Mutex::new(inner)), process: 0 }
    }

    /// Takes the times of change from a clock; without one they are all 0.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        self.inner().clock = Some(clock);
        self
    }

    /// Another disk with the same content, durable and pending. Nobody holds a lock on it.
    #[must_use]
    pub fn copy(&self) -> Self {
        let inner = self.inner();
        let copy = Self::of(inner.state.clone());
        copy.inner().clock.clone_from(&inner.clock);
        copy
    }

    /// The same disk as another process sees it.
    #[must_use]
    pub fn another_process(&self) -> Self {
        let mut inner = self.inner();
        inner.processes += 1;
        Self { shared: Arc::clone(&self.shared), process: inner.processes }
    }

    /// Kills this handle's process: its locks are free, and its handles and open files do nothing more. Its writes stay
    /// in the cache, as after SIGKILL.
    pub fn kill(&self) {
        let mut inner = self.inner();
        inner.dead.insert(self.process);
        inner.locks.retain(|_, held| held.process != self.process);
    }

    /// Drops what only the cache has: pages that a failed sync marked clean.
    pub fn evict_clean_pages(&self) {
        let mut inner = self.inner();
        for id in 0..inner.state.inodes.len() {
            let Some(file) = inner.state.file(id) else {
                continue;
            };
            if file.pending.iter().all(|pending| !pending.clean) {
                continue;
            }
            let file = inner.state.file_mut(id);
            file.pending.retain(|pending| !pending.clean);
            let mut content = Content::clone(&file.platter);
            for pending in &file.pending {
                pending.change.apply(&mut content);
            }
            file.cache = Arc::new(content);
        }
    }

    /// The disk that a power cut leaves when everything pending is lost.
    #[must_use]
    pub fn platter(&self) -> Self {
        let mut state = self.inner().state.clone();
        state.names.clear();
        for id in 0..state.inodes.len() {
            state.settle(id);
        }
        Self::of(state)
    }

    /// The disk after everything pending has been written back.
    #[must_use]
    pub fn written_back(&self) -> Self {
        let mut state = self.inner().state.clone();
        for change in std::mem::take(&mut state.names) {
            state.apply_names(&change, View::Platter);
        }
        for id in 0..state.inodes.len() {
            if state.file(id).is_some() {
                let file = state.file_mut(id);
                file.platter = Arc::clone(&file.cache);
            }
            state.settle(id);
        }
        Self::of(state)
    }

    /// Visits the disks that a power cut at this moment can leave.
    pub fn images(&self, rules: &ImageRules, visit: impl FnMut(&Image<'_>)) -> Enumerated {
        let state = self.inner().state.clone();
        enumerate(&state, rules, visit)
    }

    /// From now on, records every operation, so that each moment can be examined later.
    pub fn record(&self) {
        let mut inner = self.inner();
        inner.recording = Some(Recording::starting_at(inner.state.clone()));
        inner.operations = 0;
    }

    /// What was recorded since [`SimDisk::record`]; nothing when it was not called.
    #[must_use]
    pub fn recording(&self) -> Recording {
        let inner = self.inner();
        let nothing = || Recording::starting_at(inner.state.clone());
        inner.recording.clone().unwrap_or_else(nothing)
    }

    /// How many operations were done since the start or since [`SimDisk::record`].
    #[must_use]
    pub fn operations(&self) -> usize {
        self.inner().operations
    }

    /// Makes one of the coming calls fail.
    pub fn inject(&self, plan: FaultPlan) {
        self.inner().faults.inject(plan);
    }

    /// No call fails any more.
    pub fn heal(&self) {
        self.inner().faults.heal();
    }

    /// The faults that happened.
    #[must_use]
    pub fn fired(&self) -> Vec<Fired> {
        self.inner().faults.fired.clone()
    }

    /// How often each call was made.
    #[must_use]
    pub fn calls(&self) -> CallCounts {
        self.inner().faults.counts.clone()
    }

    /// Every file with its bytes as reads see them, in the order of their paths.
    #[must_use]
    pub fn files(&self) -> Vec<(RelPath, Vec<u8>)> {
        let inner = self.inner();
        let mut files = Vec::new();
        inner.state.walk(View::Cache, &mut |path, id| {
            if let Some(file) = inner.state.file(id) {
                files.push((path.clone(), file.cache.bytes().to_vec()));
            }
        });
        files
    }

    /// A digest of all paths and bytes as reads see them. Lock files count by name only, because their holder is not
    /// content.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.inner().state.digest()
    }

    /// The same without lock files: readers create and remove them.
    #[must_use]
    pub fn digest_without_locks(&self) -> u64 {
        self.inner().state.digest_without_locks()
    }

    /// Puts a file there, durable at once, creating folders and replacing what was there.
    pub fn plant(&self, path: &RelPath, bytes: &[u8]) -> io::Result<()> {
        self.inner().state.plant(path, bytes)
    }

    pub(crate) fn plant_folder(&self, path: &RelPath) -> io::Result<()> {
        self.inner().state.plant_folder(path).map(|_| ())
    }

    /// Removes a file or a whole folder, durably.
    pub fn uproot(&self, path: &RelPath) -> io::Result<()> {
        self.inner().state.uproot(path)
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and fails it if a fault is planned or the process is dead.
    pub(crate) fn enter(&self, call: Call, path: &str) -> io::Result<MutexGuard<'_, Inner>> {
        let (inner, fault) = self.enter_or_fault(call, path)?;
        match fault {
            None => Ok(inner),
            Some(fault) => Err(fault.error()),
        }
    }

    pub(crate) fn enter_or_fault(
        &self,
        call: Call,
        path: &str,
    ) -> io::Result<(MutexGuard<'_, Inner>, Option<Fault>)> {
        let mut inner = self.inner();
        if inner.dead.contains(&self.process) {
            return Err(io::Error::other("this process was killed"));
        }
        let fault = inner.faults.on(call, path);
        Ok((inner, fault))
    }
}

impl Inner {
    /// Performs an operation, and records it if a recording runs.
    pub(crate) fn perform(&mut self, operation: Operation, path: &str) -> Settled {
        let step = Step {
            operation,
            path: path.to_owned(),
            time_ms: self.clock.as_ref().map_or(0, |clock| clock.now_ms()),
        };
        let settled = self.state.apply(&step);
        self.operations += 1;
        if let Some(recording) = &mut self.recording {
            recording.push(step);
        }
        settled
    }

    fn new_file(&mut self, path: &RelPath, purpose: Purpose) -> io::Result<InodeId> {
        let to = self.state.free_place(path)?;
        self.perform(Operation::Create { to, purpose }, path.as_str());
        Ok(self.state.inodes.len() - 1)
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        let inode = self.enter(Call::Create, path.as_str())?.new_file(path, Purpose::Data)?;
        Ok(Box::new(SimFile::new(self, inode, path, Access::ReadWrite)))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        let inner = self.enter(Call::Open, path.as_str())?;
        let inode = inner.state.find(path)?;
        if inner.state.dir(inode).is_some() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Box::new(SimFile::new(self, inode, path, access)))
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        let mut inner = self.enter(Call::CreateDir, path.as_str())?;
        let to = inner.state.free_place(path)?;
        inner.perform(Operation::CreateDir { to }, path.as_str());
        Ok(())
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        let mut inner = self.enter(Call::Rename, from.as_str())?;
        if inner.state.may_move(from, to)? {
            let from_place = inner.state.place(from)?;
            let to = inner.state.place(to)?;
            let operation = Operation::Rename { from: from_place, to };
            inner.perform(operation, from.as_str());
        }
        Ok(())
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        let mut inner = self.enter(Call::RemoveFile, path.as_str())?;
        let inode = inner.state.find(path)?;
        if inner.state.file(inode).is_none() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let from = inner.state.place(path)?;
        inner.perform(Operation::Remove { from }, path.as_str());
        Ok(())
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        let mut inner = self.enter(Call::RemoveDir, path.as_str())?;
        let inode = inner.state.find(path)?;
        let Some(dir) = inner.state.dir(inode) else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        if !dir.cache.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let from = inner.state.place(path)?;
        inner.perform(Operation::Remove { from }, path.as_str());
        Ok(())
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Listed>> {
        let inner = self.enter(Call::List, path.as_str())?;
        let inode = inner.state.find(path)?;
        let Some(dir) = inner.state.dir(inode) else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let listed = dir.cache.iter().map(|(name, id)| Listed {
            name: name.to_string(),
            is_dir: inner.state.dir(*id).is_some(),
        });
        Ok(listed.collect())
    }

    fn stat(&self, path: &RelPath) -> io::Result<Option<Stat>> {
        let inner = self.enter(Call::Stat, path.as_str())?;
        let inode = match inner.state.find(path) {
            Ok(inode) => inode,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(inner.state.inode(inode).map(stat_of))
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        self.sync_dir_settling(path).map(|_| ())
    }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        let mut inner = self.enter(Call::Lock, path.as_str())?;
        let inode = match inner.state.find(path) {
            Ok(inode) => inode,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                inner.new_file(path, Purpose::Lock)?
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(held) = inner.locks.get(&inode) {
            let holder = held.holder.clone();
            return Err(LockError::Held { holder });
        }
        inner.write_holder(inode, holder, path.as_str());
        inner.tickets += 1;
        let held = Held { process: self.process, ticket: inner.tickets, holder: holder.to_owned() };
        let lock = SimLock::new(self, inode, path, held.ticket);
        inner.locks.insert(inode, held);
        Ok(Box::new(lock))
    }

    fn lock_holder(&self, path: &RelPath) -> io::Result<Option<String>> {
        let inner = self.enter(Call::LockHolder, path.as_str())?;
        let inode = match inner.state.find(path) {
            Ok(inode) => inode,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(inner.locks.get(&inode).map(|held| held.holder.clone()))
    }
}

impl SimDisk {
    /// Syncs a folder and returns the name changes that this made durable.
    pub(crate) fn sync_dir_settling(&self, path: &RelPath) -> io::Result<Settled> {
        let mut inner = self.enter(Call::SyncDir, path.as_str())?;
        let inode = inner.state.find(path)?;
        if inner.state.dir(inode).is_none() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(inner.perform(Operation::SyncDir { inode }, path.as_str()))
    }
}

impl Inner {
    fn write_holder(&mut self, inode: InodeId, holder: &str, path: &str) {
        let is_empty = self.state.file(inode).is_none_or(|f| f.cache.len() == 0);
        if !is_empty {
            let change = Change::SetLen(0);
            self.perform(Operation::Change { inode, change }, path);
        }
        let bytes = holder.as_bytes().into();
        let change = Change::Write { at: 0, bytes };
        self.perform(Operation::Change { inode, change }, path);
    }
}

fn stat_of(inode: &Inode) -> Stat {
    match inode {
        Inode::File(file) => {
            let len = file.cache.len() as u64;
            Stat { len, allocated: len, is_dir: false, modified_ms: file.modified_ms, id: None }
        }
        Inode::Dir(dir) => {
            Stat { len: 0, allocated: 0, is_dir: true, modified_ms: dir.modified_ms, id: None }
        }
    }
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files();
        let files = files.iter().map(|(path, bytes)| (path, bytes.len()));
        f.debug_map().entries(files).finish()
    }
}
