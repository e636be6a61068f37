//! `stream.log`: what was acknowledged of a message that streams is there, or its loss is reported.

use bough_log::format::{STREAM_HEADER_BYTES, StreamHeader};
use bough_log::{DamageKind, Envelope, Expected, LogError};

use crate::support::*;

/// Two deltas of e2; the writer was killed.
fn streaming() -> Machine {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    for revision in [1, 2] {
        process.store.enqueue_delta("s", &delta("e2", revision)).unwrap().wait().unwrap();
    }
    process.kill();
    machine
}

fn shown(machine: &Machine) -> Vec<u64> {
    let reader = machine.look().read("s").unwrap();
    reader.deltas().iter().map(|line| line.revision).collect()
}

fn reports_the_loss(machine: &Machine) {
    let damage = machine.damage("s").unwrap();
    assert_eq!(damage.kind, DamageKind::Stream, "{damage}");
    assert!(machine.named("s").contains(&"acknowledged delta lost"));
    let refused = machine.refusal("s");
    assert!(matches!(&refused, LogError::Corrupt(d) if d.kind == DamageKind::Stream), "{refused}");
    assert_eq!(machine.shown("s"), [1, 2], "the records are readable");
}

#[test]
fn a_stream_log_that_is_missing_while_a_stream_is_open_is_a_loss() {
    let machine = streaming();
    assert_eq!(shown(&machine), [1, 2]);
    machine.remove("stream.log");
    reports_the_loss(&machine);
}

#[test]
fn a_stream_log_of_which_nothing_can_be_read_is_a_loss() {
    let machine = streaming();
    machine.change("stream.log", |bytes| {
        bytes.truncate(STREAM_HEADER_BYTES + 10);
        bytes[5] ^= 1;
    });
    reports_the_loss(&machine);
}

#[test]
fn a_stream_log_that_ends_before_its_header_says_is_a_loss() {
    let machine = streaming();
    machine.change("stream.log", |bytes| bytes.truncate(bytes.len() - 1));
    reports_the_loss(&machine);
}

#[test]
fn whole_deltas_after_what_the_header_knows_are_kept() {
    let machine = streaming();
    machine.change("stream.log", |bytes| {
        let header = StreamHeader::decode(bytes).unwrap();
        let first = bytes[STREAM_HEADER_BYTES..].iter().position(|b| *b == b'\n').unwrap();
        let end = (STREAM_HEADER_BYTES + first + 1) as u64;
        let older = StreamHeader { acked: 1, end, ..header };
        bytes[..STREAM_HEADER_BYTES].copy_from_slice(&older.encode().unwrap());
    });
    assert_eq!((machine.damage("s"), shown(&machine)), (None, vec![1, 2]));
    let process = machine.start();
    process.store.enqueue_delta("s", &delta("e2", 3)).unwrap().wait().unwrap();
    assert_eq!(shown(&machine.after_power_cut()), [1, 2, 3]);
}

#[test]
fn a_header_that_was_torn_costs_nothing_while_its_deltas_are_whole() {
    let machine = streaming();
    machine.change("stream.log", |bytes| bytes[..40].fill(0));
    assert_eq!((machine.damage("s"), shown(&machine)), (None, vec![1, 2]));
}

#[test]
fn a_torn_delta_that_nobody_was_told_of_is_left_behind() {
    let machine = streaming();
    machine.change("stream.log", |bytes| bytes.extend_from_slice(b"{\"m\":3,\"q\":3,\"e\":"));
    assert_eq!((machine.damage("s"), shown(&machine)), (None, vec![1, 2]));
    let process = machine.start();
    assert!(process.store.open_for_writing("s").unwrap().torn_bytes > 0);
    process.store.enqueue_delta("s", &delta("e2", 3)).unwrap().wait().unwrap();
    assert_eq!(shown(&machine.after_power_cut()), [1, 2, 3]);
}

#[test]
fn in_the_weaker_durability_deltas_stay_until_what_settles_them_is_durable() {
    let machine = Machine::weak();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.enqueue_delta("s", &delta("e2", 1)).unwrap().wait().unwrap();
    process.store.close_all().unwrap();
    let again = machine.start();
    let settled = Envelope::revision("e2", 1, 4, "\"whole\"");
    again.store.append("s", Expected::Any, vec![settled]).unwrap();
    append(&again.store, "s", 3);
    // Another stream takes the file: the deltas in it may go only now that the revision is synced.
    again.store.enqueue_delta("s", &delta("e3", 1)).unwrap().wait().unwrap();
    let after = machine.after_power_cut();
    let entry =
        after.look().read("s").unwrap().entry("e2", |stored| stored.into_owned()).unwrap().unwrap();
    assert_eq!((entry.revisions.len(), entry.deltas.len()), (1, 0));
}

#[test]
fn in_the_weaker_durability_deltas_never_outlive_the_record_that_opens_their_stream() {
    let machine = Machine::weak();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.enqueue_delta("s", &delta("e1", 1)).unwrap().wait().unwrap();
    process.store.checkpoint("s").unwrap();
    // The deltas are synced; so is the record that says whose they are, and the entry before it.
    append(&process.store, "s", 3);
    process.store.enqueue_delta("s", &delta("e3", 1)).unwrap().wait().unwrap();
    process.kill();
    let after = machine.after_power_cut();
    assert_eq!(after.shown("s"), [1, 2, 3]);
    let again = after.start();
    let reader = again.store.read("s").unwrap();
    assert_eq!(reader.streaming(), ["e1", "e3"]);
    let twice = again.store.enqueue_delta("s", &delta("e3", 1)).map(drop);
    assert!(matches!(twice, Err(LogError::Invalid { .. })), "the first one is not forgotten");
}
