//! What becomes of steps, and what was, as opposed to what is.

use std::collections::BTreeMap;

use bough_session::{EntryId, MetaChange, Record, SessionState, SessionStatus, StatusChange};

use super::Factory;
use super::make::{create, done, entry_id, id, map, meta, push, says, step, text_of};
use crate::{Position, Store, StoreExt, StoredRecord};

/// The revision of each message that some records lead to.
fn revisions<'a>(records: impl Iterator<Item = &'a StoredRecord>) -> BTreeMap<EntryId, u64> {
    let mut newest = BTreeMap::new();
    for stored in records {
        if let Record::Revision(change) = stored.record.known() {
            newest.insert(change.entry_id.clone(), change.to);
        }
    }
    newest
}

/// A reader that has some of the steps has the first of the records that replaced them, and not the rest. So does a reader
/// that stopped between two of these records.
pub(super) async fn streams_side_by_side_become_records_in_the_order_of_their_last_steps(
    factory: &dyn Factory,
) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    let entries = ["a", "b", "c"].map(|name| says(name, None, "", 2));
    push(store.as_ref(), &session, entries.to_vec()).await;
    let mut positions =
        vec![(store.state(&session).await.unwrap().unwrap().position, BTreeMap::new())];
    let steps = [("b", 1), ("c", 1), ("b", 2), ("a", 1), ("c", 2), ("b", 3), ("a", 2)];
    for (name, revision) in steps {
        done(store.append_delta(&session, step(name, revision, "x", 3)).await).await;
        let position = store.state(&session).await.unwrap().unwrap().position;
        let (before, mut known) = positions.last().unwrap().clone();
        assert!(position > before, "{position:?} {before:?}");
        known.insert(entry_id(name), revision);
        positions.push((position, known));
    }
    let last = positions.last().unwrap().1.clone();
    push(store.as_ref(), &session, vec![says("d", None, "", 4)]).await;
    for (position, mut known) in positions {
        let page = store.records(&session, position, 99).await.unwrap();
        let is_news = |stored: &&StoredRecord| !stored.is_known_at(position);
        let first = page.records.iter().position(|stored| is_news(&stored)).unwrap();
        let (passed_over, news) = page.records.split_at(first);
        assert!(news.iter().all(|stored| is_news(&stored)), "{position:?}: {news:?}");
        for (entry, revision) in revisions(passed_over.iter()) {
            assert_eq!(
                known.get(&entry),
                Some(&revision),
                "{position:?}: skipped without delivery"
            );
        }
        for (entry, revision) in revisions(news.iter()) {
            let before = known.insert(entry, revision);
            assert!(before < Some(revision), "{position:?}: delivered twice");
        }
        assert_eq!(known, last, "{position:?}");
    }
}

async fn said_at(store: &dyn Store, revision: u64) -> Option<String> {
    let incarnation = store.state(&id("s")).await.unwrap().unwrap().head.incarnation;
    let found = store.entry_at(&id("s"), incarnation, &entry_id("a"), revision).await.unwrap();
    found.map(|stored| {
        assert_eq!((stored.entry.revision, stored.seq), (revision, 2));
        text_of(&stored)
    })
}

