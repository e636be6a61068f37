//! The real disk.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "only this crate may")]

use std::fs;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::{Access, Disk, File, Listed, Lock, LockError, RelPath, Stat, if_there};

/// The default data directory of a user: `$XDG_DATA_HOME/bough`, else the platform's usual place
/// below the home directory. `None` if there is no home directory either.
#[must_use]
pub fn user_data_dir() -> Option<PathBuf> {
    let set =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| {
        if cfg!(windows) {
            set("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            set("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            set("HOME").map(|home| home.join(".local/share"))
        }
    });
    base.map(|base| base.join("bough"))
}

/// A directory of the operating system's.
#[derive(Debug)]
pub struct OsDisk {
    root: PathBuf,
}

impl OsDisk {
    /// Roots a disk at `root`, creating the directory (mode 0700) and its parents where missing.
    pub fn create(root: impl AsRef<Path>) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        private_dir(&mut builder);
        builder.create(root.as_ref())?;
        Self::open(root)
    }

    /// Roots a disk at a directory that exists.
    pub fn open(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        if !fs::metadata(&root)?.is_dir() {
            let text = format!("{} is not a directory", root.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
        }
        Ok(Self { root })
    }

    /// Roots a disk at a directory that may be missing; then the disk is empty. For reading only.
    pub fn open_to_look(root: impl AsRef<Path>) -> io::Result<Self> {
        match Self::open(&root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { root: std::path::absolute(root)? })
            }
            opened => opened,
        }
    }

    /// The directory in the operating system's words.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn at(&self, path: &RelPath) -> PathBuf {
        if path.as_str().is_empty() { self.root.clone() } else { self.root.join(path.as_str()) }
    }
}

impl Disk for OsDisk {
    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true);
        private_file(&mut options);
        Ok(Box::new(OsFile { file: options.open(self.at(path))? }))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(access == Access::ReadWrite).append(access == Access::Append);
        follow_no_links(&mut options);
        Ok(Box::new(OsFile { file: options.open(self.at(path))? }))
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        private_dir(&mut builder);
        builder.create(self.at(path))
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        fs::remove_dir(self.at(path))
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Listed>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(path))? {
            let entry = entry?;
            names.push(Listed {
                name: entry.file_name().to_string_lossy().into_owned(),
                is_dir: entry.file_type()?.is_dir(),
            });
        }
        names.sort();
        Ok(names)
    }

    fn stat(&self, path: &RelPath) -> io::Result<Option<Stat>> {
        Ok(if_there(fs::symlink_metadata(self.at(path)))?.map(|meta| Stat {
            len: meta.len(),
            allocated: allocated(&meta),
            is_dir: meta.is_dir(),
            modified_ms: modified_ms(&meta),
            id: file_id(&meta),
        }))
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        sync_dir(&self.at(path))
    }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        loop {
            let file = open_lock_to_take(&self.at(path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(LockError::Held { holder: read_holder(&file)? });
                }
                Err(fs::TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
            // The previous holder may have removed the file between our open and our lock. A lock on a file that no
            // name leads to excludes nobody.
            if !is_still_at(&file, &self.at(path))? {
                continue;
            }
            file.set_len(0)?;
            let file = OsFile { file };
            file.write_at(0, holder.as_bytes())?;
            return Ok(Box::new(OsLock { file: file.file, path: self.at(path) }));
        }
    }

    fn lock_holder(&self, path: &RelPath) -> io::Result<Option<String>> {
        let Some(file) = if_there(open_lock_to_look(&self.at(path)))? else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(fs::TryLockError::WouldBlock) => read_holder(&file).map(Some),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn copy_permissions(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        fs::set_permissions(self.at(to), fs::metadata(self.at(from))?.permissions())
    }
}

#[derive(Debug)]
struct OsFile {
    file: fs::File,
}

impl File for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match positional_read(&self.file, at + done as u64, rest) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match positional_write(&self.file, at + done as u64, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut file = &self.file;
        let written = loop {
            match file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => break written?,
            }
        };
        // The rest would be written behind what others append meanwhile.
        if written < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(file.stream_position()?.saturating_sub(written as u64))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn has_other_writers(&self) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        return crate::writers::has_other_writers(&self.file);
        #[cfg(not(target_os = "linux"))]
        return Ok(false);
    }
}

