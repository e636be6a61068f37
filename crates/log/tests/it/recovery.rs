//! What each state of the disk means: the rows of `docs/RECOVERY.md`, one test each.

use std::time::Duration;

use bough_log::format::{FORMAT_VERSION, ROW_BYTES, seal};
use bough_log::{DamageKind, Envelope, Expected, LogError, kind};
use bough_testkit::{Call, Fault, FaultPlan};

use crate::support::*;

const SEGMENT: &str = "0000000000000001.seg";

/// Three entries, then a batch of three; the writer was killed. The manifest knows record 1.
fn killed() -> Machine {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 3);
    process.store.append("s", Expected::Any, vec![entry(4), entry(5), entry(6)]).unwrap();
    process.kill();
    machine
}

fn keep_rows(machine: &Machine, rows: usize) {
    machine.change("offsets.jsonl", |bytes| bytes.truncate(rows * ROW_BYTES));
}

/// Cuts the segment `more` bytes after the end of a frame.
fn cut_after(machine: &Machine, frame: usize, more: usize) {
    machine.change(SEGMENT, |bytes| bytes.truncate(line_starts(bytes)[frame] + more));
}

/// A reader and a writer both report it, and neither changes anything.
fn reports(machine: &Machine, kind: DamageKind, seq: u64, shown: &[u64]) {
    let damage = machine.damage("s").unwrap();
    assert_eq!((damage.kind, damage.seq), (kind, Some(seq)), "{damage}");
    assert_eq!(machine.shown("s"), shown, "what stands before it is readable");
    let refused = machine.refusal("s");
    assert!(matches!(&refused, LogError::Corrupt(found) if found.kind == kind), "{refused}");
    assert!(machine.verify("s").damage.iter().any(|found| found.kind == kind));
}

/// It is left behind and counted, and what comes after is appended to a new segment.
fn leaves_behind(machine: &Machine, shown: &[u64], torn_records: u64) {
    assert_eq!(machine.damage("s"), None);
    assert_eq!(machine.shown("s"), shown);
    let process = machine.start();
    let report = process.store.open_for_writing("s").unwrap();
    assert_eq!((report.clean, report.torn_records), (false, torn_records));
    assert!(report.torn_bytes > 0);
    let next = Envelope::entry("next", None, 1, "99");
    process.store.append("s", Expected::Any, vec![next]).unwrap();
    assert!(machine.has("0000000000000002.seg"), "never to a file of an earlier process");
    let after = machine.after_power_cut();
    assert_eq!(after.shown("s"), [shown, &[99]].concat());
}

#[test]
fn a_frame_that_continues_the_chain_is_taken() {
    let machine = killed();
    keep_rows(&machine, 3);
    assert_eq!(machine.shown("s"), [1, 2, 3, 4, 5, 6]);
    let process = machine.start();
    let report = process.store.open_for_writing("s").unwrap();
    assert_eq!((report.clean, report.torn_records, report.frames_scanned), (false, 0, 6));
}

#[test]
fn a_good_frame_of_another_log_is_reported_and_not_trimmed() {
    let machine = killed();
    let other = Machine::full();
    let process = other.start();
    fill(&process.store, "t", 3);
    machine.put(SEGMENT, &other.bytes(SEGMENT));
    reports(&machine, DamageKind::ChainBroken, 1, &[]);
}

#[test]
fn an_unreadable_frame_that_a_row_knows_is_an_acknowledged_record_lost() {
    let machine = killed();
    cut_after(&machine, 5, 20);
    reports(&machine, DamageKind::Acknowledged, 6, &[1, 2, 3]);
    let damage = machine.verify("s").damage;
    let hit = damage.iter().find(|damage| damage.kind == DamageKind::Acknowledged).unwrap();
    assert_eq!(hit.seq, Some(6), "the record that cannot be read, not the first of its batch");
    assert!(
        hit.detail.ends_with("record 6 is damaged, and its batch begins with record 4"),
        "{hit}"
    );
}

#[test]
fn an_unreadable_frame_before_a_good_one_of_a_later_write_is_rot() {
    let machine = killed();
    keep_rows(&machine, 0);
    machine.change(SEGMENT, |bytes| {
        let at = line_starts(bytes)[1] + 30;
        bytes[at] ^= 4;
    });
    reports(&machine, DamageKind::Frame, 2, &[1]);
}

#[test]
fn an_unreadable_end_that_nobody_knows_is_a_torn_tail() {
    let machine = killed();
    keep_rows(&machine, 3);
    cut_after(&machine, 5, 20);
    leaves_behind(&machine, &[1, 2, 3], 3);
}

