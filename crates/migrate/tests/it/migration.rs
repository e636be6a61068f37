//! Forward: what a migration leaves on the disk, and when it refuses.

use crate::common::*;
use bough_log::format::{ActiveStore, Outcome as Ended, Phase, Pointer, StoreState};
use bough_migrate::{MigrateError, Outcome, Standing, Step};
use bough_testkit::SimDisk;
use serde_json::{Value, json};

const FILE: &str = "v1/s.jsonl";

fn planted(text: &str) -> SimDisk {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), text.as_bytes()).unwrap();
    disk
}

#[test]
fn a_migrated_file_is_a_native_log_with_every_entry_and_the_file_is_untouched() {
    for options in [small(), inline()] {
        let disk = planted(&sample("s"));
        let migrator = migrator(&disk, options, 1);
        let summary = migrate(&migrator, FILE);
        assert_eq!(summary.plan.report.entries, 5);
        let manifest = logs(&disk).manifest("s").unwrap().unwrap();
        assert_eq!(manifest.state, StoreState::Migrated);
        assert_eq!(manifest.active_store, ActiveStore::NativeV2);
        let snapshot_id = summary.plan.snapshot_id.clone();
        let path = FILE.to_owned();
        assert_eq!(manifest.previous, Some(Pointer::JsonlV3 { path, snapshot_id }));
        assert!(logs(&disk).verify("s").unwrap().is_well());
        assert_eq!(bytes(&disk, FILE), sample("s").as_bytes());
        let Answer::Native(found) = answer(&disk, &migrator, "s") else { panic!() };
        assert_eq!(found.len(), 5);
        assert_eq!(found[3], ("d".into(), Some("a".into()), "another second".into()));
        assert_eq!(
            disk.files().iter().filter(|(p, _)| p.as_str().starts_with("staging/")).count(),
            0
        );
        assert_eq!(
            disk.files().iter().filter(|(p, _)| p.as_str().contains("lock")).count(),
            1,
            "the shard's"
        );
    }
}

#[test]
fn the_log_goes_on_after_a_migration_like_any_other() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, small(), 1);
    migrate(&migrator, FILE);
    let log = LogStore::open(platform(std::sync::Arc::new(disk.clone()), 5), small()).unwrap();
    let entry = native_entry("n", Some("e"), "next", 2_000_000_000_000);
    log.append(
        "s",
        bough_log::Expected::Any,
        vec![log_record(&bough_session::Record::Entry(entry), 1)],
    )
    .unwrap();
    log.close_all().unwrap();
    assert_eq!(log.manifest("s").unwrap().unwrap().state, StoreState::Checkpointed);
    assert!(log.verify("s").unwrap().is_well());
}

#[test]
fn the_ledger_tells_the_whole_way_and_validates_against_the_contract() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, small(), 1);
    let plan = plan(&migrator, FILE);
    let snapshot = plan.snapshot_id.clone();
    let summary = migrator.migrate(plan, Some("run-1"), &mut |_| {}).unwrap();
    let ledger = logs(&disk).ledger("s").unwrap();
    let phases: Vec<Phase> = ledger.iter().map(|event| event.phase).collect();
    assert_eq!(
        phases,
        [Phase::Planned, Phase::Staged, Phase::Verified, Phase::CutOver, Phase::Completed]
    );
    for event in &ledger {
        assert_eq!(event.migration_id, summary.migration_id);
        assert_eq!(event.correlation_id, "run-1");
        assert_eq!(event.source_snapshot_id, snapshot);
        assert_eq!(
            (event.source_format.as_str(), event.target_format.as_str()),
            ("jsonl_v3", "native_v2")
        );
        assert_eq!(event.outcome, Ended::Ok);
        assert!(!event.reason.is_empty());
        let verified = !matches!(event.phase, Phase::Planned | Phase::Staged);
        assert_eq!(event.verification.entry_count_match, verified, "{event:?}");
        validate("pi.session_store_v2.migration_event.v1", &event.encode().unwrap());
    }
    let manifest = logs(&disk).manifest("s").unwrap().unwrap();
    validate("pi.session_store_v2.manifest.v1", &manifest.encode().unwrap());
}

/// Holds a file or line against the published contract.
fn validate(id: &str, text: &[u8]) {
    let place =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/session_store_v2_contract.json");
    let contract: Value = serde_json::from_slice(&std::fs::read(place).unwrap()).unwrap();
    let schema = json!({
        "$schema": contract["$schema"], "$ref": format!("#/$defs/{id}"), "$defs": contract["$defs"],
    });
    let value: Value = serde_json::from_slice(text).unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{value}");
}

