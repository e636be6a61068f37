//! What a session value remembers of the file that it was read from or last written to.

use std::sync::{Arc, Mutex, PoisonError};

/// The content of a file, by length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMark {
    pub(crate) len: u64,
    pub(crate) crc: u32,
}

/// The last file content that a session value is known to hold all of.
///
/// A clone remembers for itself from then on: two clones that change apart and are both saved are two
/// writers. [`Lineage::shared`] makes a value that remembers together with this one, for a session that
/// a recorder hands out and goes on with.
#[derive(Debug, Default)]
pub(crate) struct Lineage(Arc<Mutex<Option<FileMark>>>);

impl Lineage {
    pub(crate) fn of(mark: FileMark) -> Self {
        Self(Arc::new(Mutex::new(Some(mark))))
    }

    pub(crate) fn shared(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    pub(crate) fn mark(&self) -> Option<FileMark> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, mark: FileMark) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
    }
}

impl Clone for Lineage {
    fn clone(&self) -> Self {
        Self(Arc::new(Mutex::new(self.mark())))
    }
}

/// Where a session was stored is no part of what it says.
impl PartialEq for Lineage {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
