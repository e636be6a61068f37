//! What waits to be written to the catalogue.

use std::collections::HashMap;

use bough_session::{Incarnation, SessionId};

use super::rows::CatalogueRow;
use bough_record::Position;

/// A change that waits to be written.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Put(Box<CatalogueRow>),
    Revived(Box<CatalogueRow>),
    Moved { incarnation: Incarnation, position: Position },
    Gone { incarnation: Incarnation, position: Position },
}

impl Pending {
    const fn incarnation(&self) -> Incarnation {
        match self {
            Self::Put(row) | Self::Revived(row) => row.incarnation,
            Self::Moved { incarnation, .. } | Self::Gone { incarnation, .. } => *incarnation,
        }
    }
}

/// Changes that wait to be written, in the order of the newest of each session.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_session: HashMap<SessionId, (u64, Vec<Pending>)>,
    count: u64,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.by_session.is_empty()
    }

    /// Adds a change. A newer change of the same incarnation replaces the last one.
    pub(super) fn add(&mut self, session: SessionId, mut change: Pending) {
        self.count += 1;
        let (order, changes) = self.by_session.entry(session).or_default();
        *order = self.count;
        if let Some(last) = changes.last()
            && last.incarnation() == change.incarnation()
        {
            change = match (last, change) {
                // An incarnation that came back must not be refused as gone, whatever came after it.
                (Pending::Revived(_), Pending::Put(row)) => Pending::Revived(row),
                // A change from before the end of an incarnation that is announced after it does not bring it back.
                (Pending::Gone { .. }, Pending::Put(_) | Pending::Moved { .. }) => return,
                // The row says more than the place does; it is written with it.
                (Pending::Put(row), Pending::Moved { position, .. }) => {
                    Pending::Put(Box::new(row.moved_to(position)))
                }
                (Pending::Revived(row), Pending::Moved { position, .. }) => {
                    Pending::Revived(Box::new(row.moved_to(position)))
                }
                (_, same) => same,
            };
            changes.pop();
        }
        changes.push(change);
    }

    /// The changes, in order.
    pub(super) fn in_order(&self) -> Vec<(&SessionId, &Pending)> {
        let mut sessions: Vec<_> = self.by_session.iter().collect();
        sessions.sort_by_key(|(_, (order, _))| *order);
        let changes = sessions.into_iter().flat_map(|(session, (_, changes))| {
            changes.iter().map(move |change| (session, change))
        });
        changes.collect()
    }
}
