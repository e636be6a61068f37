//! A log is put in the place of another: readers see one or the other, nothing that was appended is lost, and a crash at any
//! moment leaves one of the two.

use std::sync::Arc;

use bough_log::{Expected, Head, LogError, LogStore};
use bough_testkit::{ImageRules, MeanwhileDisk};

use crate::support::*;

/// Replaces the log `s` by one with the entries 1 to `count`, if it ends at a head.
fn replace(store: &LogStore, expected: Head, count: u64) -> Result<(), LogError> {
    let staged = store.stage("new", "s").unwrap();
    fill(staged.store(), "s", count);
    let replaced = staged.replace(expected);
    staged.discard().unwrap();
    replaced
}

fn head(store: &LogStore) -> Head {
    store.read("s").unwrap().head()
}

#[test]
fn the_new_log_answers_and_the_old_one_is_gone() {
    for machine in [Machine::new(), Machine::small()] {
        let process = machine.start();
        fill(&process.store, "s", 5);
        let before = head(&process.store);
        replace(&process.store, before, 2).unwrap();
        assert_eq!(numbers(&process.store, "s"), [1, 2]);
        assert_ne!(head(&process.store).incarnation, before.incarnation);
        append(&process.store, "s", 3);
        process.store.close_all().unwrap();
        assert_eq!(machine.shown("s"), [1, 2, 3]);
        assert_eq!(machine.after_power_cut().shown("s"), [1, 2, 3]);
        assert!(machine.verify("s").is_well());
        let leftovers = |(path, _): &(bough_platform::RelPath, _)| {
            path.as_str().starts_with("staging/") || path.as_str().ends_with("/replaces")
        };
        assert!(!machine.disk.files().iter().any(leftovers), "{:?}", machine.disk);
        assert!(process.store.trash().unwrap().is_empty());
    }
}

#[test]
fn a_log_that_moved_on_is_not_replaced() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 3);
    let before = head(&process.store);
    append(&process.store, "s", 4);
    let refused = replace(&process.store, before, 1);
    assert!(
        matches!(refused, Err(LogError::Conflict { current }) if current.seq == 4),
        "{refused:?}"
    );
    // While another process writes it, it is not replaced either.
    let other = machine.start();
    process.store.close_all().unwrap();
    append(&other.store, "s", 5);
    let refused = replace(&process.store, head(&other.store), 1);
    assert!(matches!(refused, Err(LogError::Locked { .. })), "{refused:?}");
    assert_eq!(machine.shown("s"), [1, 2, 3, 4, 5]);
}

/// Whatever moment another process replaces the log in: what was acknowledged is in the log that answers, once.
#[test]
fn an_append_beside_a_replacement_lands_in_the_log_that_answers() {
    let mut moments = 0;
    for skip in 0.. {
        let machine = Machine::small();
        let other = machine.start();
        fill(&other.store, "s", 3);
        other.store.close_all().unwrap();
        let disk = Arc::new(MeanwhileDisk::new(Arc::new(machine.disk.another_process())));
        let store =
            <LogStore>::open(machine.behind(disk.clone()), machine.options.clone()).unwrap();
        let (meanwhile, expected) = (other.store.clone(), head(&other.store));
        let (send, receive) = std::sync::mpsc::channel();
        disk.before_any(skip, "sessions/", move |_| {
            send.send(replace(&meanwhile, expected, 2).is_ok()).unwrap();
        });
        let appended =
            store.append("s", Expected::Any, vec![bough_log::Envelope::plain("x", 1, "9")]);
        if !disk.is_done() {
            break;
        }
        moments += 1;
        let is_replaced = receive.recv().unwrap();
        store.close_all().unwrap();
        let mut expected = if is_replaced { vec![1, 2] } else { vec![1, 2, 3] };
        if appended.is_ok() {
            expected.push(9);
        }
        assert_eq!(machine.shown("s"), expected, "before call {skip}: {appended:?}");
        assert!(machine.verify("s").is_well());
    }
    assert!(moments > 10, "{moments} moments");
}

/// What a crash leaves is the old log or the new one, whole; the next writer finishes what was begun, and what it appends stays.
#[test]
fn a_crash_at_any_moment_leaves_one_of_the_two() {
    let machine = Machine::small();
    let process = machine.start();
    fill(&process.store, "s", 4);
    let before = head(&process.store);
    machine.disk.record();
    replace(&process.store, before, 2).unwrap();
    let recording = machine.disk.recording();
    let (mut old, mut new) = (0, 0);
    recording.walk(|point| {
        let is_last = point.number() == recording.len();
        let rules = ImageRules::seeded(7).untorn().combinations_max(64);
        let mut judge = |disk: bough_testkit::SimDisk| {
            let found = check_after_crash(&machine.on(disk));
            if found == [1, 2] {
                new += 1;
            } else {
                assert!(!is_last, "the replacement was acknowledged");
                assert_eq!(found, [1, 2, 3, 4], "after operation {}", point.number());
                old += 1;
            }
        };
        judge(point.disk());
        point.images(&rules, |image| judge(image.disk()));
    });
    assert!(old > 10 && new > 10, "{old} old, {new} new");
}

/// What a reader shows, after checking that a writer goes on from there.
fn check_after_crash(machine: &Machine) -> Vec<u64> {
    machine.disk.kill();
    let shown = machine.shown("s");
    let process = machine.start();
    let plain = bough_log::Envelope::plain("x", 1, "9");
    process.store.append("s", Expected::Any, vec![plain]).unwrap();
    process.store.close_all().unwrap();
    let mut expected = shown.clone();
    expected.push(9);
    let after = machine.after_power_cut();
    assert_eq!(after.shown("s"), expected);
    assert!(after.verify("s").is_well());
    let manifests = after.disk.files();
    let manifests = manifests.iter().filter(|(path, _)| path.as_str().ends_with("manifest.json"));
    let manifests = manifests.filter(|(path, _)| path.as_str().starts_with("sessions/"));
    assert_eq!(manifests.count(), 1, "the incarnation that was replaced is gone: {:?}", after.disk);
    shown
}
