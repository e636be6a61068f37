//! What is durable when, what a crash can leave, and who holds a lock.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bough_platform::{Access, Disk, LockError, RelPath};
use bough_testkit::{Call, Damage, Fault, FaultPlan, ImageRules, SimDisk};

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn root() -> RelPath {
    RelPath::root()
}

/// A file that is there durably, empty or not.
fn durable_file(disk: &SimDisk, name: &str, bytes: &[u8]) -> Box<dyn bough_platform::File> {
    disk.plant(&path(name), bytes).unwrap();
    disk.open(&path(name), Access::ReadWrite).unwrap()
}

type Tree = BTreeMap<String, String>;

fn tree(disk: &SimDisk) -> Tree {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let files = disk.files();
    files.into_iter().map(|(path, bytes)| (path.to_string(), text(bytes))).collect()
}

/// Every tree that a cut can leave now. The recording must have been started before.
fn cuts(disk: &SimDisk, rules: &ImageRules) -> BTreeSet<Tree> {
    let mut trees = BTreeSet::new();
    let recording = disk.recording();
    recording.walk(|point| {
        if point.number() == recording.len() {
            point.images(rules, |image| {
                trees.insert(tree(&image.disk()));
            });
        }
    });
    trees
}

fn trees(expected: &[&[(&str, &str)]]) -> BTreeSet<Tree> {
    let owned = |pairs: &&[(&str, &str)]| {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    expected.iter().map(owned).collect()
}

fn untorn() -> ImageRules {
    ImageRules::seeded(1).untorn()
}

#[test]
fn the_cache_sees_at_once_what_the_platter_has_only_after_both_syncs() {
    let disk = SimDisk::new();
    let file = disk.create(&path("f")).unwrap();
    file.write_at(0, b"abc").unwrap();
    assert_eq!(tree(&disk), trees(&[&[("f", "abc")]]).pop_first().unwrap());
    assert!(tree(&disk.platter()).is_empty());
    file.sync().unwrap();
    assert!(tree(&disk.platter()).is_empty(), "the name is not durable yet");
    disk.sync_dir(&root()).unwrap();
    assert_eq!(tree(&disk.platter()), tree(&disk));
}

#[test]
fn written_back_everything_is_durable_and_the_disk_itself_is_left_alone() {
    let disk = SimDisk::new();
    disk.create_dir(&path("d")).unwrap();
    disk.create(&path("d/f")).unwrap().write_at(0, b"abc").unwrap();
    let later = disk.written_back();
    assert_eq!(later.platter().digest(), disk.digest());
    assert!(tree(&disk.platter()).is_empty());
}

#[test]
fn a_name_without_its_bytes_is_an_empty_file() {
    let disk = SimDisk::new();
    let file = disk.create(&path("f")).unwrap();
    file.write_at(0, b"abc").unwrap();
    disk.sync_dir(&root()).unwrap();
    assert_eq!(tree(&disk.platter()).get("f").unwrap(), "");
}

#[test]
fn unsynced_writes_survive_in_every_subset() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    disk.record();
    file.write_at(0, b"a").unwrap();
    file.write_at(1, b"b").unwrap();
    let expected = trees(&[&[("f", "")], &[("f", "a")], &[("f", "\0b")], &[("f", "ab")]]);
    assert_eq!(cuts(&disk, &untorn()), expected);
    file.sync().unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[("f", "ab")]]));
}

#[test]
fn writes_to_two_files_survive_in_any_order() {
    let disk = SimDisk::new();
    let (one, two) = (durable_file(&disk, "1", b""), durable_file(&disk, "2", b""));
    disk.record();
    one.write_at(0, b"x").unwrap();
    two.write_at(0, b"y").unwrap();
    assert_eq!(cuts(&disk, &untorn()).len(), 4);
    two.sync().unwrap();
    let expected = trees(&[&[("1", ""), ("2", "y")], &[("1", "x"), ("2", "y")]]);
    assert_eq!(cuts(&disk, &untorn()), expected);
}

