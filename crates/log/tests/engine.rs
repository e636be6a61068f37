//! The engine on a real directory: what goes in comes out, across closing, rolling and checkpoints.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may")]

use bough_log::{
    Envelope, Expected, LogError, LogStore, Maintenance, NewDelta, Options, PathStart, kind,
};
use bough_platform::Platform;

struct Fixture {
    dir: tempfile::TempDir,
    options: Options,
}

impl Fixture {
    fn new() -> Self {
        let options = Options {
            maintenance: Maintenance::Inline,
            segment_bytes: 2_000,
            checkpoint_every_bytes: 4_000,
            tiny_bytes: 1_000,
            tail_rows_max: 4,
            ..Options::default()
        };
        Self { dir: tempfile::tempdir().unwrap(), options }
    }

    fn open(&self) -> LogStore {
        <LogStore>::open(Platform::system(self.dir.path()).unwrap(), self.options.clone()).unwrap()
    }
}

fn entry(n: u64) -> Envelope<'static> {
    let parent = (n > 1).then(|| format!("e{}", n - 1));
    Envelope::entry(&format!("e{n}"), parent.as_deref(), 1, format!("{{\"n\":{n}}}"))
}

fn fill(store: &LogStore, id: &str, count: u64) {
    store.create(id, vec![entry(1)]).unwrap();
    for n in 2..=count {
        store.append(id, Expected::Any, vec![entry(n)]).unwrap();
    }
}

fn path_ids(
    store: &LogStore,
    id: &str,
    leaf: &str,
    start: PathStart<&str>,
    limit: usize,
) -> Vec<String> {
    let page = store
        .read(id)
        .unwrap()
        .path(leaf, start, limit, |stored| stored.into_owned())
        .unwrap()
        .unwrap();
    page.entries.into_iter().map(|entry| entry.added.envelope.id.unwrap().into_owned()).collect()
}

#[test]
fn records_come_back_in_order_before_and_after_reopening() {
    let fixture = Fixture::new();
    for count in [1, 2, 5, 40] {
        let id = format!("s{count}");
        let store = fixture.open();
        fill(&store, &id, count);
        let check = |store: &LogStore| {
            let reader = store.read(&id).unwrap();
            assert_eq!(reader.head().seq, count);
            let records = reader.records(0, 1_000, |stored| stored.into_owned()).unwrap();
            let payloads: Vec<_> = records.iter().map(|r| r.envelope.payload.clone()).collect();
            let expected: Vec<_> = (1..=count).map(|n| format!("{{\"n\":{n}}}")).collect();
            assert_eq!(payloads, expected);
            for n in 1..=count {
                assert_eq!(reader.find(&format!("e{n}")).unwrap(), Some(n), "e{n}");
            }
            assert_eq!(reader.find("absent").unwrap(), None);
            assert_eq!(reader.damage(), None);
        };
        check(&store);
        // Another process would read it like this: the writer has not closed.
        check(&fixture.open());
        store.close_all().unwrap();
        let again = fixture.open();
        check(&again);
        assert!(again.open_for_writing(&id).unwrap().clean);
        again.append(&id, Expected::Any, vec![entry(count + 1)]).unwrap();
        again.close_all().unwrap();
        assert_eq!(fixture.open().read(&id).unwrap().head().seq, count + 1);
    }
}

#[test]
fn a_wrong_head_is_a_conflict_that_carries_the_right_one() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let first = store.create("s", vec![entry(1)]).unwrap();
    let second = store.append("s", Expected::Head(first), vec![entry(2)]).unwrap();
    let refused = store.append("s", Expected::Head(first), vec![entry(3)]);
    assert!(matches!(refused, Err(LogError::Conflict { current }) if current == second));
    assert_eq!(store.read("s").unwrap().head(), second);
}

#[test]
fn a_retried_entry_lands_exactly_once_also_after_reopening() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&store, "s", 30);
    let retry = |store: &LogStore| {
        let again = store.append("s", Expected::Any, vec![entry(7)]);
        assert!(matches!(again, Err(LogError::Duplicate { seq: 7, .. })), "{again:?}");
    };
    retry(&store);
    store.close_all().unwrap();
    retry(&fixture.open());
}

