use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bough_platform::{Access, Disk, File, Listed, Lock, LockError, RelPath, Stat};

use crate::Call;

type Act = Box<dyn FnOnce(&RelPath) + Send>;

struct Planned {
    call: Call,
    about: String,
    act: Act,
}

/// Does something once, right before a call about a path: what another process does meanwhile.
#[derive(Clone)]
pub struct MeanwhileDisk {
    inner: Arc<dyn Disk>,
    planned: Arc<Mutex<Option<Planned>>>,
}

impl MeanwhileDisk {
    /// Passes everything on until something is planned.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, planned: Arc::default() }
    }

    /// Plans what is done before the next call of a kind whose path contains `about`. Calls of open files are not
    /// looked at.
    pub fn before(&self, call: Call, about: &str, act: impl FnOnce(&RelPath) + Send + 'static) {
        let (about, act) = (about.to_owned(), Box::new(act));
        *self.planned.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Planned { call, about, act });
    }

    /// Whether what was planned has been done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn pass(&self, call: Call, path: &RelPath) {
        let due = |planned: &mut Planned| {
            planned.call == call && path.as_str().contains(planned.about.as_str())
        };
        let due = {
            let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
            planned.take_if(due)
        };
        if let Some(planned) = due {
            (planned.act)(path);
        }
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
        self.inner.create(path)
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        self.pass(Call::Open, path);
        self.inner.open(path, access)
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
}