#[test]
fn garbage_in_a_write_that_nobody_knows_is_a_torn_tail_whatever_follows_in_it() {
    let machine = killed();
    keep_rows(&machine, 3);
    // Frames of one write reach the disk in any order: the good one after it vouches for nothing.
    machine.change(SEGMENT, |bytes| {
        let starts = line_starts(bytes);
        bytes[starts[3]..starts[4] - 1].fill(0);
    });
    leaves_behind(&machine, &[1, 2, 3], 1);
}

#[test]
fn a_log_that_ends_before_what_a_row_knows_has_lost_an_acknowledged_record() {
    let machine = killed();
    cut_after(&machine, 3, 0);
    reports(&machine, DamageKind::Acknowledged, 4, &[1, 2, 3]);
}

#[test]
fn a_segment_that_is_not_there_while_a_later_one_is_is_reported() {
    let machine = Machine::with(|options| {
        options.tiny_bytes = 0;
        options.segment_bytes = 500;
    });
    let process = machine.start();
    fill(&process.store, "s", 9);
    process.kill();
    machine.remove("0000000000000002.seg");
    keep_rows(&machine, 0);
    let damage = machine.damage("s").unwrap();
    assert_eq!(damage.kind, DamageKind::MissingSegment, "{damage}");
    assert!(matches!(machine.refusal("s"), LogError::Corrupt(_)));
}

#[test]
fn a_segment_that_is_not_there_after_a_log_that_was_closed_properly_is_reported() {
    let machine = Machine::with(|options| {
        options.tiny_bytes = 0;
        options.segment_bytes = 500;
    });
    let store = machine.start().store;
    fill(&store, "s", 3);
    store.close("s").unwrap();
    let closed = machine.bytes("manifest.json");
    (4..=9).for_each(|n| append(&store, "s", n));
    assert!(machine.has("0000000000000003.seg"));
    store.close("s").unwrap();
    // The manifest and the index of before, and of the segments after it only the second.
    machine.put("manifest.json", &closed);
    keep_rows(&machine, 3);
    machine.remove("0000000000000002.seg");
    let damage = machine.damage("s").unwrap();
    assert_eq!(damage.kind, DamageKind::MissingSegment, "{damage}");
    assert!(matches!(machine.refusal("s"), LogError::Corrupt(_)));
}

#[test]
fn a_batch_that_was_not_finished_is_left_behind() {
    let machine = killed();
    keep_rows(&machine, 3);
    cut_after(&machine, 5, 0);
    leaves_behind(&machine, &[1, 2, 3], 2);
}