#[test]
fn a_cut_length_comes_back_unless_synced() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"abc");
    disk.record();
    file.set_len(1).unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[("f", "abc")], &[("f", "a")]]));
}

#[test]
fn a_surviving_write_is_also_torn() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    disk.record();
    file.write_at(0, b"abcd").unwrap();
    let left = cuts(&disk, &ImageRules::seeded(1));
    for text in ["", "a", "abc", "abcd", "\0\0\0\0"] {
        assert!(left.contains(&Tree::from([("f".into(), text.into())])), "{text:?}");
    }
    assert_eq!(left.len(), 6, "and one of garbage");
    let every = cuts(&disk, &ImageRules::seeded(1).torn_at_every_byte());
    assert!(every.contains(&Tree::from([("f".into(), "ab".into())])));
}

#[test]
fn a_rename_over_a_file_leaves_the_old_or_the_new_never_neither() {
    let disk = SimDisk::new();
    durable_file(&disk, "m", b"old");
    durable_file(&disk, "m.tmp", b"new");
    disk.record();
    disk.rename(&path("m.tmp"), &path("m")).unwrap();
    let expected = trees(&[&[("m", "old"), ("m.tmp", "new")], &[("m", "new")]]);
    assert_eq!(cuts(&disk, &untorn()), expected);
    disk.sync_dir(&root()).unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[("m", "new")]]));
}

#[test]
fn a_rename_before_the_file_is_synced_can_leave_an_empty_file() {
    let disk = SimDisk::new();
    durable_file(&disk, "m", b"old");
    disk.record();
    let temp = disk.create(&path("m.tmp")).unwrap();
    temp.write_at(0, b"new").unwrap();
    disk.rename(&path("m.tmp"), &path("m")).unwrap();
    disk.sync_dir(&root()).unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[("m", "")], &[("m", "new")]]));
}

#[test]
fn a_removed_name_returns_unless_its_folder_is_synced() {
    let disk = SimDisk::new();
    durable_file(&disk, "f", b"x");
    disk.record();
    disk.remove_file(&path("f")).unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[], &[("f", "x")]]));
    disk.sync_dir(&root()).unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[]]));
}

#[test]
fn a_file_in_a_folder_whose_own_name_is_not_durable_is_lost() {
    let disk = SimDisk::new();
    disk.create_dir(&path("d")).unwrap();
    let file = disk.create(&path("d/f")).unwrap();
    file.write_at(0, b"x").unwrap();
    file.sync().unwrap();
    disk.sync_dir(&path("d")).unwrap();
    assert!(tree(&disk.platter()).is_empty());
    disk.sync_dir(&root()).unwrap();
    assert_eq!(tree(&disk.platter()).get("d/f").unwrap(), "x");
}

#[test]
fn a_move_between_folders_is_in_doubt_until_the_one_it_went_to_is_synced() {
    let disk = SimDisk::new();
    durable_file(&disk, "a/f", b"x");
    durable_file(&disk, "b/other", b"y");
    disk.record();
    disk.rename(&path("a/f"), &path("b/f")).unwrap();
    let either = trees(&[&[("a/f", "x"), ("b/other", "y")], &[("b/f", "x"), ("b/other", "y")]]);
    assert_eq!(cuts(&disk, &untorn()), either);
    disk.sync_dir(&path("a")).unwrap();
    assert_eq!(cuts(&disk, &untorn()), either, "the folder that it left says nothing");
    disk.sync_dir(&path("b")).unwrap();
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[("b/f", "x"), ("b/other", "y")]]));
}

