//! What is left when something is damaged, full or interrupted: a way back, nothing lying about, and lists that know.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests make and break files of their own")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use bough_log::Expected;
use bough_migrate::{LostKind, MigrateError, Migrator, OsV1Files, RollbackOptions, ServedStore};
use bough_platform::{Disk, Platform};
use bough_session::{Record, SessionId};
use bough_store::{ListQuery, NativeOptions, NativeStore, Store};
use bough_testkit::{Fault, FaultPlan, SimDisk};

const FILE: &str = "v1/s.jsonl";

/// A session that was migrated and got one entry since.
fn migrated() -> (SimDisk, Migrator) {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    let migrator = migrator(&disk, small(), 1);
    migrate(&migrator, FILE);
    append_since(platform(Arc::new(disk.clone()), 7));
    (disk, migrator)
}

fn append_since(platform: Platform) {
    let log = <bough_log::LogStore<bough_session::SessionState>>::open(platform, small()).unwrap();
    let entry = Record::Entry(native_entry("n", Some("e"), "since", 1_800_000_000_000));
    log.append("s", Expected::Any, vec![log_record(&entry, 1_800_000_000_000)]).unwrap();
    log.close_all().unwrap();
}

/// Turns one bit of the second frame of the first segment.
fn damage(disk: &SimDisk) {
    let segment = |(path, _): &(_, Vec<u8>)| {
        let path: &bough_platform::RelPath = path;
        path.as_str().starts_with("sessions/") && path.as_str().ends_with("1.seg")
    };
    let (path, mut bytes) = disk.files().into_iter().find(segment).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 60;
    bytes[second] ^= 1;
    disk.plant(&path, &bytes).unwrap();
}

fn ids(disk: &SimDisk) -> Vec<String> {
    let lines = values(&bytes(disk, FILE)).into_iter().skip(1);
    lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_damaged_log_can_be_rolled_back_once_the_loss_is_accepted() {
    let (disk, migrator) = migrated();
    damage(&disk);
    let refused = migrator.rollback(&session_s(), &RollbackOptions::default());
    let Err(MigrateError::WouldLose { lost }) = refused else { panic!("{refused:?}") };
    assert_eq!(lost[0].kind, LostKind::Damaged);
    assert_eq!(ids(&disk), ["a", "b", "c", "d", "e"]);
    let options = RollbackOptions { accept_loss: true, ..RollbackOptions::default() };
    let done = migrator.rollback(&session_s(), &options).unwrap();
    assert!(done.lost.iter().any(|lost| lost.kind == LostKind::Damaged), "{:?}", done.lost);
    assert_eq!(ids(&disk), ["a", "b", "c", "d", "e", "n"]);
    assert!(matches!(answer(&disk, &migrator, "s"), Answer::File(found) if found.len() == 6));
}

/// Breaks the manifest of the only session.
fn lose_manifest(disk: &SimDisk) {
    let is_manifest = |path: &bough_platform::RelPath| path.as_str().ends_with("manifest.json");
    let (manifest, _) = disk.files().into_iter().find(|(path, _)| is_manifest(path)).unwrap();
    disk.plant(&manifest, b"gone").unwrap();
}

#[test]
fn a_session_that_lost_its_manifest_can_be_written_and_rolled_back() {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    let migrator = migrator(&disk, small(), 1);
    migrate(&migrator, FILE);
    lose_manifest(&disk);
    append_since(platform(Arc::new(disk.clone()), 7));
    let done = migrator.rollback(&session_s(), &RollbackOptions::default()).unwrap();
    assert_eq!((done.address.as_str(), done.exported), (FILE, 1));
    assert_eq!(ids(&disk), ["a", "b", "c", "d", "e", "n"]);
}

#[test]
fn a_session_that_lost_its_manifest_keeps_its_way_back_when_it_is_salvaged() {
    let (disk, _) = migrated();
    lose_manifest(&disk);
    let rescued = SimDisk::new();
    let target = platform(Arc::new(rescued.clone()), 8);
    let source = platform(Arc::new(disk.clone()), 99);
    bough_store::salvage(source, target, None, &mut |_| {}).unwrap();
    let files = Arc::new(DiskFiles(Arc::new(disk.clone())));
    let new = Migrator::open(platform(Arc::new(rescued), 9), files).unwrap();
    assert_eq!(new.file_behind(&session_s()).unwrap(), FILE);
}

#[test]
fn a_salvaged_session_keeps_its_way_back() {
    let (disk, _) = migrated();
    damage(&disk);
    let rescued = SimDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(rescued.clone());
    let target = platform(Arc::clone(&shared), 8);
    let source = platform(Arc::new(disk.clone()), 99);
    bough_store::salvage(source, target, None, &mut |report| assert_eq!(report.not_saved, None))
        .unwrap();
    let files = Arc::new(DiskFiles(Arc::new(disk.clone())));
    let new = Migrator::open(platform(shared, 9), files).unwrap();
    let done = new.rollback(&session_s(), &RollbackOptions::default()).unwrap();
    assert_eq!((done.address.as_str(), done.exported), (FILE, 1));
    assert_eq!(ids(&disk), ["a", "b", "c", "d", "e", "n"]);
}

#[test]
fn a_migration_that_fails_leaves_no_staging() {
    for at in 1.. {
        let disk = SimDisk::new();
        disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
        let migrator = migrator(&disk, small(), 1);
        let plan = plan(&migrator, FILE);
        disk.inject(FaultPlan::once(Fault::Full, at));
        let done = migrator.migrate(plan, None, &mut |_| {});
        if disk.fired().is_empty() {
            assert!(done.is_ok() && at > 100, "{at}: {done:?}");
            break;
        }
        let left: Vec<_> = disk.files().into_iter().map(|(path, _)| path.to_string()).collect();
        let staged = left.iter().find(|path| path.starts_with("staging/"));
        assert_eq!(staged, None, "call {at}: {:?}", disk.fired());
    }
}

/// A folder of V1 files, and a data directory beside it.
fn real() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    std::fs::create_dir(root.join("v1")).unwrap();
    (folder, root.join("data"), root.join("v1"))
}