#[test]
fn migrating_again_does_nothing() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, inline(), 1);
    migrate(&migrator, FILE);
    let before = disk.digest();
    let again = try_migrate(&migrator, FILE).unwrap();
    assert_eq!(again.outcome, Outcome::AlreadyMigrated);
    assert_eq!(disk.digest(), before);
}

#[test]
fn a_source_that_changed_since_it_was_planned_is_refused_and_nothing_is_left() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, inline(), 1);
    for change in [format!("{}x\n", sample("s")), sample("s").replace("first", "fiRst")] {
        let plan = plan(&migrator, FILE);
        disk.plant(&path(FILE), change.as_bytes()).unwrap();
        let refused = migrator.migrate(plan, None, &mut |_| {});
        assert!(matches!(refused, Err(MigrateError::SourceChanged { .. })), "{refused:?}");
        assert_eq!(answer(&disk, &migrator, "s"), Answer::Unknown);
        disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    }
    assert!(disk.files().iter().all(|(path, _)| !path.as_str().starts_with("staging/")));
}

#[test]
fn a_session_that_is_not_the_files_is_not_touched() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, inline(), 1);
    let other = bough_log::Envelope::plain("meta", 1, "{}");
    let log = LogStore::open(platform(std::sync::Arc::new(disk.clone()), 5), inline()).unwrap();
    log.create("s", vec![other]).unwrap();
    assert_eq!(plan(&migrator, FILE).standing, Standing::Taken);
    let refused = try_migrate(&migrator, FILE).unwrap_err();
    assert!(is_exists(&refused));
    assert_eq!(log.read("s").unwrap().head().seq, 1);
}

#[test]
fn a_file_that_grew_after_its_migration_is_told_apart() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, inline(), 1);
    migrate(&migrator, FILE);
    let grown = format!("{}{}\n", sample("s"), message("z", Some("e"), "by pi"));
    disk.plant(&path(FILE), grown.as_bytes()).unwrap();
    assert_eq!(plan(&migrator, FILE).standing, Standing::MigratedThenChanged);
    let refused = try_migrate(&migrator, FILE).unwrap_err();
    assert!(matches!(refused, MigrateError::ChangedSince { .. }), "{refused:?}");
    assert!(refused.to_string().contains("--accept-changed"), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("has changed") && text.contains("bough rollback s"), "{text}");
}

#[test]
fn progress_goes_through_the_steps_in_order_and_ends_at_all_bytes() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, inline(), 1);
    let mut seen = Vec::new();
    let plan = migrator.plan(FILE, &mut |at| seen.push(at)).unwrap();
    migrator.migrate(plan, None, &mut |at| seen.push(at)).unwrap();
    let mut steps: Vec<Step> = seen.iter().map(|at| at.step).collect();
    steps.dedup();
    assert_eq!(steps, [Step::Plan, Step::Stage, Step::Verify, Step::CutOver, Step::Complete]);
    assert!(seen.iter().all(|at| at.done_bytes <= at.total_bytes));
    let last = seen.last().unwrap();
    assert_eq!((last.done_bytes, last.entries), (last.total_bytes, 5));
}

#[test]
fn a_folder_is_migrated_file_by_file_and_what_is_no_session_is_passed_over() {
    let disk = SimDisk::new();
    let plant = |name: &str, text: &str| disk.plant(&path(name), text.as_bytes()).unwrap();
    plant("v1/--p--/2024-12-03T14-00-00-000Z_one.jsonl", &sample("one"));
    plant("v1/--q--/deep/2024-12-03T14-00-00.000Z_two.jsonl", &sample("two"));
    plant("v1/notes.jsonl", "{\"a\":1}\n");
    plant("v1/readme.txt", "no");
    plant("v1/session-index.sqlite", "not a database");
    let migrator = migrator(&disk, inline(), 1);
    let mut visited = 0;
    let results = migrator.migrate_all("v1", &mut |_, _| {}, &mut |_| visited += 1).unwrap();
    assert_eq!((results.len(), visited), (4, 4));
    let done: Vec<_> = results.iter().filter_map(|result| result.summary.as_ref()).collect();
    assert_eq!(done.len(), 2);
    assert_eq!(done[0].correlation_id, done[1].correlation_id);
    assert_ne!(done[0].migration_id, done[1].migration_id);
    assert_eq!(results.iter().filter(|result| result.skipped).count(), 2);
    let again = migrator.migrate_all("v1", &mut |_, _| {}, &mut |_| {}).unwrap();
    let already = |s: &&bough_migrate::Summary| s.outcome == Outcome::AlreadyMigrated;
    assert_eq!(again.iter().filter_map(|r| r.summary.as_ref()).filter(already).count(), 2);
}

