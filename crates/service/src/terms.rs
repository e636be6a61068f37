//! What one call asks for beside its request: that it may be repeated, and which incarnation of a session it means.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bough_session::Incarnation;
use sha2::{Digest, Sha256};

use crate::limits::CLOCK_SKEW_MAX;
use crate::service::marked;

/// What one call asks for beside its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTerms {
    /// Names the call. Ids that the service would draw are made from it, so that the same call, made again, finds what it did
    /// the first time.
    pub key: Option<[u8; 32]>,
    /// Names the key of the call among all keys of its tenant. The service keeps what each was used for, and refuses it for
    /// another call.
    pub tenant_key: Option<[u8; 32]>,
    /// The incarnation of the session that the call is for; in another one it is refused.
    pub incarnation: Option<Incarnation>,
}

/// Ids that are a function of a call's key and of the window of time in which it was first made.
///
/// Windows are as long as keys live, so that a key that is still good was first used in this window or in the one before. That
/// is how a key ends without anything being kept of it.
#[derive(Debug)]
pub(crate) struct KeyedIds {
    key: [u8; 32],
    window: AtomicU64,
    drawn: AtomicU64,
}

impl KeyedIds {
    pub(crate) const fn new(key: [u8; 32], window: u64) -> Self {
        Self { key, window: AtomicU64::new(window), drawn: AtomicU64::new(0) }
    }

    /// Says in which window the call was first made, before it draws its first id.
    pub(crate) fn set_window(&self, window: u64) {
        self.window.store(window, Ordering::Relaxed);
    }

    pub(crate) const fn key(&self) -> [u8; 32] {
        self.key
    }

    /// The next id of the call. A call draws its ids in one order, whenever it is made.
    pub(crate) fn next(&self) -> [u8; 16] {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        self.id(self.window.load(Ordering::Relaxed), number)
    }

    /// The id that a call draws as its `number`th, counted from 0, when it was first made in a window.
    pub(crate) fn id(&self, window: u64, number: u64) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(window.to_be_bytes());
        hash.update(number.to_be_bytes());
        let whole: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(whole.split_at(16).0);
        marked(bytes)
    }
}

/// How long keys live, in milliseconds; `None` for ever.
fn lifetime_ms(lifetime: Option<Duration>) -> Option<i64> {
    lifetime.map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX).max(1))
}

/// The window of a moment.
pub(crate) fn key_window(now_ms: i64, lifetime: Option<Duration>) -> u64 {
    let number = lifetime_ms(lifetime).map_or(0, |length| now_ms.div_euclid(length));
    u64::try_from(number).unwrap_or(0)
}

/// The windows in which a key that is good now may have been used first: this one, the one before, and the next one where another
/// server's clock may be in it already.
pub(crate) fn key_windows(now_ms: i64, lifetime: Option<Duration>) -> Vec<u64> {
    let skew = i64::try_from(CLOCK_SKEW_MAX.as_millis()).unwrap_or(i64::MAX);
    let now = key_window(now_ms, lifetime);
    let next = key_window(now_ms.saturating_add(skew), lifetime);
    let mut windows = vec![now, now.saturating_sub(1), next];
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// Whether a key that made something at `made_at` is still good.
pub(crate) fn is_key_good(made_at: i64, now_ms: i64, lifetime: Option<Duration>) -> bool {
    lifetime_ms(lifetime).is_none_or(|length| now_ms.saturating_sub(made_at) < length)
}
