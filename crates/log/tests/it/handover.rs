//! Readers and writers that come while another writer comes or goes.

use std::sync::Arc;

use bough_log::{Expected, LogError, LogStore, Options};
use bough_platform::{OsDisk, Platform, RelPath};
use bough_testkit::{Call, Fault, FaultPlan, MeanwhileDisk};

use crate::gate::{Gate, gated};
use crate::support::*;

/// A process that only looks, and that another one can come in between of.
fn disturbed(machine: &Machine) -> (LogStore, MeanwhileDisk) {
    let disk = MeanwhileDisk::new(Arc::new(machine.disk.another_process()));
    let platform = machine.behind(Arc::new(disk.clone()));
    (<LogStore>::open_to_look(platform, machine.options.clone()), disk)
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

/// Puts a file where the folder of checkpoints goes: the next round fails before it has done anything.
fn spoil_checkpoints(dir: &std::path::Path, spoiled: bool) {
    let disk: Arc<dyn bough_platform::Disk> = Arc::new(OsDisk::open(dir).unwrap());
    let sessions = RelPath::parse("sessions").unwrap();
    let shard = sessions.join(&disk.list(&sessions).unwrap()[0].name).unwrap();
    let listed = disk.list(&shard).unwrap().into_iter().find(|listed| listed.is_dir).unwrap();
    let path = shard.join(&listed.name).unwrap().join("checkpoints").unwrap();
    if spoiled {
        drop(disk.create(&path).unwrap());
    } else {
        disk.remove_file(&path).unwrap();
    }
}

#[test]
fn a_writer_that_latched_keeps_its_lock_until_its_last_commit_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let store = <LogStore>::open(gated(dir.path(), &gate), Options::default()).unwrap();
    let other =
        <LogStore>::open(Platform::system(dir.path()).unwrap(), Options::default()).unwrap();
    fill(&store, "s", 2);
    gate.close_for(".seg");
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| store.append("s", Expected::Any, vec![entry(3)]));
        gate.until_somebody_waits();
        // A round fails and latches the log; a waiting caller gets the error and asks for the log again at once.
        spoil_checkpoints(dir.path(), true);
        assert!(store.checkpoint("s").is_err());
        spoil_checkpoints(dir.path(), false);
        let reopening = scope.spawn(|| store.reopen("s"));
        for _ in 0..20 {
            let early = other.open_for_writing("s");
            assert!(matches!(early, Err(LogError::Locked { .. })), "{early:?}");
        }
        gate.open();
        drop(commit.join().unwrap());
        reopening.join().unwrap().unwrap();
    });
    append(&other, "s", 4);
    assert_eq!(numbers(&other, "s"), [1, 2, 3, 4]);
    assert!(other.verify("s").unwrap().is_well());
}
