//! The functions of the table that commands and screens use.

use std::time::Duration;

use bough_service::api::{
    AppendResponse, ArchiveResponse, ContextResponse, DeleteResponse, ForkResponse,
    GetMessageResponse, ListTrashResponse, LoopSummary, LoopsResponse, SessionItem,
    SessionsResponse, SetMetaResponse, UndeleteResponse,
};
use bough_session::{
    AgentMessage, Bookkeeping, EntryId, JsonMap, SessionEntry, SessionId, SessionMeta,
    SessionStatus, TaskStatus,
};
use bough_store::ListOrder;
use serde::Serialize;
use serde_json::{Value, json};

use super::types::{EventPage, ListPage, PathPage, Summary};
use super::{Backend, CallError};
use crate::limits::ENTRIES_PAGE;
use bough_service::compaction::PathItem;

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ListRequest {
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
    pub(crate) order: Option<ListOrder>,
    pub(crate) status: Option<SessionStatus>,
    pub(crate) task: Option<String>,
    pub(crate) task_status: Option<TaskStatus>,
    /// `exclude`, `include` or `only`.
    pub(crate) archived: &'static str,
    pub(crate) metadata: JsonMap,
    pub(crate) query: Option<String>,
    pub(crate) id_prefix: Option<String>,
    pub(crate) include_details: bool,
}

impl ListRequest {
    /// The sessions that changed last, without the archived ones.
    pub(crate) fn recent(limit: usize) -> Self {
        Self { limit, archived: "exclude", include_details: true, ..Self::default() }
    }
}

impl Backend {
    /// A page of sessions.
    pub(crate) async fn list(&self, ask: &ListRequest) -> Result<ListPage, CallError> {
        let answer: SessionsResponse = self.call("session::sessions", ask).await?;
        let sessions = answer.sessions.into_iter().map(|SessionItem { meta, details }| Summary {
            meta,
            details: details.unwrap_or_default(),
            active_leaf: None,
            file: None,
        });
        Ok(ListPage { sessions: sessions.collect(), next_cursor: answer.next_cursor })
    }

