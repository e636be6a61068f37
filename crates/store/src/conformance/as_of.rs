//! What becomes of steps, and what was, as opposed to what is.

use std::collections::BTreeMap;

use bough_session::{EntryId, Record};

use super::Factory;
use super::make::{create, done, entry_id, id, push, says, step};
use crate::{Position, StoredRecord};

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

/// Whoever was told of the steps up to one knows the first of the records that took their place, and not the rest; so does
/// whoever went on and stopped between two of them.
pub(super) async fn streams_side_by_side_become_records_in_the_order_of_their_last_steps(
    factory: &dyn Factory,
) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    let entries = ["a", "b", "c"].map(|name| says(name, None, "", 2));
    push(store.as_ref(), &session, entries.to_vec()).await;
    let mut told = vec![(store.state(&session).await.unwrap().unwrap().position, BTreeMap::new())];
    let steps = [("b", 1), ("c", 1), ("b", 2), ("a", 1), ("c", 2), ("b", 3), ("a", 2)];
    for (name, revision) in steps {
        done(store.append_delta(&session, step(name, revision, "x", 3)).await).await;
        let position = store.state(&session).await.unwrap().unwrap().position;
        let (before, mut known) = told.last().unwrap().clone();
        assert!(position > before, "{position:?} {before:?}");
        known.insert(entry_id(name), revision);
        told.push((position, known));
    }
    let last = told.last().unwrap().1.clone();
    push(store.as_ref(), &session, vec![says("d", None, "", 4)]).await;
    for (position, mut known) in told {
        let page = store.records(&session, position, 99).await.unwrap();
        let is_news = |stored: &&StoredRecord| match stored.settles {
            None => true,
            Some(last_step) => last_step > position.revision,
        };
        let first = page.records.iter().position(|stored| is_news(&stored)).unwrap();
        let (passed_over, news) = page.records.split_at(first);
        assert!(news.iter().all(|stored| is_news(&stored)), "{position:?}: {news:?}");
        for (entry, revision) in revisions(passed_over.iter()) {
            assert_eq!(known.get(&entry), Some(&revision), "{position:?}: passed over untold");
        }
        for (entry, revision) in revisions(news.iter()) {
            let before = known.insert(entry, revision);
            assert!(before < Some(revision), "{position:?}: told again");
        }
        assert_eq!(known, last, "{position:?}");
    }
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
        let step = whole.iter().find(|stored| stored.position.revision > 0);
        let last = whole
            .iter()
            .rev()
            .find(|stored| stored.position.revision == 0 && stored.settles != Some(0));
        if let (Some(step), Some(last)) = (step, last) {
            assert!(step.position > last.position, "{:?} {:?}", step.position, last.position);
        }
    }
}
