//! Blobs in memory, for tests and for stores that keep nothing.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;

use super::{BlobDigest, BlobError, Blobs, digest_to_keep};
use crate::sync::lock;

/// Blobs that end with the process.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<BlobDigest, Vec<u8>>>,
}

impl MemoryBlobs {
    /// No blobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<BlobDigest, Vec<u8>>> {
        lock(&self.blobs)
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, bytes: Vec<u8>) -> Result<BlobDigest, BlobError> {
        let digest = digest_to_keep(&bytes)?;
        self.lock().insert(digest, bytes);
        Ok(digest)
    }

    async fn get(&self, digest: BlobDigest) -> Result<Option<Vec<u8>>, BlobError> {
        Ok(self.lock().get(&digest).cloned())
    }

    async fn list(
        &self,
        after: Option<BlobDigest>,
        limit: usize,
    ) -> Result<Vec<(BlobDigest, u64)>, BlobError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let blobs = self.lock();
        let found = blobs.range((start, Bound::Unbounded)).take(limit);
        Ok(found.map(|(digest, bytes)| (*digest, bytes.len() as u64)).collect())
    }

    async fn remove(&self, digest: BlobDigest) -> Result<bool, BlobError> {
        Ok(self.lock().remove(&digest).is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::blobs::conformance;

    #[tokio::test]
    async fn memory_keeps_the_promises_of_blobs() {
        conformance::run_all(&|| Arc::new(MemoryBlobs::new())).await;
    }
}
