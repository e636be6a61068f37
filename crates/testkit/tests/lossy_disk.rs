//! The lossy disk leaves in the real directory what the simulated disk calls durable, and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use bough_platform::{Disk, OsDisk, RelPath};
use bough_testkit::LossyDisk;
use proptest::prelude::*;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// What a process that starts after a kill finds.
fn survivors(dir: &tempfile::TempDir) -> Vec<(String, Vec<u8>)> {
    let os = OsDisk::open(dir.path()).unwrap();
    let mut found = Vec::new();
    collect(&os, &RelPath::root(), &mut found);
    found
}

fn collect(disk: &(dyn Disk + 'static), folder: &RelPath, found: &mut Vec<(String, Vec<u8>)>) {
    for listed in disk.list(folder).unwrap() {
        let path = folder.join(&listed.name).unwrap();
        if listed.name == ".lossy" {
            continue;
        }
        if listed.is_dir {
            found.push((format!("{path}/"), Vec::new()));
            collect(disk, &path, found);
        } else {
            found.push((path.to_string(), disk.read_all(&path, 1 << 20).unwrap()));
        }
    }
}

fn open(dir: &tempfile::TempDir) -> LossyDisk {
    LossyDisk::open(OsDisk::create(dir.path()).unwrap()).unwrap()
}

#[test]
fn only_what_was_synced_is_in_the_real_directory() {
    let dir = tempfile::tempdir().unwrap();
    let disk = open(&dir);
    let file = disk.create(&path("f")).unwrap();
    file.write_at(0, b"abc").unwrap();
    file.sync().unwrap();
    assert_eq!(survivors(&dir), []);
    disk.sync_dir(&RelPath::root()).unwrap();
    file.write_at(3, b"def").unwrap();
    assert_eq!(survivors(&dir), [("f".to_owned(), b"abc".to_vec())]);
    file.sync().unwrap();
    assert_eq!(survivors(&dir), [("f".to_owned(), b"abcdef".to_vec())]);
    let reopened = open(&dir);
    let disk: &dyn Disk = &reopened;
    assert_eq!(disk.read_all(&path("f"), 100).unwrap(), b"abcdef");
}

#[test]
fn a_folder_arrives_whole_when_its_own_name_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let disk = open(&dir);
    disk.create_dir(&path("d")).unwrap();
    let file = disk.create(&path("d/f")).unwrap();
    file.write_at(0, b"x").unwrap();
    file.sync().unwrap();
    disk.sync_dir(&path("d")).unwrap();
    assert_eq!(survivors(&dir), []);
    disk.sync_dir(&RelPath::root()).unwrap();
    let expected = [("d/".to_owned(), vec![]), ("d/f".to_owned(), b"x".to_vec())];
    assert_eq!(survivors(&dir), expected);
}

#[test]
fn a_replaced_file_is_the_old_or_the_new() {
    let dir = tempfile::tempdir().unwrap();
    let disk = open(&dir);
    (&disk as &dyn Disk).replace(&path("m"), &path("t"), b"one").unwrap();
    let temp = disk.create(&path("t")).unwrap();
    temp.write_at(0, b"two").unwrap();
    temp.sync().unwrap();
    disk.rename(&path("t"), &path("m")).unwrap();
    assert_eq!(survivors(&dir), [("m".to_owned(), b"one".to_vec())]);
    disk.sync_dir(&RelPath::root()).unwrap();
    assert_eq!(survivors(&dir), [("m".to_owned(), b"two".to_vec())]);
    temp.write_at(3, b"!").unwrap();
    temp.sync().unwrap();
    assert_eq!(survivors(&dir), [("m".to_owned(), b"two!".to_vec())]);
}

/// A step on a few paths in two folders.
#[derive(Clone, Debug)]
enum Do {
    Create(usize),
    Write(usize, u8),
    Sync(usize),
    Rename(usize, usize),
    Remove(usize),
    MoveFolder(bool),
    SyncDir(usize),
}

const PATHS: [&str; 6] = ["a", "b", "d/a", "d/b", "e/a", "e/b"];
const FOLDERS: [&str; 3] = ["", "d", "e"];

fn step() -> impl Strategy<Value = Do> {
    let place = 0..PATHS.len();
    prop_oneof![
        place.clone().prop_map(Do::Create),
        (place.clone(), any::<u8>()).prop_map(|(at, byte)| Do::Write(at, byte)),
        place.clone().prop_map(Do::Sync),
        (place.clone(), place.clone()).prop_map(|(from, to)| Do::Rename(from, to)),
        place.prop_map(Do::Remove),
        any::<bool>().prop_map(Do::MoveFolder),
        (0..FOLDERS.len()).prop_map(Do::SyncDir),
    ]
}

fn perform(disk: &dyn Disk, step: &Do) -> bool {
    let at = |index: &usize| path(PATHS[*index]);
    let open = |index: &usize| disk.open(&at(index), bough_platform::Access::ReadWrite);
    match step {
        Do::Create(index) => disk.create(&at(index)).is_ok(),
        Do::Write(index, byte) => {
            open(index).is_ok_and(|file| file.write_at(u64::from(byte % 8), &[*byte; 3]).is_ok())
        }
        Do::Sync(index) => open(index).is_ok_and(|file| file.sync().is_ok()),
        Do::Rename(from, to) => disk.rename(&at(from), &at(to)).is_ok(),
        Do::Remove(index) => disk.remove_file(&at(index)).is_ok(),
        Do::MoveFolder(true) => disk.create_dir(&path("d")).is_ok(),
        Do::MoveFolder(false) => disk.rename(&path("d"), &path("e")).is_ok(),
        Do::SyncDir(index) => {
            let folder = FOLDERS[*index];
            let folder = if folder.is_empty() { RelPath::root() } else { path(folder) };
            disk.sync_dir(&folder).is_ok()
        }
    }
}

/// A file that is moved into a folder which is not there yet arrives once, and is written on where it arrived.
#[test]
fn a_file_that_moved_into_a_new_folder_arrives_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let disk = open(&dir);
    let file = disk.create(&path("a")).unwrap();
    disk.create_dir(&path("d")).unwrap();
    disk.rename(&path("a"), &path("d/b")).unwrap();
    drop(disk.create(&path("d/a")).unwrap());
    disk.rename(&path("d/a"), &path("a")).unwrap();
    disk.sync_dir(&RelPath::root()).unwrap();
    file.write_at(0, b"xyz").unwrap();
    file.sync().unwrap();
    let expected = [("a", ""), ("d/", ""), ("d/b", "xyz")];
    let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes.as_bytes().to_vec()));
    assert_eq!(survivors(&dir), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn the_real_directory_is_the_simulated_platter(steps in prop::collection::vec(step(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let (lossy, sim) = (open(&dir), bough_testkit::SimDisk::new());
        for step in &steps {
            prop_assert_eq!(perform(&lossy, step), perform(&sim, step), "{:?}", step);
        }
        let mut expected = Vec::new();
        collect(&sim.platter(), &RelPath::root(), &mut expected);
        prop_assert_eq!(survivors(&dir), expected);
    }
}
