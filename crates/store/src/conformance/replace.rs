//! A session is put in the place of another.

use super::Factory;
use super::make::*;
use crate::types::{Loaded, RecordQuery, Write};
use crate::{StoreError, StoreExt};

/// A store that cannot do it says so and changes nothing.
pub(super) async fn a_session_is_replaced_where_it_ends_as_expected(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let s = id("s");
    let first = store.create(&s, vec![titled("old", 1)].into()).await.unwrap();
    first.durable.await.unwrap();
    let second = store.append(&s, &first.head, vec![titled("older", 1)].into()).await.unwrap();
    second.durable.await.unwrap();
    let replace = |expected| Write::Replace { expected, batch: vec![titled("new", 1)].into() };
    let stale = store.write(&s, replace(first.head)).await;
    if matches!(stale, Err(StoreError::Unsupported { .. })) {
        assert_eq!(store.state(&s).await.unwrap().unwrap().state.meta.title, "older");
        return;
    }
    assert!(matches!(stale, Err(StoreError::Conflict { current }) if current == second.head));
    let replaced = store.write(&s, replace(second.head)).await.unwrap();
    replaced.durable.await.unwrap();
    assert_ne!(replaced.head.incarnation, second.head.incarnation);
    let Loaded::Changed(snapshot) = store.load(&s, Some(&second.head)).await.unwrap() else {
        panic!("the session is another one now");
    };
    assert_eq!((snapshot.head, snapshot.state.meta.title.as_str()), (replaced.head, "new"));
    let old = RecordQuery::numbers(second.head.incarnation, vec![1]);
    assert!(matches!(store.read_records(&s, &old).await, Err(StoreError::NotFound { .. })));
    let next = store.append(&s, &replaced.head, vec![titled("newer", 1)].into()).await.unwrap();
    next.durable.await.unwrap();
    let mut draft = store.draft(&s).await.unwrap();
    draft.add(vec![titled("drafted", 1)].into()).await.unwrap();
    let drafted = draft.replace(&next.head).await.unwrap();
    let found = store.state(&s).await.unwrap().unwrap();
    assert_eq!((found.head, found.state.meta.title.as_str()), (drafted.head, "drafted"));
}

pub(super) async fn records_are_read_by_their_numbers(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let s = id("s");
    let titles = ["a", "b", "c", "d"].map(|title| titled(title, 1));
    let made = store.create(&s, titles.to_vec().into()).await.unwrap();
    made.durable.await.unwrap();
    let query = RecordQuery::numbers(made.head.incarnation, vec![3, 1, 9]);
    let page = store.read_records(&s, &query).await.unwrap();
    assert_eq!(page.records.iter().map(|record| record.seq).collect::<Vec<_>>(), [3, 1]);
    assert!(!page.more);
}

/// Documents are in no list, count or feed.
pub(super) async fn documents_are_not_listed(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let documents = bough_session::SessionId::of_documents("app");
    let begun = store.change_cursor().await.unwrap();
    let made = match store.create(&documents, vec![titled("t", 1)].into()).await {
        Err(StoreError::Unsupported { .. }) => return,
        made => made.unwrap(),
    };
    made.durable.await.unwrap();
    let other = store.create(&id("s"), vec![titled("t", 1)].into()).await.unwrap();
    other.durable.await.unwrap();
    let all = crate::ListQuery { limit: 10, ..crate::ListQuery::default() };
    let listed = store.list(&all).await.unwrap().sessions;
    assert_eq!(listed.len(), 1);
    let query = crate::UsageQuery { limit: 10, ..crate::UsageQuery::default() };
    assert_eq!(store.usage(&query).await.unwrap().sessions, 1);
    let changes = store.changes(Some(&begun), 10).await.unwrap().changes;
    assert!(changes.iter().all(|change| change.session_id == id("s")), "{changes:?}");
}
