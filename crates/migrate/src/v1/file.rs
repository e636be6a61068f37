//! Where V1 files are: outside the data directory, on some disk.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bough_platform::{
    Access, Disk, File, Lock, LockError, NamedKind, OsDisk, RelPath, follow, host_facts,
};
use bough_store::origin::Pointer;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::lines::{Content, Line, Lines, Snapshot};
use super::map::Mapper;
use super::sqlite::SqliteSession;
use crate::error::{MigrateError, Result};
use crate::limits::SQLITE_BYTES_MAX;

/// The two forms of a V1 store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum V1Format {
    /// JSON lines, header versions 1 to 3.
    JsonlV3,
    /// One SQLite database per session.
    SqliteV1,
}

impl V1Format {
    /// The format's name in the ledger.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonlV3 => "jsonl_v3",
            Self::SqliteV1 => "sqlite_v1",
        }
    }

    /// The pointer to a file of this format.
    #[must_use]
    pub fn pointer(self, address: &str, snapshot: &Snapshot) -> Pointer {
        let (path, snapshot_id) = (address.to_owned(), snapshot.to_string());
        match self {
            Self::JsonlV3 => Pointer::JsonlV3 { path, snapshot_id },
            Self::SqliteV1 => Pointer::SqliteV1 { path, snapshot_id },
        }
    }
}

/// Opens V1 files by their addresses: what a manifest's pointer says.
pub trait V1Files: Send + Sync + Debug {
    /// The file at an address, whether or not it is there.
    fn locate(&self, address: &str) -> Result<V1File>;
    /// The addresses of the names in a folder, and whether each is a folder.
    fn list(&self, address: &str) -> Result<Vec<(String, bool)>>;
}

/// V1 files of the operating system, by absolute path.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsV1Files;

impl V1Files for OsV1Files {
    fn locate(&self, address: &str) -> Result<V1File> {
        // The path was typed by a person or found by name, so it may be a link. The path of a missing file is taken as given.
        let path = match follow(Path::new(address))? {
            Some(named) if named.kind == NamedKind::Other => {
                return Err(MigrateError::NotASession {
                    address: address.to_owned(),
                    reason: "it is a pipe or a device, not a file".to_owned(),
                });
            }
            Some(named) => named.path,
            None => std::path::absolute(address)?,
        };
        let bad = |reason: &str| MigrateError::BadAddress {
            address: address.to_owned(),
            reason: reason.to_owned(),
        };
        let folder = path.parent().ok_or_else(|| bad("it names no file"))?;
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| bad("its name is not text"))?;
        let disk = match OsDisk::open(folder) {
            Ok(disk) => disk,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MigrateError::Missing { address: address.to_owned() });
            }
            Err(error) => return Err(error.into()),
        };
        let address = disk.root().join(name);
        let address = address.to_str().ok_or_else(|| bad("its folder's name is not text"))?;
        let path = RelPath::root().join(name)?;
        Ok(V1File::new(address, Arc::new(disk), path))
    }

    fn list(&self, address: &str) -> Result<Vec<(String, bool)>> {
        let disk = OsDisk::open(Path::new(address))?;
        let named = disk.list(&RelPath::root())?.into_iter().map(|listed| {
            let path = disk.root().join(&listed.name);
            (path.to_string_lossy().into_owned(), listed.is_dir)
        });
        Ok(named.collect())
    }
}

/// One V1 file on some disk.
#[derive(Clone, Debug)]
pub struct V1File {
    address: String,
    disk: Arc<dyn Disk>,
    path: RelPath,
    format: V1Format,
}

impl V1File {
    /// A file of a disk; `address` is what finds it again. Names that end in `.sqlite` or `.db` are
    /// databases, all others lines.
    pub fn new(address: &str, disk: Arc<dyn Disk>, path: RelPath) -> Self {
        let name = path.file_name();
        let database = name.ends_with(".sqlite") || name.ends_with(".db");
        let format = if database { V1Format::SqliteV1 } else { V1Format::JsonlV3 };
        Self { address: address.to_owned(), disk, path, format }
    }

