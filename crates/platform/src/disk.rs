use std::fmt::Debug;
use std::io;

use crate::RelPath;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing; the file must exist.
    ReadWrite,
    /// Reading, and [`File::append`]; the file must exist. For a file that other programs append to as well.
    Append,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// The name as it is on the disk. Names that are not UTF-8 come with replacement characters.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// The metadata of a path, read without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes; for a directory, whatever the file system says.
    pub len: u64,
    /// Bytes that it occupies on the disk: whole blocks, and less than `len` if the file system compresses or skips
    /// some. Equal to `len` if the system does not report it.
    pub allocated: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Last change of the content, milliseconds since the epoch; 0 if the system does not report
    /// it.
    pub modified_ms: i64,
    /// Which file it is, whatever its name; `None` if the system does not report it.
    pub id: Option<FileId>,
}

/// The identity of a file. Two paths with the same one are the same file; a file that was removed and created again has
/// another one, as long as somebody has the old file open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its number on the device.
    pub number: u64,
}

/// A directory tree. All disk access goes through this trait.
///
/// Nothing is durable until it is synced: a file's bytes by [`File::sync`], a name (created, renamed, removed) by
/// [`Disk::sync_dir`] of the folder that it is in.
pub trait Disk: Send + Sync + Debug {
    /// Creates a file that must not exist yet (mode 0600) and opens it for reading and writing.
    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>>;
    /// Opens a file that exists.
    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>>;
    /// Creates one directory (mode 0700) that must not exist yet, in a parent that must.
    fn create_dir(&self, path: &RelPath) -> io::Result<()>;
    /// Moves a name. A file at `to` is replaced; a directory at `to` must be absent.
    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &RelPath) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &RelPath) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, path: &RelPath) -> io::Result<Vec<Listed>>;
    /// The metadata of a path; `None` if nothing is there.
    fn stat(&self, path: &RelPath) -> io::Result<Option<Stat>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &RelPath) -> io::Result<()>;
    /// Takes the exclusive lock that `path` names, creating the file if it is missing, and writes
    /// `holder` into it. Never waits. The operating system frees it when the process ends, however it
    /// ends.
    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError>;
    /// The text that the holder wrote, while some process (or another handle of this one) holds the lock; `None` if it
    /// is free.
    fn lock_holder(&self, path: &RelPath) -> io::Result<Option<String>>;
    /// Gives the file `to` the permissions of the file `from`. Does nothing on a disk without permissions.
    fn copy_permissions(&self, _from: &RelPath, _to: &RelPath) -> io::Result<()> {
        Ok(())
    }
}

/// An open file.
pub trait File: Send + Sync + Debug {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Reads at an offset until `out` is full or the file ends, and returns the number of bytes
    /// read.
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize>;
    /// Writes all bytes at an offset, extending the file where needed.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Writes all bytes at the end of the file, wherever the end is at that moment, in one system call, and returns the
    /// offset where they begin. The file must be open with [`Access::Append`]. After an error, a part of the bytes may
    /// be in the file.
    fn append(&self, _bytes: &[u8]) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the bytes and the length durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// Whether another process has this file open for writing, under whatever name. `false` where the system does not
    /// tell, and for processes that it does not show to this user.
    fn has_other_writers(&self) -> io::Result<bool> {
        Ok(false)
    }
}

/// A held lock. Dropping it frees the lock and leaves the file.
pub trait Lock: Send + Sync + Debug {
    /// Frees the lock and removes its file, so that an idle folder has one name less.
    fn remove(self: Box<Self>) -> io::Result<()>;
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it.
    Held {
        /// The text that the holder wrote into the lock file.
        holder: String,
    },
    /// The disk failed.
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl dyn Disk + '_ {
    /// Reads a whole file, refusing one that is longer than `limit`.
    pub fn read_all(&self, path: &RelPath, limit: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path, Access::Read)?;
        let len = file.len()?;
        if len > limit {
            let text = format!("{path} is {len} bytes long; at most {limit} were expected");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let size = usize::try_from(len).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        let read = file.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Puts `bytes` at `path` so that a crash leaves the old content or the new, never a mixture:
    /// it writes and syncs a temporary file, renames it over `path`, and syncs the folder.
    pub fn replace(&self, path: &RelPath, temp: &RelPath, bytes: &[u8]) -> io::Result<()> {
        if self.stat(temp)?.is_some() {
            self.remove_file(temp)?;
        }
        let file = self.create(temp)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        drop(file);
        self.rename(temp, path)?;
        self.sync_dir(&path.parent())
    }

    /// Creates a directory if it is missing, and returns whether it did. The caller syncs the
    /// parent.
    pub fn ensure_dir(&self, path: &RelPath) -> io::Result<bool> {
        match self.create_dir(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Bytes that a path and everything below it occupy on the disk. Files that disappear meanwhile are not counted.
    pub fn allocated(&self, path: &RelPath) -> io::Result<u64> {
        let Some(stat) = self.stat(path)? else { return Ok(0) };
        let mut bytes = stat.allocated;
        if stat.is_dir {
            for listed in self.list_if_there(path)? {
                bytes += self.allocated(&path.join(&listed.name)?)?;
            }
        }
        Ok(bytes)
    }

    /// The names in a directory; empty if there is no such directory.
    pub fn list_if_there(&self, path: &RelPath) -> io::Result<Vec<Listed>> {
        Ok(if_there(self.list(path))?.unwrap_or_default())
    }

    /// Removes a directory with everything in it. Not atomic: for trash and staging only.
    pub fn remove_tree(&self, path: &RelPath) -> io::Result<()> {
        for listed in self.list(path)? {
            let child = path.join(&listed.name)?;
            if listed.is_dir {
                self.remove_tree(&child)?;
            } else {
                self.remove_file(&child)?;
            }
        }
        self.remove_dir(path)
    }
}

/// Whether an error says that nothing can be written here, while reading may go on.
#[must_use]
pub fn takes_no_writing(error: &io::Error) -> bool {
    use io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem
            | ErrorKind::PermissionDenied
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::FileTooLarge
    )
}

/// `None` when the file or folder that was asked for does not exist.
pub fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}
