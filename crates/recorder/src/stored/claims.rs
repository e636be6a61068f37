//! Which recorder of this process records a session.
//!
//! A store's lock keeps other processes out of a session, but not other recorders of the same process. These claims do.
//! All sinks of one store share them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use bough_store::Store;

/// The claims of one store, by session.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_session: Mutex<HashMap<String, Weak<Flags>>>,
}

/// One recorder's claim on a session. The claim ends when it is dropped.
#[derive(Debug)]
pub(super) struct SessionClaim {
    claims: Arc<Claims>,
    session_id: String,
    flags: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    /// Whether no loop is open: another recorder may take the session.
    is_idle: AtomicBool,
    /// Whether another recorder took it.
    is_lost: AtomicBool,
}

/// A store with recorders, and its sessions that they have claimed.
type StoreClaims = (Weak<dyn Store>, Arc<Claims>);

/// The claims of every store that a sink was made for.
static STORES: LazyLock<Mutex<Vec<StoreClaims>>> = LazyLock::new(Mutex::default);

impl Claims {
    /// The claims of a store: the same for every sink of it.
    pub(super) fn of(store: &Arc<dyn Store>) -> Arc<Self> {
        let mut stores = lock(&STORES);
        stores.retain(|(store, _)| store.strong_count() > 0);
        let known =
            stores.iter().find(|(known, _)| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(store)));
        if let Some((_, claims)) = known {
            return Arc::clone(claims);
        }
        let claims = Arc::new(Self::default());
        stores.push((Arc::downgrade(store), Arc::clone(&claims)));
        claims
    }

    /// Claims a session; `None` while another recorder has an open loop in it.
    pub(super) fn take(self: &Arc<Self>, session_id: &str) -> Option<SessionClaim> {
        let mut by_session = lock(&self.by_session);
        if let Some(other) = by_session.get(session_id).and_then(Weak::upgrade) {
            if !other.is_idle.load(Ordering::SeqCst) {
                return None;
            }
            other.is_lost.store(true, Ordering::SeqCst);
        }
        let flags = Arc::new(Flags::default());
        by_session.insert(session_id.to_owned(), Arc::downgrade(&flags));
        let claims = Arc::clone(self);
        Some(SessionClaim { claims, session_id: session_id.to_owned(), flags })
    }
}

impl SessionClaim {
    pub(super) fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Lets another recorder take the session.
    pub(super) fn rest(&self) {
        self.flags.is_idle.store(true, Ordering::SeqCst);
    }

    /// Makes the claim exclusive again; `false` if another recorder took the session meanwhile.
    pub(super) fn resume(&self) -> bool {
        // Under the lock that `take` holds, because it reads one flag and sets the other.
        let _held = lock(&self.claims.by_session);
        self.flags.is_idle.store(false, Ordering::SeqCst);
        !self.flags.is_lost.load(Ordering::SeqCst)
    }
}

impl Drop for SessionClaim {
    fn drop(&mut self) {
        let mut by_session = lock(&self.claims.by_session);
        if !self.flags.is_lost.load(Ordering::SeqCst) {
            by_session.remove(&self.session_id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_recorder_until_that_rests() {
        let claims = Arc::new(Claims::default());
        let first = claims.take("s").unwrap();
        assert!(claims.take("s").is_none());
        assert!(claims.take("t").is_some());
        first.rest();
        let second = claims.take("s").unwrap();
        assert!(!first.resume());
        drop(first);
        assert!(claims.take("s").is_none(), "the second still has it");
        drop(second);
        assert!(claims.take("s").is_some());
    }

    #[test]
    fn a_recorder_that_rested_goes_on() {
        let claims = Arc::new(Claims::default());
        let claim = claims.take("s").unwrap();
        claim.rest();
        assert!(claim.resume());
        assert!(claims.take("s").is_none());
    }

    #[test]
    fn every_sink_of_a_store_has_the_same_claims() {
        let folder = tempfile::tempdir().unwrap();
        let store = || -> Arc<dyn Store> {
            let entropy = bough_platform::Platform::system(folder.path()).unwrap().entropy;
            Arc::new(bough_store::MemoryStore::new(entropy).unwrap())
        };
        let (store, another) = (store(), store());
        let [first, again, other] = [&store, &store, &another].map(Claims::of);
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &other));
    }
}