#[test]
fn a_durable_new_file_at_the_old_name_settles_the_move() {
    let disk = SimDisk::new();
    durable_file(&disk, "a/f", b"old");
    durable_file(&disk, "b/other", b"");
    disk.record();
    disk.rename(&path("a/f"), &path("b/f")).unwrap();
    disk.create(&path("a/f")).unwrap();
    disk.sync_dir(&path("a")).unwrap();
    let expected = trees(&[&[("a/f", ""), ("b/f", "old"), ("b/other", "")]]);
    assert_eq!(cuts(&disk, &untorn()), expected);
}

#[test]
fn a_moved_folder_takes_its_files_along() {
    let disk = SimDisk::new();
    durable_file(&disk, "staging/s/f", b"x");
    durable_file(&disk, "sessions/other", b"");
    disk.rename(&path("staging/s"), &path("sessions/s")).unwrap();
    disk.sync_dir(&path("staging")).unwrap();
    disk.sync_dir(&path("sessions")).unwrap();
    assert_eq!(tree(&disk.platter()).get("sessions/s/f").unwrap(), "x");
    assert_eq!(disk.list(&path("staging")).unwrap(), []);
}

#[test]
fn many_name_operations_survive_as_prefixes_and_single_drops() {
    let disk = SimDisk::new();
    disk.record();
    for name in ["0", "1", "2", "3", "4", "5"] {
        disk.create(&path(name)).unwrap();
    }
    // Seven prefixes and six single drops; dropping the last is also a prefix.
    assert_eq!(cuts(&disk, &untorn()).len(), 7 + 6 - 1);
}

#[test]
fn too_many_pending_writes_are_sampled_and_it_is_said() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    disk.record();
    for at in 0..20 {
        file.write_at(at, b"x").unwrap();
    }
    let recording = disk.recording();
    let mut sampled = Vec::new();
    recording.walk(|point| sampled.push(point.images(&untorn(), |_| {}).sampled));
    assert!(!sampled[10] && sampled[11] && sampled[20]);
}

#[test]
fn each_image_is_visited_once_and_the_same_way_every_time() {
    let disk = SimDisk::new();
    disk.record();
    let file = disk.create(&path("f")).unwrap();
    file.write_at(0, &[7; 1300]).unwrap();
    disk.create(&path("g")).unwrap().write_at(0, b"abc").unwrap();
    let visit = || {
        let mut seen = Vec::new();
        disk.recording().walk(|point| {
            point.images(&ImageRules::seeded(3), |image| {
                assert_eq!(image.disk().digest(), image.digest(), "{image:?}");
                seen.push((point.number(), image.ordinal(), image.digest()));
            });
        });
        seen
    };
    let seen = visit();
    assert_eq!(seen, visit());
    let distinct: BTreeSet<(usize, u64)> = seen.iter().map(|(k, _, d)| (*k, *d)).collect();
    assert_eq!(distinct.len(), seen.len());
}

#[test]
fn an_image_is_its_own_disk() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"abc");
    disk.record();
    file.write_at(0, b"xyz").unwrap();
    disk.recording().walk(|point| {
        point.images(&untorn(), |image| {
            let before = image.disk();
            let copy = image.disk();
            copy.open(&path("f"), Access::ReadWrite).unwrap().set_len(0).unwrap();
            assert_ne!(tree(&before), tree(&copy));
            assert_eq!(tree(&image.disk()), tree(&before));
        });
    });
    assert_eq!(tree(&disk).get("f").unwrap(), "xyz");
}

#[test]
fn replaying_the_recording_gives_the_disk() {
    let disk = SimDisk::new();
    durable_file(&disk, "d/keep", b"k");
    disk.record();
    let file = disk.create(&path("d/a")).unwrap();
    file.write_at(3, b"abc").unwrap();
    disk.rename(&path("d/a"), &path("b")).unwrap();
    file.sync().unwrap();
    file.set_len(4).unwrap();
    disk.remove_file(&path("d/keep")).unwrap();
    disk.remove_dir(&path("d")).unwrap();
    let replayed = disk.recording().disk_at(disk.operations());
    assert_eq!(replayed.digest(), disk.digest());
    assert_eq!(replayed.platter().digest(), disk.platter().digest());
}

