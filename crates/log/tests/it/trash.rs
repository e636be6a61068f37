//! Deleting, undoing and purging beside other processes, and what is cut short of them.

use std::sync::Arc;

use bough_log::{Envelope, Expected, LogError, LogStore, Options, kind};
use bough_platform::Platform;
use bough_testkit::{Call, Fault, FaultPlan};

use crate::gate::{Gate, gated};
use crate::support::*;

/// A log of two entries, deleted at 5.
fn deleted(machine: &Machine) -> Process {
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.delete("s", 5, "{}").unwrap();
    process
}

/// An undo that fails at a rename: of the manifest that says so (1), or of the container (2).
fn undo_cut_short(machine: &Machine, at_rename: u64) {
    let process = deleted(machine);
    machine.disk.inject(FaultPlan::once(Fault::Broken, at_rename).only(Call::Rename));
    assert!(process.store.undelete("s", None, 6, "{}").is_err());
    machine.disk.heal();
    process.kill();
}

/// A deletion that fails at a rename: of the manifest that says so (1), or of the container (2).
fn deletion_cut_short(machine: &Machine, at_rename: u64) {
    let process = machine.start();
    fill(&process.store, "s", 2);
    machine.disk.inject(FaultPlan::once(Fault::Broken, at_rename).only(Call::Rename));
    assert!(process.store.delete("s", 5, "{}").is_err());
    machine.disk.heal();
    process.kill();
}

#[test]
fn an_undo_that_was_cut_short_is_never_purged() {
    for at_rename in [1, 2] {
        let machine = Machine::new();
        undo_cut_short(&machine, at_rename);
        let store = machine.start().store;
        let incarnation = store.trash().unwrap()[0].incarnation;
        assert_eq!(store.read_trash("s", incarnation).unwrap().deleted_at_ms(), None);
        assert_eq!(store.purge(i64::MAX).unwrap(), 0, "rename {at_rename}");
        assert!(!store.purge_one("s", incarnation, Some(5)).unwrap(), "rename {at_rename}");
        assert!(!store.purge_one("s", incarnation, None).unwrap(), "rename {at_rename}");
        store.undelete("s", None, 9, "{}").unwrap();
        assert_eq!(machine.after_power_cut().shown("s"), [1, 2], "rename {at_rename}");
    }
}

#[test]
fn a_purge_removes_only_the_deletion_that_it_was_asked_about() {
    let machine = Machine::new();
    let store = deleted(&machine).store;
    let incarnation = store.trash().unwrap()[0].incarnation;
    store.undelete("s", None, 6, "{}").unwrap();
    store.delete("s", 7, "{}").unwrap();
    assert!(!store.purge_one("s", incarnation, Some(5)).unwrap(), "it was deleted again since");
    assert_eq!(store.read_trash("s", incarnation).unwrap().deleted_at_ms(), Some(7));
    assert!(store.purge_one("s", incarnation, Some(7)).unwrap());
    assert!(store.trash().unwrap().is_empty());
}

#[test]
fn a_purge_waits_for_an_undo_of_another_process_and_leaves_what_it_brought_back() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let store = <LogStore>::open(gated(dir.path(), &gate), Options::default()).unwrap();
    fill(&store, "s", 2);
    store.delete("s", 5, "{}").unwrap();
    let other =
        <LogStore>::open(Platform::system(dir.path()).unwrap(), Options::default()).unwrap();
    let incarnation = other.trash().unwrap()[0].incarnation;
    gate.close_for("rename to sessions/");
    std::thread::scope(|scope| {
        let undo = scope.spawn(|| store.undelete("s", None, 6, "{}"));
        gate.until_somebody_waits();
        let purge = scope.spawn(|| other.purge_one("s", incarnation, None));
        gate.open();
        assert_eq!(undo.join().unwrap().unwrap(), incarnation);
        assert!(!purge.join().unwrap().unwrap());
    });
    assert_eq!(numbers(&other, "s"), [1, 2]);
}

