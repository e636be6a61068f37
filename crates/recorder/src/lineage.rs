//! What a session value remembers of the file that it was read from or last written to.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::RecordedSession;

/// The content of a file, by length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMark {
    pub(crate) len: u64,
    pub(crate) crc: u32,
}

type SharedMark = Arc<Mutex<Option<FileMark>>>;

/// The last file content that a session value is known to contain completely.
///
/// A clone has its own memory from then on: two clones that change independently and are both saved are two writers. So
/// are a recorder and a caller that changes a session which the recorder returned.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    mark: SharedMark,
    handed_out: Option<HandedOut>,
}

/// The origin of a session value that a recorder returned.
#[derive(Clone, Debug)]
struct HandedOut {
    /// The session as the recorder has it. Its loops are shared with the value until one of the two changes.
    original: Arc<RecordedSession>,
    /// What the recorder's own value remembers.
    recorder: SharedMark,
}

impl Lineage {
    pub(crate) fn of(mark: FileMark) -> Self {
        Self { mark: Arc::new(Mutex::new(Some(mark))), handed_out: None }
    }

    /// For another value that is saved instead of this one: both share their memory.
    pub(crate) fn shared(&self) -> Self {
        Self { mark: Arc::clone(&self.mark), handed_out: self.handed_out.clone() }
    }

    pub(crate) fn mark(&self) -> Option<FileMark> {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedSession {
    /// A copy for a caller that may change it while the recorder continues with this value.
    pub(crate) fn hand_out(&self) -> Self {
        let mut copy = self.clone();
        copy.lineage.handed_out = Some(HandedOut {
            original: Arc::new(self.clone()),
            recorder: Arc::clone(&self.lineage.mark),
        });
        copy
    }

    /// Notes that the session was written as it is. The recorder that returned it need not compare its next version
    /// with the file, unless the caller changed the session: then the file has something that the recorder does not
    /// know.
    pub(crate) fn saved_as(&self, mark: FileMark) {
        let Lineage { mark: own, handed_out } = &self.lineage;
        set(own, mark);
        if let Some(HandedOut { original, recorder }) = handed_out
            && **original == *self
        {
            set(recorder, mark);
        }
    }
}

fn set(remembered: &SharedMark, mark: FileMark) {
    *remembered.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
}

impl Clone for Lineage {
    fn clone(&self) -> Self {
        Self { mark: Arc::new(Mutex::new(self.mark())), handed_out: self.handed_out.clone() }
    }
}

/// Where a session was stored is not part of its content, so any two are equal.
impl PartialEq for Lineage {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
