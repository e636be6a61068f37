#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use bough_platform::Platform;
use bough_session::{EntryId, MetaChange, NewRecord, Record};
use tokio::task::JoinSet;

use super::*;
use crate::native::{NativeOptions, NativeStore};
use crate::{PathQuery, PathStart, Position, ReadStore, Store, StoreExt};

const ROUNDS: usize = 40;

async fn store() -> (tempfile::TempDir, NativeStore) {
    let dir = tempfile::tempdir().unwrap();
    let (platform, root) = (Platform::system(dir.path()).unwrap(), dir.path().to_owned());
    let store = NativeStore::open(platform, root, NativeOptions::default()).await.unwrap();
    (dir, store)
}

fn titled(title: &str) -> Vec<NewRecord> {
    let change = MetaChange { title: Some(title.to_owned()), ..MetaChange::default() };
    vec![Record::Meta(change).at(1)]
}

async fn made(store: &NativeStore, round: usize) -> SessionId {
    let session = SessionId::from_stored(format!("s{round}"));
    store.create(&session, titled("t").into()).await.unwrap().durable.await.unwrap();
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_delete_a_session_one_does() {
    let (_dir, store) = store().await;
    for round in 0..ROUNDS {
        let session = made(&store, round).await;
        let mut deleting = JoinSet::new();
        for _ in 0..6 {
            let (store, session) = (store.clone(), session.clone());
            deleting.spawn(async move { store.delete(&session, 2).await.unwrap().is_some() });
        }
        let deleted = deleting.join_all().await;
        assert_eq!(deleted.iter().filter(|deleted| **deleted).count(), 1, "round {round}");
        assert_eq!(store.trash(Some(&session)).await.unwrap().len(), 1);
    }
}

/// Everything that can be asked of a session, until it is gone.
async fn ask_until_gone(store: NativeStore, session: SessionId) -> Result<(), StoreError> {
    let query = PathQuery { leaf: None, start: PathStart::Root, limit: 9 };
    loop {
        let Some(now) = store.state(&session).await? else { return Ok(()) };
        store.entry(&session, &EntryId::from_stored("e")).await?;
        store.path(&session, &query).await?;
        store.records(&session, Position::default(), 9).await?;
        store.branch_heads(&session, None, 9).await?;
        match store.append(&session, &now.head, titled("u").into()).await {
            Ok(appended) => appended.durable.await?,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        store.trash(Some(&session)).await?;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_looks_while_a_session_goes_finds_it_or_not() {
    let (_dir, store) = store().await;
    for round in 0..ROUNDS {
        let session = made(&store, round).await;
        let mut asking = JoinSet::new();
        for _ in 0..3 {
            asking.spawn(ask_until_gone(store.clone(), session.clone()));
        }
        tokio::task::yield_now().await;
        assert!(store.delete(&session, 2).await.unwrap().is_some());
        for asked in asking.join_all().await {
            let gone = matches!(asked, Ok(()) | Err(StoreError::NotFound { .. }));
            assert!(gone, "round {round}: {asked:?}");
        }
        let gone = store.trash(Some(&session)).await.unwrap().remove(0);
        store.purge(&session, gone.incarnation, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_file_is_a_missing_session_only_where_that_is_gone() {
    let (_dir, store) = store().await;
    let session = made(&store, 0).await;
    let shared = Arc::clone(&store.shared);
    let missing = || StoreError::from(std::io::Error::from(ErrorKind::NotFound));
    let tries = std::cell::Cell::new(0);
    let moved_once = || {
        tries.set(tries.get() + 1);
        if tries.get() == 1 { Err(missing()) } else { Ok(()) }
    };
    shared.retry_read(&session, moved_once).unwrap();
    let seen = shared.retry_read(&session, || Err::<(), _>(missing()));
    assert!(matches!(seen, Err(StoreError::Io(_))), "the disk's fault stays its fault: {seen:?}");

    store.delete(&session, 2).await.unwrap().unwrap();
    let seen = shared.retry_read(&session, || Err::<(), _>(missing()));
    assert!(matches!(seen, Err(StoreError::NotFound { .. })), "{seen:?}");
    assert!(matches!(shared.explain(&session, missing()), StoreError::NotFound { .. }));
}

/// Between its last record and the move a session is neither among the living nor in the trash; who reads on then must not take its
/// records for lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_on_its_way_into_the_trash_is_waited_for() {
    let (_dir, store) = store().await;
    let session = made(&store, 0).await;
    let incarnation = store.state(&session).await.unwrap().unwrap().head.incarnation;
    let shared = Arc::clone(&store.shared);
    let tombstone = log::Envelope::plain(log::kind::TOMBSTONE, 2, "{}");
    shared.log.append(session.as_str(), log::Expected::Any, vec![tombstone]).unwrap();
    assert!(store.state(&session).await.unwrap().is_none(), "it is gone");

    let reading = store.records_of(&session, incarnation, Position::default(), 9);
    let moving = async {
        tokio::task::yield_now().await;
        // Whoever wants to write finds the record and finishes the move.
        store.shared.accepted(&session)
    };
    let (page, refused) = tokio::join!(reading, moving);
    assert!(matches!(refused, Err(StoreError::NotFound { .. })), "{refused:?}");
    assert_eq!(page.unwrap().unwrap().records.len(), 2);
}
