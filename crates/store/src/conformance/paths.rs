use bough_session::{EntryId, Record};

use super::Factory;
use super::make::{create, entry_id, id, names, push, query, says};
use crate::{PathQuery, PathStart, Store, StoreError, StoreExt};

/// `a - b - c - d - e`, and a branch `b - x - y`; the leaf is `y`.
async fn tree(factory: &dyn Factory) -> std::sync::Arc<dyn Store> {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    let chain = [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("c"))];
    let branch = [("e", Some("d")), ("x", Some("b")), ("y", Some("x"))];
    for (at, (name, parent)) in (2..).zip(chain.into_iter().chain(branch)) {
        push(store.as_ref(), &session, vec![says(name, parent, name, at)]).await;
    }
    store
}

fn on(leaf: &str, start: PathStart<EntryId>, limit: usize) -> PathQuery {
    PathQuery { leaf: Some(entry_id(leaf)), ..query(start, limit) }
}

async fn check(store: &dyn Store, query: PathQuery, expected: &[&str], more: bool) {
    let page = store.path(&id("s"), &query).await.unwrap();
    assert_eq!((names(&page.entries), page.more), (expected.to_vec(), more), "{query:?}");
}

pub(super) async fn a_path_is_read_in_pages_from_both_ends(factory: &dyn Factory) {
    let store = tree(factory).await;
    let store = store.as_ref();
    check(store, on("e", PathStart::Root, 2), &["a", "b"], true).await;
    check(store, on("e", PathStart::After(entry_id("b")), 2), &["c", "d"], true).await;
    check(store, on("e", PathStart::After(entry_id("d")), 2), &["e"], false).await;
    check(store, on("e", PathStart::After(entry_id("e")), 2), &[], false).await;
    check(store, on("e", PathStart::Leaf, 2), &["e", "d"], true).await;
    check(store, on("e", PathStart::Before(entry_id("d")), 2), &["c", "b"], true).await;
    check(store, on("e", PathStart::Before(entry_id("b")), 2), &["a"], false).await;
    check(store, on("e", PathStart::Before(entry_id("a")), 2), &[], false).await;
    check(store, on("e", PathStart::Root, 5), &["a", "b", "c", "d", "e"], false).await;
}

pub(super) async fn a_branch_is_read_by_its_leaf(factory: &dyn Factory) {
    let store = tree(factory).await;
    check(store.as_ref(), query(PathStart::Root, 9), &["a", "b", "x", "y"], false).await;
    check(store.as_ref(), on("c", PathStart::Root, 9), &["a", "b", "c"], false).await;
    let session = id("empty");
    create(store.as_ref(), &session, 1).await;
    let page = store.path(&session, &query(PathStart::Root, 9)).await.unwrap();
    assert_eq!((page.entries.len(), page.more, page.leaf), (0, false, None));
}

pub(super) async fn starts_off_the_path_are_refused(factory: &dyn Factory) {
    let store = tree(factory).await;
    for start in [PathStart::After(entry_id("x")), PathStart::Before(entry_id("x"))] {
        let error = store.path(&id("s"), &on("e", start, 2)).await.unwrap_err();
        assert!(matches!(error, StoreError::NotOnPath { .. }), "{error}");
    }
    let error = store.path(&id("s"), &on("nobody", PathStart::Root, 2)).await.unwrap_err();
    assert!(matches!(error, StoreError::EntryNotFound { .. }), "{error}");
}

pub(super) async fn heads_are_the_ends_of_branches(factory: &dyn Factory) {
    let store = tree(factory).await;
    let heads = store.branch_heads(&id("s"), None, 9).await.unwrap();
    let shown: Vec<_> = heads.iter().map(|head| (head.entry_id.as_str(), head.depth)).collect();
    assert_eq!(shown, [("y", 4), ("e", 5)]);
    assert_eq!(store.branch_heads(&id("s"), None, 1).await.unwrap(), heads[..1]);
}

/// A page goes on where the last one ended, also when the branch at its end went on meanwhile.
pub(super) async fn heads_come_in_pages(factory: &dyn Factory) {
    let store = tree(factory).await;
    let session = id("s");
    let heads = store.branch_heads(&session, None, 9).await.unwrap();
    let first = entry_id("y");
    assert_eq!(store.branch_heads(&session, Some(&first), 9).await.unwrap(), heads[1..]);
    assert_eq!(store.branch_heads(&session, Some(&entry_id("e")), 9).await.unwrap(), []);
    push(store.as_ref(), &session, vec![says("z", Some("y"), "more", 50)]).await;
    assert_eq!(store.branch_heads(&session, Some(&first), 9).await.unwrap(), heads[1..]);
    let all = store.branch_heads(&session, None, 9).await.unwrap();
    let shown: Vec<_> = all.iter().map(|head| head.entry_id.as_str()).collect();
    assert_eq!(shown, ["z", "e"]);
    let unknown = store.branch_heads(&session, Some(&entry_id("nobody")), 9).await.unwrap_err();
    assert!(matches!(unknown, StoreError::EntryNotFound { .. }), "{unknown}");
}

pub(super) async fn a_leaf_move_decides_the_path(factory: &dyn Factory) {
    let store = tree(factory).await;
    let session = id("s");
    let before = store.state(&session).await.unwrap().unwrap().state.meta.updated_at;
    push(store.as_ref(), &session, vec![Record::Leaf(Some(entry_id("d"))).at(99)]).await;
    check(store.as_ref(), query(PathStart::Leaf, 2), &["d", "c"], true).await;
    let state = store.state(&session).await.unwrap().unwrap().state;
    assert_eq!((state.leaf.clone(), state.meta.updated_at), (Some(entry_id("d")), before));
    push(store.as_ref(), &session, vec![Record::Leaf(None).at(99)]).await;
    check(store.as_ref(), query(PathStart::Leaf, 2), &[], false).await;
}

/// Pages may be short where entries are large, and a page always has one: the path goes on after an entry that is larger than
/// any page.
pub(super) async fn a_path_goes_on_after_a_very_large_entry(factory: &dyn Factory) {
    let store = factory.fresh().await;
    create(store.as_ref(), &id("s"), 1).await;
    let large = "x".repeat(17 << 20);
    for (name, parent, text) in
        [("a", None, large.as_str()), ("b", Some("a"), "after"), ("c", Some("b"), &large)]
    {
        push(store.as_ref(), &id("s"), vec![says(name, parent, text, 2)]).await;
    }
    let walk = async |first: PathStart<EntryId>, next: fn(EntryId) -> PathStart<EntryId>| {
        let (mut found, mut start) = (Vec::new(), first);
        loop {
            let page = store.path(&id("s"), &query(start, 10)).await.unwrap();
            let last = page.entries.last().unwrap().entry.id.clone();
            found.extend(names(&page.entries).into_iter().map(str::to_owned));
            if !page.more {
                return found;
            }
            start = next(last);
        }
    };
    assert_eq!(walk(PathStart::Root, PathStart::After).await, ["a", "b", "c"]);
    assert_eq!(walk(PathStart::Leaf, PathStart::Before).await, ["c", "b", "a"]);
}
