//! The contract's five failure semantics and its three rules for a migration that was cut short, each under
//! its name.

use bough_log::format::{LedgerEvent, Outcome, Phase, Pointer, StoreState};
use bough_log::{Envelope, Expected, LogError, Switch};
use bough_testkit::{Call, Fault, FaultPlan};

use crate::support::*;

fn source() -> Pointer {
    Pointer::JsonlV3 { path: "/v1/s.jsonl".to_owned(), snapshot_id: "sha256:0:0".to_owned() }
}

fn fail(machine: &Machine, call: Call, at: u64) {
    machine.disk.inject(FaultPlan::once(Fault::Broken, at).only(call));
}

#[test]
fn append_failure_leaves_no_index_row_and_the_retry_lands_once() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    let rows = machine.bytes("offsets.jsonl");
    fail(&machine, Call::Sync, 1);
    let failed = process.store.append("s", Expected::Any, vec![entry(3)]);
    assert!(matches!(failed, Err(LogError::Latched { .. })), "{failed:?}");
    assert_eq!(machine.bytes("offsets.jsonl"), rows, "no index update is committed");
    let later = process.store.append("s", Expected::Any, vec![entry(3)]);
    assert!(
        matches!(later, Err(LogError::Latched { .. })),
        "nothing is acknowledged until reopened"
    );
    process.store.reopen("s").unwrap();
    // Whether the failed write had reached the disk or not: the retry does not double it.
    match process.store.append("s", Expected::Any, vec![entry(3)]) {
        Ok(_) | Err(LogError::Duplicate { seq: 3, .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(numbers(&process.store, "s"), [1, 2, 3]);
    assert_eq!(machine.after_power_cut().shown("s"), [1, 2, 3]);
}

#[test]
fn segment_seal_failure_leaves_a_pending_segment_that_opening_reconciles() {
    let machine = Machine::weak();
    let process = machine.start();
    fill(&process.store, "s", 3);
    let manifest = machine.bytes("manifest.json");
    // The data is written; the sync that seals it fails.
    fail(&machine, Call::Sync, 1);
    assert!(process.store.checkpoint("s").is_err());
    assert_eq!(machine.bytes("manifest.json"), manifest, "no manifest commit");
    assert!(!machine.has(".json.tmp") && !machine.has("checkpoints/0000000000000001.json"));
    process.kill();
    let again = machine.start();
    let report = again.store.open_for_writing("s").unwrap();
    assert_eq!((report.clean, report.frames_scanned), (false, 3), "the tail is replayed");
    assert_eq!(machine.after_power_cut().shown("s"), [1, 2, 3], "and is durable now");
}

#[test]
fn index_update_failure_is_repaired_from_the_segment_and_recorded() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.checkpoint("s").unwrap();
    append(&process.store, "s", 3);
    process.kill();
    // The row of record 3 never reached the file.
    machine.change("offsets.jsonl", |bytes| bytes.truncate(2 * bough_log::format::ROW_BYTES));
    let again = machine.start();
    assert_eq!(again.store.open_for_writing("s").unwrap().rows_rebuilt, 1);
    assert_eq!(again.store.read("s").unwrap().find("e3").unwrap(), Some(3));
    let ledger = again.store.ledger("s").unwrap();
    let outcomes: Vec<_> = ledger.iter().map(|event| (event.phase, event.outcome)).collect();
    assert_eq!(outcomes, [(Phase::Recovery, Outcome::RecoverableError)]);
    assert!(machine.verify("s").is_well());
}

#[test]
fn checkpoint_failure_leaves_the_last_valid_checkpoint_in_charge() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.checkpoint("s").unwrap();
    append(&process.store, "s", 3);
    let before = machine.bytes("manifest.json");
    // The next round ends before its checkpoint is renamed into place.
    fail(&machine, Call::Rename, 1);
    assert!(process.store.checkpoint("s").is_err());
    process.kill();
    assert_eq!(machine.bytes("manifest.json"), before);
    assert!(machine.has("checkpoints/0000000000000001.json"));
    assert!(!machine.has("checkpoints/0000000000000002.json"));
    assert!(machine.has("checkpoint.tmp"), "the partial file is there and is ignored");
    assert_eq!(machine.shown("s"), [1, 2, 3]);
    let again = machine.start();
    let report = again.store.open_for_writing("s").unwrap();
    assert_eq!((report.checkpoint_skipped, report.frames_scanned), (false, 1));
    assert!(machine.verify("s").is_well());
}

/// A container made from a V1 file, moved in, whose pointer has not moved.
fn staged(process: &Process) {
    let mut staged = process.store.stage("m", "s").unwrap();
    staged.add([entry(1), entry(2)]).unwrap();
    staged.present(&source()).unwrap();
    staged.publish().unwrap();
    staged.discard().unwrap();
}

fn to(through: &[StoreState], pointer: Pointer) -> Switch<'_> {
    Switch { through, pointer, previous: Some(source()), head: None }
}

