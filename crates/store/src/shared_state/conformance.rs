//! The conformance suite of [`SharedState`].
#![expect(clippy::unwrap_used, reason = "a case fails by panicking")]

use std::sync::Arc;

use serde_json::{Value, json};

use super::limits::{DOCUMENT_BYTES_MAX, KEY_BYTES_MAX};
use super::{Change, Expected, Persistence, SharedState, SharedStateError};

/// Makes what the suite runs on.
pub trait Factory: Send + Sync {
    /// No documents.
    fn fresh(&self) -> Arc<dyn SharedState>;

    /// The documents of the newest [`fresh`](Self::fresh) as another process has them; `None` if they exist in one
    /// process only.
    fn another(&self) -> Option<Arc<dyn SharedState>>;
}

/// Runs every case.
pub async fn run_all(factory: &dyn Factory) {
    versions_are_compared(&*factory.fresh()).await;
    versions_are_never_used_twice(&*factory.fresh()).await;
    changes_are_made_together_or_not_at_all(&*factory.fresh()).await;
    lists_go_by_prefix_and_in_order(&*factory.fresh()).await;
    bounds_are_kept(&*factory.fresh()).await;
    counting_from_many_tasks_loses_nothing(factory).await;
    other_processes_see_what_was_acknowledged(factory).await;
}

fn change(key: &str, expected: Expected, value: Option<Value>) -> Change {
    Change { key: key.to_owned(), expected, value }
}

