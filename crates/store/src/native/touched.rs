//! Sessions that changed and whose rows in the catalogue are yet to be made.
//!
//! A row is made when somebody looks at the catalogue, or at the next beat: a session that grows by a hundred records in
//! between is looked at once. What people do to a session (make it, name it, archive it, delete it) is shown at once, so that
//! who did it through this process finds it in a list of another.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bough_session::SessionId;

use super::Shared;
use crate::catalogue::Catalogue;

#[derive(Debug, Default)]
pub(super) struct Touched {
    waiting: Mutex<Waiting>,
    /// Held while rows are made, so that who looks next waits until they are there.
    making: Mutex<()>,
}

/// The sessions, with the number of their newest change.
#[derive(Debug, Default)]
struct Waiting {
    newest: HashMap<SessionId, u64>,
    count: u64,
}

impl Touched {
    fn add(&self, session: &SessionId) {
        let waiting = &mut *lock(&self.waiting);
        waiting.count += 1;
        match waiting.newest.get_mut(session) {
            Some(newest) => *newest = waiting.count,
            None => drop(waiting.newest.insert(session.clone(), waiting.count)),
        }
    }

    /// The sessions, in the order of the newest change of each.
    fn take(&self) -> Vec<SessionId> {
        let newest = std::mem::take(&mut lock(&self.waiting).newest);
        let mut sessions: Vec<(SessionId, u64)> = newest.into_iter().collect();
        sessions.sort_unstable_by_key(|(_, newest)| *newest);
        sessions.into_iter().map(|(session, _)| session).collect()
    }
}

impl Shared {
    /// Notes that a session's row is no longer what the session is.
    pub(super) fn touch(&self, session: &SessionId) {
        self.touched.add(session);
    }

    /// Writes down now what lists show, for other processes. What fails is tried again at the next beat.
    pub(super) fn show(&self) {
        drop(self.catalogue().flush());
    }

    /// The catalogue, with all that this process has made durable.
    pub(super) fn catalogue(&self) -> &Catalogue {
        self.make_rows();
        &self.catalogue_behind
    }

    /// Makes the rows that wait, while what the sessions are is at hand.
    pub(super) fn make_rows(&self) {
        let _making = lock(&self.touched.making);
        for session in self.touched.take() {
            // One that is gone has a row that says so; one that is damaged must not keep the others out.
            if let Ok(Some(snapshot)) = self.state(&session) {
                self.catalogue_behind.put(self.row(&session, &snapshot));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
