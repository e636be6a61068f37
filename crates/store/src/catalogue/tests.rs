use std::sync::Arc;

use bough_platform::{OsDisk, RelPath, SystemClock};
use bough_session::{
    Incarnation, MetaChange, Record, SessionId, SessionState, SessionStatus, StatusChange,
};
use serde_json::json;

use super::*;
use crate::changes::CHANGES_KEPT;
use crate::types::{ListOrder, Listed};

mod moves;
mod opening;

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
            clock: Arc::new(SystemClock::new()),
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
        listed: Listed::of(&state),
        size: seq * 100,
    }
}

fn all(limit: usize) -> ListQuery {
    ListQuery { order: ListOrder::UpdatedDesc, limit, ..ListQuery::default() }
}

fn names(catalogue: &Catalogue, query: &ListQuery) -> Vec<String> {
    let (page, _) = catalogue.list(query).unwrap();
    let ids = page.sessions.into_iter().map(|listed| listed.meta.session_id.to_string());
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
    let incarnation = Incarnation::new([7; 16]);
    catalogue.remove(&session, incarnation, Position::at(6));
    assert_eq!(names(&catalogue, &all(9)), Vec::<String>::new());
    catalogue.put(row("a", 7, 70));
    assert_eq!(names(&catalogue, &all(9)), Vec::<String>::new());
    catalogue.revive(row("a", 8, 80));
    catalogue.put(row("a", 9, 90));
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
    catalogue.remove(&session, incarnation, Position::at(10));
    let again = CatalogueRow { incarnation: Incarnation::new([8; 16]), ..row("a", 1, 1) };
    catalogue.put(again);
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
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

/// Every change since a cursor as (session, from, to, deleted).
fn ranges(catalogue: &Catalogue, since: &ChangeCursor) -> Vec<(String, u64, u64, bool)> {
    let page = catalogue.changes_after(since, 99).unwrap();
    let shown = page.changes.into_iter().map(|change| {
        (change.session_id.to_string(), change.after.seq, change.position.seq, change.deleted)
    });
    shown.collect()
}

fn change(name: &str, from: u64, to: u64, deleted: bool) -> (String, u64, u64, bool) {
    (name.to_owned(), from, to, deleted)
}

/// Two processes may write one session in turn, and the later one may be the first to say so.
#[test]
fn a_change_begins_where_the_last_one_ended_whoever_writes_it() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let start = one.newest().unwrap();
    one.put(row("a", 2, 10));
    one.flush().unwrap();
    one.put(row("a", 5, 10));
    two.put(row("a", 8, 10));
    two.flush().unwrap();
    one.flush().unwrap();
    one.put(row("a", 8, 10));
    one.put(row("b", 1, 10));
    let expected = [change("a", 0, 2, false), change("a", 2, 8, false), change("b", 0, 1, false)];
    assert_eq!(ranges(&one, &start), expected, "nothing twice, and nothing left out");
}

#[test]
fn lives_of_one_session_are_told_one_after_the_other() {
    let (first, second) = (Incarnation::new([7; 16]), Incarnation::new([8; 16]));
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    let session = SessionId::from_stored("a");
    catalogue.put(row("a", 2, 10));
    catalogue.flush().unwrap();
    catalogue.remove(&session, first, Position::at(3));
    catalogue.flush().unwrap();
    catalogue.revive(row("a", 4, 10));
    catalogue.flush().unwrap();
    // Another process deletes it; the new incarnation is heard of before that.
    catalogue.put(CatalogueRow { incarnation: second, ..row("a", 1, 20) });
    catalogue.flush().unwrap();
    catalogue.remove(&session, first, Position::at(5));
    let expected = [
        change("a", 0, 2, false),
        change("a", 2, 3, true),
        change("a", 3, 4, false),
        change("a", 4, 4, true),
        change("a", 0, 1, false),
    ];
    assert_eq!(ranges(&catalogue, &start), expected);
}

