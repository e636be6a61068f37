use std::sync::Arc;

use bough_session::Record;

use super::Factory;
use super::make::{create, done, entry_id, id, push, says, step, text_of};
use crate::{Position, Store, StoreError, StoreExt};

async fn streaming(factory: &dyn Factory) -> Arc<dyn Store> {
    let store = factory.fresh().await;
    create(store.as_ref(), &id("s"), 1).await;
    push(store.as_ref(), &id("s"), vec![says("a", None, "", 2)]).await;
    store
}

async fn now(store: &dyn Store, name: &str) -> (String, u64) {
    let stored = store.entry(&id("s"), &entry_id(name)).await.unwrap().unwrap();
    (text_of(&stored), stored.entry.revision)
}

pub(super) async fn steps_of_a_stream_are_shown_in_order(factory: &dyn Factory) {
    let store = streaming(factory).await;
    let start = store.state(&id("s")).await.unwrap().unwrap().position;
    for (revision, word) in (1..).zip(["one ", "two ", "three"]) {
        done(store.append_delta(&id("s"), step("a", revision, word, 10)).await).await;
    }
    assert_eq!(now(store.as_ref(), "a").await, ("one two three".to_owned(), 3));
    assert_eq!(store.state(&id("s")).await.unwrap().unwrap().state.meta.updated_at, 10);

    // A reader at the start learns that the entry went from revision 0 to 3, without a gap.
    let page = store.records(&id("s"), start, 99).await.unwrap();
    let mut revision = 0;
    for stored in &page.records {
        match stored.record.known() {
            Record::Revision(step) => {
                assert_eq!(step.from, revision);
                revision = step.to;
                assert!(step.origin.is_some(), "{step:?}");
            }
            // A store may keep records of its own between those of the session.
            Record::Unknown(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(revision, 3);
    assert_eq!(page.records.last().unwrap().position(), page.end);
}

pub(super) async fn a_step_from_another_revision_is_refused(factory: &dyn Factory) {
    let store = streaming(factory).await;
    done(store.append_delta(&id("s"), step("a", 1, "x", 3)).await).await;
    for wrong in [1, 3] {
        let error = store.append_delta(&id("s"), step("a", wrong, "y", 3)).await.unwrap_err();
        match error {
            StoreError::RevisionConflict { current, .. } => assert_eq!(current, 1),
            other => panic!("{other}"),
        }
    }
    let error = store.append_delta(&id("s"), step("b", 1, "y", 3)).await.unwrap_err();
    assert!(matches!(error, StoreError::EntryNotFound { .. }), "{error}");
    assert_eq!(now(store.as_ref(), "a").await, ("x".to_owned(), 1));
}

pub(super) async fn steps_and_records_live_side_by_side(factory: &dyn Factory) {
    let store = streaming(factory).await;
    done(store.append_delta(&id("s"), step("a", 1, "x", 3)).await).await;
    push(store.as_ref(), &id("s"), vec![says("b", Some("a"), "", 4)]).await;
    done(store.append_delta(&id("s"), step("b", 1, "y", 5)).await).await;
    done(store.append_delta(&id("s"), step("a", 2, "z", 6)).await).await;
    assert_eq!(now(store.as_ref(), "a").await, ("xz".to_owned(), 2));
    assert_eq!(now(store.as_ref(), "b").await, ("y".to_owned(), 1));

    // From any place on the way, the rest of the feed leads to the same end.
    let whole = store.records(&id("s"), Position::default(), 99).await.unwrap();
    let mut known = Position::default();
    for (index, stored) in whole.records.iter().enumerate() {
        known = known.join(stored.position());
        let rest = store.records(&id("s"), known, 99).await.unwrap();
        assert_eq!(rest.records, whole.records[index + 1..], "after {known:?}");
    }
    assert!(known.covers(whole.end) && !whole.more);
}

pub(super) async fn steps_are_there_after_a_restart(factory: &dyn Factory) {
    let store = streaming(factory).await;
    if !store.capabilities().survives_restart {
        return;
    }
    for revision in 1..=50 {
        done(store.append_delta(&id("s"), step("a", revision, "é", 10)).await).await;
    }
    let store = factory.reopen(store).await;
    assert_eq!(now(store.as_ref(), "a").await, ("é".repeat(50), 50));
    done(store.append_delta(&id("s"), step("a", 51, "!", 11)).await).await;
    assert_eq!(now(store.as_ref(), "a").await, (format!("{}!", "é".repeat(50)), 51));
}

/// A reader that knows a step by its number must never meet another step of that number: it would take it for known.
pub(super) async fn step_numbers_never_start_again(factory: &dyn Factory) {
    let mut store = streaming(factory).await;
    let mut known = store.state(&id("s")).await.unwrap().unwrap().position;
    for round in 0..3 {
        for revision in [1, 2].map(|step| 2 * round + step) {
            done(store.append_delta(&id("s"), step("a", revision, "x", 3)).await).await;
            let page = store.records(&id("s"), known, 99).await.unwrap();
            let news: Vec<_> =
                page.records.iter().filter(|stored| !stored.is_known_at(known)).collect();
            let last = news.last().expect("the step is news");
            assert!(
                matches!(last.record.known(), Record::Revision(change) if change.to == revision)
            );
            known = known.join(page.end);
        }
        push(store.as_ref(), &id("s"), vec![says(&format!("b{round}"), None, "", 4)]).await;
        let page = store.records(&id("s"), known, 99).await.unwrap();
        let is_told = |record: &Record| matches!(record, Record::Revision(_));
        let mut again = page.records.iter().filter(|stored| !stored.is_known_at(known));
        assert!(!again.any(|stored| is_told(stored.record.known())), "the steps were delivered");
        known = known.join(page.end);
        if store.capabilities().survives_restart {
            store = factory.reopen(store).await;
        }
    }
}

/// A whole message may be replaced in one step: it can be as large as a message.
pub(super) async fn a_large_step_is_taken_like_a_small_one(factory: &dyn Factory) {
    let mut store = streaming(factory).await;
    let start = store.state(&id("s")).await.unwrap().unwrap().position;
    let large = "y".repeat(3 << 20);
    for (revision, text) in (1..).zip(["x", &large, "z"]) {
        done(store.append_delta(&id("s"), step("a", revision, text, 10)).await).await;
    }
    if store.capabilities().survives_restart {
        store = factory.reopen(store).await;
    }
    assert_eq!(now(store.as_ref(), "a").await, (format!("x{large}z"), 3));
    // A page is bounded in bytes: a large step may end it.
    let (mut after, mut last) = (start, 0);
    loop {
        let page = store.records(&id("s"), after, 99).await.unwrap();
        for stored in &page.records {
            let Record::Revision(step) = stored.record.known() else { continue };
            assert_eq!(step.from, last, "no step is missing");
            last = step.to;
        }
        if !page.more {
            break;
        }
        after = page.position_after(after);
    }
    assert_eq!(last, 3);
}

/// A reader that has every step also has the record that joins them. A later revision in the same batch is new to it.
pub(super) async fn a_revision_past_a_stream_is_news(factory: &dyn Factory) {
    let store = streaming(factory).await;
    for (revision, word) in (1..).zip(["one ", "two "]) {
        done(store.append_delta(&id("s"), step("a", revision, word, 10)).await).await;
    }
    let position = store.state(&id("s")).await.unwrap().unwrap().position;
    let last = step("a", 3, "three", 11).into_revision();
    push(store.as_ref(), &id("s"), vec![Record::Revision(last).at(11)]).await;
    assert_eq!(now(store.as_ref(), "a").await, ("one two three".to_owned(), 3));
    let page = store.records(&id("s"), position, 99).await.unwrap();
    let news = page.records.iter().filter(|stored| !stored.is_known_at(position));
    let mut revisions = news.filter_map(|stored| match stored.record.known() {
        Record::Revision(step) => Some((step.from, step.to)),
        _ => None,
    });
    // A store that does not remember which steps it returned may return them again, put together.
    assert_eq!(revisions.next_back(), Some((2, 3)));
}
