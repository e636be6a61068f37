//! Entries that are revised after the checkpoint that knows them.

use std::sync::Arc;

use bough_log::{Envelope, Expected, LogStore, PathStart, Reader};
use bough_platform::{OsEntropy, Platform};
use bough_testkit::{CountingDisk, Counts};

use crate::support::*;

fn revise(store: &LogStore, entry: &str, revision: u64) {
    let record = Envelope::revision(entry, revision, 1, format!("\"r{revision}\""));
    store.append("s", Expected::Any, vec![record]).unwrap();
}

/// What an entry became, as a reader says.
fn revisions(reader: &Reader, entry: &str) -> Vec<String> {
    let found = reader.entry(entry, |stored| stored.into_owned()).unwrap().unwrap();
    found.revisions.into_iter().map(|stored| stored.envelope.payload.into_owned()).collect()
}

/// A log with a revision of its first entry, a checkpoint, and more revisions of it after that.
fn revised_after_a_checkpoint(machine: &Machine) -> Process {
    let process = machine.start();
    fill(&process.store, "s", 4);
    revise(&process.store, "e1", 1);
    process.store.checkpoint("s").unwrap();
    (2..=3).for_each(|revision| revise(&process.store, "e1", revision));
    append(&process.store, "s", 5);
    process
}

#[test]
fn the_index_stays_believed_when_an_old_entry_is_revised() {
    let machine = Machine::full();
    let process = revised_after_a_checkpoint(&machine);
    let wanted = ["\"r1\"", "\"r2\"", "\"r3\""];
    let reader = machine.look().read("s").unwrap();
    assert_eq!(reader.report().frames_scanned, 3, "only what came after the checkpoint");
    assert_eq!(revisions(&reader, "e1"), wanted);
    process.kill();
    let again = machine.start();
    let report = again.store.open_for_writing("s").unwrap();
    assert_eq!((report.frames_scanned, report.rows_rebuilt), (3, 0));
    assert_eq!(revisions(&again.store.read("s").unwrap(), "e1"), wanted);
    revise(&again.store, "e1", 4);
    again.store.close("s").unwrap();
    assert!(machine.verify("s").is_well());
}

#[test]
fn a_reader_shows_an_entry_as_it_was_when_the_reader_was_made() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 4);
    revise(&process.store, "e1", 1);
    process.store.checkpoint("s").unwrap();
    append(&process.store, "s", 5);
    let reader = machine.look().read("s").unwrap();
    // Noted in the very rows that the reader looks at.
    (2..=3).for_each(|revision| revise(&process.store, "e1", revision));
    revise(&process.store, "e2", 1);
    assert_eq!(revisions(&reader, "e1"), ["\"r1\""]);
    assert!(revisions(&reader, "e2").is_empty());
    let path =
        reader.path("e5", PathStart::Leaf, 9, |stored| stored.into_owned()).unwrap().unwrap();
    assert_eq!(path.entries.iter().map(|entry| entry.revisions.len()).sum::<usize>(), 1);
    assert_eq!(revisions(&machine.look().read("s").unwrap(), "e1").len(), 3);
}

#[test]
fn a_revision_of_an_old_entry_costs_the_same_to_open_for_any_length() {
    let cost = |entries: u64| {
        let machine = Machine::with(|options| {
            options.tiny_bytes = 0;
            options.checkpoint_every_bytes = u64::MAX;
        });
        let process = machine.start();
        process.store.create("s", vec![entry(1)]).unwrap();
        for first in (2..=entries).step_by(500) {
            let batch: Vec<_> = (first..(first + 500).min(entries + 1)).map(entry).collect();
            process.store.append("s", Expected::Any, batch).unwrap();
        }
        process.store.checkpoint("s").unwrap();
        revise(&process.store, "e2", 1);
        let counting = CountingDisk::new(Arc::new(machine.disk.another_process()));
        let (clock, entropy) = (machine.clock.clone(), Arc::new(OsEntropy));
        let platform = Platform { disk: Arc::new(counting.clone()), clock, entropy };
        let reader = <LogStore>::open_to_look(platform, machine.options.clone()).read("s").unwrap();
        assert_eq!(revisions(&reader, "e2"), ["\"r1\""]);
        counting.counts()
    };
    let (few, many) = (cost(1_000), cost(20_000));
    assert_eq!(Counts { bytes_read: 0, ..many }, Counts { bytes_read: 0, ..few });
    // Longer numbers, and nothing else.
    assert!(many.bytes_read < few.bytes_read + 200, "{} and {}", few.bytes_read, many.bytes_read);
}
