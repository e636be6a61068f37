//! `verify` sees everything, `salvage` saves what is whole, and neither touches what it reads.

use std::ops::ControlFlow;

use bough_log::{DamageKind, Expected, LogError, LogStore, Options, SalvageReport, VerifyReport};
use bough_platform::{Disk, Platform, RelPath};
use bough_record::Envelope;
use bough_testkit::{Fault, FaultPlan};

use crate::support::*;

fn salvage_all(from: &Machine, to: &LogStore) -> Vec<SalvageReport> {
    let before = from.disk.digest();
    let mut reports = Vec::new();
    from.look().salvage_all(to, &mut |report| reports.push(report)).unwrap();
    assert_eq!(from.disk.digest(), before, "the damaged store is only read");
    reports
}

#[test]
fn salvaging_everything_saves_a_session_whose_manifest_is_unreadable() {
    for id in ["s", "Project/A b.%", "\u{e4}\u{f6}"] {
        let machine = Machine::new();
        let process = machine.start();
        fill(&process.store, id, 3);
        process.store.enqueue_delta(id, &delta("e3", 1)).unwrap().wait().unwrap();
        process.kill();
        machine.put("manifest.json", b"gone");
        let rescued = Machine::new();
        let target = rescued.start().store;
        let reports = salvage_all(&machine, &target);
        assert_eq!((reports.len(), reports[0].id.as_str()), (1, id));
        assert_eq!(reports[0].damage[0].kind, DamageKind::Manifest, "and it says so");
        assert_eq!(numbers(&target, id), [1, 2, 3]);
        assert_eq!(target.read(id).unwrap().deltas().len(), 1);
        assert!(target.verify(id).unwrap().is_well());
    }
}

#[test]
fn a_session_whose_name_is_cut_is_saved_under_that_name() {
    let id = "x".repeat(400);
    let machine = Machine::new();
    fill(&machine.start().store, &id, 3);
    machine.put("manifest.json", b"gone");
    let rescued = Machine::new();
    let target = rescued.start().store;
    let reports = salvage_all(&machine, &target);
    let saved = &reports[0].id;
    assert!(id.starts_with(saved.split('~').next().unwrap()) && saved.contains('~'), "{saved}");
    assert_eq!(numbers(&target, saved), [1, 2, 3]);
}

#[test]
fn salvaging_everything_goes_on_past_what_cannot_be_saved() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "newer", 2);
    process.store.close_all().unwrap();
    machine.change_manifest(|manifest| manifest.format = 9);
    for id in ["a", "b"] {
        fill(&process.store, id, 2);
    }
    let rescued = Machine::new();
    let target = rescued.start().store;
    let mut saved: Vec<(String, u64)> = Vec::new();
    for report in salvage_all(&machine, &target) {
        saved.push((report.id, report.saved));
    }
    saved.sort();
    let expected = [("a".to_owned(), 2), ("b".to_owned(), 2), ("newer".to_owned(), 0)];
    assert_eq!(saved, expected);
}

#[test]
fn salvage_takes_the_frames_on_both_sides_of_damage_and_says_what_is_missing() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 6);
    process.store.close_all().unwrap();
    machine.change("0000000000000001.seg", |bytes| {
        let starts = line_starts(bytes);
        bytes[starts[2] + 50] ^= 1;
        bytes[starts[3] + 50] ^= 1;
    });
    let rescued = Machine::new();
    let target = rescued.start().store;
    let report = machine.look().salvage("s", &target).unwrap();
    assert_eq!((report.saved, report.reparented, report.left_out), (4, 1, 0));
    assert_eq!(numbers(&target, "s"), [1, 2, 5, 6]);
    let gap = report.damage.iter().find(|damage| damage.kind == DamageKind::SequenceBroken);
    assert!(gap.unwrap().detail.contains("records 3 to 4"), "{gap:?}");
    let depth = |id: &str| {
        target.read("s").unwrap().entry(id, |stored| stored.into_owned()).unwrap().unwrap().depth
    };
    assert_eq!(
        (depth("e2"), depth("e5"), depth("e6")),
        (2, 3, 4),
        "one path, without what is lost"
    );
}