#[test]
fn a_deletion_that_was_cut_short_can_be_undone() {
    for at_rename in [1, 2] {
        let machine = Machine::new();
        deletion_cut_short(&machine, at_rename);
        machine.start().store.undelete("s", None, 9, "{}").unwrap();
        assert_eq!(machine.after_power_cut().shown("s"), [1, 2], "rename {at_rename}");
    }
}

#[test]
fn the_id_of_a_deletion_that_was_cut_short_can_be_used_again() {
    for at_rename in [1, 2] {
        let machine = Machine::new();
        deletion_cut_short(&machine, at_rename);
        let store = machine.start().store;
        store.create("s", vec![Envelope::entry("e7", None, 1, "7")]).unwrap();
        assert_eq!(machine.after_power_cut().shown("s"), [7], "rename {at_rename}");
        assert_eq!(store.trash().unwrap().len(), 1, "the earlier incarnation is in the trash");
        let taken = store.create("s", vec![entry(1)]);
        assert!(matches!(taken, Err(LogError::Exists { .. })), "{taken:?}");
        assert!(!store.finish_deletion("s").unwrap(), "nothing is left to finish");
    }
}

/// What another process does to a log of two entries between the record of its deletion and the move, and after the move;
/// the process that deleted it, and its directory.
fn during_a_deletion(
    meanwhile: impl FnOnce(&LogStore),
    after: impl FnOnce(&LogStore),
) -> (LogStore, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let store = <LogStore>::open(gated(dir.path(), &gate), Options::default()).unwrap();
    fill(&store, "s", 2);
    gate.close_for("lock sessions/");
    std::thread::scope(|scope| {
        let deletion = scope.spawn(|| store.delete("s", 5, "{}"));
        gate.until_somebody_waits();
        let other = <LogStore>::open(Platform::system(dir.path()).unwrap(), Options::default());
        let other = other.unwrap();
        meanwhile(&other);
        gate.open();
        deletion.join().unwrap().unwrap();
        after(&other);
    });
    (store, dir)
}

#[test]
fn a_deletion_that_another_process_finishes_meanwhile_is_a_deletion() {
    let finish = |other: &LogStore| {
        // The record of the deletion is there and the lock is free: the next process finishes the move.
        let write = other.append("s", Expected::Any, vec![entry(3)]);
        assert!(matches!(write, Err(LogError::NotFound { .. })), "{write:?}");
        assert_eq!(other.trash().unwrap().len(), 1);
    };
    let (store, _dir) = during_a_deletion(finish, |_| {});
    assert_eq!(store.trash().unwrap().len(), 1);
    assert!(matches!(store.read("s"), Err(LogError::NotFound { .. })));
}

#[test]
fn a_deletion_that_was_finished_and_undone_meanwhile_moves_nothing() {
    let undo = |other: &LogStore| {
        other.undelete("s", None, 6, "{}").unwrap();
        append(other, "s", 3);
    };
    let (store, _dir) = during_a_deletion(undo, |other| {
        append(other, "s", 4);
        assert_eq!(numbers(other, "s"), [1, 2, 3, 4]);
    });
    assert!(store.trash().unwrap().is_empty());
    let records = store.read("s").unwrap().records(0, 10, |stored| stored.into_owned()).unwrap();
    assert!(records.iter().any(|stored| stored.envelope.kind == kind::RESTORED));
}

#[test]
fn a_deletion_of_one_life_does_not_hit_the_next() {
    let machine = Machine::new();
    let store = deleted(&machine).store;
    let before = store.trash().unwrap()[0].incarnation;
    let now = store.create("s", vec![entry(1)]).unwrap().incarnation;
    let missed = store.delete_where("s", Expected::Incarnation(before), 7, "{}");
    assert!(matches!(missed, Err(LogError::Conflict { .. })), "{missed:?}");
    assert_eq!(numbers(&store, "s"), [1]);
    store.delete_where("s", Expected::Incarnation(now), 8, "{}").unwrap();
    assert_eq!(store.trash().unwrap().len(), 2);
}
