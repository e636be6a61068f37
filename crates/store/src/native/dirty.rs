//! Sessions that changed and whose rows in the catalogue are yet to be made.
//!
//! A row is made when somebody looks at the catalogue, or at the next beat: a session that grows by a hundred records in
//! between is looked at once. What people do to a session (make it, name it, archive it, delete it) is shown at once, so that
//! who did it through this process finds it in a list of another.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bough_session::{Incarnation, SessionId};

use super::Shared;
use crate::StoreError;
use crate::catalogue::Catalogue;
use bough_record::Position;

#[derive(Debug, Default)]
pub(super) struct DirtySessions {
    waiting: Mutex<Waiting>,
    /// Held while rows are made, so that who looks next waits until they are there.
    making: Mutex<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    sessions: HashMap<SessionId, Touch>,
    count: u64,
}

/// What is known of a session that changed.
#[derive(Debug)]
struct Touch {
    /// The number of its newest change.
    newest: u64,
    /// Where the session is.
    place: Place,
    /// The feed of all sessions has that already.
    told: bool,
}

/// A place in one incarnation of a session.
pub(super) type Place = (Incarnation, Position);

impl DirtySessions {
    fn add(&self, session: &SessionId, place: Place) {
        let waiting = &mut *lock(&self.waiting);
        waiting.count += 1;
        let newest = waiting.count;
        match waiting.sessions.get_mut(session) {
            Some(touch) => {
                // Those who tell of two changes of one life may come in any order.
                let same = touch.place.0 == place.0;
                let later = !same || !touch.place.1.covers(place.1);
                let place = if same { (place.0, touch.place.1.join(place.1)) } else { place };
                *touch = Touch { newest, place, told: touch.told && !later };
            }
            None => {
                let touch = Touch { newest, place, told: false };
                waiting.sessions.insert(session.clone(), touch);
            }
        }
    }

    /// The sessions, in the order of the newest change of each.
    fn take(&self) -> Vec<(SessionId, Touch)> {
        let sessions = std::mem::take(&mut lock(&self.waiting).sessions);
        in_order(sessions.into_iter().map(|(session, touch)| (touch.newest, (session, touch))))
    }

    /// Lets a session wait on whose row could not be made. What changed since says more.
    fn put_back(&self, session: SessionId, touch: Touch) {
        lock(&self.waiting).sessions.entry(session).or_insert(touch);
    }

    /// Where sessions are that the feed of all sessions does not have yet, in the same order. They go on waiting
    /// for their rows.
    fn tell(&self) -> Vec<(SessionId, Place)> {
        let mut waiting = lock(&self.waiting);
        let untold = waiting.sessions.iter_mut().filter(|(_, touch)| !touch.told);
        in_order(untold.map(|(session, touch)| {
            touch.told = true;
            (touch.newest, (session.clone(), touch.place))
        }))
    }
}

fn in_order<T>(numbered: impl Iterator<Item = (u64, T)>) -> Vec<T> {
    let mut numbered: Vec<(u64, T)> = numbered.collect();
    numbered.sort_unstable_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, item)| item).collect()
}

impl Shared {
    /// Notes that a session's row is no longer what the session is.
    pub(super) fn mark_dirty(&self, session: &SessionId, place: Place) {
        self.dirty.add(session, place);
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

    /// The catalogue for the feed of all sessions: it has every change that this process has made durable, while the
    /// rows that lists show may still be made.
    pub(super) fn catalogue_for_feed(&self) -> &Catalogue {
        let _making = lock(&self.dirty.making);
        for (session, (incarnation, position)) in self.dirty.tell() {
            self.catalogue_behind.moved(session, incarnation, position);
        }
        &self.catalogue_behind
    }

    /// Makes the rows that wait, while what the sessions are is at hand.
    pub(super) fn make_rows(&self) {
        let _making = lock(&self.dirty.making);
        for (session, touch) in self.dirty.take() {
            match self.state(&session) {
                Ok(Some(snapshot)) => self.catalogue_behind.put(self.row(&session, &snapshot)),
                // One that is gone has a row that says so; one that is damaged has none to make.
                Ok(None) | Err(StoreError::Corrupt { .. }) => {}
                // The disk may answer at the next beat.
                Err(_) => self.dirty.put_back(session, touch),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
