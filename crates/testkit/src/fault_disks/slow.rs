use std::io;
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{Access, Clock, Disk, File, RelPath};

use crate::pass_on;

/// Whether the wait is added to the real sync or replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncDelay {
    /// The real sync, then the wait.
    After(Duration),
    /// Only the wait: removes the noise of the machine's disk from a measurement.
    Instead(Duration),
}

/// Makes every sync, of files and of folders, wait.
#[derive(Clone, Debug)]
pub struct SlowSync {
    inner: Arc<dyn Disk>,
    wait: Wait,
}

#[derive(Clone, Debug)]
struct Wait {
    delay: SyncDelay,
    clock: Arc<dyn Clock>,
}

impl SlowSync {
    /// Waits by `clock`.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>, delay: SyncDelay, clock: Arc<dyn Clock>) -> Self {
        let wait = Wait { delay, clock };
        Self { inner, wait }
    }

    fn file(&self, inner: Box<dyn File>) -> Box<dyn File> {
        let wait = self.wait.clone();
        Box::new(SlowFile { inner, wait })
    }
}

impl Wait {
    fn around(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let duration = match self.delay {
            SyncDelay::After(duration) => {
                sync()?;
                duration
            }
            SyncDelay::Instead(duration) => duration,
        };
        self.clock.sleep(duration);
        Ok(())
    }
}

impl Disk for SlowSync {
    pass_on! {
        inner: create_dir, rename, remove_file, remove_dir, list, stat, lock, lock_holder, copy_permissions
    }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.inner.create(path)?))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.inner.open(path, access)?))
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        self.wait.around(|| self.inner.sync_dir(path))
    }
}

#[derive(Debug)]
struct SlowFile {
    inner: Box<dyn File>,
    wait: Wait,
}

impl File for SlowFile {
    pass_on! { inner: len, read_at, write_at, append, set_len }

    fn sync(&self) -> io::Result<()> {
        self.wait.around(|| self.inner.sync())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, SimClock, SimDisk};

    fn check(delay: SyncDelay, real_syncs: u64) {
        let (sim, clock) = (SimDisk::new(), Arc::new(SimClock::at(0)));
        let disk = SlowSync::new(Arc::new(sim.clone()), delay, clock.clone());
        let file = disk.create(&RelPath::parse("f").unwrap()).unwrap();
        file.write_at(0, b"x").unwrap();
        file.sync().unwrap();
        disk.sync_dir(&RelPath::root()).unwrap();
        assert_eq!(clock.now_ms(), 4);
        assert_eq!(sim.calls().of(Call::Sync), real_syncs);
        assert_eq!(sim.calls().of(Call::SyncDir), real_syncs);
    }

    #[test]
    fn waits_after_the_sync_or_instead_of_it() {
        check(SyncDelay::After(Duration::from_millis(2)), 1);
        check(SyncDelay::Instead(Duration::from_millis(2)), 0);
    }
}
