//! The histories by name: data.

use super::workload::Action::{
    Append, Branch, Checkpoint, ClockJump, Close, Create, Delete, Delta, Group, Import, Kill,
    LongDelta, MoveLeaf, Note, OldLife, Purge, ReadElsewhere, Repeat, Restart, Revise,
    SecondWriter, Stale, Undo,
};
use super::workload::Scale::{Full, Rolling, Rounds, Tables, Usual, Weak, WeakTables};
use super::workload::{Action, LARGE, SMALL, Scale, THREE, WIDE};

/// A history as it is written down.
pub(crate) type Written = (&'static str, Scale, &'static [Action]);

const fn small(session: u8) -> Action {
    Append(session, SMALL)
}

/// The named histories, one a feature.
pub(crate) const NAMED: &[Written] = &[
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
    ("two-sessions", Usual, &[Create(0), Create(1), small(0), small(1), Append(0, WIDE), Close(1)]),
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
    ("deltas-kill", Usual, &[Create(0), Delta(0), Delta(0), Kill, Delta(0), Revise(0), Close(0)]),
    ("deltas-checkpoint", Full, &[Create(0), Delta(0), Checkpoint(0), Delta(0), Restart, Delta(0)]),
    (
        "deltas-empty",
        Full,
        &[Create(0), LongDelta(0), LongDelta(0), Revise(0), Delta(0), Kill, Revise(0)],
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
    ("import", Usual, &[Import(0), small(0), Close(0)]),
    ("import-full", Full, &[Create(1), Import(0), small(0), small(1), Kill, small(0)]),
    ("notes", Full, &[Create(0), Note(0), small(0), Note(0), Checkpoint(0), Note(0)]),
    ("reader", Full, &[Create(0), small(0), ReadElsewhere, small(0), Checkpoint(0), ReadElsewhere]),
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
    ("weak-appends", Weak, &[Create(0), small(0), small(0), small(0), small(0), small(0)]),
    ("weak-batches", Weak, &[Create(0), Append(0, THREE), Append(0, WIDE), small(0)]),
    (
        "weak-tables",
        WeakTables,
        &[Create(0), Append(0, THREE), small(0), small(0), Append(0, WIDE), small(0)],
    ),
    (
        "weak-checkpoint",
        Weak,
        &[Create(0), small(0), small(0), Checkpoint(0), small(0), small(0), Checkpoint(0)],
    ),
    ("weak-kill", Weak, &[Create(0), small(0), small(0), Kill, small(0), small(0), Kill]),
    ("weak-restart", Weak, &[Create(0), small(0), Restart, small(0), small(0), Close(0)]),
    ("weak-group", Weak, &[Create(0), Group(0, 4), small(0), Group(0, 2)]),
    (
        "weak-deltas",
        Weak,
        &[Create(0), Delta(0), Delta(0), Checkpoint(0), Delta(0), Revise(0), Delta(0)],
    ),
    // The stream of an earlier incarnation has become a record, and its file is reused for another.
    ("weak-settle", Weak, &[Create(0), Delta(0), Restart, Revise(0), small(0), Delta(0)]),
    (
        "weak-empty",
        Weak,
        &[Create(0), LongDelta(0), LongDelta(0), Checkpoint(0), Revise(0), small(0)],
    ),
    ("weak-delete", Weak, &[Create(0), small(0), small(0), Delete(0), Undo(0), small(0)]),
];

/// The histories whose finished stores are damaged in every way: small ones, of every shape.
pub(crate) const FINISHED: &[Written] = &[
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
