//! Damage of what can be made again from the segments: it stops no reader, and the next writer mends it.

use bough_log::format::{LedgerEvent, Outcome, Phase, Pointer, ROW_BYTES};
use bough_log::{DamageKind, Envelope, Expected, LogStore, PathStart, kind};
use bough_testkit::{Call, CountingDisk, Fault, FaultPlan};

use crate::support::{Machine, append, entry, fill, numbers, verify_all};

const ENTRIES: u64 = 12;

fn revision(of: &str) -> Envelope<'static> {
    let target = Some(of.to_owned().into());
    Envelope { target, revision: Some(1), ..Envelope::plain(kind::REVISION, 1, "\"better\"") }
}

/// Entries, the first of them revised, with an index, a table of ids and checkpoints; closed.
fn closed() -> Machine {
    let machine = Machine::small();
    let process = machine.start();
    fill(&process.store, "s", ENTRIES);
    process.store.append("s", Expected::Any, vec![revision("e1")]).unwrap();
    process.store.close_all().unwrap();
    machine
}

/// Reads the log in every way and finds what was appended.
#[track_caller]
fn check_reads(store: &LogStore, about: &str) {
    let reader = store.read("s").unwrap();
    assert_eq!(reader.damage(), None, "{about}");
    assert_eq!(numbers(store, "s"), (1..=ENTRIES).collect::<Vec<_>>(), "{about}");
    for n in 1..=ENTRIES {
        let found = reader.entry(&format!("e{n}"), |stored| stored.into_owned()).unwrap().unwrap();
        assert_eq!((found.added.seq, found.depth), (n, n), "{about}");
        assert_eq!(found.revisions.len(), usize::from(n == 1), "{about}");
    }
    let path =
        reader.path("e12", PathStart::Root, 100, |stored| stored.into_owned()).unwrap().unwrap();
    assert_eq!(path.entries.len() as u64, ENTRIES, "{about}");
    let heads = reader.branch_heads().unwrap();
    assert_eq!(heads.iter().map(|head| head.entry_id.as_str()).collect::<Vec<_>>(), ["e12"]);
}

/// Reading goes on and writes nothing, `verify` reports, and a writer leaves everything as it should be.
#[track_caller]
fn check_damaged(machine: &Machine, about: &str) {
    let before = machine.disk.digest_without_locks();
    check_reads(&machine.look(), about);
    assert!(!machine.verify("s").is_well(), "{about}: verify says nothing");
    assert_eq!(machine.disk.digest_without_locks(), before, "{about}: reading wrote");
    let process = machine.start();
    process.store.open_for_writing("s").unwrap();
    check_reads(&process.store, about);
    append(&process.store, "s", ENTRIES + 1);
    process.store.close_all().unwrap();
    let report = machine.verify("s");
    assert!(report.is_well(), "{about}: {:?}", report.damage);
    assert!(!process.store.ledger("s").unwrap().is_empty(), "{about}: the repair is recorded");
}

/// The number of the newest file whose name ends so.
fn newest(machine: &Machine, end: &str) -> String {
    let files = machine.disk.files().into_iter().map(|(path, _)| path.file_name().to_owned());
    files.filter(|name| name.ends_with(end) && name.starts_with(['0', 'i'])).max().unwrap()
}

#[test]
fn a_flipped_bit_in_any_offset_row_stops_nobody_and_is_mended() {
    for (row, _) in (0..=ENTRIES).enumerate() {
        let machine = closed();
        machine.change("offsets.jsonl", |bytes| bytes[row * ROW_BYTES + 40] ^= 1);
        check_damaged(&machine, &format!("row {row}"));
    }
}

#[test]
fn a_flipped_bit_in_an_id_table_stops_nobody_and_is_mended() {
    let machine = closed();
    machine.change(&newest(&machine, ".tbl"), |bytes| bytes[20] ^= 1);
    check_damaged(&machine, "table");
}

#[test]
fn rows_that_can_be_read_and_are_of_another_log_stop_nobody() {
    let other = Machine::small();
    let process = other.start();
    process.store.create("s", vec![entry(1), entry(2), entry(3), entry(4)]).unwrap();
    (5..=13).for_each(|n| append(&process.store, "s", n));
    process.store.close_all().unwrap();
    let machine = closed();
    machine.put("offsets.jsonl", &other.bytes("offsets.jsonl"));
    check_reads(&machine.look(), "rows of another log");
    assert!(!machine.verify("s").is_well());
}

