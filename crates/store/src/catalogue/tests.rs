use std::sync::Arc;

use bough_platform::{OsDisk, RelPath};
use bough_session::{
    Incarnation, MetaChange, Record, SessionId, SessionState, SessionStatus, StatusChange,
};
use serde_json::json;

use super::*;
use crate::types::{ListOrder, Listed};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> CatalogueFile {
        CatalogueFile {
            disk: Arc::new(OsDisk::create(self.dir.path()).unwrap()),
            name: RelPath::parse("catalogue.sqlite").unwrap(),
            path: self.dir.path().join("catalogue.sqlite"),
        }
    }

    fn open(&self) -> Catalogue {
        Catalogue::open(&self.file(), Incarnation::new([1; 16])).unwrap().0
    }
}

fn row(name: &str, seq: u64, at_ms: i64) -> CatalogueRow {
    owned_row(name, seq, at_ms, "nobody")
}

fn owned_row(name: &str, seq: u64, at_ms: i64, owner: &str) -> CatalogueRow {
    let mut state = SessionState::new(SessionId::from_stored(name));
    let metadata = json!({"owner": owner, "all": true}).as_object().cloned();
    let change = MetaChange {
        title: Some(format!("Title of {name}")),
        metadata,
        status: Some(StatusChange { status: SessionStatus::Idle, reason: None }),
        created_at: Some(1),
        ..MetaChange::default()
    };
    state.apply(&Record::Meta(change), 1, at_ms);
    CatalogueRow {
        incarnation: Incarnation::new([7; 16]),
        position: Position::at(seq),
        listed: Listed { meta: state.meta(), details: state.details() },
        container: format!("sessions/{name}"),
        size: seq * 100,
    }
}

fn all(limit: usize) -> ListQuery {
    ListQuery { order: ListOrder::UpdatedDesc, limit, ..ListQuery::default() }
}

fn names(catalogue: &Catalogue, query: &ListQuery) -> Vec<String> {
    let page = catalogue.list(query).unwrap();
    let ids = page.sessions.into_iter().map(|listed| listed.meta.session_id.into_string());
    ids.collect()
}

#[test]
fn what_is_put_in_is_listed_at_once_and_after_reopening() {
    let place = Place::new();
    let catalogue = place.open();
    catalogue.put(row("a", 1, 10));
    catalogue.put(row("b", 1, 20));
    assert_eq!(names(&catalogue, &all(9)), ["b", "a"]);
    catalogue.put(row("a", 2, 30));
    assert_eq!(names(&catalogue, &all(9)), ["a", "b"]);
    drop(catalogue);
    let (catalogue, found) = Catalogue::open(&place.file(), Incarnation::new([2; 16])).unwrap();
    assert_eq!((found, catalogue.epoch()), (Found::Known, Incarnation::new([1; 16])));
    assert_eq!(names(&catalogue, &all(9)), ["a", "b"]);
}

#[test]
fn another_process_sees_what_was_flushed() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    one.put(row("a", 1, 10));
    assert_eq!(names(&two, &all(9)), Vec::<String>::new());
    assert_eq!(one.flush().unwrap(), 1);
    assert_eq!(names(&two, &all(9)), ["a"]);
    two.put(row("b", 1, 20));
    two.flush().unwrap();
    let cursor = ChangeCursor { epoch: one.epoch(), number: 1 };
    let page = one.changes_after(&cursor, 9).unwrap();
    assert_eq!(page.changes.len(), 1);
    assert_eq!(page.changes[0].session_id.as_str(), "b");
    assert_eq!(page.next, one.newest().unwrap());
    assert!(!page.gap);
}

#[test]
fn a_late_row_neither_goes_back_nor_brings_back_a_dead_life() {
    let place = Place::new();
    let catalogue = place.open();
    catalogue.put(row("a", 5, 50));
    catalogue.flush().unwrap();
    catalogue.put(row("a", 3, 30));
    assert_eq!(catalogue.flush().unwrap(), 0);
    let known = catalogue.fingerprint(&SessionId::from_stored("a")).unwrap().unwrap();
    assert_eq!((known.position, known.size), (Position::at(5), 500));

    let session = SessionId::from_stored("a");
    let life = Incarnation::new([7; 16]);
    catalogue.remove(&session, life, Position::at(6));
    assert_eq!(names(&catalogue, &all(9)), Vec::<String>::new());
    catalogue.put(row("a", 7, 70));
    assert_eq!(names(&catalogue, &all(9)), Vec::<String>::new());
    catalogue.revive(row("a", 8, 80));
    catalogue.put(row("a", 9, 90));
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
    catalogue.remove(&session, life, Position::at(10));
    let again = CatalogueRow { incarnation: Incarnation::new([8; 16]), ..row("a", 1, 1) };
    catalogue.put(again);
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
}

