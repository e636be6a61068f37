//! Compacts sessions that exceed the windows of their models, while a server runs.

use std::collections::HashSet;
use std::convert::Infallible;

use async_trait::async_trait;
use bough_session::{AgentMessage, SessionId, SessionStatus};
use bough_store::{ChangeCursor, Store, StoreError, StoreExt};

use super::cut::calls;
use super::path::PathItem;
use crate::api::{CompactRequest, CompactionResponse, PlanCompactionRequest};
use crate::error::ServiceError;
use crate::limits::{COMPACTION_CHANGES_PER_READ, COMPACTION_REST};
use crate::rules::reading::{Direction, Walk};
use crate::scope::Scope;
use crate::service::Service;

/// Writes summaries.
#[async_trait]
pub trait Summariser: Send + Sync {
    /// The summary of what a plan replaces, whose `conversation` is given; `None` leaves it to the fixed rules.
    async fn summarise(&self, plan: &CompactionResponse) -> Result<Option<String>, NoSummary>;
}

/// A summary could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the summary could not be written")]
pub struct NoSummary;

/// Compacts sessions that exceed their windows, for as long as it runs: between turns only. A session that goes on
/// meanwhile is checked again.
pub async fn keep_compacted(service: &Service, summariser: &dyn Summariser) -> Infallible {
    loop {
        // Start again after a failure; a missed session is checked when it goes on.
        let Err(_) = follow(service, summariser).await;
        tracing::warn!("compaction pauses: the changes of the store cannot be read");
        tokio::time::sleep(COMPACTION_REST).await;
    }
}

/// Checks now and then the sessions that changed. The changes are known without reading any session; following their
/// events would cost a server a part of every append.
async fn follow(service: &Service, summariser: &dyn Summariser) -> Result<Infallible, StoreError> {
    let mut cursor = service.store().change_cursor().await?;
    loop {
        tokio::time::sleep(COMPACTION_REST).await;
        for session in changed_since(&*service.store(), &mut cursor).await? {
            // Ids and errors of a session may contain callers' text, which must not be logged.
            match compact_if_due(service, summariser, session).await {
                Ok(None) => {}
                Ok(Some(tokens)) => tracing::info!(tokens, "a session was compacted"),
                Err(failed) => tracing::warn!(code = failed.code(), "a session was not compacted"),
            }
        }
    }
}