#[test]
fn the_end_is_the_end_and_opening_twice_is_opening_once() {
    let machine = killed();
    for _ in 0..2 {
        let process = machine.start();
        process.store.open_for_writing("s").unwrap();
        process.kill();
    }
    let once = machine.disk.digest();
    let process = machine.start();
    let report = process.store.open_for_writing("s").unwrap();
    assert!(report.clean, "{report:?}");
    process.kill();
    assert_eq!(machine.disk.digest(), once);
    assert_eq!(machine.shown("s"), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_newer_format_is_refused_with_the_version_that_is_needed() {
    let newer = FORMAT_VERSION + 6;
    let machine = killed();
    machine.change_manifest(|manifest| manifest.format = newer);
    // One whose members we do not even know.
    let stranger = Machine::full();
    fill(&stranger.start().store, "s", 2);
    let unknown = serde_json::json!({ "format": newer, "shape": "unheard of" });
    stranger.put("manifest.json", &seal(&unknown).unwrap());
    for machine in [machine, stranger] {
        let refused = machine.start();
        let before = machine.disk.digest_without_locks();
        for error in [
            refused.store.open_for_writing("s").map(drop).unwrap_err(),
            refused.store.read("s").map(drop).unwrap_err(),
            refused.store.verify("s").map(drop).unwrap_err(),
        ] {
            let is_newer = matches!(
                &error,
                LogError::NewerFormat { found, supported: FORMAT_VERSION, .. } if *found == newer
            );
            assert!(is_newer, "{error}");
        }
        assert_eq!(machine.disk.digest_without_locks(), before, "and nothing is changed");
    }
}

/// Two checkpoints, then one more entry; the writer was killed.
fn checkpointed() -> Machine {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.checkpoint("s").unwrap();
    append(&process.store, "s", 3);
    process.store.checkpoint("s").unwrap();
    append(&process.store, "s", 4);
    process.kill();
    machine
}

#[test]
fn a_checkpoint_that_cannot_be_read_is_passed_over_for_the_one_before() {
    let machine = checkpointed();
    machine.change("checkpoints/0000000000000002.json", |bytes| bytes[20] ^= 1);
    assert!(machine.named("s").contains(&"checkpoint unreadable"));
    let report = machine.start().store.open_for_writing("s").unwrap();
    assert_eq!((report.checkpoint_skipped, report.frames_scanned), (true, 2));
    assert_eq!(machine.shown("s"), [1, 2, 3, 4]);
}

#[test]
fn without_any_checkpoint_the_segments_are_read_from_the_first_frame() {
    let machine = checkpointed();
    machine.remove("checkpoints/0000000000000002.json");
    machine.remove("checkpoints/0000000000000001.json");
    let report = machine.start().store.open_for_writing("s").unwrap();
    assert_eq!((report.checkpoint_skipped, report.frames_scanned), (true, 4));
    assert_eq!(machine.shown("s"), [1, 2, 3, 4]);
    assert!(machine.verify("s").is_well(), "and everything derived was made again");
}

#[test]
fn a_checkpoint_that_no_manifest_names_is_ignored_and_its_number_is_not_used_again() {
    let machine = checkpointed();
    let newest = machine.bytes("checkpoints/0000000000000002.json");
    let path = machine.path("checkpoints/0000000000000002.json");
    let stray = path.parent().join("0000000000000007.json").unwrap();
    machine.disk.plant(&stray, &newest).unwrap();
    assert_eq!(machine.shown("s"), [1, 2, 3, 4]);
    let process = machine.start();
    process.store.open_for_writing("s").unwrap();
    process.store.checkpoint("s").unwrap();
    assert!(machine.has("checkpoints/0000000000000008.json"), "{:?}", machine.disk);
}

#[test]
fn rows_that_are_missing_or_wrong_after_the_checkpoint_are_made_again() {
    for wrong in [true, false] {
        let machine = checkpointed();
        machine.change("offsets.jsonl", |bytes| match wrong {
            true => bytes[3 * ROW_BYTES + 7] ^= 1,
            false => bytes.truncate(3 * ROW_BYTES),
        });
        let process = machine.start();
        assert_eq!(process.store.open_for_writing("s").unwrap().rows_rebuilt, 1);
        assert_eq!(process.store.ledger("s").unwrap().len(), 1, "a line in the ledger");
        assert!(machine.verify("s").is_well());
    }
}

/// Twelve entries, closed, with a table of ids.
fn with_tables() -> Machine {
    let machine = Machine::small();
    let process = machine.start();
    fill(&process.store, "s", 12);
    process.store.close_all().unwrap();
    assert_eq!(tables(&machine).len(), 1);
    machine
}

fn tables(machine: &Machine) -> Vec<String> {
    let files = machine.disk.files().into_iter().map(|(path, _)| path.file_name().to_owned());
    files.filter(|name| name.ends_with(".tbl")).collect()
}

#[test]
fn an_index_that_is_wrong_before_the_checkpoint_is_made_again_from_the_segments() {
    let damages: [fn(&mut Vec<u8>); 3] =
        [Vec::clear, |bytes| bytes.truncate(bytes.len() / 2), |bytes| bytes.fill(b'x')];
    for file in ["offsets.jsonl", ".tbl"] {
        for damage in damages {
            let machine = with_tables();
            machine.change(file, damage);
            assert!(!machine.verify("s").is_well(), "{file}");
            let expected: Vec<u64> = (1..=12).collect();
            assert_eq!(machine.shown("s"), expected, "{file}");
            let process = machine.start();
            process.store.open_for_writing("s").unwrap();
            let reader = process.store.read("s").unwrap();
            for n in expected {
                assert_eq!(reader.find(&format!("e{n}")).unwrap(), Some(n), "{file}");
            }
            process.store.close_all().unwrap();
            let report = machine.verify("s");
            assert!(report.is_well(), "{file}: {:?}", report.damage);
        }
    }
}

#[test]
fn frames_that_only_the_page_cache_has_are_written_again_before_they_are_believed() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    // The sync fails, and the system takes the pages for clean.
    machine.disk.inject(FaultPlan::once(Fault::LostPages, 1));
    assert!(process.store.append("s", Expected::Any, vec![entry(3)]).is_err());
    process.kill();
    assert_eq!(machine.after_power_cut().shown("s"), [1, 2]);
    let again = machine.start();
    again.store.open_for_writing("s").unwrap();
    assert_eq!(numbers(&again.store, "s"), [1, 2, 3]);
    assert_eq!(machine.after_power_cut().shown("s"), [1, 2, 3], "what was shown is durable");
}

#[test]
fn a_deletion_that_was_cut_short_is_not_shown_and_the_next_writer_finishes_it() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 2);
    machine.disk.inject(FaultPlan::once(Fault::Broken, 1).only(Call::Rename));
    // The first rename is the manifest's, of the checkpoint that closing makes: the record is durable.
    assert!(process.store.delete("s", 5, "{}").is_err());
    process.kill();
    let again = machine.start();
    assert!(matches!(machine.look().read("s"), Err(LogError::NotFound { .. })));
    let write = again.store.append("s", Expected::Any, vec![entry(3)]);
    assert!(matches!(write, Err(LogError::NotFound { .. })), "{write:?}");
    assert_eq!(again.store.trash().unwrap().len(), 1, "the move is finished");
    again.store.create("s", vec![entry(1)]).unwrap();
}