#[test]
fn a_damaged_or_foreign_file_is_made_anew() {
    let check = |damage: &dyn Fn(&Place)| {
        let place = Place::new();
        let catalogue = place.open();
        catalogue.put(row("a", 1, 10));
        catalogue.flush().unwrap();
        drop(catalogue);
        damage(&place);
        let fresh = Incarnation::new([3; 16]);
        let (catalogue, found) = Catalogue::open(&place.file(), fresh).unwrap();
        assert_eq!((found, catalogue.epoch()), (Found::Empty, fresh));
        catalogue.put(row("b", 1, 10));
        assert_eq!(names(&catalogue, &all(9)), ["b"]);
    };
    check(&|place| {
        let disk: Arc<dyn Disk> = place.file().disk;
        for name in ["catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
            let _absent_is_fine = disk.remove_file(&RelPath::parse(name).unwrap());
        }
        let file = disk.open(&place.file().name, bough_platform::Access::ReadWrite).unwrap();
        file.write_at(0, &[0x5a; 4096]).unwrap();
    });
    check(&|place| {
        let connection = Connection::open(place.file().path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
    });
}

#[test]
fn changes_are_numbered_in_the_order_they_were_made() {
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    for n in 0..20 {
        catalogue.put(row(&format!("s{n}"), 1, 10));
    }
    catalogue.put(row("s3", 2, 20));
    catalogue.remove(&SessionId::from_stored("s5"), Incarnation::new([7; 16]), Position::at(2));
    let page = catalogue.changes_after(&start, 99).unwrap();
    let ids: Vec<_> = page.changes.iter().map(|change| change.session_id.as_str()).collect();
    let mut expected: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    expected.retain(|id| id != "s3" && id != "s5");
    expected.extend(["s3".to_owned(), "s5".to_owned()]);
    assert_eq!(ids, expected);
}

#[test]
fn a_rebuild_begins_a_new_epoch() {
    let place = Place::new();
    let catalogue = place.open();
    catalogue.put(row("a", 1, 10));
    let old = {
        catalogue.flush().unwrap();
        catalogue.newest().unwrap()
    };
    let epoch = Incarnation::new([9; 16]);
    catalogue.rebuild(epoch, [row("b", 1, 10), row("c", 1, 20)]).unwrap();
    assert_eq!(names(&catalogue, &all(9)), ["c", "b"]);
    let page = catalogue.changes_after(&old, 9).unwrap();
    assert!(page.gap);
    assert_eq!((page.next.epoch, page.changes.len()), (epoch, 2));
}

#[test]
fn deletions_that_were_forgotten_are_a_gap() {
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    for n in 0..=GONE_KEPT {
        let session = SessionId::from_stored(format!("s{n}"));
        catalogue.remove(&session, Incarnation::new([7; 16]), Position::at(1));
    }
    catalogue.flush().unwrap();
    assert!(catalogue.changes_after(&start, 9).unwrap().gap);
    let later = ChangeCursor { number: 1, ..start };
    assert!(!catalogue.changes_after(&later, 9).unwrap().gap);
}

#[test]
fn fingerprints_are_read_in_pages() {
    let place = Place::new();
    let catalogue = place.open();
    for name in ["a", "b", "c"] {
        catalogue.put(row(name, 2, 10));
    }
    let first = catalogue.fingerprints(None, 2).unwrap();
    assert_eq!(first.len(), 2);
    let rest = catalogue.fingerprints(Some(&first[1].session_id), 2).unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!((rest[0].container.as_str(), rest[0].size), ("sessions/c", 200));
}

/// How many of SQLite's own instructions a page takes.
fn steps(catalogue: &Catalogue, query: &ListQuery) -> i64 {
    use std::sync::atomic::{AtomicI64, Ordering};
    static STEPS: AtomicI64 = AtomicI64::new(0);
    catalogue.flush().unwrap();
    let reader = catalogue.lock_reader();
    // The first time also prepares the statements.
    pages::list(&reader, query).unwrap();
    STEPS.store(0, Ordering::SeqCst);
    reader.progress_handler(
        1,
        Some(|| {
            STEPS.fetch_add(1, Ordering::SeqCst);
            false
        }),
    );
    pages::list(&reader, query).unwrap();
    reader.progress_handler(0, None::<fn() -> bool>);
    STEPS.load(Ordering::SeqCst)
}

/// A page costs the same number of SQLite's own instructions whatever the number of sessions that it
/// does not show.
#[test]
fn pages_do_not_grow_with_what_does_not_match() {
    let place = Place::new();
    let catalogue = place.open();
    let mine = ListQuery {
        metadata: json!({"owner": "me"}).as_object().cloned().unwrap(),
        scope: json!({"all": true}).as_object().cloned().unwrap(),
        archived: Some(false),
        ..all(5)
    };
    let errors = ListQuery { status: Some(SessionStatus::Error), ..all(5) };
    let fill = |range: std::ops::Range<i64>| {
        for n in range {
            catalogue.put(row(&format!("s{n:06}"), 1, n));
        }
    };
    for n in 0..20 {
        catalogue.put(owned_row(&format!("mine{n}"), 1, n, "me"));
    }
    fill(0..2000);
    let before = [steps(&catalogue, &all(5)), steps(&catalogue, &mine), steps(&catalogue, &errors)];
    fill(2000..12_000);
    let after = [steps(&catalogue, &all(5)), steps(&catalogue, &mine), steps(&catalogue, &errors)];
    assert_eq!(before, after);
    assert_eq!(names(&catalogue, &mine).len(), 5);
}

mod against_memory {
    use proptest::prelude::*;

    use super::*;
    use crate::listing::{self, ListItem};

    #[derive(Clone, Debug)]
    struct Put {
        session: u8,
        at_ms: i64,
        owner: u8,
        archived: bool,
        failed: bool,
    }

    fn any_put() -> impl Strategy<Value = Put> {
        (0..12_u8, 0..6_i64, 0..3_u8, any::<bool>(), any::<bool>()).prop_map(
            |(session, at_ms, owner, archived, failed)| Put {
                session,
                at_ms,
                owner,
                archived,
                failed,
            },
        )
    }

    fn any_query() -> impl Strategy<Value = ListQuery> {
        let order = prop_oneof![
            Just(ListOrder::CreatedAsc),
            Just(ListOrder::CreatedDesc),
            Just(ListOrder::UpdatedDesc),
        ];
        let parts = (
            order,
            1..4_usize,
            any::<Option<bool>>(),
            proptest::option::of(0..3_u8),
            any::<bool>(),
            proptest::option::of("title|of s1|z"),
        );
        parts.prop_map(|(order, limit, archived, owner, failed, text)| ListQuery {
            order,
            limit,
            archived,
            text,
            status: failed.then_some(SessionStatus::Error),
            metadata: owner
                .map(|owner| json!({"owner": owner, "all": true}).as_object().cloned().unwrap())
                .unwrap_or_default(),
            ..ListQuery::default()
        })
    }

    fn row_of(put: &Put, seq: u64) -> CatalogueRow {
        let mut row = owned_row(&format!("s{}", put.session), seq, put.at_ms, "");
        let meta = &mut row.listed.meta;
        meta.metadata = json!({"owner": put.owner, "all": true}).as_object().cloned();
        meta.created_at = i64::from(put.session / 3);
        row.listed.details.archived = put.archived;
        if put.failed {
            row.listed.meta.status = SessionStatus::Error;
        }
        row
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Page by page, with changes between the pages, the catalogue lists what a plain list lists.
        #[test]
        fn the_catalogue_lists_what_a_plain_list_does(
            puts in proptest::collection::vec(any_put(), 1..20),
            between in proptest::collection::vec(any_put(), 0..6),
            query in any_query(),
        ) {
            let place = Place::new();
            let catalogue = place.open();
            let mut items: Vec<ListItem> = Vec::new();
            let mut seq = 0;
            let mut put = |put: &Put, items: &mut Vec<ListItem>| {
                seq += 1;
                let row = row_of(put, seq);
                items.retain(|item| item.listed.meta.session_id != row.listed.meta.session_id);
                items.push(ListItem { listed: row.listed.clone(), change: seq });
                catalogue.put(row);
                catalogue.flush().unwrap();
            };
            for each in &puts {
                put(each, &mut items);
            }
            let mut query = query;
            let mut between = between.iter();
            for _ in 0..40 {
                prop_assert_eq!(
                    catalogue.count(&query).unwrap(),
                    listing::count(&items, &query)
                );
                let now = catalogue.newest().unwrap();
                let expected = listing::list(&items, &query, now).unwrap();
                prop_assert_eq!(catalogue.list(&query).unwrap(), expected.clone());
                query.cursor = expected.next_cursor;
                if query.cursor.is_none() {
                    break;
                }
                if let Some(each) = between.next() {
                    put(each, &mut items);
                }
            }
            prop_assert!(query.cursor.is_none(), "the pages end");
        }
    }
}
