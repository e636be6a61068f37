//! Writing a session file in pieces, and recognising its content later.
//!
//! Serialising a session takes about as long as the disk takes to store it, so both happen at once: from the second
//! piece on, a thread writes the pieces to the disk while the next ones are made.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use bough_platform::{Access, Disk, File, RelPath};

use crate::limits::{SAVE_PIECE_BYTES, SAVE_PIECES_WAITING_MAX, SAVE_UNSYNCED_PIECES_MAX};
use crate::lineage::FileMark;

/// A file that is written from its beginning, in large pieces.
pub(super) struct PieceWriter {
    written: Written,
    /// The thread that writes the pieces, if there is more than one.
    thread: Option<WriterThread>,
    piece: Vec<u8>,
}

impl PieceWriter {
    pub(super) fn new(file: Box<dyn File>) -> Self {
        let written = Written { file: Arc::from(file), mark: FileMark { len: 0, crc: 0 } };
        Self { written, thread: None, piece: Vec::with_capacity(SAVE_PIECE_BYTES) }
    }

    /// Makes everything durable, and returns the mark of the content.
    pub(super) fn finish(mut self) -> io::Result<FileMark> {
        let written = match self.thread.take() {
            Some(thread) => thread.finish(self.piece)?,
            None => {
                self.written.add(&self.piece)?;
                self.written
            }
        };
        written.file.sync()?;
        Ok(written.mark)
    }

    #[cold]
    fn hand_over(&mut self) -> io::Result<()> {
        let thread = match &mut self.thread {
            Some(thread) => thread,
            None => self.thread.insert(WriterThread::start(self.written.clone())?),
        };
        let empty = thread.empty.try_recv();
        let empty = empty.unwrap_or_else(|_| Vec::with_capacity(SAVE_PIECE_BYTES));
        let piece = std::mem::replace(&mut self.piece, empty);
        thread.send(piece)
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// JSON is written a few bytes at a time, so this is most of the cost of writing.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.piece.len() + bytes.len() > SAVE_PIECE_BYTES {
            self.hand_over()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The written part of a file.
#[derive(Clone)]
struct Written {
    file: Arc<dyn File>,
    mark: FileMark,
}

impl Written {
    fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_at(self.mark.len, piece)?;
        self.mark.len += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.mark.crc = crc32c::crc32c_append(self.mark.crc, piece);
        Ok(())
    }
}

/// A thread that writes pieces to the disk, in order. It ends when its sender is dropped.
struct WriterThread {
    pieces: Option<SyncSender<Vec<u8>>>,
    /// Written buffers, to be filled again.
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<Written>>>,
}

impl WriterThread {
    fn start(written: Written) -> io::Result<Self> {
        let (pieces, inbox) = sync_channel(SAVE_PIECES_WAITING_MAX);
        let (done, empty) = channel();
        let thread = std::thread::Builder::new().name("bough-save".to_owned());
        let thread = thread.spawn(move || carry(written, &inbox, &done))?;
        Ok(Self { pieces: Some(pieces), empty, thread: Some(thread) })
    }

    fn send(&mut self, piece: Vec<u8>) -> io::Result<()> {
        let sent = self.pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if sent { Ok(()) } else { Err(self.join().err().unwrap_or_else(broken_off)) }
    }

    fn finish(mut self, last: Vec<u8>) -> io::Result<Written> {
        self.send(last)?;
        self.join()
    }

    /// Waits until the thread has ended.
    fn join(&mut self) -> io::Result<Written> {
        self.pieces = None;
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| Err(broken_off()))
    }
}

impl Drop for WriterThread {
    /// A save that is given up removes its file, so the thread must not be writing it then.
    fn drop(&mut self) {
        drop(self.join());
    }
}

fn carry(
    mut written: Written,
    inbox: &Receiver<Vec<u8>>,
    done: &Sender<Vec<u8>>,
) -> io::Result<Written> {
    let mut unsynced = 0;
    for mut piece in inbox {
        written.add(&piece)?;
        unsynced += 1;
        if unsynced == SAVE_UNSYNCED_PIECES_MAX {
            // Let the disk begin now, and not when everything is made.
            written.file.sync()?;
            unsynced = 0;
        }
        piece.clear();
        // The receiver is gone if the last piece was made already.
        drop(done.send(piece));
    }
    Ok(written)
}

fn broken_off() -> io::Error {
    io::Error::other("the thread that writes the file has ended")
}

pub(super) fn mark_of(bytes: &[u8]) -> FileMark {
    FileMark { len: u64::try_from(bytes.len()).unwrap_or(u64::MAX), crc: crc32c::crc32c(bytes) }
}

/// Whether the file's content is the one that `mark` describes. Nothing is read if the length
/// differs.
pub(super) fn is_marked(disk: &dyn Disk, path: &RelPath, mark: FileMark) -> io::Result<bool> {
    let file = disk.open(path, Access::Read)?;
    if file.len()? != mark.len {
        return Ok(false);
    }
    let (mut at, mut crc) = (0, 0);
    let mut piece = vec![0; SAVE_PIECE_BYTES];
    loop {
        let read = file.read_at(at, &mut piece)?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Ok(crc == mark.crc && at == mark.len);
        };
        crc = crc32c::crc32c_append(crc, bytes);
        at += u64::try_from(read).unwrap_or(u64::MAX);
    }
}