    /// A page of the path to an entry (the active leaf when none is given), custom entries included.
    pub(crate) async fn path_page(
        &self,
        session: &SessionId,
        leaf: Option<&EntryId>,
        newest_first: bool,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<PathPage, CallError> {
        let request = json!({
            "session_id": session, "from_entry_id": leaf, "limit": limit, "cursor": cursor,
            "include_custom": true,
        });
        let function = if newest_first { "session::messages-tail" } else { "session::messages" };
        self.call(function, &request).await
    }

    /// The whole path to an entry, root first.
    pub(crate) async fn path(
        &self,
        session: &SessionId,
        leaf: Option<&EntryId>,
    ) -> Result<Vec<PathItem>, CallError> {
        let mut path = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page =
                self.path_page(session, leaf, false, ENTRIES_PAGE, cursor.as_deref()).await?;
            path.extend(page.messages.into_iter().filter_map(PathItem::of_message));
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(path),
            }
        }
    }

    /// One entry, if it is there.
    pub(crate) async fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> Result<Option<SessionEntry>, CallError> {
        let request = json!({ "session_id": session, "entry_id": entry });
        let answer: Option<GetMessageResponse> =
            absent_is_none(self.call("session::get-message", &request).await)?;
        Ok(answer.map(|answer| answer.entry))
    }

    /// Copies the path to an entry into a new session.
    pub(crate) async fn fork(
        &self,
        session: &SessionId,
        entry: &EntryId,
        title: Option<&str>,
    ) -> Result<SessionMeta, CallError> {
        let request = json!({ "session_id": session, "entry_id": entry, "title": title });
        let answer: ForkResponse = self.call("session::fork", &request).await?;
        Ok(answer.meta)
    }

    /// Moves the active leaf; `None` is before the first entry.
    pub(crate) async fn set_leaf(
        &self,
        session: &SessionId,
        entry: Option<&EntryId>,
    ) -> Result<(), CallError> {
        let request = json!({ "session_id": session, "entry_id": entry });
        let function = match entry {
            Some(_) => "session::set-active-leaf",
            None => "session::clear-active-leaf",
        };
        let _moved: Value = self.call(function, &request).await?;
        Ok(())
    }

    /// Appends a message at the active leaf, if that has not moved since the caller read it.
    pub(crate) async fn append_message(
        &self,
        session: &SessionId,
        message: &AgentMessage,
        expected_leaf: Option<&EntryId>,
    ) -> Result<EntryId, CallError> {
        self.append(session, json!({ "message": message }), expected_leaf).await
    }

    /// Appends bookkeeping at the active leaf, if that has not moved since the caller read it.
    pub(crate) async fn append_note(
        &self,
        session: &SessionId,
        note: &Bookkeeping,
        expected_leaf: Option<&EntryId>,
    ) -> Result<EntryId, CallError> {
        self.append(session, json!({ "custom": note.to_payload() }), expected_leaf).await
    }

    async fn append(
        &self,
        session: &SessionId,
        mut request: Value,
        expected_leaf: Option<&EntryId>,
    ) -> Result<EntryId, CallError> {
        if let Some(fields) = request.as_object_mut() {
            let leaf = expected_leaf.map(EntryId::as_str).unwrap_or_default();
            fields.insert("session_id".to_owned(), json!(session));
            fields.insert("expected_leaf".to_owned(), json!(leaf));
        }
        let answer: AppendResponse = self.call("session::append", &request).await?;
        Ok(answer.entry_id)
    }

    /// Sets or removes the label of an entry.
    pub(crate) async fn set_label(
        &self,
        session: &SessionId,
        entry: &EntryId,
        label: Option<&str>,
    ) -> Result<(), CallError> {
        let request = json!({ "session_id": session, "entry_id": entry, "label": label });
        let _named: Value = self.call("session::set-label", &request).await?;
        Ok(())
    }

    /// Gives a session a title.
    pub(crate) async fn rename(
        &self,
        session: &SessionId,
        title: &str,
    ) -> Result<SessionMeta, CallError> {
        let request = json!({ "session_id": session, "title": title });
        let answer: SetMetaResponse = self.call("session::set-meta", &request).await?;
        Ok(answer.meta)
    }

    /// Archives a session, or restores it. Returns whether that changed anything.
    pub(crate) async fn set_archived(
        &self,
        session: &SessionId,
        archived: bool,
    ) -> Result<bool, CallError> {
        let function = if archived { "session::archive" } else { "session::unarchive" };
        let answer: ArchiveResponse =
            self.call(function, &json!({ "session_id": session })).await?;
        Ok(answer.changed)
    }

    /// Moves a session to the trash. Returns whether it existed.
    pub(crate) async fn delete(&self, session: &SessionId) -> Result<bool, CallError> {
        let request = json!({ "session_id": session });
        let answer: DeleteResponse = self.call("session::delete", &request).await?;
        Ok(answer.deleted)
    }

    /// A page of the trash, the last deleted first.
    pub(crate) async fn trash(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<ListTrashResponse, CallError> {
        self.call("session::list-trash", &json!({ "limit": limit, "cursor": cursor })).await
    }

    /// Brings a deleted session back.
    pub(crate) async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Option<&str>,
    ) -> Result<SessionMeta, CallError> {
        let request = json!({ "session_id": session, "incarnation": incarnation });
        let answer: UndeleteResponse = self.call("session::undelete", &request).await?;
        Ok(answer.meta)
    }

    /// The loops of a session, the first started first.
    pub(crate) async fn loops(&self, session: &SessionId) -> Result<Vec<LoopSummary>, CallError> {
        let (mut loops, mut cursor) = (Vec::new(), None);
        loop {
            let request = json!({ "session_id": session, "limit": ENTRIES_PAGE, "cursor": cursor });
            let page: LoopsResponse = self.call("session::loops", &request).await?;
            loops.extend(page.loops);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(loops);
            }
        }
    }

    /// What a model would be sent.
    pub(crate) async fn context(
        &self,
        session: &SessionId,
        leaf: Option<&EntryId>,
        max_tokens: Option<u64>,
    ) -> Result<ContextResponse, CallError> {
        let request =
            json!({ "session_id": session, "from_entry_id": leaf, "max_tokens": max_tokens });
        self.call("session::context", &request).await
    }

    /// The events after a cursor; waits so long for the first. Without a cursor, returns only the present cursor.
    pub(crate) async fn events(
        &self,
        session: &SessionId,
        after: Option<&str>,
        wait: Duration,
    ) -> Result<EventPage, CallError> {
        let wait = if after.is_some() { wait.as_millis() } else { 0 };
        let wait = u64::try_from(wait).unwrap_or(0);
        let request = json!({
            "session_id": session, "after": after, "wait_ms": wait, "limit": ENTRIES_PAGE,
            "types": EVENT_TYPES,
        });
        self.call("session::watch", &request).await
    }
}

/// The events that a follower of one session asks for.
const EVENT_TYPES: [&str; 10] = [
    "session::created",
    "session::message-added",
    "session::message-updated",
    "session::status-changed",
    "session::meta-updated",
    "session::deleted",
    "session::leaf-moved",
    "session::archived",
    "session::label-changed",
    "session::loop-changed",
];

/// A server answers "not found" where the table returns `null`.
pub(super) fn absent_is_none<T>(
    answer: Result<Option<T>, CallError>,
) -> Result<Option<T>, CallError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer,
    }
}
