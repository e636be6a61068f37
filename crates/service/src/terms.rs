//! What one call asks for beside its request: that it may be repeated, and which life of a session it means.

use std::sync::atomic::{AtomicU64, Ordering};

use bough_session::Incarnation;
use sha2::{Digest, Sha256};

use crate::service::marked;

/// What one call asks for beside its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTerms {
    /// Names the call. Ids that the service would draw are made from it, so that the same call, made again, finds what it did
    /// the first time.
    pub key: Option<[u8; 32]>,
    /// The life of the session that the call means; in another one it is refused.
    pub life: Option<Incarnation>,
}

/// Ids that are a function of a call's key.
#[derive(Debug)]
pub(crate) struct KeyedIds {
    key: [u8; 32],
    drawn: AtomicU64,
}

impl KeyedIds {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self { key, drawn: AtomicU64::new(0) }
    }

    /// The next id of the call. A call draws its ids in one order, whenever it is made.
    pub(crate) fn next(&self) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(self.drawn.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let whole: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(whole.split_at(16).0);
        marked(bytes)
    }
}
