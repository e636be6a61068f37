//! A disk that is one folder of another, so that what is built out of sight is built like anything else.

use std::io;
use std::sync::Arc;

use bough_platform::{Access, Disk, File, Listed, Lock, LockError, RelPath, Stat};

/// One folder of another disk.
#[derive(Debug)]
pub(crate) struct Subdir {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: RelPath,
}

impl Subdir {
    fn at(&self, path: &RelPath) -> io::Result<RelPath> {
        if path.as_str().is_empty() {
            return Ok(self.dir.clone());
        }
        Ok(RelPath::parse(&format!("{}/{path}", self.dir))?)
    }
}

impl Disk for Subdir {
    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        self.disk.create(&self.at(path)?)
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        self.disk.open(&self.at(path)?, access)
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        self.disk.create_dir(&self.at(path)?)
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        self.disk.rename(&self.at(from)?, &self.at(to)?)
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        self.disk.remove_file(&self.at(path)?)
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        self.disk.remove_dir(&self.at(path)?)
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Listed>> {
        self.disk.list(&self.at(path)?)
    }

    fn stat(&self, path: &RelPath) -> io::Result<Option<Stat>> {
        self.disk.stat(&self.at(path)?)
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        self.disk.sync_dir(&self.at(path)?)
    }

    fn lock(&self, path: &RelPath, holder: &str) -> std::result::Result<Box<dyn Lock>, LockError> {
        self.disk.lock(&self.at(path)?, holder)
    }

    fn lock_holder(&self, path: &RelPath) -> io::Result<Option<String>> {
        self.disk.lock_holder(&self.at(path)?)
    }
}
