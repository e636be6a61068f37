//! What is done to a store before it crashes: named histories, one a feature, and all short ones.

use super::histories::{FINISHED, NAMED, Written};

/// One step of a history. Sessions are named by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Makes a session with one entry.
    Create(u8),
    /// Builds a session of two batches in staging and renames it in.
    Import(u8),
    /// Appends a batch of entries of about this size.
    Append(u8, Size),
    /// Several batches accepted before any of them is synced.
    Group(u8, usize),
    /// An append against an old head, which must be refused.
    Stale(u8),
    /// An append against a head of an earlier incarnation with the same number of records, which
    /// must be refused.
    OldLife(u8),
    /// An append by another process to a session that this one writes, which must be refused.
    SecondWriter(u8),
    /// An append of an entry that exists already, which must be refused.
    Repeat(u8),
    /// An entry beside the newest one: a branch.
    Branch(u8),
    /// Moves the active leaf to the first entry.
    MoveLeaf(u8),
    /// A new revision of the newest entry.
    Revise(u8),
    /// A delta of the newest entry.
    Delta(u8),
    /// The same of many sectors.
    LongDelta(u8),
    /// A record of a kind that the log does not interpret.
    Note(u8),
    /// Seals, indexes, checkpoints.
    Checkpoint(u8),
    /// Closes the session: checkpoint, lock given up.
    Close(u8),
    /// Everything is closed, as at an orderly end; a new process continues.
    Restart,
    /// The process ends at once; a new one continues. The machine stays up.
    Kill,
    /// Another process reads every session.
    ReadElsewhere,
    /// Moves to the trash.
    Delete(u8),
    /// Brings back from the trash.
    Undo(u8),
    /// Empties the trash.
    Purge,
    /// The wall clock jumps by this many hours.
    ClockJump(i64),
}

impl Action {
    /// The session that it is about.
    pub(crate) const fn session(self) -> Option<u8> {
        match self {
            Self::Create(session)
            | Self::Import(session)
            | Self::Append(session, _)
            | Self::Group(session, _)
            | Self::Stale(session)
            | Self::OldLife(session)
            | Self::SecondWriter(session)
            | Self::Repeat(session)
            | Self::Branch(session)
            | Self::MoveLeaf(session)
            | Self::Revise(session)
            | Self::Delta(session)
            | Self::LongDelta(session)
            | Self::Note(session)
            | Self::Checkpoint(session)
            | Self::Close(session)
            | Self::Delete(session)
            | Self::Undo(session) => Some(session),
            Self::Restart | Self::Kill | Self::ReadElsewhere | Self::Purge | Self::ClockJump(_) => {
                None
            }
        }
    }
}

/// The shape of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Entries in it.
    pub(crate) records: usize,
    /// Bytes of text in each.
    pub(crate) bytes: usize,
}

pub(crate) const SMALL: Size = Size { records: 1, bytes: 20 };
pub(crate) const LARGE: Size = Size { records: 1, bytes: 2200 };
pub(crate) const THREE: Size = Size { records: 3, bytes: 90 };
pub(crate) const WIDE: Size = Size { records: 2, bytes: 700 };

/// How small the store's own sizes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// As in production: nothing rolls, nothing is due, small logs stay tiny.
    Usual,
    /// No log counts as tiny: closing leaves an index and a checkpoint.
    Full,
    /// A segment holds about two records.
    Rolling,
    /// A checkpoint is due after about two records.
    Rounds,
    /// Rolling and rounds, and the id tables are used after a few rows.
    Tables,
    /// As `Full`, acknowledged before the sync: the weaker durability.
    Weak,
    /// As `Tables`, in the weaker durability.
    WeakTables,
}

impl Scale {
    /// Whether an answer comes before the sync.
    pub(crate) const fn is_weak(self) -> bool {
        matches!(self, Self::Weak | Self::WeakTables)
    }
}

/// A history with a name.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) actions: Vec<Action>,
}

/// The named histories, one a feature.
pub(crate) fn named() -> Vec<Workload> {
    workloads(NAMED)
}

/// The histories whose finished stores are damaged in every way: small ones, of every shape.
pub(crate) fn finished() -> Vec<Workload> {
    workloads(FINISHED)
}

fn workloads(list: &[Written]) -> Vec<Workload> {
    list.iter()
        .map(|(name, scale, actions)| Workload {
            name: (*name).to_owned(),
            scale: *scale,
            actions: actions.to_vec(),
        })
        .collect()
}

/// The verbs of the short histories.
const VERBS: [Action; 9] = [
    Action::Append(0, SMALL),
    Action::Append(0, LARGE),
    Action::Append(0, THREE),
    Action::Delta(0),
    Action::Revise(0),
    Action::Checkpoint(0),
    Action::Close(0),
    Action::Kill,
    Action::Delete(0),
];

/// Every history of `len` verbs after the creation of a session, at one scale.
pub(crate) fn all_short(len: usize, scale: Scale) -> impl Iterator<Item = Workload> {
    let count = VERBS.len().pow(u32::try_from(len).unwrap_or(0));
    (0..count).map(move |number| {
        let mut actions = vec![Action::Create(0)];
        let mut rest = number;
        for _ in 0..len {
            // Undelete after a deletion, so that later verbs have something to act on.
            if matches!(actions.last(), Some(Action::Delete(_))) {
                actions.push(Action::Undo(0));
            }
            actions.extend(VERBS.get(rest % VERBS.len()));
            rest /= VERBS.len();
        }
        Workload { name: format!("short{len}-{scale:?}-{number}"), scale, actions }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn there_are_enough_named_histories_and_each_name_is_one() {
        let names: HashSet<String> = named().into_iter().map(|workload| workload.name).collect();
        assert!(names.len() >= 24);
        assert_eq!(names.len(), named().len());
    }

    #[test]
    fn short_histories_are_all_there_once() {
        let all: HashSet<String> =
            all_short(3, Scale::Full).map(|workload| format!("{:?}", workload.actions)).collect();
        assert_eq!(all.len(), 9 * 9 * 9);
    }
}