#[test]
fn a_flipped_bit_in_the_checkpoint_stops_nobody_and_is_mended() {
    let machine = closed();
    machine.change(&newest(&machine, ".json"), |bytes| bytes[60] ^= 1);
    let before = machine.disk.digest_without_locks();
    check_reads(&machine.look(), "checkpoint");
    assert_eq!(machine.named("s"), ["checkpoint unreadable"]);
    assert_eq!(machine.disk.digest_without_locks(), before, "reading wrote");
    let process = machine.start();
    process.store.open_for_writing("s").unwrap();
    process.kill();
    assert!(machine.verify("s").is_well(), "opening alone mends it");
}

/// Whatever its size, and closed or not.
#[test]
fn a_log_whose_manifest_is_unreadable_or_missing_is_read_listed_and_written() {
    let tiny = Machine::new();
    fill(&tiny.start().store, "s", ENTRIES);
    let killed = Machine::full();
    fill(&killed.start().store, "s", ENTRIES);
    for machine in [&tiny, &killed] {
        let process = machine.start();
        process.disk.kill();
        let process = machine.start();
        process.store.append("s", Expected::Any, vec![revision("e1")]).unwrap();
        process.store.close_all().unwrap();
    }
    for machine in [tiny, killed, closed()] {
        for gone in [false, true] {
            let machine = machine.on(machine.disk.copy());
            match gone {
                true => machine.remove("manifest.json"),
                false => machine.change("manifest.json", |bytes| bytes[9] ^= 1),
            }
            assert!(machine.named("s").contains(&"manifest unreadable"));
            let mut listed = Vec::new();
            machine.look().visit(&mut |log| listed.push(log.unwrap().id)).unwrap();
            assert_eq!(listed, ["s"]);
            check_damaged(&machine, "manifest");
            let made_again = machine.look().manifest("s").unwrap().unwrap();
            assert_eq!(made_again.created_at_ms, 1, "the time of the first record");
            let again = machine.start().store.create("s", vec![entry(1)]);
            assert!(again.is_err(), "it is never taken for a new one");
        }
    }
}

/// The manifest is a witness, too: where it is lost together with the end of the log, it is not known what else is.
#[test]
fn a_manifest_that_is_lost_together_with_the_end_of_the_log_leaves_doubt() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 3);
    process.store.close_all().unwrap();
    machine.put("manifest.json", b"gone");
    machine.change(".seg", |bytes| bytes.truncate(bytes.len() - 5));
    assert_eq!(machine.damage("s").unwrap().kind, DamageKind::Manifest);
    assert_eq!(machine.shown("s"), [1, 2], "what is whole can be read");
    assert!(machine.refusal("s").to_string().contains("manifest"));
}

/// A log with a ledger that ends with an event of this phase.
fn migrated(phase: Phase, source_path: Option<&str>) -> Machine {
    let machine = closed();
    let well = LedgerEvent::recovery("m", "migrated".to_owned(), 1);
    let event = LedgerEvent {
        phase,
        outcome: Outcome::Ok,
        source_snapshot_id: "sha256:00:1".to_owned(),
        source_path: source_path.map(ToOwned::to_owned),
        source_format: "jsonl_v3".to_owned(),
        ..well
    };
    machine.start().store.record_event("s", &event).unwrap();
    machine
}

#[test]
fn a_migrated_log_is_written_without_its_manifest_and_keeps_its_way_back() {
    let machine = migrated(Phase::Completed, Some("/v1/s.jsonl"));
    machine.change("manifest.json", |bytes| bytes[9] ^= 1);
    check_damaged(&machine, "manifest");
    let made_again = machine.look().manifest("s").unwrap().unwrap();
    let (path, snapshot_id) = ("/v1/s.jsonl".to_owned(), "sha256:00:1".to_owned());
    assert_eq!(made_again.pointer, Pointer::NativeV2);
    assert_eq!(made_again.previous, Some(Pointer::JsonlV3 { path, snapshot_id }));
}

#[test]
fn a_migrated_log_is_not_written_without_its_manifest_where_that_alone_named_the_file() {
    let machine = migrated(Phase::Completed, None);
    machine.put("manifest.json", b"gone");
    assert_eq!(machine.damage("s"), None);
    assert!(machine.refusal("s").to_string().contains("manifest"));
}

