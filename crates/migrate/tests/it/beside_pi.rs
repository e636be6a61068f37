//! pi writes the V1 file while Bough does: at every place between two system calls, nothing of either is lost.

use std::sync::{Arc, Mutex};

use crate::common::*;
use bough_log::Expected;
use bough_migrate::{MigrateError, Migrator, RollbackOptions, V1Session};
use bough_platform::{Access, Disk, File};
use bough_session::{NewRecord, Record, SessionId};
use bough_store::{Position, StoreError, StoreExt};
use bough_testkit::{Call, MeanwhileDisk, SimDisk, SimEntropy};

const FILE: &str = "v1/s.jsonl";

fn session() -> SessionId {
    SessionId::from_stored("s")
}

/// A disk with the sample on it, as Bough sees it and as pi does.
fn planted() -> (SimDisk, MeanwhileDisk) {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    let meanwhile = MeanwhileDisk::new(Arc::new(disk.clone()));
    (disk, meanwhile)
}

fn by_pi() -> String {
    format!("{}\n", message("p", Some("e"), "by pi"))
}

/// As pi appends: opens the file by its name and writes a line at its end.
fn pi_appends(disk: &SimDisk) {
    disk.open(&path(FILE), Access::Append).unwrap().append(by_pi().as_bytes()).unwrap();
}

async fn serve(disk: &MeanwhileDisk) -> V1Session {
    let migrator = migrator_on(Arc::new(disk.clone()), inline(), 1);
    let live = migrator.open_file(FILE).unwrap();
    V1Session::open(live, Arc::new(SimEntropy::new(4))).await.unwrap()
}

fn entry(id: &str) -> NewRecord {
    Record::Entry(native_entry(id, Some("c"), "by Bough", 1_800_000_000_000)).at(1_800_000_000_000)
}