#[test]
fn every_line_of_a_file_full_of_hazards_is_in_the_log() {
    let text = format!(
        "{}\nnot json\n\n{}\n{}\n[]\n{}\n{}\n{{\"torn",
        header("s"),
        message("a", Some("gone"), "orphan"),
        message("a", Some("a"), "self"),
        header("s"),
        json!({"type":"from_the_future","id":"f","parentId":"a","timestamp":"x","deep":{"n":[1.0]}}),
    );
    let disk = planted(&text);
    let migrator = migrator(&disk, small(), 1);
    let summary = migrate(&migrator, FILE);
    assert_eq!((summary.plan.report.entries, summary.plan.report.kept), (3, 5));
    assert!(logs(&disk).verify("s").unwrap().is_well());
}

/// A migration that was cut off right after its pointer moved: the ledger does not say `completed`.
fn unfinished(disk: &SimDisk) -> String {
    migrate(&migrator(disk, small(), 1), FILE);
    let ledger =
        disk.files().into_iter().find(|(p, _)| p.as_str().ends_with("ledger.jsonl")).unwrap();
    let text = String::from_utf8(ledger.1).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    disk.plant(&ledger.0, format!("{}\n", kept.join("\n")).as_bytes()).unwrap();
    ledger.0.as_str().replace("/migrations/ledger.jsonl", "")
}

#[test]
fn a_migration_that_was_cut_off_after_its_pointer_moved_is_verified_and_completed() {
    let disk = planted(&sample("s"));
    unfinished(&disk);
    let migrator = migrator(&disk, small(), 2);
    assert_eq!(
        migrator.recover_session(&session_s()).unwrap(),
        bough_migrate::Recovered::Completed
    );
    assert_eq!(logs(&disk).ledger("s").unwrap().last().unwrap().phase, Phase::Completed);
    assert_eq!(migrator.recover_session(&session_s()).unwrap(), bough_migrate::Recovered::Nothing);
}

fn damage_first_segment(disk: &SimDisk, container: &str) {
    let segment = path(&format!("{container}/segments/0000000000000001.seg"));
    let mut content = bytes(disk, segment.as_str());
    let middle = content.len() / 2;
    content[middle] ^= 1;
    disk.plant(&segment, &content).unwrap();
}

#[test]
fn one_that_fails_its_verification_is_forced_back_to_its_source() {
    let disk = planted(&sample("s"));
    let container = unfinished(&disk);
    damage_first_segment(&disk, &container);
    let migrator = migrator(&disk, small(), 2);
    let recovered = migrator.recover_session(&session_s()).unwrap();
    assert!(matches!(recovered, bough_migrate::Recovered::ForcedBack { .. }), "{recovered:?}");
    let manifest = logs(&disk).manifest("s").unwrap().unwrap();
    assert_eq!(
        (manifest.state, manifest.active_store),
        (StoreState::RolledBack, ActiveStore::JsonlV3)
    );
    let last = logs(&disk).ledger("s").unwrap().pop().unwrap();
    assert_eq!((last.phase, last.outcome), (Phase::RolledBack, Ended::RecoverableError));
    assert!(matches!(answer(&disk, &migrator, "s"), Answer::File(found) if found.len() == 5));
    assert_eq!(migrator.recover_session(&session_s()).unwrap(), bough_migrate::Recovered::Nothing);
}

