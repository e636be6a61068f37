//! Files that a person names: read and written as a whole.

use std::path::{Path, PathBuf};

use bough_platform::{Access, Disk, Entropy, File, NamedKind, OsDisk, RelPath, follow};

use crate::command_error::{CommandError, CommandResult};
use crate::limits::FILE_BYTES_MAX;

/// The folder and the name of a path.
fn parts(path: &Path) -> CommandResult<(PathBuf, RelPath)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.and_then(|name| RelPath::root().join(name).ok());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_owned();
    name.map(|name| (folder, name))
        .ok_or_else(|| CommandError::usage(format!("{} is not the name of a file", path.display())))
}

fn failed(path: &Path, error: std::io::Error) -> CommandError {
    let mut failed = CommandError::from(error);
    failed.error = format!("{}: {}", path.display(), failed.error).into();
    failed
}

/// The folder and the name of a path's target: a person may name a link.
fn followed(path: &Path) -> CommandResult<(PathBuf, RelPath)> {
    match follow(path) {
        Ok(Some(named)) if named.kind == NamedKind::File => parts(&named.path),
        // If it cannot be followed, opening it reports why.
        _ => parts(path),
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> CommandResult<Box<dyn File>> {
    let (folder, name) = followed(path)?;
    let opened = OsDisk::open(&folder).and_then(|disk| disk.open(&name, Access::Read));
    opened.map_err(|error| failed(path, error))
}

/// A whole file as text.
pub(crate) fn read_text(path: &Path) -> CommandResult<String> {
    read_text_up_to(path, FILE_BYTES_MAX)
}

/// A whole file of at most `most` bytes as text.
pub(crate) fn read_text_up_to(path: &Path, most: u64) -> CommandResult<String> {
    let (folder, name) = followed(path)?;
    let read = OsDisk::open(&folder).and_then(|disk| (&disk as &dyn Disk).read_all(&name, most));
    let bytes = read.map_err(|error| failed(path, error))?;
    String::from_utf8(bytes)
        .map_err(|_| CommandError::failed(format!("{} is not UTF-8 text", path.display())))
}

/// A file that is written piece by piece beside the old one, and replaces it at the end.
pub(crate) struct NewFile {
    path: PathBuf,
    disk: OsDisk,
    name: RelPath,
    temp: RelPath,
    file: Box<dyn File>,
    at: u64,
}

impl NewFile {
    /// Begins a file that will be at `path`, or at the target of the link at `path`.
    pub(crate) fn begin(path: &Path) -> CommandResult<Self> {
        refuse_special(path)?;
        let (folder, name) = followed(path)?;
        let begun = OsDisk::open(&folder).and_then(|disk| {
            let temp = RelPath::root().join(&format!(".{}.bough-tmp", name.file_name()))?;
            if disk.stat(&temp)?.is_some() {
                disk.remove_file(&temp)?;
            }
            let file = disk.create(&temp)?;
            Ok(Self { path: path.to_owned(), disk, name, temp, file, at: 0 })
        });
        begun.map_err(|error| failed(path, error))
    }

    /// Syncs the file and renames it to its place.
    pub(crate) fn finish(self) -> CommandResult<()> {
        let Self { path, disk, name, temp, file, .. } = self;
        let placed = file.sync().and_then(|()| {
            disk.rename(&temp, &name)?;
            disk.sync_dir(&RelPath::root())
        });
        placed.map_err(|error| failed(&path, error))
    }

    /// Removes it again.
    pub(crate) fn discard(self) {
        // It does no harm; the next attempt removes it.
        drop(self.disk.remove_file(&self.temp));
    }
}

impl std::io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_at(self.at, bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Refuses a target that a new file must not replace: a device or a pipe would be gone.
fn refuse_special(path: &Path) -> CommandResult<()> {
    let what = match follow(path).map_err(|error| failed(path, error))?.map(|named| named.kind) {
        None | Some(NamedKind::File) => return Ok(()),
        Some(NamedKind::Folder) => "a directory",
        Some(NamedKind::Other) => "a device or a pipe",
    };
    let text = format!("{} is {what}, not a file", path.display());
    Err(CommandError::usage(text).hint("name a file, or leave it out and redirect the output"))
}

/// Whether a path leads to a folder.
pub(crate) fn is_folder(path: &Path) -> bool {
    matches!(follow(path), Ok(Some(named)) if named.kind == NamedKind::Folder)
}

/// Whether something is at a path.
pub(crate) fn exists(path: &Path) -> bool {
    let Ok((folder, name)) = parts(path) else { return false };
    OsDisk::open(&folder).is_ok_and(|disk| disk.stat(&name).is_ok_and(|found| found.is_some()))
}

/// A file of this process, for an editor; removed when it is dropped.
pub(crate) struct TempFile {
    disk: OsDisk,
    name: RelPath,
}

impl TempFile {
    /// A file with a text in it, with a name that cannot be guessed.
    pub(crate) fn new(random: [u8; 8], suffix: &str, text: &str) -> CommandResult<Self> {
        let disk = OsDisk::open(std::env::temp_dir())?;
        let name = format!("bough-{}{suffix}", bough_session::hex(&random));
        let name = RelPath::root().join(&name).map_err(std::io::Error::from)?;
        let file = disk.create(&name)?;
        let made = Self { disk, name };
        file.write_at(0, text.as_bytes())?;
        Ok(made)
    }

    /// Its path.
    pub(crate) fn path(&self) -> PathBuf {
        self.disk.root().join(self.name.as_str())
    }

    /// When its content last changed, in milliseconds; `None` when it is gone.
    pub(crate) fn changed_at(&self) -> CommandResult<Option<i64>> {
        Ok(self.disk.stat(&self.name)?.map(|stat| stat.modified_ms))
    }

    /// Its present content.
    pub(crate) fn read(&self) -> CommandResult<String> {
        read_text(&self.path())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // An editor that renames may have removed it already.
        drop(self.disk.remove_file(&self.name));
    }
}

/// A directory of this process; removed with everything in it when it is dropped.
pub(crate) struct TempDir {
    disk: OsDisk,
    name: RelPath,
}

impl TempDir {
    /// An empty directory with a name that cannot be guessed.
    pub(crate) fn new(entropy: &dyn Entropy) -> CommandResult<Self> {
        let mut random = [0; 8];
        entropy.fill(&mut random)?;
        let disk = OsDisk::open(std::env::temp_dir())?;
        let name = format!("bough-{}", bough_session::hex(&random));
        let name = RelPath::root().join(&name).map_err(std::io::Error::from)?;
        disk.create_dir(&name)?;
        Ok(Self { disk, name })
    }

    /// Its path.
    pub(crate) fn path(&self) -> PathBuf {
        self.disk.root().join(self.name.as_str())
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let disk: &dyn Disk = &self.disk;
        // If it cannot be removed, the system empties its temporary directory.
        drop(disk.remove_tree(&self.name));
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Lines of a file or of standard input, with a bound on their length.
pub(crate) struct Lines<R> {
    from: R,
    limit: usize,
    number: u64,
}

/// One line that was read, or why it was not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// The line without its end.
    Line(Vec<u8>),
    /// It was longer than the bound and was skipped.
    TooLong,
}

impl<R: std::io::BufRead> Lines<R> {
    pub(crate) const fn new(from: R, limit: usize) -> Self {
        Self { from, limit, number: 0 }
    }

    /// The next line and its number, counted from 1.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<(u64, LineRead)>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let chunk = self.from.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            too_long |= self.limit < line.len() + part.len();
            if !too_long {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(self.numbered(line, too_long)));
            }
        }
        let any = !line.is_empty() || too_long;
        Ok(any.then(|| self.numbered(line, too_long)))
    }

    fn numbered(&mut self, mut line: Vec<u8>, too_long: bool) -> (u64, LineRead) {
        self.number += 1;
        if too_long {
            return (self.number, LineRead::TooLong);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        // Some editors begin a file with a byte order mark, which is not part of its text.
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        (self.number, LineRead::Line(line))
    }
}

/// A file as a reader from its beginning to its end.
pub(crate) struct FileReader {
    file: Box<dyn File>,
    at: u64,
}

impl FileReader {
    pub(crate) fn new(file: Box<dyn File>) -> Self {
        Self { file, at: 0 }
    }
}

impl std::io::Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(self.at, out)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Refuses to write over a file; `hint` says what else can be done.
pub(crate) fn refuse_existing(path: &Path, hint: &str) -> CommandResult<()> {
    if !exists(path) {
        return Ok(());
    }
    Err(CommandError::usage(format!("{} exists already", path.display())).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_error::ErrorKind;

    fn lines(text: &str, limit: usize) -> Vec<(u64, LineRead)> {
        let reader = std::io::BufReader::with_capacity(3, text.as_bytes());
        let mut lines = Lines::new(reader, limit);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    fn line(text: &str) -> LineRead {
        LineRead::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_end_with_a_line_feed_or_the_file() {
        assert_eq!(lines("one\r\n\ntwo", 9), [(1, line("one")), (2, line("")), (3, line("two"))]);
        assert_eq!(lines("", 9), []);
        assert_eq!(lines("a\n", 9), [(1, line("a"))]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(lines("\u{feff}a\n\u{feff}b", 9), [(1, line("a")), (2, line("\u{feff}b"))]);
        assert_eq!(lines("\u{feff}", 9), [(1, line(""))]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_whole() {
        assert_eq!(lines("abcdefgh\nij\n", 4), [(1, LineRead::TooLong), (2, line("ij"))]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_a_device_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        let device = folder.path().join("device");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        NewFile::begin(&file).unwrap().finish().unwrap();
        let mut new = NewFile::begin(&link).unwrap();
        std::io::Write::write_all(&mut new, b"through").unwrap();
        new.finish().unwrap();
        assert_eq!(read_text(&file).unwrap(), "through");
        assert_eq!(read_text(&link).unwrap(), "through");
        for path in [&device, &folder.path().to_owned()] {
            let refused = NewFile::begin(path).err().unwrap();
            assert_eq!(refused.kind, ErrorKind::Usage, "{refused}");
        }
    }

    #[test]
    fn a_file_is_replaced_and_a_name_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        assert!(!exists(&path));
        let write = |text: &str| {
            let mut file = NewFile::begin(&path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            file
        };
        write("one").finish().unwrap();
        write("half of tw").discard();
        assert_eq!(read_text(&path).unwrap(), "one", "what is not finished is not there");
        write("two").finish().unwrap();
        assert_eq!(read_text(&path).unwrap(), "two");
        assert!(refuse_existing(&path, "").is_err());
        assert_eq!(read_text(&folder.path().join("b")).unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(read_text(Path::new("/")).unwrap_err().kind, ErrorKind::Usage);
    }
}
