//! Real processes that really die: in the middle of a migration and of a rollback, at every change of the
//! disk, with a disk that loses what was not synced; and at any moment, by a signal.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::*;
use bough_log::Expected;
use bough_migrate::{Migrator, RollbackOptions};
use bough_platform::{
    Access, Disk, File, Lock, LockError, OsDisk, OsEntropy, Platform, RelPath, SystemClock,
};
use bough_session::Record;
use bough_store::SessionDirectory;
use bough_testkit::{LossyDisk, Seeded, pass_on};

const FILE: &str = "v1/s.jsonl";

/// A disk that ends its process before a change of a certain number.
#[derive(Clone, Debug)]
struct Deadly {
    disk: Arc<dyn Disk>,
    changes: Arc<AtomicU64>,
    dies_at: u64,
}

impl Deadly {
    fn change(&self) {
        if self.changes.fetch_add(1, Ordering::SeqCst) + 1 == self.dies_at {
            std::process::abort();
        }
    }

    fn file(&self, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(DeadlyFile { inner, disk: self.clone() })
    }
}

impl Disk for Deadly {
    pass_on! { disk: list, stat, lock_holder }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        self.change();
        Ok(self.file(self.disk.create(path)?))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.disk.open(path, access)?))
    }

    fn create_dir(&self, path: &RelPath) -> io::Result<()> {
        self.change();
        self.disk.create_dir(path)
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        self.change();
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        self.change();
        self.disk.remove_file(path)
    }

    fn remove_dir(&self, path: &RelPath) -> io::Result<()> {
        self.change();
        self.disk.remove_dir(path)
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        self.change();
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &RelPath, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        self.change();
        self.disk.lock(path, holder)
    }
}

#[derive(Debug)]
struct DeadlyFile {
    inner: Box<dyn File>,
    disk: Deadly,
}

impl File for DeadlyFile {
    pass_on! { inner: len, read_at }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.change();
        self.inner.write_at(at, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.change();
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.change();
        self.inner.sync()
    }
}

fn system(disk: Arc<dyn Disk>) -> Migrator {
    let platform = Platform {
        disk: Arc::clone(&disk),
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(OsEntropy),
    };
    let sessions = SessionDirectory::open(platform.clone(), small()).unwrap();
    Migrator::over(sessions, platform, Arc::new(DiskFiles(disk))).in_batches_of(BATCH)
}

fn os(dir: &Path) -> Arc<dyn Disk> {
    Arc::new(OsDisk::open(dir).unwrap())
}

/// What the child does: see [`spawn`]. Run as a test of its own it does nothing.
#[test]
fn child() {
    let Ok(order) = std::env::var("BOUGH_TEST_ORDER") else { return };
    let mut words = order.splitn(3, ' ');
    let (work, dies_at, dir) =
        (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let disk: Arc<dyn Disk> = match dies_at.parse() {
        Ok(dies_at) => {
            let lossy = LossyDisk::open(OsDisk::open(dir).unwrap()).unwrap();
            Arc::new(Deadly { disk: Arc::new(lossy), changes: Arc::default(), dies_at })
        }
        Err(_) => os(Path::new(dir)),
    };
    let migrator = system(disk);
    match work {
        "migrate" => drop(try_migrate(&migrator, FILE).unwrap()),
        _ => drop(migrator.rollback(&session_s(), &RollbackOptions::default()).unwrap()),
    }
}

fn spawn(work: &str, dies_at: &str, dir: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture"])
        .env("BOUGH_TEST_ORDER", format!("{work} {dies_at} {}", dir.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A directory with a V1 file; migrated and written to since, for a rollback.
fn template(work: &str, dir: &Path) {
    std::fs::create_dir_all(dir.join("v1")).unwrap();
    std::fs::write(dir.join(FILE), sample("s")).unwrap();
    let migrator = system(os(dir));
    if work == "rollback" {
        migrate(&migrator, FILE);
        let log = LogStore::open(platform(os(dir), 7), small()).unwrap();
        for (id, parent) in [("n1", "c"), ("n2", "n1")] {
            let entry = native_entry(id, Some(parent), "since", 1_800_000_000_000);
            log.append("s", Expected::Any, vec![log_record(&Record::Entry(entry), 1)]).unwrap();
        }
        log.close_all().unwrap();
    }
}

/// Whatever the dead process left: everything is there, one store answers, and the work can be done.
fn judge(work: &str, dir: &Path, expected: &[EntryText]) {
    let migrator = system(os(dir));
    migrator.recover_interrupted(&mut |_, done| assert!(done.is_ok(), "{done:?}")).unwrap();
    migrator.recover_all(&mut |id, done| panic!("{id} left no mark: {done:?}")).unwrap();
    let text = std::fs::read(dir.join(FILE)).unwrap();
    assert!(text.starts_with(sample("s").as_bytes()));
    let log = logs_on(os(dir));
    match answer_of(&log, &migrator, "s") {
        Answer::Unknown => assert_eq!(work, "migrate"),
        Answer::Native(found) | Answer::File(found) => {
            assert_eq!(found, expected);
            let report = log.verify("s").unwrap();
            assert!(report.is_well(), "{report:?}");
        }
    }
    if work == "migrate" {
        try_migrate(&migrator, FILE).unwrap();
        assert_eq!(answer_of(&log, &migrator, "s"), Answer::Native(expected.to_vec()));
    } else {
        migrator.rollback(&session_s(), &RollbackOptions::default()).unwrap();
        assert_eq!(answer_of(&log, &migrator, "s"), Answer::File(expected.to_vec()));
    }
}

fn expected(dir: &Path) -> Vec<EntryText> {
    let migrator = system(os(dir));
    match answer_of(&logs_on(os(dir)), &migrator, "s") {
        Answer::Native(found) | Answer::File(found) => found,
        Answer::Unknown => texts_of(&live_entries(&migrator.open_file(FILE).unwrap())),
    }
}

/// One child for each change of the disk, which dies before it.
fn die_at_every_change(work: &str) {
    let root = tempfile::tempdir().unwrap();
    let model = root.path().join("model");
    template(work, &model);
    let expected = expected(&model);
    let mut deaths = 0;
    loop {
        let dir = root.path().join("run");
        copy(&model, &dir);
        let status = spawn(work, &(deaths + 1).to_string(), &dir).wait().unwrap();
        judge(work, &dir, &expected);
        std::fs::remove_dir_all(&dir).unwrap();
        if status.success() {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 20, "{deaths}");
}

#[test]
fn a_migration_that_dies_at_any_change_of_the_disk() {
    die_at_every_change("migrate");
}

#[test]
fn a_rollback_that_dies_at_any_change_of_the_disk() {
    die_at_every_change("rollback");
}

#[test]
fn a_signal_at_any_moment() {
    const KILLS: u64 = 24;
    let root = tempfile::tempdir().unwrap();
    let mut seeded = Seeded::new(5);
    for (round, work) in (0..KILLS).zip(["migrate", "rollback"].into_iter().cycle()) {
        let dir = root.path().join(round.to_string());
        template(work, &dir);
        let expected = expected(&dir);
        let mut child = spawn(work, "never", &dir);
        std::thread::sleep(Duration::from_millis(seeded.below(60) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        judge(work, &dir, &expected);
    }
}
