//! Writing a session file in pieces, and knowing its content again.

use std::io::{self, Write};

use bough_platform::{Access, Disk, File, RelPath};

use crate::lineage::FileMark;

const PIECE_BYTES: usize = 1 << 20;

/// A file that is written from its beginning, in large pieces.
pub(super) struct PieceWriter {
    file: Box<dyn File>,
    at: u64,
    crc: u32,
    piece: Vec<u8>,
}

impl PieceWriter {
    pub(super) fn new(file: Box<dyn File>) -> Self {
        Self { file, at: 0, crc: 0, piece: Vec::with_capacity(PIECE_BYTES) }
    }

    /// Makes everything durable, and says what was written.
    pub(super) fn finish(mut self) -> io::Result<FileMark> {
        self.write_piece()?;
        self.file.sync()?;
        Ok(FileMark { len: self.at, crc: self.crc })
    }

    #[cold]
    fn write_piece(&mut self) -> io::Result<()> {
        self.file.write_at(self.at, &self.piece)?;
        self.at += u64::try_from(self.piece.len()).unwrap_or(u64::MAX);
        self.crc = crc32c::crc32c_append(self.crc, &self.piece);
        self.piece.clear();
        Ok(())
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// JSON is written a few bytes at a time, so this is most of what writing costs.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.piece.len() + bytes.len() > PIECE_BYTES {
            self.write_piece()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn mark_of(bytes: &[u8]) -> FileMark {
    FileMark { len: u64::try_from(bytes.len()).unwrap_or(u64::MAX), crc: crc32c::crc32c(bytes) }
}

/// Whether the file's content is the one that `mark` knows. Nothing is read if its length says no.
pub(super) fn is_marked(disk: &dyn Disk, path: &RelPath, mark: FileMark) -> io::Result<bool> {
    let file = disk.open(path, Access::Read)?;
    if file.len()? != mark.len {
        return Ok(false);
    }
    let (mut at, mut crc) = (0, 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read_at(at, &mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Ok(crc == mark.crc && at == mark.len);
        };
        crc = crc32c::crc32c_append(crc, bytes);
        at += u64::try_from(read).unwrap_or(u64::MAX);
    }
}