#[derive(Debug)]
struct OsLock {
    file: fs::File,
    path: PathBuf,
}

impl Lock for OsLock {
    fn remove(self: Box<Self>) -> io::Result<()> {
        // Remove it while we hold it: a process that opened the old file in between will find,
        // after locking it, that it is no longer at its path, and start over.
        let removed = fs::remove_file(&self.path);
        drop(self.file);
        removed
    }
}

fn open_lock_to_take(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    private_file(&mut options);
    follow_no_links(&mut options);
    options.open(path)
}

/// Opens for reading only: a reader of a store on a read-only mount may not open anything for writing.
fn open_lock_to_look(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    follow_no_links(&mut options);
    options.open(path)
}

fn read_holder(file: &fs::File) -> io::Result<String> {
    /// Holders write a short line; a longer text is not ours.
    const HOLDER_BYTES_MAX: usize = 4096;
    let mut bytes = vec![0; HOLDER_BYTES_MAX];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match positional_read(file, done as u64, rest)? {
            0 => break,
            read => done += read,
        }
    }
    bytes.truncate(done);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn modified_ms(meta: &fs::Metadata) -> i64 {
    let since =
        meta.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(unix)]
mod system {
    use std::fs;
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use crate::{FileId, if_there};

    pub(super) fn private_dir(builder: &mut fs::DirBuilder) {
        builder.mode(0o700);
    }

    pub(super) fn private_file(options: &mut fs::OpenOptions) {
        options.mode(0o600);
    }

    /// A link planted in the data directory must not lead a write out of it.
    pub(super) fn follow_no_links(options: &mut fs::OpenOptions) {
        options.custom_flags(libc::O_NOFOLLOW);
    }

    pub(super) fn positional_read(file: &fs::File, at: u64, out: &mut [u8]) -> io::Result<usize> {
        file.read_at(out, at)
    }

    pub(super) fn positional_write(file: &fs::File, at: u64, bytes: &[u8]) -> io::Result<usize> {
        file.write_at(bytes, at)
    }

    /// The system counts in blocks of 512 bytes, whatever the file system's are.
    pub(super) fn allocated(meta: &fs::Metadata) -> u64 {
        meta.blocks().saturating_mul(512)
    }

    pub(super) fn file_id(meta: &fs::Metadata) -> Option<FileId> {
        Some(FileId { device: meta.dev(), number: meta.ino() })
    }

    pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    pub(super) fn is_still_at(file: &fs::File, path: &Path) -> io::Result<bool> {
        let held = file.metadata()?;
        let named = if_there(fs::metadata(path))?;
        Ok(named.is_some_and(|named| held.dev() == named.dev() && held.ino() == named.ino()))
    }
}

#[cfg(windows)]
mod system {
    use std::fs;
    use std::io;
    use std::os::windows::fs::FileExt;
    use std::path::Path;

    use crate::FileId;

    pub(super) fn private_dir(_: &mut fs::DirBuilder) {}
    pub(super) fn private_file(_: &mut fs::OpenOptions) {}
    pub(super) fn follow_no_links(_: &mut fs::OpenOptions) {}

    pub(super) fn positional_read(file: &fs::File, at: u64, out: &mut [u8]) -> io::Result<usize> {
        file.seek_read(out, at)
    }

    pub(super) fn positional_write(file: &fs::File, at: u64, bytes: &[u8]) -> io::Result<usize> {
        file.seek_write(bytes, at)
    }

    pub(super) fn allocated(meta: &fs::Metadata) -> u64 {
        meta.len()
    }

    /// The standard library does not offer it. Windows refuses to remove a file that is open, so a path keeps its file.
    pub(super) const fn file_id(_: &fs::Metadata) -> Option<FileId> {
        None
    }