fn migrator_in(data: &Path) -> Migrator {
    Migrator::open(Platform::system(data).unwrap(), Arc::new(OsV1Files)).unwrap()
}

#[test]
fn a_rollback_keeps_the_permissions_of_the_file() {
    let (_folder, data, v1) = real();
    let file = v1.join("s.jsonl");
    std::fs::write(&file, sample("s")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let migrator = migrator_in(&data);
    migrate(&migrator, file.to_str().unwrap());
    append_since(Platform::system(&data).unwrap());
    assert_eq!(migrator.rollback(&session_s(), &RollbackOptions::default()).unwrap().exported, 1);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn many_small_files_are_migrated_in_the_order_of_their_names() {
    let (_folder, data, v1) = real();
    for number in 0..30 {
        // Every third file is of the session of the one before it.
        let session = format!("s{}", if number % 3 == 2 { number - 1 } else { number });
        let text =
            format!("{}{}\n", sample(&session), message("z", Some("a"), &number.to_string()));
        std::fs::write(v1.join(format!("{number:03}.jsonl")), text).unwrap();
    }
    let migrator = migrator_in(&data);
    let mut visited = Vec::new();
    let results = migrator
        .migrate_all(v1.to_str().unwrap(), &mut |_, _| {}, &mut |result| {
            visited.push(result.address.clone());
        })
        .unwrap();
    let addresses: Vec<_> = results.iter().map(|result| result.address.clone()).collect();
    assert!(addresses.is_sorted() && addresses == visited, "{addresses:?}");
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.summary.is_some(), number % 3 != 2, "{number}: {result:?}");
    }
}

async fn serve(data: &Path) -> ServedStore {
    let platform = Platform::system(data).unwrap();
    let options = NativeOptions::default();
    let native = NativeStore::open(platform.clone(), data.to_owned(), options).await.unwrap();
    ServedStore::over(native, platform, Arc::new(OsV1Files))
}

async fn listed(served: &ServedStore) -> Vec<SessionId> {
    let query = ListQuery { limit: 10, ..ListQuery::default() };
    let page = served.list(&query).await.unwrap();
    page.sessions.into_iter().map(|listed| listed.meta.session_id).collect()
}

/// A directory whose catalogue is whole, then a migration by a process that ended before anybody listed its session.
async fn migrated_unlisted() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (folder, data, v1) = real();
    let served = serve(&data).await;
    assert!(listed(&served).await.is_empty());
    served.close().await.unwrap();
    drop(served);
    let file = v1.join("s.jsonl");
    std::fs::write(&file, sample("s")).unwrap();
    migrate(&migrator_in(&data), file.to_str().unwrap());
    (folder, data, file)
}

fn marks(data: &Path) -> usize {
    std::fs::read_dir(data.join("migrating")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_nobody_listed_is_listed_by_the_next_opening() {
    let (_folder, data, _) = migrated_unlisted().await;
    assert_eq!(marks(&data), 1);
    let served = serve(&data).await;
    assert_eq!(served.recover().await.unwrap(), []);
    assert_eq!(listed(&served).await, [SessionId::from_stored("s")]);
    assert_eq!(marks(&data), 0);
    served.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_lists_it_at_the_first_list() {
    let (_folder, data, _) = migrated_unlisted().await;
    let served = serve(&data).await;
    served.recover_now().unwrap();
    assert_eq!(listed(&served).await, [SessionId::from_stored("s")]);
    assert_eq!(marks(&data), 0);
    served.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrated_file_that_grew_is_told_from_one_that_did_not() {
    let (_folder, data, file) = migrated_unlisted().await;
    let served = serve(&data).await;
    let address = file.to_str().unwrap();
    assert!(!served.has_changed_since_migration(address).await.unwrap());
    let grown = format!("{}{}\n", sample("s"), message("p", Some("e"), "by pi"));
    std::fs::write(&file, grown).unwrap();
    assert!(served.has_changed_since_migration(address).await.unwrap());
    served.close().await.unwrap();
}
