use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bough_platform::{Access, Disk, File, Listed, Lock, LockError, RelPath, Stat};

use crate::pass_on;

/// What went through a [`CountingDisk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of `read_at`.
    pub read_calls: u64,
    /// Bytes that they returned.
    pub bytes_read: u64,
    /// Calls of `write_at` and `append`.
    pub write_calls: u64,
    /// Bytes that they were given.
    pub bytes_written: u64,
    /// Files synced.
    pub syncs: u64,
    /// Folders synced.
    pub dir_syncs: u64,
    /// Files opened or created.
    pub opens: u64,
    /// Paths asked about.
    pub stats: u64,
    /// Folders listed.
    pub lists: u64,
    /// Locks taken or refused.
    pub locks: u64,
    /// Names created, moved or removed by other calls than `create`.
    pub name_changes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    read_calls: AtomicU64,
    bytes_read: AtomicU64,
    write_calls: AtomicU64,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
    dir_syncs: AtomicU64,
    opens: AtomicU64,
    stats: AtomicU64,
    lists: AtomicU64,
    locks: AtomicU64,
    name_changes: AtomicU64,
}

/// Counts the calls to another disk. Clones count together.
#[derive(Clone, Debug)]
pub struct CountingDisk {
    inner: Arc<dyn Disk>,
    counters: Arc<Counters>,
}

fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

impl CountingDisk {
    /// Starts counting at zero.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        let counters = Arc::default();
        Self { inner, counters }
    }

    /// What was counted since the start or the last [`CountingDisk::reset`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.each(|counter| counter.load(Ordering::Relaxed))
    }

    /// Starts again at zero; returns what was counted until now.
    pub fn reset(&self) -> Counts {
        self.counters.each(|counter| counter.swap(0, Ordering::Relaxed))
    }

    fn file(&self, inner: Box<dyn File>) -> Box<dyn File> {
        add(&self.counters.opens, 1);
        let counters = Arc::clone(&self.counters);
        Box::new(CountingFile { inner, counters })
    }
}

impl Counters {
    fn each(&self, read: impl Fn(&AtomicU64) -> u64) -> Counts {
        Counts {
            read_calls: read(&self.read_calls),
            bytes_read: read(&self.bytes_read),
            write_calls: read(&self.write_calls),
            bytes_written: read(&self.bytes_written),
            syncs: read(&self.syncs),
            dir_syncs: read(&self.dir_syncs),
            opens: read(&self.opens),
            stats: read(&self.stats),
            lists: read(&self.lists),
            locks: read(&self.locks),
            name_changes: read(&self.name_changes),
        }
    }
}

impl Disk for CountingDisk {
    pass_on! { inner: lock_holder, copy_permissions }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.inner.create(path)?))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.inner.open(path, access)?))
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.create_dir(path)
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        add(&self.counters.name_changes, 1);
        self.inner.remove_dir(path)
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Listed>> {
        add(&self.counters.lists, 1);
        self.inner.list(path)
    }

    fn stat(&self, path: &RelPath) -> io::Result<Option<Stat>> {
        add(&self.counters.stats, 1);
        self.inner.stat(path)
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        add(&self.counters.dir_syncs, 1);
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        add(&self.counters.locks, 1);
        self.inner.lock(path, holder)
    }
}

#[derive(Debug)]
struct CountingFile {
    inner: Box<dyn File>,
    counters: Arc<Counters>,
}

impl File for CountingFile {
    pass_on! { inner: len, set_len }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        add(&self.counters.read_calls, 1);
        let read = self.inner.read_at(at, out)?;
        add(&self.counters.bytes_read, read);
        Ok(read)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        add(&self.counters.write_calls, 1);
        add(&self.counters.bytes_written, bytes.len());
        self.inner.write_at(at, bytes)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        add(&self.counters.write_calls, 1);
        add(&self.counters.bytes_written, bytes.len());
        self.inner.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        add(&self.counters.syncs, 1);
        self.inner.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimDisk;

    #[test]
    fn counts_what_goes_through_until_reset() {
        let disk = CountingDisk::new(Arc::new(SimDisk::new()));
        let path = RelPath::parse("f").unwrap();
        let file = disk.create(&path).unwrap();
        file.write_at(0, b"hello").unwrap();
        file.sync().unwrap();
        disk.sync_dir(&RelPath::root()).unwrap();
        let mut out = [0; 16];
        assert_eq!(file.read_at(1, &mut out).unwrap(), 4);
        let counts = disk.reset();
        assert_eq!((counts.write_calls, counts.bytes_written), (1, 5));
        assert_eq!((counts.read_calls, counts.bytes_read), (1, 4));
        assert_eq!((counts.syncs, counts.dir_syncs, counts.opens), (1, 1, 1));
        assert_eq!(disk.counts(), Counts::default());
    }
}