#[test]
fn without_a_source_to_go_back_to_the_session_fails_closed_until_the_file_is_back() {
    let disk = planted(&sample("s"));
    let container = unfinished(&disk);
    damage_first_segment(&disk, &container);
    disk.uproot(&path(FILE)).unwrap();
    let migrator = migrator(&disk, small(), 2);
    let recovered = migrator.recover_session(&session_s()).unwrap();
    assert!(matches!(recovered, bough_migrate::Recovered::NeedsOperator { .. }), "{recovered:?}");
    let manifest = logs(&disk).manifest("s").unwrap().unwrap();
    assert_eq!(manifest.state, StoreState::Failed);
    let last = logs(&disk).ledger("s").unwrap().pop().unwrap();
    assert_eq!(last.outcome, Ended::FatalError);
    validate("pi.session_store_v2.migration_event.v1", &last.encode().unwrap());
    let log = LogStore::open(platform(std::sync::Arc::new(disk.clone()), 5), small()).unwrap();
    assert!(log.open_for_writing("s").is_err(), "nothing is served for writing");
    assert!(matches!(migrator.open_live(&session_s()), Err(MigrateError::NeedsOperator { .. })));
    let before = disk.digest();
    migrator.recover_session(&session_s()).unwrap();
    assert_eq!(disk.digest(), before, "asking again changes nothing");
    disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    assert_eq!(
        migrator.recover_session(&session_s()).unwrap(),
        bough_migrate::Recovered::RollbackFinished
    );
    assert!(matches!(answer(&disk, &migrator, "s"), Answer::File(found) if found.len() == 5));
}

#[test]
fn every_flipped_byte_of_an_unfinished_migration_ends_in_a_session_that_is_whole() {
    let disk = planted(&sample("s"));
    let container = unfinished(&disk);
    let expected: Vec<_> = {
        let copy = disk.copy();
        let migrator = migrator(&copy, small(), 2);
        match answer(&copy, &migrator, "s") {
            Answer::Native(found) => found,
            other => panic!("{other:?}"),
        }
    };
    let segments: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|(p, _)| p.as_str().starts_with(&format!("{container}/segments")))
        .collect();
    let mut cases = 0;
    for (place, content) in &segments {
        for at in (0..content.len()).step_by(37) {
            let copy = disk.copy();
            let mut rotten = content.clone();
            rotten[at] ^= 0x10;
            copy.plant(place, &rotten).unwrap();
            let migrator = migrator(&copy, small(), 2);
            migrator.recover_session(&session_s()).unwrap();
            match answer(&copy, &migrator, "s") {
                Answer::Native(found) | Answer::File(found) => {
                    assert_eq!(found, expected, "{place} {at}")
                }
                Answer::Unknown => panic!("{place} {at}: the session is gone"),
            }
            cases += 1;
        }
    }
    assert!(cases > 50);
}

#[test]
fn a_copy_that_does_not_match_is_thrown_away_before_the_pointer_moves() {
    let disk = planted(&sample("s"));
    let migrator = migrator(&disk, small(), 1);
    let plan = plan(&migrator, FILE);
    let mut rotted = false;
    let refused = migrator.migrate(plan, None, &mut |at| {
        if at.step == Step::Verify && !rotted {
            let staged = disk
                .files()
                .into_iter()
                .find(|(p, _)| p.as_str().ends_with("0000000000000002.seg"));
            let (place, mut content) = staged.unwrap();
            content[40] ^= 1;
            disk.plant(&place, &content).unwrap();
            rotted = true;
        }
    });
    let Err(MigrateError::VerificationFailed { verification, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert!(!verification.hash_chain_match);
    assert_eq!(answer(&disk, &migrator, "s"), Answer::Unknown);
    assert!(disk.files().iter().all(|(path, _)| !path.as_str().starts_with("staging/")));
    assert_eq!(try_migrate(&migrator, FILE).unwrap().outcome, Outcome::Migrated);
}

#[test]
fn a_migration_that_is_under_way_is_left_alone() {
    let disk = planted(&sample("s"));
    unfinished(&disk);
    let elsewhere = disk.another_process();
    let lock =
        bough_platform::Disk::lock(&elsewhere, &path("v1/s.jsonl.bough-lock"), "pid 7").unwrap();
    let migrator = migrator(&disk, small(), 2);
    let before = disk.digest();
    assert_eq!(migrator.recover_session(&session_s()).unwrap(), bough_migrate::Recovered::UnderWay);
    assert_eq!(disk.digest(), before);
    disk.plant(&path("v1/t.jsonl"), sample("t").as_bytes()).unwrap();
    let other =
        bough_platform::Disk::lock(&elsewhere, &path("v1/t.jsonl.bough-lock"), "pid 7").unwrap();
    assert!(matches!(try_migrate(&migrator, "v1/t.jsonl"), Err(MigrateError::Locked { .. })));
    drop((lock, other));
    assert_eq!(
        migrator.recover_session(&session_s()).unwrap(),
        bough_migrate::Recovered::Completed
    );
}
