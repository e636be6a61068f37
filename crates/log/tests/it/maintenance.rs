//! Sealing, indexing and checkpointing beside appends; sharing a sync; giving locks up.

use std::sync::Arc;
use std::time::Duration;

use bough_log::{Batch, Durability, Expected, LogError, LogStore, Options, PathStart};
use bough_platform::{OsEntropy, Platform};
use bough_record::{Fold, StoredEnvelope};
use bough_testkit::{CountingDisk, Counts};

use crate::gate::{Gate, gated};
use crate::support::*;

/// Holds a round at the sync of a file and appends meanwhile.
fn appends_go_on_while(about: &str, durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let options = Options { durability, tiny_bytes: 0, tail_rows_max: 2, ..Options::default() };
    let store = <LogStore>::open(gated(dir.path(), &gate), options.clone()).unwrap();
    fill(&store, "s", 9);
    gate.close_for(about);
    std::thread::scope(|scope| {
        let round = scope.spawn(|| store.checkpoint("s"));
        gate.until_somebody_waits();
        // The round stands still; appends are answered, and readers see them.
        (10..=15).for_each(|n| append(&store, "s", n));
        assert_eq!(numbers(&store, "s"), (1..=15).collect::<Vec<_>>());
        assert!(!round.is_finished(), "the round is still at the gate");
        gate.open();
        round.join().unwrap().unwrap();
    });
    append(&store, "s", 16);
    store.close_all().unwrap();
    let again = <LogStore>::open(Platform::system(dir.path()).unwrap(), options).unwrap();
    assert_eq!(numbers(&again, "s"), (1..=16).collect::<Vec<_>>());
    assert!(again.verify("s").unwrap().is_well());
}

/// Reading a session must not wait for the disk because a message streams in it.
#[test]
fn reads_go_on_while_a_delta_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let store = <LogStore>::open(gated(dir.path(), &gate), Options::default()).unwrap();
    fill(&store, "s", 3);
    let write = |revision| store.enqueue_delta("s", &delta("e3", revision)).unwrap().wait();
    let shown = || {
        let reader = store.read("s").unwrap();
        reader.deltas().iter().map(|line| line.revision).collect::<Vec<_>>()
    };
    write(1).unwrap();
    gate.close_for("stream.log");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(2));
        gate.until_somebody_waits();
        assert_eq!(numbers(&store, "s"), [1, 2, 3]);
        assert_eq!(shown(), [1], "a delta is shown when it is durable");
        assert!(!writing.is_finished(), "the writer is still at the gate");
        gate.open();
        writing.join().unwrap().unwrap();
    });
    assert_eq!(shown(), [1, 2]);
}

#[test]
fn appends_go_on_while_the_segment_is_sealed() {
    // In the usual durability the frames are synced already; in the weaker one the round syncs them.
    appends_go_on_while(".seg", Durability::MayLoseNewestOnPowerCut);
}

#[test]
fn appends_go_on_while_the_index_is_synced() {
    appends_go_on_while("offsets.jsonl", Durability::Synced);
}

#[test]
fn appends_go_on_while_the_id_tables_are_written() {
    appends_go_on_while("ids-", Durability::Synced);
}

#[test]
fn appends_go_on_while_the_checkpoint_is_written() {
    appends_go_on_while("checkpoint.tmp", Durability::Synced);
}

#[test]
fn appends_go_on_while_the_manifest_is_replaced() {
    appends_go_on_while("manifest.json.tmp", Durability::Synced);
}

#[test]
fn callers_that_wait_on_one_log_share_one_sync_up_to_the_byte_cap() {
    let machine = Machine::with(|options| options.group_bytes_max = 4_000);
    let counting = CountingDisk::new(Arc::new(machine.disk.another_process()));
    let platform = Platform {
        disk: Arc::new(counting.clone()),
        clock: machine.clock.clone(),
        entropy: Arc::new(OsEntropy),
    };
    let store = <LogStore>::open(platform, machine.options.clone()).unwrap();
    fill(&store, "s", 2);
    let syncs = |count: u64| {
        let first = store.read("s").unwrap().head().seq + 1;
        let before = counting.counts().syncs;
        let enqueue = |n| store.enqueue("s", Expected::Any, &Batch::new(&[entry(n)])).unwrap();
        let waiting: Vec<_> = (first..first + count).map(enqueue).collect();
        for pending in waiting {
            pending.wait().unwrap();
        }
        counting.counts().syncs - before
    };
    assert_eq!(syncs(10), 1);
    assert!((2..20).contains(&syncs(60)), "about two hundred bytes each");
    assert_eq!(machine.after_power_cut().shown("s"), (1..=72).collect::<Vec<_>>());
}

