//! Sessions that changed and whose rows in the catalogue are yet to be made.
//!
//! A row is made when the catalogue is read, or at the next beat: a session that grows by a hundred records in between is
//! read once. What people do to a session (create it, name it, archive it, delete it) is shown at once, so that a list of
//! another process has it when the call returns.

use std::collections::HashMap;
use std::sync::Mutex;

use bough_session::SessionId;

use super::Shared;
use crate::StoreError;
use crate::catalogue::{Catalogue, CatalogueRow};
use crate::sync::lock;
use crate::types::IncarnationPosition;

#[derive(Debug, Default)]
pub(super) struct DirtySessions {
    waiting: Mutex<Waiting>,
    /// Locked while rows are made, so that the next reader waits for them.
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
    /// The end of the session's feed.
    end: IncarnationPosition,
    /// The feed of all sessions has that already.
    is_published: bool,
    /// The row at that end, if the writer knows it: then the session is not read for it.
    row: Option<Box<CatalogueRow>>,
}

impl DirtySessions {
    fn add(&self, session: &SessionId, end: IncarnationPosition, row: Option<Box<CatalogueRow>>) {
        let waiting = &mut *lock(&self.waiting);
        waiting.count += 1;
        let newest = waiting.count;
        match waiting.sessions.get_mut(session) {
            Some(touch) => {
                // Two changes of one incarnation may be announced in any order.
                let is_same = touch.end.incarnation == end.incarnation;
                let is_later = !is_same || !touch.end.position.covers(end.position);
                let joined = touch.end.position.join(end.position);
                let position = if is_same { joined } else { end.position };
                let end = IncarnationPosition { position, ..end };
                let row = if is_later { row } else { touch.row.take() };
                *touch = Touch { newest, end, is_published: touch.is_published && !is_later, row };
            }
            None => {
                let touch = Touch { newest, end, is_published: false, row };
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

    /// The changes that the feed of all sessions does not have yet, in the same order. The sessions still wait for their
    /// rows.
    fn take_unpublished(&self) -> Vec<(SessionId, IncarnationPosition)> {
        let mut waiting = lock(&self.waiting);
        let unpublished = waiting.sessions.iter_mut().filter(|(_, touch)| !touch.is_published);
        in_order(unpublished.map(|(session, touch)| {
            touch.is_published = true;
            (touch.newest, (session.clone(), touch.end))
        }))
    }
}

fn in_order<T>(numbered: impl Iterator<Item = (u64, T)>) -> Vec<T> {
    let mut numbered: Vec<(u64, T)> = numbered.collect();
    numbered.sort_unstable_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, item)| item).collect()
}

impl Shared {
    /// Notes that a session's row is no longer what the session is, and the new row if it is known.
    pub(super) fn mark_dirty(
        &self,
        session: &SessionId,
        end: IncarnationPosition,
        row: Option<Box<CatalogueRow>>,
    ) {
        self.dirty.add(session, end, row);
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
        for (session, end) in self.dirty.take_unpublished() {
            self.catalogue_behind.moved(session, end.incarnation, end.position);
        }
        &self.catalogue_behind
    }

    /// Makes the rows of changed sessions while their state is still in memory.
    pub(super) fn make_rows(&self) {
        let _making = lock(&self.dirty.making);
        for (session, mut touch) in self.dirty.take() {
            if let Some(row) = touch.row.take() {
                self.catalogue_behind.put(*row);
                continue;
            }
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
