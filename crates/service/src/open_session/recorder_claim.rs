//! Which recorder of this process records a session.
//!
//! The store's lock keeps other processes out of a session, but not other recorders of the same process. A claim does.

use std::sync::{Arc, MutexGuard};

use super::session::OpenSession;
use crate::lock::lock;

/// The recorder that has claimed a session, if one has.
#[derive(Debug, Default)]
pub(super) struct RecorderSlot {
    /// How many claims there were.
    issued: u64,
    holder: Option<u64>,
    /// Whether no loop is open: another recorder may take the session.
    is_idle: bool,
}

/// One recorder's claim on a session. The claim ends when it is dropped.
pub(crate) struct RecorderClaim {
    session: Arc<OpenSession>,
    number: u64,
}

impl RecorderClaim {
    /// Claims a session; `None` while another recorder has an open loop in it.
    pub(crate) fn take(session: Arc<OpenSession>) -> Option<Self> {
        let mut slot = lock(&session.recorder);
        if slot.holder.is_some() && !slot.is_idle {
            return None;
        }
        let number = slot.issued + 1;
        *slot = RecorderSlot { issued: number, holder: Some(number), is_idle: false };
        drop(slot);
        Some(Self { session, number })
    }

    pub(crate) const fn session(&self) -> &Arc<OpenSession> {
        &self.session
    }

    /// Lets another recorder take the session.
    pub(crate) fn rest(&self) {
        if let Some(mut slot) = self.slot() {
            slot.is_idle = true;
        }
    }

    /// Makes the claim exclusive again; `false` if another recorder took the session meanwhile.
    pub(crate) fn resume(&self) -> bool {
        let slot = self.slot();
        let is_held = slot.is_some();
        slot.into_iter().for_each(|mut slot| slot.is_idle = false);
        is_held
    }

    /// The slot of the session, while this claim holds it.
    fn slot(&self) -> Option<MutexGuard<'_, RecorderSlot>> {
        Some(lock(&self.session.recorder)).filter(|slot| slot.holder == Some(self.number))
    }
}

impl Drop for RecorderClaim {
    fn drop(&mut self) {
        if let Some(mut slot) = self.slot() {
            slot.holder = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::OsEntropy;
    use bough_session::SessionId;
    use bough_store::MemoryStore;

    use super::*;
    use crate::open_session::OpenSessions;

    fn sessions() -> OpenSessions {
        OpenSessions::new(Arc::new(MemoryStore::new(Arc::new(OsEntropy)).unwrap()), None)
    }

    fn take(sessions: &OpenSessions, id: &str) -> Option<RecorderClaim> {
        RecorderClaim::take(sessions.open(&SessionId::from_stored(id)))
    }

    #[test]
    fn a_session_has_one_recorder_until_that_rests() {
        let sessions = sessions();
        let first = take(&sessions, "s").unwrap();
        assert!(take(&sessions, "s").is_none());
        assert!(take(&sessions, "t").is_some());
        first.rest();
        let second = take(&sessions, "s").unwrap();
        assert!(!first.resume());
        drop(first);
        assert!(take(&sessions, "s").is_none(), "the second still has it");
        drop(second);
        assert!(take(&sessions, "s").is_some());
    }

    #[test]
    fn a_recorder_that_rested_goes_on() {
        let sessions = sessions();
        let claim = take(&sessions, "s").unwrap();
        claim.rest();
        assert!(claim.resume());
        assert!(take(&sessions, "s").is_none());
    }
}
