use std::collections::VecDeque;

use bough_session::{Entry, EntryId};

use crate::limits::STREAMS_PER_SESSION_MAX;

/// The messages of a session that changed last, as of the last accepted step, so that a stream of a thousand steps reads
/// its message once.
#[derive(Default)]
pub(super) struct Streams {
    /// The one that changed last is at the back.
    entries: VecDeque<Stream>,
}

/// A message that is being written.
pub(crate) struct Stream {
    /// The message as of the last accepted step.
    pub(crate) entry: Entry,
    /// At least as many bytes as its content takes; counted up with each step, so that a long stream does not
    /// measure its whole content each time.
    pub(crate) bytes: usize,
}

impl Streams {
    pub(super) fn get(&self, id: &EntryId) -> Option<&Stream> {
        self.entries.iter().find(|stream| stream.entry.id == *id)
    }

    /// Takes a message out, to be changed and put back.
    pub(super) fn take(&mut self, id: &EntryId) -> Option<Stream> {
        let at = self.entries.iter().position(|stream| stream.entry.id == *id)?;
        self.entries.remove(at)
    }

    pub(super) fn put(&mut self, stream: Stream) {
        self.entries.retain(|old| old.entry.id != stream.entry.id);
        self.entries.push_back(stream);
        if self.entries.len() > STREAMS_PER_SESSION_MAX {
            self.entries.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}