    /// What finds it again.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its form.
    #[must_use]
    pub fn format(&self) -> V1Format {
        self.format
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.file_name()
    }

    /// Its length; `None` when it is not there.
    pub fn len(&self) -> Result<Option<u64>> {
        Ok(self.disk.stat(&self.path)?.filter(|stat| !stat.is_dir).map(|stat| stat.len))
    }

    /// Whether it is there and has nothing in it.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == Some(0))
    }

    pub(crate) fn open(&self, access: Access) -> Result<Box<dyn File>> {
        match self.disk.open(&self.path, access) {
            Ok(file) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(MigrateError::Missing { address: self.address.clone() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Feeds everything that the file holds to a mapper, and returns which bytes those were. `watch` is called
    /// how many bytes of how many are done; records are taken out of the mapper there.
    pub(crate) fn feed(
        &self,
        mapper: &mut Mapper,
        watch: &mut dyn FnMut(&mut Mapper, u64, u64) -> Result<()>,
    ) -> Result<Snapshot> {
        match self.format {
            V1Format::JsonlV3 => self.feed_lines(mapper, watch),
            V1Format::SqliteV1 => self.feed_rows(mapper, watch),
        }
    }

    fn feed_lines(
        &self,
        mapper: &mut Mapper,
        watch: &mut dyn FnMut(&mut Mapper, u64, u64) -> Result<()>,
    ) -> Result<Snapshot> {
        let file = self.open(Access::Read)?;
        let mut lines = Lines::new(&*file)?;
        while let Some(line) = lines.next_line()? {
            self.check_length(&line)?;
            mapper.line(&line);
            lines.forget_line();
            watch(mapper, lines.position(), lines.end())?;
        }
        Ok(lines.snapshot())
    }

    fn check_length(&self, line: &Line<'_>) -> Result<()> {
        match line.content {
            Content::TooLong(size) => Err(MigrateError::LineTooLarge {
                address: self.address.clone(),
                line: line.number,
                size,
                limit: crate::limits::LINE_BYTES_MAX,
            }),
            Content::Bytes(_) => Ok(()),
        }
    }

    fn feed_rows(
        &self,
        mapper: &mut Mapper,
        watch: &mut dyn FnMut(&mut Mapper, u64, u64) -> Result<()>,
    ) -> Result<Snapshot> {
        let (session, snapshot) = self.open_database()?;
        let mut done = 0;
        session.rows(&mut |number, text| {
            let content = Content::Bytes(text.as_bytes());
            mapper.line(&Line { number, content, ended: true });
            done = (done + text.len() as u64).min(snapshot.len);
            watch(mapper, done, snapshot.len)
        })?;
        let meta = session.meta()?;
        if !meta.is_empty() {
            mapper.aside(&Value::Object(meta));
        }
        watch(mapper, snapshot.len, snapshot.len)?;
        Ok(snapshot)
    }

    /// The database, read into memory once, so that looking at it changes nothing beside it.
    pub(crate) fn open_database(&self) -> Result<(SqliteSession, Snapshot)> {
        for ending in ["-journal", "-wal"] {
            let beside = format!("{}{ending}", self.name());
            let stat = self.disk.stat(&self.path.parent().join(&beside)?)?;
            if stat.is_some_and(|stat| stat.len > 0) {
                let address = self.address.clone();
                return Err(MigrateError::UnfinishedWrite { address, beside });
            }
        }
        let file = self.open(Access::Read)?;
        let not_a_session = |reason: String| {
            let address = self.address.clone();
            MigrateError::NotASession { address, reason }
        };
        let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
        if len == 0 {
            return Err(not_a_session("it has nothing in it".to_owned()));
        }
        if len as u64 > SQLITE_BYTES_MAX {
            let reason = format!("{len} bytes are more than a database may have here");
            return Err(not_a_session(reason));
        }
        let mut bytes = HashedRead { file: &*file, at: 0, hasher: Sha256::new() };
        let session = SqliteSession::read(&mut bytes, len);
        let session = session.map_err(|error| not_a_session(error.to_string()))?;
        Ok((session, Snapshot { digest: bytes.hasher.finalize().into(), len: bytes.at }))
    }

    /// The snapshot of the file as it is.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        let file = self.open(Access::Read)?;
        let len = file.len()?;
        Ok(super::digest_of_prefix(&*file, len)?)
    }

    /// Puts the bytes that `write` makes in the file's place, whole or not at all, with the file's permissions. `write`
    /// returns whether the file is to be replaced after all; `false` leaves it as it is.
    pub(crate) fn replace(&self, write: &mut dyn FnMut(&dyn File) -> Result<bool>) -> Result<bool> {
        let temp = self.temp()?;
        if self.disk.stat(&temp)?.is_some() {
            self.disk.remove_file(&temp)?;
        }
        let file = self.disk.create(&temp)?;
        let wanted = self.disk.copy_permissions(&self.path, &temp).map_err(Into::into);
        let wanted = wanted.and_then(|()| write(&*file));
        if !matches!(wanted, Ok(true)) {
            drop(file);
            self.disk.remove_file(&temp)?;
            return wanted;
        }
        drop(file);
        self.disk.rename(&temp, &self.path)?;
        self.disk.sync_dir(&self.path.parent())?;
        Ok(true)
    }

    /// Puts other bytes in the place of those that the snapshot is of; `false` when they are not there any more.
    pub(crate) fn replace_if_unchanged(&self, known: &Snapshot, bytes: &[u8]) -> Result<bool> {
        self.replace(&mut |new| {
            new.write_at(0, bytes)?;
            new.sync()?;
            Ok(self.snapshot()? == *known)
        })
    }

    /// Removes what a crash in [`V1File::replace`] left.
    pub(crate) fn sweep(&self) -> Result<()> {
        let temp = self.temp()?;
        if self.disk.stat(&temp)?.is_some() {
            self.disk.remove_file(&temp)?;
            self.disk.sync_dir(&temp.parent())?;
        }
        Ok(())
    }

    fn temp(&self) -> Result<RelPath> {
        Ok(self.path.parent().join(&format!("{}.bough-tmp", self.name()))?)
    }

    /// Keeps other processes of ours from writing the file. `None` where the folder cannot be written to:
    /// then no other process of ours can either.
    pub(crate) fn lock(&self) -> Result<Option<Box<dyn Lock>>> {
        let path = self.path.parent().join(&format!("{}.bough-lock", self.name()))?;
        let holder = format!("pid {}", host_facts().pid);
        match self.disk.lock(&path, &holder) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Held { holder }) => {
                Err(MigrateError::Locked { address: self.address.clone(), holder })
            }
            Err(LockError::Io(error)) => match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Ok(None),
                _ => Err(error.into()),
            },
        }
    }

    /// Does something while other processes of ours are kept from writing the file.
    pub(crate) fn locked<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let lock = self.lock()?;
        let done = work();
        if let Some(lock) = lock {
            lock.remove()?;
        }
        done
    }

    /// The address in the first of these pointers that is to a V1 file.
    pub(crate) fn address_in(pointers: [Option<&Pointer>; 2]) -> Option<&str> {
        let found = pointers.into_iter().flatten().find_map(Self::of_pointer);
        found.map(|(address, _)| address)
    }

    /// The parts of a pointer to this file, or to another.
    pub(crate) fn of_pointer(pointer: &Pointer) -> Option<(&str, &str)> {
        match pointer {
            Pointer::NativeV2 => None,
            Pointer::JsonlV3 { path, snapshot_id } | Pointer::SqliteV1 { path, snapshot_id } => {
                Some((path, snapshot_id))
            }
        }
    }
}

/// Reads a file from its beginning, taking the digest on the way.
struct HashedRead<'a> {
    file: &'a dyn File,
    at: u64,
    hasher: Sha256,
}

impl io::Read for HashedRead<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, out)?;
        self.hasher.update(out.get(..read).unwrap_or_default());
        self.at += read as u64;
        Ok(read)
    }
}
