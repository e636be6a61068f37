//! What is done to a store before it crashes: named histories, one a feature, and all short ones.

/// One step of a history. Sessions are named by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Makes a session with one entry.
    Create(u8),
    /// Appends a batch of entries of about so many bytes each.
    Append(u8, Size),
    /// Several batches accepted before any of them is synced.
    Group(u8, usize),
    /// An append against a head of long ago, which must be refused.
    Stale(u8),
    /// An append against a head of an earlier life with the same number of records, which must be
    /// refused.
    OldLife(u8),
    /// Another process tries to append to a session that this one writes, which must be refused.
    SecondWriter(u8),
    /// An entry that is there already, which must be refused.
    Repeat(u8),
    /// An entry beside the newest one: a branch.
    Branch(u8),
    /// Moves the active leaf to the first entry.
    MoveLeaf(u8),
    /// A new revision of the newest entry.
    Revise(u8),
    /// A delta of the newest entry.
    Delta(u8),
    /// A record that the log carries without looking.
    Note(u8),
    /// Seals, indexes, checkpoints.
    Checkpoint(u8),
    /// Closes the session: checkpoint, lock given up.
    Close(u8),
    /// Everything closed, as at an orderly end; a new process goes on.
    Restart,
    /// The process ends at once; a new one goes on. The machine stays up.
    Kill,
    /// Another process reads every session.
    ReadElsewhere,
    /// Moves to the trash.
    Delete(u8),
    /// Brings back from the trash.
    Undo(u8),
    /// Removes for good what is in the trash.
    Purge,
    /// The wall clock jumps by so many hours.
    ClockJump(i64),
}