    /// NTFS journals names by itself and has no call for this.
    pub(super) fn sync_dir(_: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Windows refuses to remove a file that is open, so a locked file is always at its path.
    pub(super) fn is_still_at(_: &fs::File, _: &Path) -> io::Result<bool> {
        Ok(true)
    }
}

use system::{
    allocated, file_id, follow_no_links, is_still_at, positional_read, positional_write,
    private_dir, private_file, sync_dir,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (tempfile::TempDir, OsDisk) {
        let dir = tempfile::tempdir().unwrap();
        let disk = OsDisk::create(dir.path().join("root")).unwrap();
        (dir, disk)
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn a_second_lock_is_refused_with_the_holder_and_freed_on_drop() {
        let (_dir, disk) = disk();
        let lock = disk.lock(&path("lock"), "first").unwrap();
        let second = disk.lock(&path("lock"), "second");
        assert!(matches!(second, Err(LockError::Held { holder }) if holder == "first"));
        assert_eq!(disk.lock_holder(&path("lock")).unwrap().as_deref(), Some("first"));
        drop(lock);
        assert_eq!(disk.lock_holder(&path("lock")).unwrap(), None);
        let again = disk.lock(&path("lock"), "third").unwrap();
        again.remove().unwrap();
        assert_eq!(disk.stat(&path("lock")).unwrap(), None);
    }

    /// Root may open anything for writing, so the mode of the file that is looked through is checked itself.
    #[test]
    fn who_holds_a_lock_is_seen_without_opening_it_for_writing() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, disk) = disk();
        let _lock = disk.lock(&path("lock"), "first").unwrap();
        let file = disk.root().join("lock");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(disk.lock_holder(&path("lock")).unwrap().as_deref(), Some("first"));
        let looked = open_lock_to_look(&file).unwrap();
        assert!(positional_write(&looked, 0, b"x").is_err());
        assert_eq!(read_holder(&looked).unwrap(), "first");
    }

    #[test]
    fn an_append_goes_behind_what_others_appended_and_says_where() {
        let (_dir, disk) = disk();
        disk.create(&path("f")).unwrap().write_at(0, b"ab").unwrap();
        let ours = disk.open(&path("f"), Access::Append).unwrap();
        let theirs = disk.open(&path("f"), Access::Append).unwrap();
        assert_eq!(ours.append(b"cd").unwrap(), 2);
        assert_eq!(theirs.append(b"e").unwrap(), 4);
        assert_eq!(ours.append(b"fg").unwrap(), 5);
        let mut all = [0; 8];
        assert_eq!(ours.read_at(0, &mut all).unwrap(), 7);
        assert_eq!(&all[..7], b"abcdefg");
    }

    #[test]
    fn permissions_are_copied() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, disk) = disk();
        drop(disk.create(&path("a")).unwrap());
        drop(disk.create(&path("b")).unwrap());
        fs::set_permissions(disk.root().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
        disk.copy_permissions(&path("a"), &path("b")).unwrap();
        let mode = fs::metadata(disk.root().join("b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn files_and_folders_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, disk) = disk();
        disk.create_dir(&path("d")).unwrap();
        disk.create(&path("d/f")).unwrap().write_at(0, b"x").unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(disk.root()), 0o700);
        assert_eq!(mode(&disk.root().join("d")), 0o700);
        assert_eq!(mode(&disk.root().join("d/f")), 0o600);
    }

    #[test]
    fn a_link_is_not_followed() {
        let (dir, disk) = disk();
        fs::write(dir.path().join("outside"), b"secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), disk.root().join("link")).unwrap();
        assert!(disk.open(&path("link"), Access::Read).is_err());
    }

    #[test]
    fn what_a_folder_occupies_is_what_is_in_it_and_itself() {
        let (_dir, disk) = disk();
        let disk: &dyn Disk = &disk;
        disk.create_dir(&path("d")).unwrap();
        let empty = disk.allocated(&path("d")).unwrap();
        let file = disk.create(&path("d/f")).unwrap();
        file.write_at(0, &[7; 10_000]).unwrap();
        file.sync().unwrap();
        let bytes = disk.allocated(&path("d/f")).unwrap();
        assert!(bytes > 0, "a file with bytes occupies some");
        assert_eq!(disk.allocated(&path("d")).unwrap(), empty + bytes);
        assert_eq!(disk.allocated(&path("absent")).unwrap(), 0);
    }

    #[test]
    fn replace_leaves_one_file_with_the_new_bytes() {
        let (_dir, disk) = disk();
        let disk: &dyn Disk = &disk;
        disk.replace(&path("m"), &path("m.tmp"), b"one").unwrap();
        disk.replace(&path("m"), &path("m.tmp"), b"two").unwrap();
        assert_eq!(disk.read_all(&path("m"), 10).unwrap(), b"two");
        assert_eq!(disk.list(&RelPath::root()).unwrap().len(), 1);
        assert!(disk.read_all(&path("m"), 2).is_err());
    }
}