pub(super) async fn an_entry_is_shown_as_it_was(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    push(store.as_ref(), &session, vec![says("a", None, "0", 2)]).await;
    for (revision, text) in (1..).zip(["1", "2"]) {
        done(store.append_delta(&session, step("a", revision, text, 3)).await).await;
        for (word, revision) in ["0", "01", "012"].into_iter().zip(0..=revision) {
            assert_eq!(said_at(store.as_ref(), revision).await.as_deref(), Some(word));
        }
        assert_eq!(said_at(store.as_ref(), revision + 1).await, None);
    }
    push(store.as_ref(), &session, vec![says("b", None, "", 4)]).await;
    assert_eq!(said_at(store.as_ref(), 2).await.as_deref(), Some("012"));
    // A step that became part of a record is either known to the letter or not at all.
    assert!(said_at(store.as_ref(), 1).await.is_none_or(|said| said == "01"));
    assert_eq!(said_at(store.as_ref(), 0).await.as_deref(), Some("0"));
    let incarnation = store.state(&session).await.unwrap().unwrap().head.incarnation;
    for (entry, incarnation) in
        [("none", incarnation), ("a", bough_session::Incarnation::new([9; 16]))]
    {
        let found = store.entry_at(&session, incarnation, &entry_id(entry), 0).await.unwrap();
        assert_eq!(found, None);
    }
    store.delete(&session, 9).await.unwrap();
    if !store.trash(Some(&session)).await.unwrap().is_empty() {
        let found = store.entry_at(&session, incarnation, &entry_id("a"), 2).await.unwrap();
        assert_eq!(text_of(&found.unwrap()), "012");
        create(store.as_ref(), &session, 10).await;
        let found = store.entry_at(&session, incarnation, &entry_id("a"), 0).await.unwrap();
        assert_eq!(text_of(&found.unwrap()), "0", "another incarnation has the id now");
    }
}

/// The part of a state that says what the session is.
fn itself(state: &SessionState) -> (String, String, String, Option<String>) {
    let metadata = state.meta.metadata.as_ref().map(|metadata| format!("{metadata:?}"));
    let status = format!("{:?}", state.meta.status);
    (state.meta.title.clone(), state.meta.description.clone(), status, metadata)
}

pub(super) async fn a_session_is_shown_as_it_was(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    for (number, status) in
        (0_u32..).zip([SessionStatus::Working, SessionStatus::Done, SessionStatus::Idle])
    {
        let name = number.to_string();
        let status = Some(StatusChange { status, reason: None });
        let change = match number {
            0 => MetaChange { status, ..MetaChange::default() },
            1 => MetaChange { status, title: Some(name.clone()), ..MetaChange::default() },
            _ => {
                let metadata = Some(map(serde_json::json!({"n": number})));
                MetaChange { status, metadata, ..MetaChange::default() }
            }
        };
        let batch = vec![says(&name, None, "", 2), meta(change, 2)];
        push(store.as_ref(), &session, batch).await;
        done(store.append_delta(&session, step(&name, 1, "x", 3)).await).await;
    }
    let whole = store.records(&session, Position::default(), 99).await.unwrap();
    let incarnation = whole.incarnation;
    let mut state = SessionState::new(session.clone());
    for stored in whole.records.iter().filter(|stored| stored.position().step == 0) {
        let seq = stored.position().seq;
        state.apply(&stored.record, seq, stored.at_ms);
        let found = store.state_at(&session, incarnation, seq).await.unwrap().unwrap();
        assert_eq!(itself(&found), itself(&state), "after record {seq}");
        assert_eq!(found.meta.created_at, state.meta.created_at);
    }
    let stranger = bough_session::Incarnation::new([9; 16]);
    assert_eq!(store.state_at(&session, stranger, 3).await.unwrap(), None);
}

/// Whatever makes steps of one message a record makes all steps before it records: none lies before a record of the session and
/// becomes part of one after it.
pub(super) async fn no_step_is_left_behind_a_record(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    push(store.as_ref(), &session, ["a", "b"].map(|name| says(name, None, "", 2)).to_vec()).await;
    done(store.append_delta(&session, step("a", 1, "x", 3)).await).await;
    let much = "y".repeat(50_000);
    for revision in 1..=25 {
        done(store.append_delta(&session, step("b", revision, &much, 3)).await).await;
        let whole = store.records(&session, Position::default(), 99).await.unwrap().records;
        let step = whole.iter().find(|stored| stored.is_step());
        let last = whole
            .iter()
            .rev()
            .find(|stored| !stored.is_step() && !matches!(stored.record, Record::Unknown(_)));
        if let (Some(step), Some(last)) = (step, last) {
            assert!(
                step.position() > last.position(),
                "{:?} {:?}",
                step.position(),
                last.position()
            );
        }
    }
}
