use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bough_platform::{Access, Disk, File, Listed, Lock, LockError, RelPath, Stat};

use crate::Call;

type Act = Box<dyn FnOnce(&RelPath) + Send>;

struct Planned {
    /// `None` counts calls of every kind.
    call: Option<Call>,
    about: String,
    /// How many such calls pass first.
    skip: u64,
    act: Act,
}

/// Runs an action once, right before a call about a path: it stands for another process that acts
/// meanwhile.
#[derive(Clone)]
pub struct MeanwhileDisk {
    inner: Arc<dyn Disk>,
    planned: Arc<Mutex<Vec<Planned>>>,
}

impl MeanwhileDisk {
    /// Passes everything on until something is planned.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, planned: Arc::default() }
    }

    /// Plans an action before the next call of a kind whose path contains `about`.
    pub fn before(&self, call: Call, about: &str, act: impl FnOnce(&RelPath) + Send + 'static) {
        self.plan(Some(call), about, 0, Box::new(act));
    }

    /// Another process has the files open for writing whose path contains `about`, until it was looked for `polls` times.
    /// Then it does its last action and closes them.
    pub fn other_writer(
        &self,
        polls: u64,
        about: &str,
        act: impl FnOnce(&RelPath) + Send + 'static,
    ) {
        self.plan(Some(Call::OtherWriters), about, polls, Box::new(act));
    }

    /// Plans an action before a call of any kind whose path contains `about`, after `skip` of them. Calls of open files
    /// count too, so a test can try every place between two calls.
    pub fn before_any(&self, skip: u64, about: &str, act: impl FnOnce(&RelPath) + Send + 'static) {
        self.plan(None, about, skip, Box::new(act));
    }

    fn plan(&self, call: Option<Call>, about: &str, skip: u64, act: Act) {
        let about = about.to_owned();
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.push(Planned { call, about, skip, act });
    }

    /// Whether all planned actions have run.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn is_planned(&self, call: Call, path: &RelPath) -> bool {
        let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        planned.iter().any(|it| it.call == Some(call) && path.as_str().contains(&it.about))
    }

    fn pass(&self, call: Call, path: &RelPath) {
        let due: Vec<Planned> = {
            let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
            planned.extract_if(.., |planned| planned.is_due(call, path)).collect()
        };
        for planned in due {
            (planned.act)(path);
        }
    }

    fn file(&self, path: &RelPath, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(MeanwhileFile { inner, disk: self.clone(), path: path.clone() })
    }
}

impl Planned {
    fn is_due(&mut self, call: Call, path: &RelPath) -> bool {
        let counts = self.call.is_none_or(|only| only == call);
        if !counts || !path.as_str().contains(self.about.as_str()) {
            return false;
        }
        let due = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        due
    }
}

impl fmt::Debug for MeanwhileDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeanwhileDisk").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Disk for MeanwhileDisk {
    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        self.pass(Call::Create, path);
        Ok(self.file(path, self.inner.create(path)?))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        self.pass(Call::Open, path);
        Ok(self.file(path, self.inner.open(path, access)?))
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        self.pass(Call::CreateDir, path);
        self.inner.create_dir(path)
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        self.pass(Call::Rename, from);
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        self.pass(Call::RemoveFile, path);
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        self.pass(Call::RemoveDir, path);
        self.inner.remove_dir(path)
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Listed>> {
        self.pass(Call::List, path);
        self.inner.list(path)
    }

    fn stat(&self, path: &RelPath) -> io::Result<Option<Stat>> {
        self.pass(Call::Stat, path);
        self.inner.stat(path)
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        self.pass(Call::SyncDir, path);
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        self.pass(Call::Lock, path);
        self.inner.lock(path, holder)
    }

    fn lock_holder(&self, path: &RelPath) -> io::Result<Option<String>> {
        self.pass(Call::LockHolder, path);
        self.inner.lock_holder(path)
    }

    crate::pass_on! { inner: copy_permissions }
}

#[derive(Debug)]
struct MeanwhileFile {
    inner: Box<dyn File>,
    disk: MeanwhileDisk,
    path: RelPath,
}

impl File for MeanwhileFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.pass(Call::Len, &self.path);
        self.inner.len()
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        self.disk.pass(Call::Read, &self.path);
        self.inner.read_at(at, out)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.pass(Call::Write, &self.path);
        self.inner.write_at(at, bytes)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.disk.pass(Call::Write, &self.path);
        self.inner.append(bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.pass(Call::SetLen, &self.path);
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.pass(Call::Sync, &self.path);
        self.inner.sync()
    }

    fn has_other_writers(&self) -> io::Result<bool> {
        self.disk.pass(Call::OtherWriters, &self.path);
        Ok(self.disk.is_planned(Call::OtherWriters, &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimDisk;

    #[test]
    fn what_is_planned_is_done_once_before_the_call() {
        let sim = SimDisk::new();
        let disk = MeanwhileDisk::new(Arc::new(sim.clone()));
        let path = RelPath::parse("f").unwrap();
        disk.before(Call::Stat, "f", move |path| drop(sim.create(path).unwrap()));
        assert!(disk.lock_holder(&path).unwrap().is_none() && !disk.is_done());
        assert!(disk.stat(&path).unwrap().is_some(), "it was made just before");
        assert!(disk.is_done());
        disk.remove_file(&path).unwrap();
        assert!(disk.stat(&path).unwrap().is_none(), "and not again");
    }

    #[test]
    fn calls_of_open_files_count_too() {
        let sim = SimDisk::new();
        let disk = MeanwhileDisk::new(Arc::new(sim.clone()));
        let path = RelPath::parse("f").unwrap();
        let file = disk.create(&path).unwrap();
        disk.before_any(1, "f", move |path| {
            let other = sim.open(path, Access::Append).unwrap();
            other.append(b"other").unwrap();
        });
        assert_eq!(file.len().unwrap(), 0, "one call passes first");
        let file = disk.open(&path, Access::Append).unwrap();
        assert!(disk.is_done());
        assert_eq!(file.append(b"!").unwrap(), 5, "behind what the other one wrote");
    }
}