#[test]
fn a_new_epoch_keeps_the_rows_and_forgets_the_changes() {
    let place = Place::new();
    let catalogue = place.open();
    catalogue.put(row("a", 1, 10));
    catalogue.flush().unwrap();
    let old = catalogue.newest().unwrap();
    let epoch = Incarnation::new([9; 16]);
    catalogue.begin_epoch(epoch).unwrap();
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
    catalogue.put(row("a", 2, 20));
    let page = catalogue.changes_after(&old, 9).unwrap();
    assert!(page.gap);
    assert_eq!((page.next.epoch, page.changes.len()), (epoch, 1));
    let now = ChangeCursor { epoch, number: old.number };
    assert_eq!(ranges(&catalogue, &now), [change("a", 1, 2, false)]);
}

#[test]
fn changes_that_were_forgotten_are_a_gap() {
    let place = Place::new();
    let catalogue = place.open();
    let start = catalogue.newest().unwrap();
    let kept = Connection::open(place.file().path).unwrap();
    kept.execute_batch(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {CHANGES_KEPT})
             INSERT INTO changes SELECT i, 's' || i, '{incarnation}', 0, 0, 1, 0, 1 FROM n;
         INSERT INTO gone SELECT session_id, incarnation, 1, 0, number FROM changes LIMIT {GONE_KEPT};
         UPDATE facts SET value = {CHANGES_KEPT} WHERE name = 'change';",
        incarnation = Incarnation::new([7; 16]),
    ))
    .unwrap();
    assert!(!catalogue.changes_after(&start, 9).unwrap().gap);
    catalogue.remove(
        &SessionId::from_stored("one more"),
        Incarnation::new([7; 16]),
        Position::at(1),
    );
    assert!(catalogue.changes_after(&start, 9).unwrap().gap);
    let later = ChangeCursor { number: 1, ..start };
    assert!(!catalogue.changes_after(&later, 9).unwrap().gap);
    let count = |table: &str| -> u64 {
        kept.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("changes"), count("gone")), (CHANGES_KEPT as u64, GONE_KEPT));
}

#[test]
fn ids_are_found_by_how_they_begin() {
    let place = Place::new();
    let catalogue = place.open();
    for name in ["a", "ab", "abc", "ac", "b", "a\u{10ffff}z", "%", "\u{d7ff}x", "\u{e000}x"] {
        catalogue.put(row(name, 1, 10));
    }
    let check = |prefix: &str, expected: &[&str]| {
        let query = ListQuery { id_prefix: Some(prefix.to_owned()), ..all(99) };
        let mut found = names(&catalogue, &query);
        found.sort();
        assert_eq!(found, expected, "{prefix}");
    };
    check("ab", &["ab", "abc"]);
    check("abc", &["abc"]);
    check("abcd", &[]);
    check("b", &["b"]);
    check("%", &["%"]);
    check("a\u{10ffff}", &["a\u{10ffff}z"]);
    check("\u{d7ff}", &["\u{d7ff}x"]);
    check("a", &["a", "ab", "abc", "ac", "a\u{10ffff}z"]);
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
    assert_eq!((rest[0].session_id.as_str(), rest[0].size), ("c", 200));
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
    let by_id = ListQuery { id_prefix: Some("mine1".to_owned()), ..all(5) };
    let queries = [&all(5), &mine, &errors, &by_id];
    let fill = |range: std::ops::Range<i64>| {
        for n in range {
            catalogue.put(row(&format!("s{n:06}"), 1, n));
        }
    };
    for n in 0..20 {
        catalogue.put(owned_row(&format!("mine{n}"), 1, n, "me"));
    }
    fill(0..2000);
    let before = queries.map(|query| steps(&catalogue, query));
    fill(2000..6000);
    let after = queries.map(|query| steps(&catalogue, query));
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
            proptest::option::of("s|s1|"),
            proptest::option::of("t[12]"),
        );
        parts.prop_map(|(order, limit, archived, owner, failed, text, id_prefix, task)| ListQuery {
            order,
            id_prefix,
            task_name: task.filter(|_| !failed),
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
        row.listed.details.task_name = Some(format!("t{}", put.owner));
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
                let now = catalogue.newest().unwrap();
                let expected = listing::list(&items, &query, now).unwrap();
                prop_assert_eq!(catalogue.list(&query).unwrap().0, expected.clone());
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