#[test]
fn opening_what_was_closed_costs_the_same_for_any_number_of_segments() {
    let machine = Machine::with(|options| {
        options.tiny_bytes = 0;
        options.segment_bytes = 500;
    });
    let store = machine.start().store;
    let cost = |entries| {
        let id = format!("s{entries}");
        fill(&store, &id, entries);
        store.close(&id).unwrap();
        let counting = CountingDisk::new(Arc::new(machine.disk.another_process()));
        let (clock, entropy) = (machine.clock.clone(), Arc::new(OsEntropy));
        let platform = Platform { disk: Arc::new(counting.clone()), clock, entropy };
        let reader = <LogStore>::open_to_look(platform, machine.options.clone()).read(&id).unwrap();
        let leaf = format!("e{entries}");
        assert_eq!(
            reader
                .path(&leaf, PathStart::Leaf, 3, |stored| stored.into_owned())
                .unwrap()
                .unwrap()
                .entries
                .len(),
            3
        );
        counting.counts()
    };
    // Both have an id table, so that what is read at opening is of one kind.
    let few = cost(300);
    assert_eq!(few.lists, 1, "only the folder that the log is looked for in");
    let many = cost(900);
    assert_eq!(Counts { bytes_read: 0, ..many }, Counts { bytes_read: 0, ..few });
}

#[test]
fn an_idle_log_is_closed_and_its_lock_given_up() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 2);
    let minute = Duration::from_secs(60);
    assert_eq!(process.store.release_idle(minute).unwrap(), 0, "it was just used");
    machine.clock.advance(minute);
    assert!(machine.has(".seg") && process.store.is_open("s"));
    assert_eq!(process.store.release_idle(minute).unwrap(), 1);
    assert!(!process.store.is_open("s"));
    // The other process takes it up, and the first is refused now.
    let other = machine.start();
    append(&other.store, "s", 3);
    let refused = process.store.append("s", Expected::Any, vec![entry(4)]);
    assert!(matches!(refused, Err(LogError::Locked { .. })), "{refused:?}");
}

#[test]
fn beyond_the_bound_of_open_logs_the_longest_idle_one_is_closed() {
    let machine = Machine::with(|options| options.open_logs_max = 3);
    let process = machine.start();
    for n in 0..8 {
        fill(&process.store, &format!("s{n}"), 2);
        machine.clock.advance(Duration::from_secs(1));
    }
    let open = (0..8).filter(|n| process.store.is_open(&format!("s{n}"))).collect::<Vec<_>>();
    assert!(open.len() <= 4 && open.contains(&7), "{open:?}");
    // A closed log is opened again when it is needed.
    for n in 0..8 {
        append(&process.store, &format!("s{n}"), 3);
        assert_eq!(numbers(&process.store, &format!("s{n}")), [1, 2, 3]);
    }
}

/// A log that keeps its lock until its third record.
#[derive(Clone, Debug)]
struct Unfinished(u64);

impl Fold for Unfinished {
    fn start(_: &str) -> Self {
        Self(0)
    }

    fn restore(snapshot: &str) -> Option<Self> {
        snapshot.parse().ok().map(Self)
    }

    fn apply(&mut self, record: &StoredEnvelope<'_>) {
        self.0 = record.seq;
    }

    fn snapshot(&self) -> String {
        self.0.to_string()
    }

    fn keeps_lock(&self) -> bool {
        self.0 < 3
    }
}

/// A fold that the caller always brings along: the log must not apply a record beyond the first.
#[derive(Clone, Debug, PartialEq)]
struct Brought(u64);

impl Fold for Brought {
    fn start(_: &str) -> Self {
        Self(0)
    }

    fn restore(snapshot: &str) -> Option<Self> {
        snapshot.parse().ok().map(Self)
    }

    fn apply(&mut self, record: &StoredEnvelope<'_>) {
        assert_eq!(record.seq, 1, "the log applied a record that was folded");
        self.0 = 1;
    }

    fn snapshot(&self) -> String {
        self.0.to_string()
    }
}

#[test]
fn a_fold_that_the_caller_brings_is_taken_over() {
    let machine = Machine::full();
    let platform = machine.behind(Arc::new(machine.disk.another_process()));
    let store = <LogStore<Brought>>::open(platform, machine.options.clone()).unwrap();
    store.create("s", vec![entry(1)]).unwrap();
    let batch = Batch { records: &[entry(2), entry(3)], fold: Some(Arc::new(Brought(3))) };
    store.enqueue("s", Expected::Any, &batch).unwrap().wait().unwrap();
    assert_eq!(*store.read("s").unwrap().fold(), Brought(3));
    // A log that is built out of sight.
    let mut staged = store.stage("draft", "t").unwrap();
    staged.add_folded(vec![entry(1), entry(2)], Arc::new(Brought(2))).unwrap();
    staged.add_folded(vec![entry(3)], Arc::new(Brought(3))).unwrap();
    assert_eq!(*staged.store().read("t").unwrap().fold(), Brought(3));
    staged.publish().unwrap();
    assert_eq!(store.read("t").unwrap().head().seq, 3);
}