#[test]
fn entries_below_one_lost_parent_stay_beside_each_other() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 5);
    let branch = Envelope::entry("b", Some("e3"), 1, "9");
    process.store.append("s", Expected::Any, vec![branch]).unwrap();
    process.store.close_all().unwrap();
    machine.change("0000000000000001.seg", |bytes| {
        let starts = line_starts(bytes);
        bytes[starts[2] + 50] ^= 1;
    });
    let rescued = Machine::new();
    let target = rescued.start().store;
    let report = machine.look().salvage("s", &target).unwrap();
    assert_eq!((report.saved, report.reparented), (5, 2));
    let depth = |id: &str| {
        target.read("s").unwrap().entry(id, |stored| stored.into_owned()).unwrap().unwrap().depth
    };
    assert_eq!((depth("e4"), depth("b")), (3, 3));
}

#[test]
fn a_session_that_the_target_has_is_not_saved_and_the_report_says_so() {
    let machine = Machine::new();
    fill(&machine.start().store, "s", 2);
    let rescued = Machine::new();
    let target = rescued.start().store;
    assert_eq!(salvage_all(&machine, &target)[0].not_saved, None);
    let again = salvage_all(&machine, &target);
    assert_eq!((again[0].saved, again[0].not_saved.is_some()), (0, true));
}

#[test]
fn a_salvage_that_is_cut_short_shows_nothing_or_everything() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 3);
    process.store.enqueue_delta("s", &delta("e3", 1)).unwrap().wait().unwrap();
    process.store.close_all().unwrap();
    for at in 1.. {
        let rescued = Machine::new();
        let target = rescued.start().store;
        rescued.disk.inject(FaultPlan::once(Fault::Full, at));
        let done = machine.look().salvage("s", &target);
        rescued.disk.heal();
        if rescued.disk.fired().is_empty() {
            assert!(done.is_ok() && at > 50, "{at}: {done:?}");
            break;
        }
        if rescued.look().contains("s").unwrap() {
            assert_eq!(numbers(&rescued.look(), "s"), [1, 2, 3], "call {at}");
            assert_eq!(rescued.look().read("s").unwrap().deltas().len(), 1, "call {at}");
        }
    }
}

#[test]
fn verifying_everything_looks_into_the_trash_too() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 3);
    process.store.delete("s", 5, "{}").unwrap();
    machine.change("0000000000000001.seg", |bytes| bytes[60] ^= 1);
    let reports = verify_all(&machine.look());
    assert_eq!(reports.iter().filter(|report| !report.is_well()).count(), 1);
}

#[test]
fn verify_while_a_writer_writes_finds_nothing_wrong() {
    let machine = Machine::small();
    let process = machine.start();
    fill(&process.store, "s", 12);
    let report = machine.verify("s");
    assert!(report.is_well(), "{:?}", report.damage);
    assert_eq!(report.records, 12);
}

/// The folder of the only container.
fn folder(machine: &Machine) -> RelPath {
    machine.path("manifest.json").parent()
}

#[test]
fn a_folder_that_is_named_after_another_incarnation_is_refused_by_all() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 2);
    process.store.close_all().unwrap();
    let from = folder(&machine);
    let (name, _) = from.file_name().rsplit_once('.').unwrap();
    let to = from.parent().join(&format!("{name}.{}", "f".repeat(32))).unwrap();
    machine.disk.rename(&from, &to).unwrap();
    assert!(!machine.verify("s").is_well());
    let read = machine.look().read("s");
    assert!(matches!(&read, Err(LogError::Corrupt(_))), "{read:?}");
    assert!(matches!(machine.refusal("s"), LogError::Corrupt(_)));
}

