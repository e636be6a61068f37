use std::collections::BTreeMap;
use std::time::Duration;

use bough_session::{Incarnation, SessionId};

use super::Factory;
use super::make::{create, done, id, push, says, step};
use crate::{ChangeCursor, Position, StoreExt};

/// Waits for a wake-up that must come; a case that would wait for ever fails instead.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.unwrap()
}

pub(super) async fn watches_wake_for_what_is_durable(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let (session, other) = (id("s"), id("other"));
    let mut everything = store.watch();
    let mut mine = store.watch_session(&session);
    create(store.as_ref(), &session, 1).await;
    assert!(soon(everything.changed()).await);
    soon(mine.changed()).await.unwrap();

    push(store.as_ref(), &session, vec![says("a", None, "hi", 2)]).await;
    done(store.append_delta(&session, step("a", 1, "!", 3)).await).await;
    let mut woken = soon(mine.changed()).await.unwrap();
    let end = store.state(&session).await.unwrap().unwrap().position;
    while woken.end.is_some_and(|woken| woken.position < end) {
        woken = soon(mine.changed()).await.unwrap();
    }
    // A store may leave it to its readers where the feed ends; what it says is true.
    assert!(woken.end.is_none_or(|woken| woken.position == end && !woken.deleted));

    create(store.as_ref(), &other, 1).await;
    assert!(soon(everything.changed()).await);
    store.delete(&session, 9).await.unwrap().unwrap();
    let woken = soon(mine.changed()).await.unwrap();
    assert!(woken.end.is_none_or(|end| end.deleted));
}

pub(super) async fn changes_are_read_from_a_cursor(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let start = store.change_cursor().await.unwrap();
    for name in ["a", "b", "c"] {
        create(store.as_ref(), &id(name), 1).await;
    }
    push(store.as_ref(), &id("a"), vec![says("e", None, "hi", 2)]).await;
    store.delete(&id("b"), 3).await.unwrap().unwrap();

    let mut cursor = start;
    let mut seen: BTreeMap<SessionId, (Position, bool)> = BTreeMap::new();
    loop {
        let page = store.changes(Some(&cursor), 2).await.unwrap();
        assert!(!page.gap);
        if page.changes.is_empty() {
            break;
        }
        for change in page.changes {
            let end = seen.entry(change.session_id).or_default();
            assert_eq!(*end, (change.after, false), "a change begins where the last one ended");
            *end = (change.position, change.deleted);
        }
        cursor = page.next;
    }
    assert_eq!(seen.len(), 3);
    for name in ["a", "c"] {
        let now = store.state(&id(name)).await.unwrap().unwrap().position;
        assert_eq!(seen[&id(name)], (now, false));
    }
    let dead = store.trash(Some(&id("b"))).await.unwrap().remove(0);
    assert_eq!(seen[&id("b")], (Position::at(dead.state.seq), true));
    let found = store.records_of(&id("b"), dead.incarnation, Position::default(), 9).await;
    let page = found.unwrap().unwrap();
    assert_eq!(page.records.len() as u64, dead.state.seq, "with the one that says so");
    assert_eq!(store.change_cursor().await.unwrap(), cursor);
    let text = cursor.to_string();
    assert_eq!(text.parse::<ChangeCursor>().unwrap(), cursor);
}

pub(super) async fn a_cursor_of_another_epoch_is_a_gap(factory: &dyn Factory) {
    let store = factory.fresh().await;
    create(store.as_ref(), &id("s"), 1).await;
    let stranger = ChangeCursor { epoch: Incarnation::new([9; 16]), number: 1 };
    let page = store.changes(Some(&stranger), 9).await.unwrap();
    assert!(page.gap);
    let mine = store.change_cursor().await.unwrap();
    assert_eq!(page.next.epoch, mine.epoch);
    if store.capabilities().keeps_change_cursor {
        let store = factory.reopen(store).await;
        let page = store.changes(Some(&mine), 9).await.unwrap();
        assert!(!page.gap, "the cursor does not survive a restart");
    }
}
