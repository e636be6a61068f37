//! Readers and writers that come while another writer comes or goes.

use std::sync::Arc;

use bough_log::{Expected, LogError, LogStore};
use bough_testkit::{Call, Fault, FaultPlan, MeanwhileDisk};

use crate::support::*;

/// A process that only looks, and that another one can come in between of.
fn disturbed(machine: &Machine) -> (LogStore, MeanwhileDisk) {
    let disk = MeanwhileDisk::new(Arc::new(machine.disk.another_process()));
    let platform = machine.behind(Arc::new(disk.clone()));
    (LogStore::open_to_look(platform, machine.options.clone()), disk)
}

#[test]
fn a_reader_misses_nothing_while_a_writer_closes_a_tiny_log() {
    let machine = Machine::new();
    let writer = machine.start().store;
    fill(&writer, "s", 6);
    let (reader, disk) = disturbed(&machine);
    // After the lock and the manifest, before the rows, which closing takes away.
    disk.before(Call::Open, "offsets.jsonl", move |_| writer.close("s").unwrap());
    assert_eq!(numbers(&reader, "s"), [1, 2, 3, 4, 5, 6]);
    assert!(disk.is_done());
}

#[test]
fn a_reader_misses_nothing_while_a_tiny_log_is_closed_and_opened_again() {
    let machine = Machine::new();
    let writer = machine.start().store;
    fill(&writer, "s", 6);
    let (reader, disk) = disturbed(&machine);
    // The clock stands still, so that the lock names the same holder as before.
    disk.before(Call::Open, "offsets.jsonl", move |_| {
        writer.close("s").unwrap();
        writer.open_for_writing("s").unwrap();
    });
    assert_eq!(numbers(&reader, "s"), [1, 2, 3, 4, 5, 6]);
    assert!(disk.is_done());
}

#[test]
fn a_reader_shows_nothing_that_a_writer_who_comes_meanwhile_has_not_synced() {
    let machine = Machine::full();
    let writer = machine.start().store;
    fill(&writer, "s", 2);
    writer.close("s").unwrap();
    let (reader, disk) = disturbed(&machine);
    let sim = machine.disk.clone();
    let kept = writer.clone();
    disk.before(Call::Open, "offsets.jsonl", move |_| {
        sim.inject(FaultPlan::once(Fault::LostPages, 1));
        assert!(writer.append("s", Expected::Any, vec![entry(3)]).is_err());
        sim.heal();
    });
    assert_eq!(numbers(&reader, "s"), [1, 2]);
    assert!(disk.is_done() && kept.is_open("s"));
}

#[test]
fn a_log_that_is_deleted_while_it_is_read_is_not_taken_for_a_damaged_one() {
    let machine = Machine::full();
    let writer = machine.start().store;
    fill(&writer, "s", 2);
    writer.close("s").unwrap();
    let (reader, disk) = disturbed(&machine);
    disk.before(Call::Open, "manifest.json", move |_| writer.delete("s", 5, "{}").unwrap());
    let read = reader.read("s");
    assert!(matches!(read, Err(LogError::NotFound { .. })), "{read:?}");
    assert!(disk.is_done());
}