#[test]
fn a_failed_sync_leaves_clean_pages_that_no_later_sync_saves() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    file.write_at(0, b"lost").unwrap();
    disk.inject(FaultPlan::once(Fault::LostPages, 1));
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(tree(&disk).get("f").unwrap(), "lost", "the cache still has it");
    assert_eq!(tree(&disk.platter()).get("f").unwrap(), "");
    file.write_at(0, b"lost").unwrap();
    file.sync().unwrap();
    assert_eq!(tree(&disk.platter()).get("f").unwrap(), "lost", "writing again saves it");
}

#[test]
fn clean_pages_may_or_may_not_be_on_the_platter_and_may_be_evicted() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"a");
    disk.record();
    file.write_at(1, b"b").unwrap();
    disk.inject(FaultPlan::once(Fault::LostPages, 1));
    assert!(file.sync().is_err());
    assert_eq!(cuts(&disk, &untorn()), trees(&[&[("f", "a")], &[("f", "ab")]]));
    disk.evict_clean_pages();
    assert_eq!(tree(&disk).get("f").unwrap(), "a");
}

#[test]
fn a_planned_fault_hits_the_call_it_names_and_no_other() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    disk.inject(FaultPlan::once(Fault::Full, 2).only(Call::Write));
    file.write_at(0, b"1").unwrap();
    let refused = file.write_at(1, b"2").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    file.write_at(1, b"3").unwrap();
    assert_eq!(tree(&disk).get("f").unwrap(), "13");
    assert_eq!(disk.fired().len(), 1);
    assert_eq!((disk.calls().of(Call::Write), disk.fired()[0].call), (3, Call::Write));
}

#[test]
fn a_lasting_fault_lasts_until_healed() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    disk.inject(FaultPlan::from(Fault::Broken, 1));
    assert!(file.write_at(0, b"1").is_err() && file.sync().is_err() && file.len().is_err());
    assert!(matches!(disk.lock(&path("l"), "me"), Err(LockError::Io(_))));
    disk.heal();
    file.write_at(0, b"1").unwrap();
}

#[test]
fn a_short_write_leaves_half_and_an_error() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"");
    disk.inject(FaultPlan::once(Fault::ShortWrite, 1));
    assert!(file.write_at(0, b"abcd").is_err());
    assert_eq!(tree(&disk).get("f").unwrap(), "ab");
}

#[test]
fn a_lock_is_refused_to_others_and_freed_by_drop_kill_and_power_cut() {
    let disk = SimDisk::new();
    disk.record();
    let other = disk.another_process();
    let lock = disk.lock(&path("lock"), "first").unwrap();
    for refused in [disk.lock(&path("lock"), "x"), other.lock(&path("lock"), "x")] {
        assert!(matches!(refused, Err(LockError::Held { holder }) if holder == "first"));
    }
    assert_eq!(other.lock_holder(&path("lock")).unwrap().as_deref(), Some("first"));
    drop(lock);
    let lock = disk.lock(&path("lock"), "again").unwrap();
    disk.kill();
    assert_eq!(other.lock_holder(&path("lock")).unwrap(), None);
    let taken = other.lock(&path("lock"), "heir").unwrap();
    drop(lock);
    assert!(other.lock_holder(&path("lock")).unwrap().is_some(), "a dead hand frees nothing");
    let image = other.platter();
    assert!(image.lock(&path("lock"), "after the cut").is_ok());
    taken.remove().unwrap();
    assert_eq!(other.stat(&path("lock")).unwrap(), None);
}