#[test]
fn a_migrated_log_is_not_read_without_its_manifest_while_its_file_may_answer() {
    let rolled_back = migrated(Phase::RolledBack, Some("/v1/s.jsonl"));
    let torn = migrated(Phase::Completed, Some("/v1/s.jsonl"));
    torn.change("ledger.jsonl", |bytes| bytes[9] ^= 1);
    for machine in [rolled_back, torn] {
        machine.put("manifest.json", b"gone");
        assert!(machine.damage("s").is_some());
        assert!(machine.refusal("s").to_string().contains("manifest"));
    }
}

/// What stands behind the damage was not compared, so `verify` does not call the index or the checkpoint wrong.
#[test]
fn verify_names_the_damaged_record_and_nothing_that_is_whole() {
    let machine = closed();
    machine.change("0000000000000001.seg", |bytes| {
        let third = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len);
        let third: usize = third.sum();
        bytes[third + 60] ^= 1;
    });
    let report = machine.verify("s");
    let damaged: Vec<_> = report.damage.iter().map(|it| (it.kind, it.seq)).collect();
    assert_eq!(damaged, [(DamageKind::Acknowledged, Some(3))], "{:?}", report.damage);
}

#[test]
fn a_flipped_bit_in_the_ledger_stops_nobody_and_stays_reported() {
    let machine = migrated(Phase::Completed, Some("/v1/s.jsonl"));
    machine.change("ledger.jsonl", |bytes| bytes[9] ^= 1);
    check_reads(&machine.look(), "ledger");
    assert_eq!(machine.named("s"), ["ledger line unreadable"]);
    append(&machine.start().store, "s", ENTRIES + 1);
    assert_eq!(machine.named("s"), ["ledger line unreadable"]);
}

#[test]
fn a_writer_that_meets_damage_while_it_writes_goes_on_and_mends_it() {
    let machine = closed();
    let process = machine.start();
    process.store.open_for_writing("s").unwrap();
    machine.change("offsets.jsonl", |bytes| bytes[ROW_BYTES + 40] ^= 1);
    process.store.append("s", Expected::Any, vec![revision("e2")]).unwrap();
    assert_eq!(
        process
            .store
            .read("s")
            .unwrap()
            .entry("e2", |stored| stored.into_owned())
            .unwrap()
            .unwrap()
            .revisions
            .len(),
        1
    );
    process.kill();
    let report = machine.verify("s");
    assert!(report.is_well(), "the round after the append: {:?}", report.damage);
}

/// A crash while rows are written over others that a checkpoint relies on would leave a mixture of both.
#[test]
fn rows_that_a_checkpoint_relies_on_are_replaced_in_one_step() {
    let machine = closed();
    machine.change("offsets.jsonl", |bytes| bytes[ROW_BYTES + 40] ^= 1);
    let damaged = machine.bytes("offsets.jsonl");
    // The first rename is the ledger's, the second that of the rows.
    machine.disk.inject(FaultPlan::once(Fault::Broken, 2).only(Call::Rename));
    let process = machine.start();
    assert!(process.store.open_for_writing("s").is_err());
    process.kill();
    machine.disk.heal();
    assert_eq!(machine.bytes("index/offsets.jsonl"), damaged);
    check_damaged(&machine, "after the failure");
}

#[test]
fn a_log_in_the_trash_without_its_manifest_is_kept() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 3);
    process.store.delete("s", 5, "\"why\"").unwrap();
    machine.put("manifest.json", b"gone");
    assert_eq!(process.store.trash().unwrap(), []);
    assert_eq!(process.store.purge(i64::MAX).unwrap(), 0);
    assert!(machine.has("0000000000000001.seg"));
    let reports = verify_all(&process.store);
    assert_eq!(reports[0].damage[0].kind, DamageKind::Manifest);
}

/// Walks through a log as a service does: a reader for each page.
fn walk(store: &LogStore, page: u64) -> u64 {
    let mut after = 0;
    loop {
        let records =
            store.read("s").unwrap().records(after, page, |stored| stored.into_owned()).unwrap();
        let Some(last) = records.last() else { return after };
        after = last.seq;
    }
}

fn segment_bytes(machine: &Machine) -> u64 {
    let files = machine.disk.files().into_iter();
    files.filter(|(path, _)| path.as_str().ends_with(".seg")).map(|(_, b)| b.len() as u64).sum()
}