#[test]
fn a_log_whose_fold_keeps_the_lock_is_not_closed() {
    let machine = Machine::with(|options| options.open_logs_max = 3);
    let platform = machine.behind(Arc::new(machine.disk.another_process()));
    let store = <LogStore<Unfinished>>::open(platform, machine.options.clone()).unwrap();
    let add = |id: &str, n| store.append(id, Expected::Any, vec![entry(n)]).unwrap();
    for n in 0..8 {
        let id = format!("s{n}");
        store.create(&id, vec![entry(1)]).unwrap();
        add(&id, 2);
        machine.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(store.release_idle(Duration::from_secs(1)).unwrap(), 0);
    let other = machine.start();
    for n in 0..8 {
        let refused = other.store.append(&format!("s{n}"), Expected::Any, vec![entry(3)]);
        assert!(matches!(refused, Err(LogError::Locked { .. })), "s{n}: {refused:?}");
    }
    // With its third record a log is finished.
    add("s4", 3);
    assert_eq!(store.release_idle(Duration::ZERO).unwrap(), 1);
    append(&other.store, "s4", 4);
}

#[test]
fn a_retry_after_a_crash_at_any_moment_of_the_append_lands_exactly_once() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    machine.disk.record();
    let batch = || vec![entry(3), entry(4)];
    process.store.append("s", Expected::Any, batch()).unwrap();
    let mut landed = [0, 0];
    machine.disk.recording().walk(|point| {
        for disk in [point.disk(), point.disk().platter()] {
            let cut = machine.on(disk);
            let again = cut.start();
            match again.store.append("s", Expected::Any, batch()) {
                Ok(_) => landed[0] += 1,
                Err(LogError::Duplicate { entry, seq: 3 }) if entry == "e3" => landed[1] += 1,
                Err(error) => panic!("{error}"),
            }
            assert_eq!(numbers(&again.store, "s"), [1, 2, 3, 4]);
        }
    });
    assert!(landed[0] > 0 && landed[1] > 0, "both happen: {landed:?}");
}

#[test]
fn a_full_or_broken_disk_is_an_error_by_its_name_and_loses_nothing() {
    use bough_testkit::{Fault, FaultPlan};
    for (fault, full) in [(Fault::Full, true), (Fault::Broken, false), (Fault::ShortWrite, true)] {
        let machine = Machine::full();
        let process = machine.start();
        fill(&process.store, "s", 3);
        let create = {
            machine.disk.inject(FaultPlan::from(fault, 1));
            process.store.create("t", vec![entry(1)]).unwrap_err()
        };
        assert_eq!(matches!(create, LogError::Full(_)), full, "{create}");
        let failed = process.store.append("s", Expected::Any, vec![entry(4)]).unwrap_err();
        let words = failed.to_string();
        assert!(words.contains("reopen"), "it says what to do: {words}");
        machine.disk.heal();
        assert_eq!(numbers(&process.store, "s"), [1, 2, 3], "reading goes on");
        process.store.reopen("s").unwrap();
        match process.store.append("s", Expected::Any, vec![entry(4)]) {
            Ok(_) | Err(LogError::Duplicate { .. }) => {}
            Err(error) => panic!("writing resumes after reopening: {error}"),
        }
        assert_eq!(machine.after_power_cut().shown("s"), [1, 2, 3, 4]);
    }
}

/// A directory opens for reading where nothing can be written. What could not be made then is made when there is room.
#[test]
fn a_directory_that_was_opened_on_a_full_disk_is_written_once_there_is_room() {
    use bough_testkit::{Call, Fault, FaultPlan};
    for at in [2, 3] {
        let machine = Machine::new();
        machine.disk.inject(FaultPlan::from(Fault::Full, at).only(Call::CreateDir));
        let process = machine.start();
        assert!(!process.store.contains("s").unwrap());
        let full = process.store.create("s", vec![entry(1)]).unwrap_err();
        assert!(matches!(full, LogError::Full(_)), "{full}");
        machine.disk.heal();
        fill(&process.store, "s", 3);
        process.store.delete("s", 5, "{}").unwrap();
        let deleted = process.store.trash().unwrap()[0].incarnation;
        assert!(process.store.purge_one("s", deleted, None).unwrap());
        fill(&process.store, "t", 2);
        assert_eq!(machine.after_power_cut().shown("t"), [1, 2]);
    }
}

/// A tenant is reserved in the format: what a later version wrote there stays.
#[test]
fn a_tenant_in_the_manifest_stays_when_the_log_is_written() {
    let machine = Machine::small();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.close_all().unwrap();
    drop(process);
    machine.change_manifest(|manifest| manifest.tenant = Some("tenant-1".to_owned()));
    let process = machine.start();
    append(&process.store, "s", 3);
    process.store.close_all().unwrap();
    assert_eq!(process.store.manifest("s").unwrap().unwrap().tenant.as_deref(), Some("tenant-1"));
    assert!(machine.verify("s").is_well());
}
