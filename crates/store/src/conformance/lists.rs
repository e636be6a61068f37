use std::collections::BTreeSet;
use std::sync::Arc;

use bough_session::{LoopPhase, MetaChange, SessionStatus, StatusChange, TaskStatus};
use serde_json::json;

use super::Factory;
use super::make::{create, done, id, loop_event, map, meta, push, says};
use crate::{ListOrder, ListQuery, Store, StoreError, StoreExt};

fn all(order: ListOrder, limit: usize) -> ListQuery {
    ListQuery { order, limit, ..ListQuery::default() }
}

async fn names(store: &dyn Store, query: &ListQuery) -> Vec<String> {
    let page = store.list(query).await.unwrap();
    let ids = page.sessions.into_iter().map(|listed| listed.meta.session_id.to_string());
    ids.collect()
}

/// Sessions a, b, c, d made at 1, 2, 2, 3; `a` changed last.
async fn four(factory: &dyn Factory) -> Arc<dyn Store> {
    let store = factory.fresh().await;
    for (name, at) in [("a", 1), ("c", 2), ("b", 2), ("d", 3)] {
        create(store.as_ref(), &id(name), at).await;
    }
    push(store.as_ref(), &id("a"), vec![says("e", None, "Find the Needle", 9)]).await;
    store
}

pub(super) async fn lists_are_in_the_order_asked_for(factory: &dyn Factory) {
    let store = four(factory).await;
    let store = store.as_ref();
    let check = async |order, expected: [&str; 4]| {
        assert_eq!(names(store, &all(order, 9)).await, expected, "{order:?}");
    };
    check(ListOrder::CreatedAsc, ["a", "b", "c", "d"]).await;
    check(ListOrder::CreatedDesc, ["d", "c", "b", "a"]).await;
    check(ListOrder::UpdatedDesc, ["a", "d", "c", "b"]).await;
}

pub(super) async fn lists_show_what_matches(factory: &dyn Factory) {
    let store = four(factory).await;
    let store = store.as_ref();
    let change = |change: MetaChange| vec![meta(change, 10)];
    let owner = |owner: &str| MetaChange {
        metadata: Some(map(json!({"owner": owner, "n": 1, "deep": {"k": [1]}}))),
        ..MetaChange::default()
    };
    push(store, &id("a"), change(owner("u1"))).await;
    push(store, &id("b"), change(owner("u1"))).await;
    push(store, &id("c"), change(owner("u2"))).await;
    let failed = MetaChange {
        status: Some(StatusChange { status: SessionStatus::Error, reason: None }),
        ..MetaChange::default()
    };
    push(store, &id("b"), change(failed)).await;
    let archived = MetaChange { archived: Some(true), ..MetaChange::default() };
    push(store, &id("c"), change(archived)).await;
    push(store, &id("d"), vec![loop_event("l", LoopPhase::Completed, 11)]).await;

    let check = async |query: ListQuery, expected: &[&str]| {
        let query = ListQuery { order: ListOrder::CreatedAsc, limit: 9, ..query };
        assert_eq!(names(store, &query).await, expected, "{query:?}");
    };
    let base = ListQuery::default;
    check(base(), &["a", "b", "c", "d"]).await;
    check(ListQuery { status: Some(SessionStatus::Error), ..base() }, &["b"]).await;
    check(ListQuery { task_status: Some(TaskStatus::Completed), ..base() }, &["d"]).await;
    check(ListQuery { archived: Some(true), ..base() }, &["c"]).await;
    check(ListQuery { archived: Some(false), ..base() }, &["a", "b", "d"]).await;
    let wants = |value| ListQuery { metadata: map(value), ..base() };
    check(wants(json!({"owner": "u1"})), &["a", "b"]).await;
    check(wants(json!({"owner": "u1", "n": 1})), &["a", "b"]).await;
    check(wants(json!({"owner": "u1", "n": 2})), &[]).await;
    check(wants(json!({"deep": {"k": [1]}})), &["a", "b", "c"]).await;
    check(wants(json!({"n": "1"})), &[]).await;
    check(wants(json!({"absent": null})), &[]).await;
    let scoped = ListQuery { scope: map(json!({"owner": "u2"})), ..wants(json!({"n": 1})) };
    check(scoped, &["c"]).await;
    check(ListQuery { text: Some("NEEDLE".into()), ..base() }, &["a"]).await;
    check(ListQuery { text: Some("100%".into()), ..base() }, &[]).await;
}

pub(super) async fn cursors_go_through_all_pages(factory: &dyn Factory) {
    let store = factory.fresh().await;
    for n in 0..10 {
        create(store.as_ref(), &id(&format!("s{n}")), n / 3).await;
    }
    for order in [ListOrder::CreatedAsc, ListOrder::CreatedDesc, ListOrder::UpdatedDesc] {
        let whole = names(store.as_ref(), &all(order, 99)).await;
        assert_eq!(whole.len(), 10);
        for limit in [1, 3, 5, 10] {
            let mut query = all(order, limit);
            let mut seen = Vec::new();
            loop {
                let page = store.list(&query).await.unwrap();
                assert!(page.sessions.len() <= limit);
                seen.extend(page.sessions.into_iter().map(|s| s.meta.session_id.to_string()));
                query.cursor = page.next_cursor;
                if query.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, whole, "{order:?} by {limit}");
        }
    }
}

pub(super) async fn a_session_that_moves_is_returned_at_least_once(factory: &dyn Factory) {
    const SESSIONS: i64 = 9;
    let store = factory.fresh().await;
    for n in 0..SESSIONS {
        create(store.as_ref(), &id(&format!("s{n}")), n).await;
    }
    let mut query = all(ListOrder::UpdatedDesc, 2);
    let mut seen = BTreeSet::new();
    let mut pages = 0;
    loop {
        let page = store.list(&query).await.unwrap();
        seen.extend(page.sessions.into_iter().map(|s| s.meta.session_id.to_string()));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
        // After each page the oldest ones, which no page has shown yet, move to the front.
        for n in 0..3 {
            let record = says(&format!("p{pages}"), None, "hi", 100 + pages);
            push(store.as_ref(), &id(&format!("s{n}")), vec![record]).await;
        }
        pages += 1;
        assert!(pages < 3 * SESSIONS, "the pages do not end");
    }
    assert_eq!(seen.len(), usize::try_from(SESSIONS).unwrap());
}

pub(super) async fn foreign_cursors_are_refused(factory: &dyn Factory) {
    let store = four(factory).await;
    let page = store.list(&all(ListOrder::CreatedAsc, 2)).await.unwrap();
    let other_order = page.next_cursor.unwrap();
    for cursor in ["", "x", "e30=", &other_order] {
        let query = ListQuery { cursor: Some(cursor.to_owned()), ..all(ListOrder::UpdatedDesc, 2) };
        let error = store.list(&query).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidCursor), "{cursor}: {error}");
    }
    done(store.create(&id("z"), vec![super::make::titled("t", 1)].into()).await).await;
}
