use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bough_platform::{Access, Disk, File, Lock, LockError, RelPath};

use crate::pass_on;

/// One promise that a disk silently breaks. An engine above it behaves as if it had left that safety step out, which is
/// what a canary needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenPromise {
    /// `File::sync` does nothing.
    SyncIsSkipped,
    /// `File::sync` happens only after the next change of anything.
    SyncIsLate,
    /// A `File::sync` that failed reports success.
    SyncErrorIsHidden,
    /// A write that failed reports success.
    WriteErrorIsHidden,
    /// `Disk::sync_dir` does nothing.
    DirSyncIsSkipped,
    /// A lock that is held is given to others too.
    LockIsNeverRefused,
    /// A file is replaced by overwriting it, not by a rename.
    RenameOverwrites,
}

/// A disk that breaks one promise, for paths that contain a given text.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    breach: Breach,
}

#[derive(Clone, Debug)]
struct Breach {
    promise: BrokenPromise,
    about: String,
    late: Arc<Mutex<Vec<Arc<dyn File>>>>,
}

impl FaultyDisk {
    /// Breaks it for all paths.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, promise: BrokenPromise) -> Self {
        Self::about(inner, promise, "")
    }

    /// Breaks it for paths that contain `text`.
    #[must_use]
    pub fn about(inner: Arc<dyn Disk>, promise: BrokenPromise, text: &str) -> Self {
        let breach = Breach { promise, about: text.to_owned(), late: Arc::default() };
        Self { inner, breach }
    }

    fn file(&self, path: &RelPath, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(FaultyFile {
            inner: inner.into(),
            breach: self.breach.clone(),
            is_broken: self.breach.is_about(path),
        })
    }

    fn overwrite(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        let source = self.inner.open(from, Access::Read)?;
        let mut bytes = vec![0; usize::try_from(source.len()?).map_err(io::Error::other)?];
        source.read_at(0, &mut bytes)?;
        let target = self.inner.open(to, Access::ReadWrite)?;
        target.set_len(0)?;
        target.write_at(0, &bytes)?;
        target.sync()?;
        self.inner.remove_file(from)
    }
}

impl Breach {
    fn is_about(&self, path: &RelPath) -> bool {
        path.as_str().contains(&self.about)
    }

    fn is(&self, promise: BrokenPromise, path: &RelPath) -> bool {
        self.promise == promise && self.is_about(path)
    }

    /// Runs a change, then the syncs that were delayed until the next one.
    fn then_late<T>(&self, change: impl FnOnce() -> T) -> T {
        let changed = change();
        let late = std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        for file in late {
            // The caller of this sync already got success as its answer.
            drop(file.sync());
        }
        changed
    }
}

impl Disk for FaultyDisk {
    pass_on! { inner: list, stat, lock_holder, copy_permissions }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        let inner = self.breach.then_late(|| self.inner.create(path))?;
        Ok(self.file(path, inner))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, self.inner.open(path, access)?))
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        self.breach.then_late(|| self.inner.create_dir(path))
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        let overwrites = self.breach.is(BrokenPromise::RenameOverwrites, to)
            && self.inner.stat(to)?.is_some_and(|stat| !stat.is_dir);
        if overwrites {
            return self.overwrite(from, to);
        }
        self.breach.then_late(|| self.inner.rename(from, to))
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        self.breach.then_late(|| self.inner.remove_file(path))
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        self.breach.then_late(|| self.inner.remove_dir(path))
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        if self.breach.is(BrokenPromise::DirSyncIsSkipped, path) {
            return Ok(());
        }
        self.breach.then_late(|| self.inner.sync_dir(path))
    }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        match self.inner.lock(path, holder) {
            Err(LockError::Held { .. })
                if self.breach.is(BrokenPromise::LockIsNeverRefused, path) =>
            {
                Ok(Box::new(NoLock))
            }
            answer => answer,
        }
    }
}

/// The lock of a second holder.
#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {
    fn remove(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    breach: Breach,
    is_broken: bool,
}