#[cfg(unix)]
#[test]
fn a_container_that_is_a_link_is_refused_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::system(dir.path()).unwrap();
    let store = <LogStore>::open(platform.clone(), Options::default()).unwrap();
    fill(&store, "s", 2);
    store.close_all().unwrap();
    let sessions = RelPath::parse("sessions").unwrap();
    let shard = sessions.join(&platform.disk.list(&sessions).unwrap()[0].name).unwrap();
    let listed = platform.disk.list(&shard).unwrap();
    let name = &listed.iter().find(|listed| listed.is_dir).unwrap().name;
    let home = dir.path().join(shard.as_str()).join(name);
    let away = dir.path().join("elsewhere");
    std::fs::rename(&home, &away).unwrap();
    std::os::unix::fs::symlink(&away, &home).unwrap();
    for refused in [
        store.read("s").err(),
        store.append("s", Expected::Any, vec![entry(3)]).err(),
        store.create("s", vec![entry(1)]).err(),
        store.verify("s").err(),
    ] {
        assert!(matches!(&refused, Some(LogError::Corrupt(_))), "{refused:?}");
    }
    let reports = verify_all(&store);
    assert_eq!((reports.len(), reports[0].damage.len()), (1, 1));
}

/// Two sessions whose folders are in one shard, the first in order first.
fn neighbours(machine: &Machine, process: &Process) -> (String, String) {
    for number in 0..2_000 {
        fill(&process.store, &format!("n{number}"), 1);
        let manifests: Vec<String> =
            machine.disk.files().into_iter().map(|(path, _)| path.to_string()).collect();
        let mut shards = std::collections::BTreeMap::<&str, Vec<&str>>::new();
        for path in manifests.iter().filter(|path| path.ends_with("manifest.json")) {
            let parts: Vec<&str> = path.split('/').collect();
            shards.entry(parts[1]).or_default().push(parts[2].split('.').next().unwrap());
        }
        if let Some(two) = shards.values_mut().find(|two| two.len() == 2) {
            two.sort_unstable();
            return (two[0].to_owned(), two[1].to_owned());
        }
    }
    panic!("no two of so many ids are in one shard");
}

#[test]
fn a_session_that_is_deleted_while_everything_is_verified_is_not_damaged() {
    let machine = Machine::new();
    let process = machine.start();
    let (first, second) = neighbours(&machine, &process);
    let (mut found, mut deleted) = (Vec::new(), false);
    let look = machine.look();
    let visit = &mut |report: VerifyReport| {
        if report.id == first {
            process.store.delete(&second, 5, "{}").unwrap();
            deleted = true;
        }
        found.extend(report.damage);
        ControlFlow::Continue(())
    };
    look.verify_all(visit).unwrap();
    assert!(deleted);
    assert_eq!(found, []);
}

#[test]
fn a_verification_ends_when_its_visitor_breaks() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "a", 1);
    fill(&process.store, "b", 1);
    let mut count = 0;
    let visit = &mut |_| {
        count += 1;
        ControlFlow::Break(())
    };
    machine.look().verify_all(visit).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn measuring_counts_bytes_by_folder_and_sessions_by_their_checkpoints() {
    let machine = Machine::new();
    let process = machine.start();
    for id in ["closed", "open", "deleted", "broken"] {
        fill(&process.store, id, 3);
    }
    process.store.close_all().unwrap();
    append(&process.store, "open", 4);
    process.store.delete("deleted", 5, "{}").unwrap();
    let sizes = |go_on| machine.look().measure(&mut || go_on).unwrap();
    let found = sizes(ControlFlow::Continue(())).unwrap();
    assert_eq!((found.logs, found.checkpointed, found.dirty, found.unreadable), (3, 2, 1, 0));
    let bytes_in = |folder: &str| -> u64 {
        let files = machine.disk.files().into_iter();
        let files = files.filter(|(path, _)| path.as_str().starts_with(folder));
        files.map(|(_, bytes)| bytes.len() as u64).sum()
    };
    assert_eq!((found.live_bytes, found.trash_bytes), (bytes_in("sessions/"), bytes_in("trash/")));
    assert!(found.trash_bytes > 0);
    let manifest = machine.disk.files().into_iter().map(|(path, _)| path);
    let broken = |path: &RelPath| {
        path.as_str().contains("/broken.") && path.as_str().ends_with("manifest.json")
    };
    machine.disk.plant(&manifest.into_iter().find(broken).unwrap(), b"{}").unwrap();
    let found = sizes(ControlFlow::Continue(())).unwrap();
    assert_eq!((found.checkpointed, found.dirty, found.unreadable), (1, 1, 1));
    assert_eq!(sizes(ControlFlow::Break(())), None, "it is not half a measurement");
}