#[test]
fn parents_must_be_known_and_a_refused_batch_leaves_nothing() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&store, "s", 3);
    let orphan = Envelope::entry("x", Some("nobody"), 1, "{}");
    let refused = store.append("s", Expected::Any, vec![entry(4), orphan]);
    assert!(matches!(refused, Err(LogError::UnknownEntry { .. })));
    assert_eq!(store.read("s").unwrap().find("e4").unwrap(), None);
    store.append("s", Expected::Any, vec![entry(4), entry(5)]).unwrap();
    assert_eq!(store.read("s").unwrap().head().seq, 5);
}

#[test]
fn paths_follow_branches_in_pages_both_ways() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&store, "s", 6);
    // A branch from e3, then the old branch goes on, then the new one: runs interleave.
    store.append("s", Expected::Any, vec![Envelope::entry("b1", Some("e3"), 1, "1")]).unwrap();
    store.append("s", Expected::Any, vec![Envelope::entry("e7", Some("e6"), 1, "1")]).unwrap();
    store.append("s", Expected::Any, vec![Envelope::plain("meta", 1, "{}")]).unwrap();
    store.append("s", Expected::Any, vec![Envelope::entry("b2", Some("b1"), 1, "1")]).unwrap();
    store.append("s", Expected::Any, vec![Envelope::entry("b3", Some("b2"), 1, "1")]).unwrap();
    for store in [store.clone(), {
        store.close_all().unwrap();
        fixture.open()
    }] {
        let ids = |leaf, start, limit| path_ids(&store, "s", leaf, start, limit).join(" ");
        assert_eq!(ids("b3", PathStart::Root, 50), "e1 e2 e3 b1 b2 b3");
        assert_eq!(ids("e7", PathStart::Root, 50), "e1 e2 e3 e4 e5 e6 e7");
        assert_eq!(ids("b3", PathStart::Root, 2), "e1 e2");
        assert_eq!(ids("b3", PathStart::After("e2"), 3), "e3 b1 b2");
        assert_eq!(ids("b3", PathStart::After("b2"), 3), "b3");
        assert_eq!(ids("b3", PathStart::After("b3"), 3), "");
        assert_eq!(ids("b3", PathStart::Leaf, 4), "b3 b2 b1 e3");
        assert_eq!(ids("e7", PathStart::Before("e5"), 9), "e4 e3 e2 e1");
        let reader = store.read("s").unwrap();
        assert!(
            reader
                .path("b3", PathStart::After("e5"), 3, |stored| stored.into_owned())
                .unwrap()
                .is_none()
        );
        assert!(
            reader
                .path("b3", PathStart::Before("e5"), 3, |stored| stored.into_owned())
                .unwrap()
                .is_none()
        );
        assert!(
            reader
                .path("nobody", PathStart::Root, 3, |stored| stored.into_owned())
                .unwrap()
                .is_none()
        );
        let heads: Vec<_> =
            reader.branch_heads().unwrap().into_iter().map(|head| head.entry_id).collect();
        assert_eq!(heads, ["e7", "b3"]);
        assert_eq!(reader.entry("b3", |stored| stored.into_owned()).unwrap().unwrap().depth, 6);
    }
}

#[test]
fn the_newest_revision_is_found_wherever_the_entry_stands() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&store, "s", 20);
    for (entry, revision) in [("e2", 1), ("e19", 1), ("e2", 2)] {
        let payload = format!("\"{entry} {revision}\"");
        let record = Envelope::revision(entry, revision, 2, payload);
        store.append("s", Expected::Any, vec![record]).unwrap();
    }
    for store in [store.clone(), {
        store.close_all().unwrap();
        fixture.open()
    }] {
        let reader = store.read("s").unwrap();
        let revised = |id: &str| {
            reader
                .entry(id, |stored| stored.into_owned())
                .unwrap()
                .unwrap()
                .revisions
                .pop()
                .map(|record| record.envelope.payload)
        };
        assert_eq!(revised("e2").as_deref(), Some("\"e2 2\""));
        assert_eq!(revised("e19").as_deref(), Some("\"e19 1\""));
        assert_eq!(revised("e3"), None);
    }
}