#[test]
fn an_undo_that_was_cut_short_is_finished_by_the_next_one() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.delete("s", 5, "{}").unwrap();
    let renames = machine.disk.calls();
    process.store.undelete("s", None, 6, "{}").unwrap();
    drop(renames);
    process.store.delete("s", 7, "{}").unwrap();
    // Every rename of the undo fails once: whichever it is, asking again brings the log back.
    for at in 1..=2 {
        machine.disk.inject(FaultPlan::once(Fault::Broken, at).only(Call::Rename));
        assert!(process.store.undelete("s", None, 8, "{}").is_err(), "rename {at}");
        machine.disk.heal();
    }
    process.store.undelete("s", None, 9, "{}").unwrap();
    let reader = process.store.read("s").unwrap();
    let newest = reader.record(reader.head().seq, |stored| stored.into_owned()).unwrap().unwrap();
    assert_eq!(newest.envelope.kind, kind::RESTORED);
    append(&process.store, "s", 3);
    assert_eq!(machine.after_power_cut().shown("s"), [1, 2, 3]);
}

#[test]
fn what_an_interrupted_build_left_is_removed_after_an_hour() {
    let machine = Machine::new();
    let process = machine.start();
    let mut staged = process.store.stage("import", "s").unwrap();
    staged.add([entry(1)]).unwrap();
    process.kill();
    let left = |machine: &Machine| {
        machine.disk.files().iter().any(|(path, _)| path.as_str().starts_with("staging/"))
    };
    machine.clock.advance(Duration::from_secs(3_500));
    machine.start().kill();
    assert!(left(&machine), "a process may still be at work");
    machine.clock.advance(Duration::from_secs(200));
    machine.start().kill();
    assert!(!left(&machine));
}

#[test]
fn the_lock_of_a_process_that_ended_is_taken_over() {
    let machine = Machine::new();
    let first = machine.start();
    fill(&first.store, "s", 2);
    let second = machine.start();
    let refused = second.store.append("s", Expected::Any, vec![entry(3)]);
    match refused {
        Err(LogError::Locked { holder }) => assert!(holder.contains("\"pid\":"), "{holder}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(numbers(&second.store, "s"), [1, 2], "reading is served");
    first.kill();
    append(&second.store, "s", 3);
    assert_eq!(numbers(&second.store, "s"), [1, 2, 3]);
}

#[test]
fn a_round_after_damage_never_writes_over_a_table_that_the_last_manifest_names() {
    let machine = with_tables();
    let named = tables(&machine);
    // The table cannot be believed: another one is written, and the disk fails at the manifest.
    machine.change(".tbl", |bytes| bytes.fill(b'x'));
    machine.disk.inject(FaultPlan::once(Fault::Broken, 3).only(Call::Rename));
    let process = machine.start();
    assert!(process.store.open_for_writing("s").is_err());
    process.kill();
    machine.disk.heal();
    let now = tables(&machine);
    assert!(now.len() == 2 && named.iter().all(|name| now.contains(name)), "{now:?}");
    let again = machine.start();
    (13..=20).for_each(|n| append(&again.store, "s", n));
    assert_eq!(tables(&machine).len(), 1, "the next round leaves only what it names");
    assert!(machine.verify("s").is_well());
}

#[test]
fn in_the_weaker_durability_a_power_cut_leaves_a_prefix_and_no_false_alarm() {
    let machine = Machine::weak();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.checkpoint("s").unwrap();
    (3..=5).for_each(|n| append(&process.store, "s", n));
    let mut lengths = std::collections::BTreeSet::new();
    // Three writes are not synced: every subset of them may survive, torn or whole.
    machine.disk.images(&bough_testkit::ImageRules::seeded(1), |image| {
        let cut = machine.on(image.disk());
        assert_eq!(cut.damage("s"), None, "{:?}", cut.disk);
        let shown = cut.shown("s");
        assert!(shown.len() >= 2, "never shorter than at the last sync");
        assert_eq!(shown, (1..=shown.len() as u64).collect::<Vec<_>>());
        cut.start().store.open_for_writing("s").unwrap();
        lengths.insert(shown.len());
    });
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5]);
    process.kill();
    assert_eq!(machine.shown("s"), [1, 2, 3, 4, 5], "a process that ends loses nothing");
}