/// Appends as the service does: a conflict is answered by looking again.
async fn append(store: &V1Session, records: Vec<NewRecord>) {
    loop {
        let head = store.state(&session()).await.unwrap().unwrap().head;
        match store.append(&head, records.clone()).await {
            Ok(appended) => return appended.durable.await.unwrap(),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The ids of the entries in the order of the store.
async fn ids_in(store: &V1Session) -> Vec<String> {
    let page = store.records(&session(), Position::at(0), 1_000).await.unwrap();
    let entries = page.records.iter().filter_map(|record| record.record.as_entry());
    entries.map(|entry| entry.id.to_string()).collect()
}

/// The ids of the entries in the order of the file.
fn ids_of(bytes: &[u8]) -> Vec<String> {
    let lines = values(bytes).into_iter().skip(1);
    lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_line_of_pi_at_any_moment_of_an_append_is_kept_and_seen() {
    for place in 0.. {
        let (disk, meanwhile) = planted();
        let store = serve(&meanwhile).await;
        let other = disk.another_process();
        meanwhile.before_any(place, FILE, move |_| pi_appends(&other));
        append(&store, vec![entry("x"), entry("y")]).await;
        if !meanwhile.is_done() {
            assert!(place > 10, "an append is more calls than {place}");
            break;
        }
        let in_file = ids_of(&bytes(&disk, FILE));
        let mut sorted = in_file.clone();
        sorted.sort();
        assert_eq!(sorted, ["a", "b", "c", "d", "e", "p", "x", "y"], "before call {place}");
        assert_eq!(ids_in(&store).await, in_file, "before call {place}");
        assert_eq!(ids_in(&serve(&meanwhile).await).await, in_file, "read again, {place}");
        let durable = ids_of(&bytes(&disk.platter(), FILE));
        assert!(durable.contains(&"y".to_owned()), "acknowledged, {place}");
    }
}

#[tokio::test]
async fn a_line_of_pi_that_comes_in_two_pieces_is_not_taken_in_half() {
    let (disk, meanwhile) = planted();
    let store = serve(&meanwhile).await;
    let (line, other) = (by_pi(), disk.another_process());
    let (first, second) = line.split_at(20);
    let pi = disk.open(&path(FILE), Access::Append).unwrap();
    pi.append(first.as_bytes()).unwrap();
    assert_eq!(ids_in(&store).await.len(), 5);
    pi.append(second.as_bytes()).unwrap();
    assert_eq!(ids_in(&store).await.last().unwrap(), "p");
    // A tail that stays torn does not swallow what comes after it.
    other.open(&path(FILE), Access::Append).unwrap().append(first.as_bytes()).unwrap();
    append(&store, vec![entry("x")]).await;
    assert_eq!(ids_in(&store).await.last().unwrap(), "x");
    assert_eq!(ids_in(&serve(&meanwhile).await).await.last().unwrap(), "x");
}

#[tokio::test]
async fn an_append_to_a_file_that_is_replaced_meanwhile_goes_to_the_new_one() {
    for call in [Call::Len, Call::Write, Call::Sync] {
        let (disk, meanwhile) = planted();
        let store = serve(&meanwhile).await;
        let head = store.state(&session()).await.unwrap().unwrap().head;
        let other = disk.another_process();
        // Before the handle that we write through is used: its file has no name any more then.
        meanwhile.before(Call::Lock, FILE, {
            let meanwhile = meanwhile.clone();
            move |_| {
                meanwhile.before(call, FILE, move |_| {
                    let temp = path("v1/other");
                    let whole = format!("{}{}", sample("s"), by_pi());
                    other.create(&temp).unwrap().write_at(0, whole.as_bytes()).unwrap();
                    other.rename(&temp, &path(FILE)).unwrap();
                });
            }
        });
        match store.append(&head, vec![entry("x")]).await {
            Ok(appended) => appended.durable.await.unwrap(),
            Err(StoreError::Conflict { .. }) => append(&store, vec![entry("x")]).await,
            Err(error) => panic!("{error}"),
        }
        assert!(meanwhile.is_done());
        assert_eq!(ids_of(&bytes(&disk, FILE)), ["a", "b", "c", "d", "e", "p", "x"], "{call:?}");
        assert_eq!(ids_in(&store).await, ["a", "b", "c", "d", "e", "p", "x"], "{call:?}");
    }
}

/// A session that was migrated and written to since.
fn migrated(disk: &MeanwhileDisk) -> Migrator {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let migrator = migrator_on(Arc::clone(&shared), small(), 1);
    migrate(&migrator, FILE);
    let log =
        <bough_log::LogStore<bough_session::SessionState>>::open(platform(shared, 5), small())
            .unwrap();
    let record = Record::Entry(native_entry("n", Some("e"), "since", 1_800_000_000_000));
    log.append("s", Expected::Any, vec![log_record(&record, 1)]).unwrap();
    log.close_all().unwrap();
    migrator
}

fn accepting(accept_changed_target: bool) -> RollbackOptions {
    RollbackOptions { accept_changed_target, ..RollbackOptions::default() }
}

#[test]
fn a_line_of_pi_at_any_moment_of_a_rollback_is_kept() {
    for accept in [false, true] {
        for place in 0.. {
            let (disk, meanwhile) = planted();
            let migrator = migrated(&meanwhile);
            let other = disk.another_process();
            meanwhile.before_any(place, FILE, move |_| pi_appends(&other));
            let done = migrator.rollback(&session_s(), &accepting(accept));
            if !meanwhile.is_done() {
                assert!(place > 20, "a rollback is more calls than {place}");
                break;
            }
            let mut found = ids_of(&bytes(&disk, FILE));
            found.sort();
            let Err(error) = done else {
                assert_eq!(found, ["a", "b", "c", "d", "e", "n", "p"], "before call {place}");
                continue;
            };
            assert!(!accept && matches!(error, MigrateError::TargetChanged { .. }), "{error}");
            assert_eq!(found, ["a", "b", "c", "d", "e", "p"], "before call {place}");
            assert!(matches!(answer(&disk, &migrator, "s"), Answer::Native(_)));
            migrator.rollback(&session_s(), &accepting(true)).unwrap();
            assert!(ids_of(&bytes(&disk, FILE)).contains(&"n".to_owned()));
        }
    }
}

/// pi opens the file for each line; the rename of a rollback may come between its open and its write.
#[test]
fn a_line_that_pi_writes_to_the_file_that_was_replaced_is_brought_over() {
    let (disk, meanwhile) = planted();
    let migrator = migrated(&meanwhile);
    let opened: Arc<Mutex<Option<Box<dyn File>>>> = Arc::default();
    let (slot, other) = (Arc::clone(&opened), disk.another_process());
    meanwhile.before(Call::Rename, FILE, move |_| {
        *slot.lock().unwrap() = Some(other.open(&path(FILE), Access::Append).unwrap());
    });
    // The first time that the file is read under its name again: it is the new one.
    meanwhile.before(Call::SyncDir, "v1", move |_| {
        let file = opened.lock().unwrap().take().unwrap();
        file.append(by_pi().as_bytes()).unwrap();
    });
    migrator.rollback(&session_s(), &accepting(false)).unwrap();
    assert!(meanwhile.is_done());
    assert_eq!(ids_of(&bytes(&disk, FILE)), ["a", "b", "c", "d", "e", "n", "p"]);
}

/// However long pi takes between its open and its write: the rollback waits until nobody has the old file open.
#[test]
fn a_rollback_waits_for_a_program_that_has_the_replaced_file_open() {
    let (disk, meanwhile) = planted();
    let migrator = migrated(&meanwhile);
    let opened: Arc<Mutex<Option<Box<dyn File>>>> = Arc::default();
    let (slot, other) = (Arc::clone(&opened), disk.another_process());
    meanwhile.before(Call::Rename, FILE, move |_| {
        *slot.lock().unwrap() = Some(other.open(&path(FILE), Access::Append).unwrap());
    });
    let line = format!("{}\n", message("slow", Some("e"), "written late, in two pieces"));
    let (first, second) = line.split_at(30);
    let (first, second) = (first.to_owned(), second.to_owned());
    let (slot, other) = (Arc::clone(&opened), disk.another_process());
    meanwhile.other_writer(2, FILE, move |_| {
        slot.lock().unwrap().as_ref().unwrap().append(first.as_bytes()).unwrap();
        pi_appends(&other);
    });
    meanwhile.other_writer(5, FILE, move |_| {
        opened.lock().unwrap().take().unwrap().append(second.as_bytes()).unwrap();
    });
    let done = migrator.rollback(&session_s(), &accepting(false)).unwrap();
    assert!(meanwhile.is_done() && !done.has_late_writer);
    assert_eq!(ids_of(&bytes(&disk, FILE)), ["a", "b", "c", "d", "e", "n", "p", "slow"]);
}

#[test]
fn a_rollback_does_not_wait_for_ever_and_says_so() {
    let (disk, meanwhile) = planted();
    let migrator = migrated(&meanwhile);
    meanwhile.other_writer(u64::MAX, FILE, |_| {});
    let done = migrator.rollback(&session_s(), &accepting(false)).unwrap();
    assert!(done.has_late_writer && !meanwhile.is_done());
    assert!(matches!(answer(&disk, &migrator, "s"), Answer::File(_)));
}