impl File for FaultyFile {
    pass_on! { inner: len, read_at }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.breach.then_late(|| self.inner.write_at(at, bytes));
        match self.breach.promise {
            BrokenPromise::WriteErrorIsHidden if self.is_broken => Ok(()),
            _ => written,
        }
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.breach.then_late(|| self.inner.append(bytes))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.breach.then_late(|| self.inner.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        match self.breach.promise {
            BrokenPromise::SyncIsSkipped if self.is_broken => Ok(()),
            BrokenPromise::SyncIsLate if self.is_broken => {
                let mut late = self.breach.late.lock().unwrap_or_else(PoisonError::into_inner);
                late.push(Arc::clone(&self.inner));
                Ok(())
            }
            BrokenPromise::SyncErrorIsHidden if self.is_broken => {
                drop(self.inner.sync());
                Ok(())
            }
            _ => self.inner.sync(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, FaultPlan, SimDisk};

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn faulty(promise: BrokenPromise, about: &str) -> (SimDisk, FaultyDisk) {
        let sim = SimDisk::new();
        (sim.clone(), FaultyDisk::about(Arc::new(sim), promise, about))
    }

    fn durable(sim: &SimDisk) -> Vec<(String, Vec<u8>)> {
        let files = sim.platter().files();
        files.into_iter().map(|(path, bytes)| (path.to_string(), bytes)).collect()
    }

    fn write_and_sync(disk: &FaultyDisk, name: &str) -> io::Result<Box<dyn File>> {
        let file = disk.create(&path(name))?;
        disk.sync_dir(&RelPath::root())?;
        file.write_at(0, b"x")?;
        file.sync()?;
        Ok(file)
    }

    #[test]
    fn a_skipped_sync_makes_nothing_durable_but_only_for_the_named_paths() {
        let (sim, disk) = faulty(BrokenPromise::SyncIsSkipped, "seg");
        write_and_sync(&disk, "a.seg").unwrap();
        write_and_sync(&disk, "b.idx").unwrap();
        let expected = [("a.seg".to_owned(), vec![]), ("b.idx".to_owned(), b"x".to_vec())];
        assert_eq!(durable(&sim), expected);
    }

    #[test]
    fn a_late_sync_comes_with_the_next_change() {
        let (sim, disk) = faulty(BrokenPromise::SyncIsLate, "");
        let file = write_and_sync(&disk, "a").unwrap();
        assert_eq!(durable(&sim), [("a".to_owned(), vec![])]);
        file.set_len(1).unwrap();
        assert_eq!(durable(&sim), [("a".to_owned(), b"x".to_vec())]);
    }

    #[test]
    fn hidden_errors_look_like_success() {
        let (sim, disk) = faulty(BrokenPromise::SyncErrorIsHidden, "");
        sim.inject(FaultPlan::once(Fault::LostPages, 1));
        write_and_sync(&disk, "a").unwrap();
        assert_eq!(durable(&sim), [("a".to_owned(), vec![])]);
        let (sim, disk) = faulty(BrokenPromise::WriteErrorIsHidden, "");
        sim.inject(FaultPlan::once(Fault::ShortWrite, 1));
        write_and_sync(&disk, "a").unwrap();
        assert_eq!(durable(&sim), [("a".to_owned(), vec![])]);
    }

    #[test]
    fn a_skipped_folder_sync_leaves_no_name() {
        let (sim, disk) = faulty(BrokenPromise::DirSyncIsSkipped, "");
        write_and_sync(&disk, "a").unwrap();
        assert_eq!(durable(&sim), []);
    }

    #[test]
    fn two_hold_the_lock() {
        let (_, disk) = faulty(BrokenPromise::LockIsNeverRefused, "");
        let _first = disk.lock(&path("lock"), "first").unwrap();
        assert!(disk.lock(&path("lock"), "second").is_ok());
    }

    #[test]
    fn an_overwriting_rename_passes_through_an_empty_file() {
        let (sim, disk) = faulty(BrokenPromise::RenameOverwrites, "m");
        write_and_sync(&disk, "m").unwrap();
        write_and_sync(&disk, "t").unwrap();
        sim.record();
        disk.rename(&path("t"), &path("m")).unwrap();
        let steps: Vec<String> = sim.recording().steps().iter().map(ToString::to_string).collect();
        assert_eq!(steps, ["set length m 0", "write m 1 at 0", "sync m", "remove t"]);
    }
}