impl Action {
    /// The session that it is about.
    pub(crate) const fn session(self) -> Option<u8> {
        match self {
            Self::Create(session)
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
    /// As in use: nothing rolls, nothing is due, small logs stay tiny.
    Usual,
    /// Nothing is tiny: closing leaves an index and a checkpoint.
    Full,
    /// A segment holds about two records.
    Rolling,
    /// A checkpoint is due after about two records.
    Rounds,
    /// Rolling and rounds, and the id tables are used after a few rows.
    Tables,
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
    use Action::{
        Append, Branch, Checkpoint, ClockJump, Close, Create, Delete, Delta, Group, Kill, MoveLeaf,
        Note, OldLife, Purge, ReadElsewhere, Repeat, Restart, Revise, SecondWriter, Stale, Undo,
    };
    use Scale::{Full, Rolling, Rounds, Tables, Usual};
    let small = |session| Append(session, SMALL);
    let list: &[(&str, Scale, &[Action])] = &[
        ("create", Usual, &[Create(0)]),
        ("appends", Usual, &[Create(0), small(0), small(0), small(0)]),
        ("many-sectors", Usual, &[Create(0), Append(0, LARGE), small(0)]),
        ("batches", Usual, &[Create(0), Append(0, THREE), Append(0, WIDE)]),
        ("roll", Rolling, &[Create(0), small(0), small(0), small(0), Append(0, THREE)]),
        ("roll-wide", Rolling, &[Create(0), Append(0, LARGE), Append(0, WIDE), small(0)]),
        ("checkpoint", Full, &[Create(0), small(0), Checkpoint(0), small(0)]),
        ("rounds", Rounds, &[Create(0), small(0), small(0), small(0), Append(0, WIDE), small(0)]),
        (
            "tables",
            Tables,
            &[Create(0), Append(0, THREE), Append(0, THREE), small(0), Append(0, THREE)],
        ),
        ("close-tiny", Usual, &[Create(0), small(0), Close(0), small(0), Close(0)]),
        ("close-full", Full, &[Create(0), small(0), Close(0), small(0), Close(0)]),
        ("restart", Full, &[Create(0), small(0), Restart, small(0), Restart, small(0)]),
        ("restart-tiny", Usual, &[Create(0), small(0), Restart, small(0), Restart]),
        ("kill", Full, &[Create(0), small(0), Kill, small(0), small(0)]),
        ("kill-tiny", Usual, &[Create(0), small(0), Kill, small(0), Close(0), small(0)]),
        ("kill-twice", Rounds, &[Create(0), small(0), Kill, small(0), Kill, small(0), Kill]),
        (
            "two-sessions",
            Usual,
            &[Create(0), Create(1), small(0), small(1), Append(0, WIDE), Close(1)],
        ),
        (
            "branches",
            Full,
            &[Create(0), small(0), Branch(0), MoveLeaf(0), Branch(0), Checkpoint(0), Branch(0)],
        ),
        (
            "revisions",
            Full,
            &[Create(0), small(0), Revise(0), Checkpoint(0), Revise(0), small(0), Revise(0)],
        ),
        ("deltas", Full, &[Create(0), small(0), Delta(0), Delta(0), Delta(0)]),
        (
            "deltas-settle",
            Full,
            &[Create(0), Delta(0), Delta(0), Revise(0), Delta(0), small(0), Revise(0)],
        ),
        (
            "deltas-kill",
            Usual,
            &[Create(0), Delta(0), Delta(0), Kill, Delta(0), Revise(0), Close(0)],
        ),
        (
            "deltas-checkpoint",
            Full,
            &[Create(0), Delta(0), Checkpoint(0), Delta(0), Restart, Delta(0)],
        ),
        ("delete", Usual, &[Create(0), small(0), Delete(0)]),
        ("undo", Usual, &[Create(0), small(0), Delete(0), Undo(0), small(0)]),
        ("undo-full", Full, &[Create(0), small(0), Checkpoint(0), Delete(0), Undo(0), small(0)]),
        ("new-life", Usual, &[Create(0), small(0), Delete(0), Create(0), small(0)]),
        ("purge", Usual, &[Create(0), small(0), Delete(0), Purge, Create(0), small(0)]),
        ("group", Usual, &[Create(0), Group(0, 4), Group(0, 2)]),
        ("group-roll", Rolling, &[Create(0), Group(0, 5), small(0)]),
        ("refusals", Usual, &[Create(0), small(0), Stale(0), Repeat(0), small(0), Stale(0)]),
        (
            "old-life",
            Usual,
            &[Create(0), small(0), Delete(0), Create(0), small(0), OldLife(0), small(0)],
        ),
        (
            "second-writer",
            Full,
            &[Create(0), SecondWriter(0), small(0), SecondWriter(0), Close(0), small(0)],
        ),
        ("notes", Full, &[Create(0), Note(0), small(0), Note(0), Checkpoint(0), Note(0)]),
        (
            "reader",
            Full,
            &[Create(0), small(0), ReadElsewhere, small(0), Checkpoint(0), ReadElsewhere],
        ),
        (
            "clock",
            Usual,
            &[
                Create(0),
                ClockJump(-2),
                small(0),
                ClockJump(9000),
                small(0),
                ClockJump(-9000),
                Close(0),
            ],
        ),
        (
            "two-rounds",
            Rounds,
            &[
                Create(0),
                Create(1),
                Append(0, WIDE),
                Append(1, WIDE),
                small(0),
                small(1),
                Kill,
                small(1),
            ],
        ),
        (
            "everything",
            Tables,
            &[
                Create(0),
                Append(0, THREE),
                Delta(0),
                Revise(0),
                Kill,
                small(0),
                Close(0),
                Delete(0),
                Undo(0),
                Append(0, WIDE),
            ],
        ),
    ];
    workloads(list)
}

fn workloads(list: &[(&str, Scale, &[Action])]) -> Vec<Workload> {
    list.iter()
        .map(|(name, scale, actions)| Workload {
            name: (*name).to_owned(),
            scale: *scale,
            actions: actions.to_vec(),
        })
        .collect()
}

/// The histories whose finished stores are damaged in every way: small ones, of every shape.
pub(crate) fn finished() -> Vec<Workload> {
    use Action::{Append, Branch, Checkpoint, Close, Create, Delta, Restart, Revise};
    use Scale::{Full, Rolling, Tables, Usual};
    let list: &[(&str, Scale, &[Action])] = &[
        ("tiny-closed", Usual, &[Create(0), Append(0, SMALL), Append(0, THREE), Close(0)]),
        ("left-open", Usual, &[Create(0), Append(0, SMALL), Append(0, THREE)]),
        (
            "checkpointed",
            Full,
            &[Create(0), Append(0, THREE), Checkpoint(0), Revise(0), Branch(0), Close(0)],
        ),
        (
            "rolled",
            Rolling,
            &[Create(0), Append(0, THREE), Append(0, THREE), Append(0, SMALL), Close(0)],
        ),
        (
            "tables",
            Tables,
            &[
                Create(0),
                Append(0, THREE),
                Append(0, THREE),
                Append(0, SMALL),
                Restart,
                Append(0, SMALL),
            ],
        ),
        (
            "streaming",
            Full,
            &[Create(0), Append(0, SMALL), Delta(0), Delta(0), Checkpoint(0), Delta(0)],
        ),
    ];
    workloads(list)
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
            // What is deleted is brought back, so that later verbs have something to act on.
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
