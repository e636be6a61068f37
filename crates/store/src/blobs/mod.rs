//! Large content that records refer to, kept once, by its digest.
//!
//! A blob never changes: its name is the SHA-256 of its bytes. So keeping it twice is harmless, several processes need no lock,
//! and a reader can tell whether the bytes are the ones that were kept.

pub mod limits;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

mod native;

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use bough_session::{hex, unhex};
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use native::NativeBlobs;

use limits::BLOB_BYTES_MAX;

/// Where large content is kept.
#[async_trait]
pub trait Blobs: fmt::Debug + Send + Sync {
    /// Stores bytes and returns their digest. They are durable when the call returns, also if they were stored before.
    async fn put(&self, bytes: Vec<u8>) -> Result<BlobDigest, BlobError>;

    /// The bytes with a digest, compared with it; `None` if they are not stored.
    async fn get(&self, digest: BlobDigest) -> Result<Option<Vec<u8>>, BlobError>;

    /// The stored digests and sizes, in the order of the digests, after `after`; at most `limit`.
    async fn list(
        &self,
        after: Option<BlobDigest>,
        limit: usize,
    ) -> Result<Vec<(BlobDigest, u64)>, BlobError>;

    /// Removes bytes for good; returns whether they were stored. The caller knows that no record refers to them.
    async fn remove(&self, digest: BlobDigest) -> Result<bool, BlobError>;
}

/// The name of a blob: the SHA-256 of its bytes, as text `sha256:` and 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest([u8; 32]);

/// Why blobs were not kept or read.
#[derive(Clone, Debug, Error)]
pub enum BlobError {
    /// The blob is larger than a store takes.
    #[error("the content has {bytes} bytes; a blob has at most {BLOB_BYTES_MAX}")]
    TooLarge {
        /// How many bytes it has.
        bytes: usize,
    },
    /// The stored bytes are not those that were given.
    #[error("the blob {digest} is damaged: {reason}; put its file back from a backup")]
    Corrupt {
        /// Which one.
        digest: BlobDigest,
        /// What is wrong.
        reason: String,
    },
    /// The blobs cannot be reached now. Try again.
    #[error("the blobs are not available: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl BlobDigest {
    const PREFIX: &'static str = "sha256:";

    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    fn hex(&self) -> String {
        hex(&self.0)
    }

    fn from_hex(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.hex())
    }
}

/// The text is not a digest of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a digest is `sha256:` and 64 lower-case hex digits")]
pub struct BlobDigestError;

impl FromStr for BlobDigest {
    type Err = BlobDigestError;

    fn from_str(text: &str) -> Result<Self, BlobDigestError> {
        text.strip_prefix(Self::PREFIX).and_then(Self::from_hex).ok_or(BlobDigestError)
    }
}

/// The digest of bytes that are small enough to be stored.
fn digest_to_keep(bytes: &[u8]) -> Result<BlobDigest, BlobError> {
    if bytes.len() > BLOB_BYTES_MAX {
        return Err(BlobError::TooLarge { bytes: bytes.len() });
    }
    Ok(BlobDigest::of(bytes))
}
