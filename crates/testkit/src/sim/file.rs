use std::io;
use std::sync::Arc;

use bough_platform::{Access, File, Lock, RelPath};

use super::disk::SimDisk;
use super::fault::{Call, Fault};
use super::operation::{Change, InodeId, Operation};
use super::state::Settled;

/// An open file of a simulated disk. It keeps working after its name is removed.
#[derive(Debug)]
pub(crate) struct SimFile {
    disk: SimDisk,
    inode: InodeId,
    path: Arc<str>,
    access: Access,
}

impl SimFile {
    pub(crate) fn new(disk: &SimDisk, inode: InodeId, path: &RelPath, access: Access) -> Self {
        Self { disk: disk.clone(), inode, path: path.as_str().into(), access }
    }

    pub(crate) const fn inode(&self) -> InodeId {
        self.inode
    }

    /// Syncs and returns the changes that this made durable.
    pub(crate) fn sync_settling(&self) -> io::Result<Settled> {
        let inode = self.inode;
        let (mut inner, fault) = self.disk.enter_or_fault(Call::Sync, &self.path)?;
        match fault {
            None => Ok(inner.perform(Operation::Sync { inode }, &self.path)),
            Some(fault) => {
                if fault == Fault::LostPages {
                    inner.perform(Operation::SyncLost { inode }, &self.path);
                }
                Err(fault.error())
            }
        }
    }

    /// Writes at the offset that `place` computes from the file's length; returns that offset.
    fn write(&self, bytes: &[u8], place: impl Fn(usize) -> usize) -> io::Result<u64> {
        let (mut inner, fault) = self.disk.enter_or_fault(Call::Write, &self.path)?;
        let written = match fault {
            None => bytes,
            Some(Fault::ShortWrite) => bytes.get(..bytes.len() / 2).unwrap_or_default(),
            Some(fault) => return Err(fault.error()),
        };
        let inode = self.inode;
        let at = place(inner.state.file(inode).map_or(0, |file| file.cache.len()));
        if !written.is_empty() {
            let change = Change::Write { at, bytes: written.into() };
            inner.perform(Operation::Change { inode, change }, &self.path);
        }
        fault.map_or(Ok(at as u64), |fault| Err(fault.error()))
    }

    fn may_write(&self) -> io::Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::Read | Access::Append => Err(io::Error::from_raw_os_error(9)),
        }
    }
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        let inner = self.disk.enter(Call::Len, &self.path)?;
        let file = inner.state.file(self.inode);
        Ok(file.map_or(0, |file| file.cache.len() as u64))
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let inner = self.disk.enter(Call::Read, &self.path)?;
        let Some(file) = inner.state.file(self.inode) else {
            return Ok(0);
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let rest = file.cache.bytes().get(at..).unwrap_or_default();
        let read = rest.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..read), rest.get(..read)) {
            to.copy_from_slice(from);
        }
        Ok(read)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.may_write()?;
        let at = usize::try_from(at).map_err(io::Error::other)?;
        self.write(bytes, |_| at).map(|_| ())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        match self.access {
            Access::Append => self.write(bytes, |len| len),
            Access::Read | Access::ReadWrite => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.may_write()?;
        let mut inner = self.disk.enter(Call::SetLen, &self.path)?;
        let change = Change::SetLen(usize::try_from(len).map_err(io::Error::other)?);
        let inode = self.inode;
        inner.perform(Operation::Change { inode, change }, &self.path);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_settling().map(|_| ())
    }
}

/// A held lock of a simulated disk.
#[derive(Debug)]
pub(crate) struct SimLock {
    disk: SimDisk,
    inode: InodeId,
    path: RelPath,
    ticket: u64,
}

impl SimLock {
    pub(crate) fn new(disk: &SimDisk, inode: InodeId, path: &RelPath, ticket: u64) -> Self {
        Self { disk: disk.clone(), inode, path: path.clone(), ticket }
    }
}

impl Lock for SimLock {
    fn remove(self: Box<Self>) -> io::Result<()> {
        let mut inner = self.disk.enter(Call::RemoveFile, self.path.as_str())?;
        if inner.state.find(&self.path)? == self.inode {
            let from = inner.state.place(&self.path)?;
            inner.perform(Operation::Remove { from }, self.path.as_str());
        }
        drop(inner);
        Ok(())
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut inner = self.disk.inner();
        let ticket = self.ticket;
        if inner.locks.get(&self.inode).is_some_and(|held| held.ticket == ticket) {
            inner.locks.remove(&self.inode);
        }
    }
}
