use bough_session::{LimitError, SessionId};

use super::Factory;
use super::make::{create, entry_id, id, push, says, titled};
use crate::{ListQuery, Position, Store, StoreError, StoreExt};

async fn listed(store: &dyn Store) -> Vec<String> {
    let query = ListQuery { limit: 500, ..ListQuery::default() };
    let page = store.list(&query).await.unwrap();
    let ids = page.sessions.into_iter().map(|listed| listed.meta.session_id.to_string());
    ids.collect()
}

pub(super) async fn a_deleted_session_is_gone_and_can_come_back(factory: &dyn Factory) {
    let mut store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    push(store.as_ref(), &session, vec![says("a", None, "hi", 2)]).await;
    let before = store.state(&session).await.unwrap().unwrap();
    let trashed = store.delete(&session, 50).await.unwrap().unwrap();
    assert_eq!(trashed.incarnation, before.head.incarnation);
    assert_eq!((trashed.deleted_at, trashed.state.meta.message_count), (Some(50), 1));
    assert!(store.delete(&session, 51).await.unwrap().is_none());

    if store.capabilities().survives_restart {
        store = factory.reopen(store).await;
    }
    let store = store.as_ref();
    assert!(store.state(&session).await.unwrap().is_none());
    assert!(store.entry(&session, &entry_id("a")).await.unwrap().is_none());
    assert!(store.records(&session, Position::default(), 9).await.is_err());
    assert_eq!(listed(store).await, Vec::<String>::new());
    let trash = store.trash(Some(&session)).await.unwrap();
    assert_eq!(trash.len(), 1);
    assert_eq!((trash[0].deleted_at, trash[0].state.meta.message_count), (Some(50), 1));
    assert_eq!(store.trash(Some(&id("other"))).await.unwrap(), Vec::new());

    let back = store.undelete(&session, trashed.incarnation, 60).await.unwrap();
    assert_eq!(back.head.incarnation, before.head.incarnation);
    assert!(back.head.seq > before.head.seq);
    assert_eq!(back.state.meta, before.state.meta);
    assert!(store.entry(&session, &entry_id("a")).await.unwrap().is_some());
    assert_eq!(store.trash(None).await.unwrap(), Vec::new());
    assert_eq!(listed(store).await, ["s"]);
    push(store, &session, vec![says("b", Some("a"), "again", 61)]).await;
}

pub(super) async fn a_new_life_knows_nothing_of_the_old(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    let old = create(store.as_ref(), &session, 1).await;
    push(store.as_ref(), &session, vec![says("a", None, "hi", 2)]).await;
    store.delete(&session, 3).await.unwrap().unwrap();
    let new = create(store.as_ref(), &session, 1).await;
    assert_ne!(new.incarnation, old.incarnation);
    assert!(store.entry(&session, &entry_id("a")).await.unwrap().is_none());
    let stale = store.append(&session, &old, vec![titled("x", 4)].into()).await.unwrap_err();
    assert!(matches!(stale, StoreError::Conflict { .. }), "{stale}");
    let taken = store.undelete(&session, old.incarnation, 5).await.unwrap_err();
    assert!(matches!(taken, StoreError::Exists { .. }), "{taken}");
    store.delete(&session, 6).await.unwrap().unwrap();
    assert_eq!(store.trash(Some(&session)).await.unwrap().len(), 2);
    let back = store.undelete(&session, old.incarnation, 7).await.unwrap();
    assert_eq!(back.state.meta.message_count, 1);
}

pub(super) async fn what_is_purged_stays_gone(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    let incarnation = store.delete(&session, 3).await.unwrap().unwrap().incarnation;
    assert!(
        !store.purge(&session, incarnation, Some(4)).await.unwrap(),
        "it was deleted at another time"
    );
    assert!(store.purge(&session, incarnation, Some(3)).await.unwrap());
    assert!(!store.purge(&session, incarnation, None).await.unwrap());
    assert_eq!(store.trash(None).await.unwrap(), Vec::new());
    let gone = store.undelete(&session, incarnation, 4).await.unwrap_err();
    assert!(matches!(gone, StoreError::NotFound { .. }), "{gone}");
}

pub(super) async fn odd_names_do_not_meet(factory: &dyn Factory) {
    let mut store = factory.fresh().await;
    let long = "long/".repeat(100);
    let near = format!("{}!", &long[..long.len() - 1]);
    let odd = ["../escape/chat 42:?", "..", ".", "%2E", "世界", "a b", "a%20b", &long, &near];
    let odd: Vec<SessionId> =
        odd.iter().map(|name| SessionId::parse(*name)).collect::<Result<_, LimitError>>().unwrap();
    for session in &odd {
        let titled = vec![titled(session.as_str(), 1)];
        store.create(session, titled.into()).await.unwrap().durable.await.unwrap();
    }
    if store.capabilities().survives_restart {
        store = factory.reopen(store).await;
    }
    for session in &odd {
        let snapshot = store.state(session).await.unwrap().unwrap();
        assert_eq!(snapshot.state.meta.title, session.as_str());
    }
    let mut names = listed(store.as_ref()).await;
    names.sort();
    let mut expected: Vec<String> = odd.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(names, expected);
    for session in &odd {
        let incarnation = store.delete(session, 2).await.unwrap().unwrap().incarnation;
        assert!(store.purge(session, incarnation, None).await.unwrap());
    }
    assert_eq!(listed(store.as_ref()).await, Vec::<String>::new());
}