#[test]
fn a_killed_process_writes_nothing_more_but_its_cache_stays() {
    let disk = SimDisk::new();
    let other = disk.another_process();
    let file = disk.create(&path("f")).unwrap();
    file.write_at(0, b"a").unwrap();
    disk.kill();
    assert!(file.write_at(1, b"b").is_err() && file.sync().is_err());
    assert!(disk.create(&path("g")).is_err());
    assert_eq!(tree(&other).get("f").unwrap(), "a");
}

#[test]
fn an_open_file_outlives_its_name() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "f", b"abc");
    disk.remove_file(&path("f")).unwrap();
    let mut out = [0; 3];
    assert_eq!(file.read_at(0, &mut out).unwrap(), 3);
    file.write_at(3, b"d").unwrap();
    assert_eq!(file.len().unwrap(), 4);
}

#[test]
fn impossible_calls_are_refused_as_the_system_would() {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidInput, IsADirectory, NotADirectory, NotFound,
    };
    let disk = SimDisk::new();
    durable_file(&disk, "d/f", b"");
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    let created = |name: &str| disk.create(&path(name)).map(|_| ());
    assert_eq!(kind(created("d/f")), AlreadyExists);
    assert_eq!(kind(created("none/f")), NotFound);
    assert_eq!(kind(created("d/f/g")), NotADirectory);
    assert_eq!(kind(disk.create_dir(&path("d"))), AlreadyExists);
    assert_eq!(kind(disk.remove_dir(&path("d"))), DirectoryNotEmpty);
    assert_eq!(kind(disk.remove_dir(&path("d/f"))), NotADirectory);
    assert_eq!(kind(disk.remove_file(&path("d"))), IsADirectory);
    assert_eq!(kind(disk.rename(&path("none"), &path("x"))), NotFound);
    assert_eq!(kind(disk.rename(&path("d"), &path("d/e"))), InvalidInput);
    assert_eq!(kind(disk.rename(&path("d/f"), &path("d"))), IsADirectory);
    assert_eq!(kind(disk.open(&path("d"), Access::Read).map(|_| ())), IsADirectory);
    let reader = disk.open(&path("d/f"), Access::Read).unwrap();
    assert!(reader.write_at(0, b"x").is_err());
    assert_eq!(disk.stat(&path("none")).unwrap(), None);
}

#[test]
fn damage_is_done_to_a_copy() {
    let disk = SimDisk::new();
    durable_file(&disk, "a", b"abc");
    durable_file(&disk, "b", b"xyz");
    let check = |damage: Damage, expected: &[(&str, &str)]| {
        let damaged = damage.done_to(&disk).unwrap();
        assert_eq!(tree(&damaged), trees(&[expected]).pop_first().unwrap());
        assert_eq!(tree(&damaged.platter()), tree(&damaged));
    };
    let (a, b, c) = (path("a"), path("b"), path("c"));
    check(Damage::FlippedBit { path: a.clone(), bit: 8 }, &[("a", "acc"), ("b", "xyz")]);
    check(Damage::ZeroedSector { path: a.clone(), sector: 0 }, &[("a", "\0\0\0"), ("b", "xyz")]);
    check(Damage::Truncated { path: a.clone(), len: 1 }, &[("a", "a"), ("b", "xyz")]);
    check(Damage::Missing { path: a.clone() }, &[("b", "xyz")]);
    check(Damage::Swapped { path: a.clone(), with: b.clone() }, &[("a", "xyz"), ("b", "abc")]);
    check(Damage::Duplicated { from: b, to: c }, &[("a", "abc"), ("b", "xyz"), ("c", "xyz")]);
    check(Damage::Foreign { path: a.clone(), bytes: b"?".into() }, &[("a", "?"), ("b", "xyz")]);
    assert_eq!(Damage::every_bit(&a, 3).count(), 24);
    assert_eq!(Damage::every_truncation(&a, 3).count(), 3);
    assert_eq!(Damage::every_sector(&a, 1025).len(), 3 + 6);
    assert_eq!(tree(&disk).get("a").unwrap(), "abc");
}
