//! Sessions in memory, for tests and for programs that keep nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::compare::missing_from;
use super::{SessionError, SessionStore};
use crate::lineage::{FileMark, Lineage};
use crate::model::RecordedSession;

/// Sessions in memory, by the same rules as on a disk.
#[derive(Debug, Default)]
pub struct MemorySessionStore {
    stored: Mutex<Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    /// The number of saves so far. It identifies a save and orders them.
    saves: u64,
    sessions: HashMap<String, (u64, RecordedSession)>,
}

impl MemorySessionStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn mark(save: u64) -> FileMark {
    FileMark { len: save, crc: 0 }
}

#[async_trait]
impl SessionStore for MemorySessionStore {
    async fn save(&self, session: &RecordedSession) -> Result<(), SessionError> {
        let mut stored = self.stored();
        if let Some((save, old)) = stored.sessions.get(&session.session_id)
            && session.lineage.mark() != Some(mark(*save))
            && let Some(missing) = missing_from(session, old)
        {
            return Err(SessionError::LostUpdate {
                session_id: session.session_id.clone(),
                missing,
            });
        }
        stored.saves += 1;
        let save = stored.saves;
        session.saved_as(mark(save));
        stored.sessions.insert(session.session_id.clone(), (save, session.clone()));
        Ok(())
    }

    async fn load(&self, session_id: &str) -> Result<RecordedSession, SessionError> {
        let stored = self.stored();
        let (save, session) = stored
            .sessions
            .get(session_id)
            .ok_or_else(|| SessionError::NotFound { session_id: session_id.to_owned() })?;
        let mut session = session.clone();
        session.lineage = Lineage::of(mark(*save));
        Ok(session)
    }

    async fn list_ids(&self) -> Result<Vec<String>, SessionError> {
        let stored = self.stored();
        let mut found: Vec<(u64, &String)> =
            stored.sessions.iter().map(|(id, (save, _))| (*save, id)).collect();
        found.sort_unstable_by(|first, second| second.cmp(first));
        Ok(found.into_iter().map(|(_, id)| id.clone()).collect())
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionError> {
        let removed = self.stored().sessions.remove(session_id);
        removed
            .map(drop)
            .ok_or_else(|| SessionError::NotFound { session_id: session_id.to_owned() })
    }
}
