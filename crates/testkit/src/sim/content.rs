use std::hash::{DefaultHasher, Hasher};
use std::sync::OnceLock;

/// The bytes of a file, with their digest once it was computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    bytes: Vec<u8>,
    digest: OnceLock<u64>,
}

impl Content {
    pub(crate) const fn new(bytes: Vec<u8>) -> Self {
        let digest = OnceLock::new();
        Self { bytes, digest }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| digest_of(&self.bytes))
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        self.digest = OnceLock::new();
        &mut self.bytes
    }

    /// Puts bytes at an offset; the gap between the old end and the offset becomes zero.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = at.saturating_add(bytes.len());
        let all = self.bytes_mut();
        if all.len() < end {
            all.resize(end, 0);
        }
        if let Some(place) = all.get_mut(at..end) {
            place.copy_from_slice(bytes);
        }
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.bytes_mut().resize(len, 0);
    }
}

/// A digest for comparing images; it is not cryptographic.
pub(crate) fn digest_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// One digest of two, in that order.
pub(crate) fn digest_pair(first: u64, second: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(first);
    hasher.write_u64(second);
    hasher.finish()
}