/// Otherwise each page of a walk would read the whole log again.
#[test]
fn a_walk_through_a_log_with_damaged_derived_files_reads_the_segments_a_few_times() {
    const RECORDS: u64 = 300;
    type Change = fn(&Machine);
    let changes: [(&str, Change); 3] = [
        ("manifest", |machine| machine.change("manifest.json", |bytes| bytes[9] ^= 1)),
        ("first row", |machine| machine.change("offsets.jsonl", |bytes| bytes[40] ^= 1)),
        ("index", |machine| machine.remove("offsets.jsonl")),
    ];
    for (about, change) in changes {
        let machine = Machine::full();
        let process = machine.start();
        for n in 1..=RECORDS {
            let entry = Envelope { payload: format!("{:?}", "x".repeat(4_000)).into(), ..entry(n) };
            match n {
                1 => process.store.create("s", vec![entry]),
                _ => process.store.append("s", Expected::Any, vec![entry]),
            }
            .unwrap();
        }
        process.store.close_all().unwrap();
        change(&machine);
        let counting = CountingDisk::new(std::sync::Arc::new(machine.disk.another_process()));
        let platform = machine.behind(std::sync::Arc::new(counting.clone()));
        let store = <LogStore>::open_to_look(platform, machine.options.clone());
        assert_eq!(walk(&store, 10), RECORDS, "{about}");
        // The pages, and once to make the index again. The rest is what is derived.
        let read = counting.counts().bytes_read;
        assert!(read < 3 * segment_bytes(&machine), "{about}: {read}");
    }
}

#[test]
fn a_log_that_was_made_again_is_read_anew_after_another_process_wrote() {
    let machine = closed();
    machine.change("manifest.json", |bytes| bytes[9] ^= 1);
    let store = machine.look();
    check_reads(&store, "before");
    let process = machine.start();
    append(&process.store, "s", ENTRIES + 1);
    process.store.close_all().unwrap();
    assert_eq!(numbers(&store, "s"), (1..=ENTRIES + 1).collect::<Vec<_>>());
    machine.change("manifest.json", |bytes| bytes[9] ^= 1);
    assert_eq!(numbers(&store, "s"), (1..=ENTRIES + 1).collect::<Vec<_>>());
}

/// A log of more rows than one opening looks at, with an id table that is larger than one opening looks at.
fn large() -> Machine {
    const ROWS: u64 = 6 * bough_log::limits::INDEX_CHECK_ROWS;
    let machine = Machine::with(|options| options.tail_rows_max = 2);
    let process = machine.start();
    process.store.create("s", vec![entry(1)]).unwrap();
    let numbers: Vec<u64> = (2..=ROWS).collect();
    for part in numbers.chunks(10_000) {
        let records: Vec<Envelope<'static>> = part.iter().map(|n| entry(*n)).collect();
        process.store.append("s", Expected::Any, records).unwrap();
    }
    process.store.close_all().unwrap();
    machine
}

/// Whatever part of them is damaged, and although nobody reads it and no process writes for long.
#[test]
fn damage_anywhere_in_a_large_index_is_mended_by_processes_that_write_little() {
    let large = large();
    let tables = large.disk.files().into_iter().filter(|(path, _)| path.as_str().ends_with(".tbl"));
    let table = tables.max_by_key(|(_, bytes)| bytes.len()).unwrap().0.file_name().to_owned();
    assert!(large.bytes(&table).len() as u64 > bough_log::limits::TABLE_CHECK_BYTES);
    for (file, part) in [("offsets.jsonl", 2), ("offsets.jsonl", 3), (&*table, 3), (&*table, 8)] {
        let machine = large.on(large.disk.copy());
        machine.change(file, |bytes| {
            let at = bytes.len() * part / 10;
            bytes[at] ^= 1;
        });
        let damaged = machine.verify("s");
        assert!(!damaged.is_well() && damaged.lost_nothing(), "{file}: {:?}", damaged.damage);
        let first = damaged.records + 1;
        let openings = first.div_ceil(bough_log::limits::INDEX_CHECK_ROWS) + 1;
        for n in first..=first + openings {
            let process = machine.start();
            append(&process.store, "s", n);
            process.store.close_all().unwrap();
        }
        let report = machine.verify("s");
        assert!(report.is_well(), "{file}, part {part}: {:?}", report.damage);
    }
}