fn state(process: &Process) -> (StoreState, Pointer) {
    let manifest = process.store.manifest("s").unwrap().unwrap();
    (manifest.state, manifest.pointer)
}

#[test]
fn migration_cutover_failure_before_the_commit_marker_leaves_the_source_active() {
    let machine = Machine::new();
    let process = machine.start();
    staged(&process);
    fail(&machine, Call::Rename, 1);
    let cutover = to(&[StoreState::Migrated], Pointer::NativeV2);
    assert!(process.store.switch("s", &cutover).is_err());
    process.kill();
    let again = machine.start();
    assert_eq!(state(&again), (StoreState::MigrationStaging, source()));
    assert!(again.store.read("s").is_err(), "the V1 file answers");
    let write = again.store.append("s", Expected::Any, vec![entry(3)]);
    assert!(matches!(write, Err(LogError::Invalid { .. })), "{write:?}");
}

#[test]
fn migration_cutover_failure_after_the_commit_marker_must_be_rolled_back_before_writes() {
    let machine = Machine::new();
    let process = machine.start();
    staged(&process);
    let unverified = to(&[StoreState::Migrated, StoreState::Failed], Pointer::NativeV2);
    process.store.switch("s", &unverified).unwrap();
    let refused = process.store.append("s", Expected::Any, vec![entry(3)]);
    let reason = refused.unwrap_err().to_string();
    assert!(reason.contains("roll it back"), "{reason}");
    process.store.switch("s", &to(&[StoreState::RolledBack], source())).unwrap();
    assert_eq!(state(&process), (StoreState::RolledBack, source()));
}

#[test]
fn partial_migration_rule_1_without_a_commit_marker_the_source_goes_on() {
    let machine = Machine::new();
    let process = machine.start();
    process.store.create("other", vec![entry(1)]).unwrap();
    machine.disk.record();
    staged(&process);
    let cutover = to(&[StoreState::Migrated], Pointer::NativeV2);
    process.store.switch("s", &cutover).unwrap();
    let mut sides = [0, 0];
    // Cut the power after every operation: the manifest alone says which side answers, and it is whole.
    machine.disk.recording().walk(|point| {
        let cut = machine.on(point.disk().platter());
        let store = cut.look();
        match store.manifest("s").unwrap().map(|manifest| (manifest.state, manifest.pointer)) {
            None => {}
            Some((StoreState::MigrationStaging, pointer)) => {
                assert_eq!(pointer, source());
                assert!(store.read("s").is_err());
                sides[0] += 1;
            }
            Some((StoreState::Migrated, Pointer::NativeV2)) => {
                assert_eq!(numbers(&store, "s"), [1, 2]);
                sides[1] += 1;
            }
            Some(other) => panic!("neither side: {other:?}"),
        }
    });
    assert!(sides[0] > 0 && sides[1] > 0, "{sides:?}");
}

#[test]
fn partial_migration_rule_2_a_failed_verification_forces_the_way_back() {
    let machine = Machine::new();
    let process = machine.start();
    staged(&process);
    process.store.switch("s", &to(&[StoreState::Migrated], Pointer::NativeV2)).unwrap();
    // Damage between the commit marker and the verification.
    machine.change("0000000000000001.seg", |bytes| bytes[40] ^= 1);
    assert!(!machine.verify("s").is_well());
    assert!(process.store.append("s", Expected::Any, vec![entry(3)]).is_err());
    let back = to(&[StoreState::Failed, StoreState::RolledBack], source());
    process.store.switch("s", &back).unwrap();
    let event = LedgerEvent {
        phase: Phase::RolledBack,
        ..LedgerEvent::recovery("m", "the copy failed its verification".to_owned(), 1)
    };
    process.store.record_event("s", &event).unwrap();
    assert_eq!(state(&process), (StoreState::RolledBack, source()));
    assert_eq!(process.store.ledger("s").unwrap(), [event]);
}

#[test]
fn partial_migration_rule_3_without_a_target_it_stays_failed_until_somebody_acts() {
    let machine = Machine::new();
    let process = machine.start();
    staged(&process);
    process.store.switch("s", &to(&[StoreState::Migrated], Pointer::NativeV2)).unwrap();
    process.store.switch("s", &to(&[StoreState::Failed], source())).unwrap();
    process.kill();
    for _ in 0..2 {
        let again = machine.start();
        assert_eq!(state(&again).0, StoreState::Failed);
        assert!(again.store.read("s").is_err());
        let write = again.store.append("s", Expected::Any, vec![Envelope::plain("x", 1, "1")]);
        assert!(write.is_err(), "{write:?}");
        let forward = to(&[StoreState::Migrated], Pointer::NativeV2);
        let refused = again.store.switch("s", &forward);
        assert!(matches!(refused, Err(LogError::Transition { .. })), "{refused:?}");
        again.kill();
    }
    let operator = machine.start();
    operator.store.switch("s", &to(&[StoreState::RolledBack], source())).unwrap();
    assert_eq!(state(&operator).0, StoreState::RolledBack);
}