async fn put(state: &dyn SharedState, key: &str, expected: Expected, value: Value) -> Option<u64> {
    let changes = vec![change(key, expected, Some(value))];
    match state.apply(changes, Persistence::ProcessExit).await {
        Ok(versions) => versions.first().copied(),
        Err(SharedStateError::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

async fn versions_are_compared(state: &dyn SharedState) {
    assert_eq!(state.get("a").await.unwrap(), None);
    assert_eq!(put(state, "a", Expected::Version(1), json!(0)).await, None);
    let first = put(state, "a", Expected::Absent, json!({"n": 1})).await.unwrap();
    assert_eq!(put(state, "a", Expected::Absent, json!(0)).await, None);
    let second = put(state, "a", Expected::Version(first), json!({"n": 2})).await.unwrap();
    assert_eq!(put(state, "a", Expected::Version(first), json!(0)).await, None);
    let found = state.get("a").await.unwrap().unwrap();
    assert_eq!((found.version, found.value), (second, json!({"n": 2})));
    let third = put(state, "a", Expected::Any, json!(3)).await.unwrap();
    let stale = vec![change("a", Expected::Version(second), None)];
    let refused = state.apply(stale, Persistence::Synced).await.unwrap_err();
    assert!(
        matches!(refused, SharedStateError::Conflict { current: Some(v), .. } if v == third),
        "{refused}"
    );
    let removal = vec![change("a", Expected::Version(third), None)];
    assert_eq!(state.apply(removal, Persistence::Synced).await.unwrap(), [0]);
    assert_eq!(state.get("a").await.unwrap(), None);
}

/// A caller that read a document before it was removed and created again must not overwrite the new
/// one.
async fn versions_are_never_used_twice(state: &dyn SharedState) {
    let old = put(state, "a", Expected::Absent, json!(1)).await.unwrap();
    state.apply(vec![change("a", Expected::Any, None)], Persistence::Synced).await.unwrap();
    let new = put(state, "a", Expected::Absent, json!(2)).await.unwrap();
    assert_ne!(old, new);
    assert_eq!(put(state, "a", Expected::Version(old), json!(3)).await, None);
}

async fn changes_are_made_together_or_not_at_all(state: &dyn SharedState) {
    put(state, "b", Expected::Absent, json!(1)).await.unwrap();
    let both = vec![
        change("a", Expected::Absent, Some(json!(1))),
        change("b", Expected::Absent, Some(json!(2))),
    ];
    assert!(state.apply(both, Persistence::Synced).await.is_err());
    assert_eq!(state.get("a").await.unwrap(), None);
    let twice = vec![
        change("c", Expected::Any, Some(json!(1))),
        change("c", Expected::Any, Some(json!(2))),
    ];
    let refused = state.apply(twice, Persistence::Synced).await.unwrap_err();
    assert!(matches!(refused, SharedStateError::Invalid { .. }));
}

async fn lists_go_by_prefix_and_in_order(state: &dyn SharedState) {
    for key in ["p/b", "p/a", "p/~", "p", "q/a", "p/a/1", "o"] {
        put(state, key, Expected::Absent, json!(key)).await.unwrap();
    }
    let keys = async |prefix: &str, after: Option<&str>, limit: usize| {
        let found = state.list(prefix, after, limit).await.unwrap();
        assert!(found.iter().all(|(key, document)| document.value == json!(key)));
        found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(keys("p/", None, 99).await, ["p/a", "p/a/1", "p/b", "p/~"]);
    assert_eq!(keys("p/", None, 2).await, ["p/a", "p/a/1"]);
    assert_eq!(keys("p/", Some("p/a/1"), 99).await, ["p/b", "p/~"]);
    assert_eq!(keys("p/", Some("a"), 1).await, ["p/a"]);
    assert_eq!(keys("", None, 99).await.len(), 7);
    assert!(keys("none", None, 99).await.is_empty());
}

async fn bounds_are_kept(state: &dyn SharedState) {
    let longest = "k".repeat(KEY_BYTES_MAX);
    put(state, &longest, Expected::Absent, json!(1)).await.unwrap();
    let most = json!("x".repeat(DOCUMENT_BYTES_MAX - 2));
    put(state, "largest", Expected::Absent, most).await.unwrap();
    let too_large = json!("x".repeat(DOCUMENT_BYTES_MAX - 1));
    for (key, value) in
        [("", json!(1)), ("a b", json!(1)), ("\u{e9}", json!(1)), ("large", too_large)]
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .chain([(format!("{longest}k"), json!(1))])
    {
        let refused =
            state.apply(vec![change(&key, Expected::Any, Some(value))], Persistence::Synced);
        assert!(matches!(refused.await, Err(SharedStateError::Invalid { .. })), "{key}");
    }
}

async fn counting_from_many_tasks_loses_nothing(factory: &dyn Factory) {
    let first = factory.fresh();
    let second = factory.another().unwrap_or_else(|| first.clone());
    put(&*first, "count", Expected::Absent, json!(0)).await.unwrap();
    let tasks: Vec<_> = [first.clone(), second.clone(), first.clone(), second]
        .into_iter()
        .map(|state| tokio::spawn(count_up(state, 25)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(first.get("count").await.unwrap().unwrap().value, json!(100));
}

async fn count_up(state: Arc<dyn SharedState>, times: usize) {
    for _ in 0..times {
        loop {
            let now = state.get("count").await.unwrap().unwrap();
            let next = json!(now.value.as_u64().unwrap() + 1);
            if put(&*state, "count", Expected::Version(now.version), next).await.is_some() {
                break;
            }
        }
    }
}

async fn other_processes_see_what_was_acknowledged(factory: &dyn Factory) {
    let first = factory.fresh();
    let Some(second) = factory.another() else { return };
    for number in 0..20 {
        put(&*first, "seen", Expected::Any, json!(number)).await.unwrap();
        assert_eq!(second.get("seen").await.unwrap().unwrap().value, json!(number));
    }
    drop(first);
    let again = factory.another().unwrap();
    assert_eq!(again.get("seen").await.unwrap().unwrap().value, json!(19));
}

#[cfg(test)]
mod tests {
    use super::super::MemorySharedState;
    use super::*;

    struct Memory;

    impl Factory for Memory {
        fn fresh(&self) -> Arc<dyn SharedState> {
            Arc::new(MemorySharedState::new())
        }

        fn another(&self) -> Option<Arc<dyn SharedState>> {
            None
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn documents_in_memory_pass_the_suite() {
        run_all(&Memory).await;
    }
}