#[test]
fn deltas_are_there_until_a_revision_settles_them() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&store, "s", 2);
    let delta = |revision: u64| NewDelta {
        target: "e2".to_owned(),
        revision,
        at_ms: 3,
        payload: format!("\"piece {revision} {}\"", "x".repeat(100)),
    };
    for revision in 1..=100 {
        store.enqueue_delta("s", &delta(revision)).unwrap().wait().unwrap();
    }
    assert!(store.enqueue_delta("s", &delta(50)).is_err());
    let count = |store: &LogStore| {
        store
            .read("s")
            .unwrap()
            .entry("e2", |stored| stored.into_owned())
            .unwrap()
            .unwrap()
            .deltas
            .len()
    };
    assert_eq!((count(&store), count(&fixture.open())), (100, 100));
    store.close_all().unwrap();
    let store = fixture.open();
    assert_eq!(count(&store), 100);
    store.enqueue_delta("s", &delta(101)).unwrap().wait().unwrap();
    let settled = Envelope::revision("e2", 101, 4, "\"whole\"");
    store.append("s", Expected::Any, vec![settled]).unwrap();
    assert_eq!((count(&store), count(&fixture.open())), (0, 0));
    store.enqueue_delta("s", &delta(102)).unwrap().wait().unwrap();
    assert_eq!((count(&store), count(&fixture.open())), (1, 1));
}

#[test]
fn a_deleted_log_is_gone_until_it_is_brought_back_and_a_new_life_is_another() {
    let fixture = Fixture::new();
    let store = fixture.open();
    fill(&store, "s", 9);
    let old = store.read("s").unwrap().head();
    store.delete("s", 5, "{\"why\":\"test\"}").unwrap();
    assert!(matches!(store.read("s"), Err(LogError::NotFound { .. })));
    let fresh = store.create("s", vec![entry(1)]).unwrap();
    assert_ne!(fresh.incarnation, old.incarnation);
    let stale = store.append("s", Expected::Head(old), vec![entry(2)]);
    assert!(matches!(stale, Err(LogError::Conflict { .. })));
    assert!(matches!(store.undelete("s", None, 7, "{}"), Err(LogError::Exists { .. })));
    store.delete("s", 6, "{}").unwrap();
    assert_eq!(store.trash().unwrap().len(), 2);
    store.undelete("s", Some(old.incarnation), 7, "{}").unwrap();
    let reader = store.read("s").unwrap();
    assert_eq!(reader.head().incarnation, old.incarnation);
    let kinds: Vec<_> = reader
        .records(reader.head().seq - 2, 2, |stored| stored.into_owned())
        .unwrap()
        .into_iter()
        .map(|record| record.envelope.kind)
        .collect();
    assert_eq!(kinds, [kind::TOMBSTONE, kind::RESTORED]);
    store.append("s", Expected::Any, vec![entry(10)]).unwrap();
    assert_eq!(store.purge(i64::MAX).unwrap(), 1);
    assert_eq!(store.trash().unwrap().len(), 0);
}

#[test]
fn a_tiny_idle_log_costs_four_inodes() {
    let fixture = Fixture::new();
    let store = fixture.open();
    store.create("s", vec![entry(1)]).unwrap();
    store.append("s", Expected::Any, vec![entry(2)]).unwrap();
    store.close_all().unwrap();
    let mut inodes = 0;
    let mut folders = vec![fixture.dir.path().join("sessions")];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let item = item.unwrap();
            inodes += u64::from(item.path().to_string_lossy().contains("/s."));
            if item.path().is_dir() {
                folders.push(item.path());
            }
        }
    }
    assert_eq!(inodes, 4);
}

#[test]
fn many_writers_on_one_log_all_land() {
    let fixture = Fixture::new();
    let store = fixture.open();
    store.create("s", vec![Envelope::entry("root", None, 1, "1")]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..25 {
                    let id = format!("t{thread}-{n}");
                    let record = Envelope::entry(&id, Some("root"), 1, "1");
                    store.append("s", Expected::Any, vec![record]).unwrap();
                }
            });
        }
    });
    store.close_all().unwrap();
    let reader = fixture.open().read("s").unwrap();
    assert_eq!(reader.head().seq, 401);
    assert_eq!(reader.branch_heads().unwrap().len(), 400);
}