/// The sessions that changed since, each once. Starts again if changes are missing, or the store was replaced.
async fn changed_since(
    store: &dyn Store,
    cursor: &mut ChangeCursor,
) -> Result<HashSet<SessionId>, StoreError> {
    let mut changed = HashSet::new();
    loop {
        let page = store.changes(Some(cursor), COMPACTION_CHANGES_PER_READ).await?;
        if page.gap {
            *cursor = store.change_cursor().await?;
            return Ok(changed);
        }
        let last = page.changes.is_empty() || page.next == *cursor;
        changed.extend(page.changes.into_iter().map(|change| change.session_id));
        *cursor = page.next;
        if last {
            return Ok(changed);
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NotCompacted {
    #[error(transparent)]
    Refused(#[from] ServiceError),
    #[error(transparent)]
    NoSummary(#[from] NoSummary),
}

impl NotCompacted {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(error) => error.code(),
            Self::NoSummary(_) => "no_summary",
        }
    }
}

/// Compacts a session that is due and between two turns. Returns how many tokens its context had.
async fn compact_if_due(
    service: &Service,
    summariser: &dyn Summariser,
    session: SessionId,
) -> Result<Option<u64>, NotCompacted> {
    let scope = Scope::owner();
    if !is_between_turns(service, &scope, &session).await? {
        return Ok(None);
    }
    let request = PlanCompactionRequest {
        session_id: session.clone(),
        keep_recent_tokens: None,
        only_if_due: Some(true),
        include_conversation: Some(true),
    };
    let plan = service.plan_compaction(&scope, request).await?;
    if plan.reason.is_some() {
        return Ok(None);
    }
    let summary = summariser.summarise(&plan).await?;
    let request = CompactRequest {
        session_id: session,
        digest: Some(summary.is_none()),
        summary,
        keep_recent_tokens: None,
        only_if_due: Some(true),
        expected_leaf: Some(plan.expected_leaf()),
    };
    let done = service.compact(&scope, request).await?;
    Ok(done.tokens_before.filter(|_| done.written))
}

/// Whether nothing is under way: the newest entry is an answer without calls.
async fn is_between_turns(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
) -> Result<bool, ServiceError> {
    let runtime = service.runtime();
    let Some(found) = runtime.visible(scope, session).await? else { return Ok(false) };
    let state = found.state;
    let settings = service.settings().compaction;
    let may_be_due = settings.enabled && settings.windows.of_session(&state.details()).is_some();
    if state.meta.status == SessionStatus::Working || !may_be_due || state.leaf.is_none() {
        return Ok(false);
    }
    let mut walk =
        Walk::new(&*runtime.store, session, Direction::NewestFirst).ending_at(state.leaf.clone());
    let newest = walk.next(1).await?.unwrap_or_default();
    let newest = newest.first().map(|stored| PathItem::of_entry(&stored.entry));
    Ok(newest.as_ref().is_some_and(ends_turn))
}

fn ends_turn(item: &PathItem) -> bool {
    match item.message() {
        Some(message @ AgentMessage::Assistant(_)) => calls(message).next().is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bough_platform::{OsEntropy, SystemClock};
    use bough_store::MemoryStore;
    use serde_json::{Value, json};

    use super::*;
    use crate::Settings;
    use crate::compaction::CompactionSettings;

    /// Returns the text that the test gave it, and keeps what it was asked to summarise.
    #[derive(Default)]
    struct Scripted {
        says: Mutex<Option<Result<Option<String>, NoSummary>>>,
        read: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Summariser for Scripted {
        async fn summarise(&self, plan: &CompactionResponse) -> Result<Option<String>, NoSummary> {
            self.read.lock().unwrap().extend(plan.conversation.clone());
            self.says.lock().unwrap().take().unwrap()
        }
    }

    fn service() -> Service {
        let entropy = Arc::new(OsEntropy);
        let store = Arc::new(MemoryStore::new(entropy.clone()).unwrap());
        let service = Service::new(store, Arc::new(SystemClock::new()), entropy);
        let compaction = CompactionSettings {
            reserve_tokens: 8_100,
            keep_recent_tokens: 20,
            ..CompactionSettings::default()
        };
        let compaction = Arc::new(compaction);
        service.set_settings(Settings { compaction, ..service.settings() });
        service
    }

    async fn append(service: &Service, message: Value) {
        let request = json!({"session_id": "s", "message": message, "create": true});
        service.call(&Scope::owner(), "session::append-entry", request).await.unwrap();
    }

    fn answer(text: &str) -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": text}],
            "model": "gpt-4", "provider": "p", "stop_reason": "end", "timestamp": 1})
    }

    fn question(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
    }

    #[tokio::test]
    async fn a_session_is_compacted_between_turns_once_it_is_due() {
        let (service, summariser) = (service(), Scripted::default());
        let check =
            async || compact_if_due(&service, &summariser, SessionId::from_stored("s")).await;
        append(&service, question("Hello?")).await;
        append(&service, answer("Yes?")).await;
        assert_eq!(check().await.unwrap(), None, "it fits");
        append(&service, question(&"A long question. ".repeat(30))).await;
        assert_eq!(check().await.unwrap(), None, "the answer is to come");
        assert!(summariser.read.lock().unwrap().is_empty());
        append(&service, answer(&"A long answer. ".repeat(10))).await;
        *summariser.says.lock().unwrap() = Some(Err(NoSummary));
        assert_eq!(check().await.unwrap_err().code(), "no_summary");
        *summariser.says.lock().unwrap() = Some(Ok(Some("They talked.".to_owned())));
        assert!(check().await.unwrap().is_some_and(|tokens| tokens > 92));
        assert!(summariser.read.lock().unwrap().iter().all(|text| text.contains("Hello?")));
        let request = json!({"session_id": "s"});
        let context = service.call(&Scope::owner(), "session::context", request).await.unwrap();
        assert!(context["messages"][0].to_string().contains("They talked."), "{context}");
        assert_eq!(check().await.unwrap(), None, "it was compacted");
    }
}
