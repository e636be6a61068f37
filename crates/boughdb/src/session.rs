use std::sync::Arc;

use bough_service::api::{
    AppendDeltaRequest, AppendManyRequest, AppendRequest, Branch, BranchesRequest, ContextRequest,
    ContextResponse, DeleteRequest, ForkRequest, GetRequest, MessagesRequest, SetActiveLeafRequest,
    SetLabelRequest, SetMetaRequest, SetStatusRequest, UpdateMessageRequest, UsageRequest,
    UsageResponse,
};
use bough_service::{EventFilter, ServiceError, StartAt};
use bough_session::{
    AgentMessage, ContentBlock, CustomPayload, EntryId, JsonMap, SessionId, SessionMeta,
    SessionStatus,
};

use crate::{Bough, Error, Subscription};

/// One conversation: a tree of entries with an active path. A handle, cheap to clone.
#[derive(Clone, Debug)]
pub struct Session {
    bough: Bough,
    id: SessionId,
}

/// One message of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathMessage {
    /// The entry that holds it.
    pub entry_id: EntryId,
    /// What was said.
    pub message: Arc<AgentMessage>,
}

impl PathMessage {
    /// The words, without thoughts, calls and pictures.
    #[must_use]
    pub fn text(&self) -> String {
        self.message.text()
    }
}

impl Session {
    pub(crate) const fn new(bough: Bough, id: SessionId) -> Self {
        Self { bough, id }
    }

    /// Names the session.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// What it says of itself.
    pub async fn meta(&self) -> Result<SessionMeta, Error> {
        let request = GetRequest { session_id: self.id.clone() };
        let found = self.bough.service().get(self.bough.scope(), request).await?;
        let missing = || ServiceError::NotFound { session: self.id.to_string() };
        Ok(found.ok_or_else(missing)?.meta)
    }

    /// Appends a message after the active leaf. Durable when this returns.
    pub async fn append(&self, message: AgentMessage) -> Result<EntryId, Error> {
        let request = AppendRequest { message: Some(message.into()), ..self.append_request() };
        self.append_with(request).await
    }

    /// Appends a message under an id of your own: appending the same id again changes nothing, so a call whose answer was lost
    /// may be repeated.
    pub async fn append_once(&self, id: &str, message: AgentMessage) -> Result<EntryId, Error> {
        let request = AppendRequest {
            message: Some(message.into()),
            entry_id: Some(EntryId::from_stored(id)),
            ..self.append_request()
        };
        self.append_with(request).await
    }

    /// Appends a message only if nothing was appended since `leaf`; otherwise `session/leaf_conflict`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, user};
    ///
    /// let session = Bough::in_memory()?.create("two writers").await?;
    /// let seen = session.append(user("question")).await?;
    /// session.append_after(&seen, user("first answer")).await?;
    /// let late = session.append_after(&seen, user("second answer")).await.unwrap_err();
    /// assert_eq!(late.code(), Some("session/leaf_conflict"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn append_after(
        &self,
        leaf: &EntryId,
        message: AgentMessage,
    ) -> Result<EntryId, Error> {
        let request = AppendRequest {
            message: Some(message.into()),
            expected_leaf: Some(leaf.to_string()),
            ..self.append_request()
        };
        self.append_with(request).await
    }

    /// Appends a message after any entry: a new branch, which becomes the active one.
    pub async fn append_to(
        &self,
        parent: &EntryId,
        message: AgentMessage,
    ) -> Result<EntryId, Error> {
        let request = AppendRequest {
            message: Some(message.into()),
            parent_id: Some(parent.clone()),
            ..self.append_request()
        };
        self.append_with(request).await
    }

    /// Appends data that is no message.
    pub async fn append_custom(&self, custom: CustomPayload) -> Result<EntryId, Error> {
        let request = AppendRequest { custom: Some(custom), ..self.append_request() };
        self.append_with(request).await
    }

    /// Appends several messages in order, all or none.
    pub async fn append_many(&self, messages: Vec<AgentMessage>) -> Result<Vec<EntryId>, Error> {
        let request = AppendManyRequest {
            session_id: self.id.clone(),
            messages: messages.into_iter().map(Arc::new).collect(),
            parent_id: None,
            origin: None,
            expected_leaf: None,
        };
        let appended = self.bough.service().append_many(self.bough.scope(), request).await?;
        Ok(appended.entry_ids)
    }

    /// Replaces a message's content; says which revision that is.
    pub async fn update(&self, entry: &EntryId, content: Vec<ContentBlock>) -> Result<u64, Error> {
        let request = UpdateMessageRequest {
            session_id: self.id.clone(),
            entry_id: entry.clone(),
            content,
            details: None,
            expected_revision: None,
            origin: None,
        };
        let updated = self.bough.service().update_message(self.bough.scope(), request).await?;
        Ok(updated.revision)
    }

    /// Adds text to the first block of a message that is being streamed; says which revision that is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, assistant};
    ///
    /// let session = Bough::in_memory()?.create("streaming").await?;
    /// let reply = session.append(assistant("local", "small", "")).await?;
    /// for token in ["Por", "to ", "is sunny."] {
    ///     session.stream(&reply, token).await?;
    /// }
    /// assert_eq!(session.messages().await?[0].text(), "Porto is sunny.");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream(&self, entry: &EntryId, text: &str) -> Result<u64, Error> {
        let request = AppendDeltaRequest {
            session_id: self.id.clone(),
            entry_id: entry.clone(),
            block: 0,
            text: text.to_owned(),
            kind: None,
            function_call_id: None,
            function_id: None,
            expected_revision: None,
            origin: None,
        };
        let updated = self.bough.service().append_delta(self.bough.scope(), request).await?;
        Ok(updated.revision)
    }

    /// The messages of the active path, oldest first: all of them. Long sessions are better read in pages, with
    /// [`Service::messages`](crate::Service::messages).
    pub async fn messages(&self) -> Result<Vec<PathMessage>, Error> {
        self.read_path(None).await
    }

    /// The messages of the path that ends at an entry.
    pub async fn messages_to(&self, entry: &EntryId) -> Result<Vec<PathMessage>, Error> {
        self.read_path(Some(entry.clone())).await
    }

    /// Copies the path up to an entry into a session of its own.
    pub async fn fork(&self, entry: &EntryId) -> Result<Self, Error> {
        self.fork_with(ForkOptions { entry_id: Some(entry.clone()), ..ForkOptions::default() })
            .await
    }

    /// Copies a path, or the whole tree, into a session of its own. `session/already_exists` when the chosen id is in use.
    pub async fn fork_with(&self, options: ForkOptions) -> Result<Self, Error> {
        let request = ForkRequest {
            session_id: self.id.clone(),
            entry_id: options.entry_id,
            title: options.title,
            new_session_id: options.session_id,
            whole: Some(options.whole),
            keep_ids: Some(options.keep_ids),
        };
        let fork = self.bough.service().fork(self.bough.scope(), request).await?;
        Ok(self.bough.at(fork.session_id))
    }

    /// Makes the active path end at an entry: later appends go on from there.
    pub async fn switch_to(&self, entry: &EntryId) -> Result<(), Error> {
        let request = SetActiveLeafRequest {
            expected_leaf: None,
            session_id: self.id.clone(),
            entry_id: entry.clone(),
        };
        self.bough.service().set_active_leaf(self.bough.scope(), request).await?;
        Ok(())
    }

    /// The ends of the session's branches, the most recently active first.
    pub async fn branches(&self) -> Result<Vec<Branch>, Error> {
        let (mut branches, mut cursor) = (Vec::new(), None);
        loop {
            let request =
                BranchesRequest { session_id: self.id.clone(), limit: Some(usize::MAX), cursor };
            let page = self.bough.service().branches(self.bough.scope(), request).await?;
            branches.extend(page.branches);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(branches);
            }
        }
    }

    /// Names an entry, or takes its name away.
    pub async fn label(&self, entry: &EntryId, label: Option<&str>) -> Result<(), Error> {
        let request = SetLabelRequest {
            session_id: self.id.clone(),
            entry_id: entry.clone(),
            label: label.map(ToOwned::to_owned),
        };
        self.bough.service().set_label(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Tokens and cost, of the session and of the active branch.
    pub async fn usage(&self) -> Result<UsageResponse, Error> {
        let request = UsageRequest { session_id: self.id.clone(), from_entry_id: None };
        Ok(self.bough.service().usage(self.bough.scope(), request).await?)
    }

    /// What a model would be sent, within a budget of tokens.
    pub async fn context(&self, max_tokens: Option<u64>) -> Result<ContextResponse, Error> {
        let request = ContextRequest {
            format: None,
            session_id: self.id.clone(),
            from_entry_id: None,
            max_tokens,
        };
        Ok(self.bough.service().context(self.bough.scope(), request).await?)
    }

    /// Sets the status; a reason is kept for `error` only.
    pub async fn set_status(
        &self,
        status: SessionStatus,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let request = SetStatusRequest {
            session_id: self.id.clone(),
            status,
            reason: reason.map(ToOwned::to_owned),
        };
        self.bough.service().set_status(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Replaces the metadata that lists, feeds and scopes filter by.
    pub async fn set_metadata(&self, metadata: JsonMap) -> Result<(), Error> {
        let request = SetMetaRequest {
            session_id: self.id.clone(),
            title: None,
            description: None,
            metadata: Some(metadata),
        };
        self.bough.service().set_meta(self.bough.scope(), request).await?;
        Ok(())
    }

    /// Moves the session to the trash, from where it can be brought back for a while; says whether it was there.
    pub async fn delete(&self) -> Result<bool, Error> {
        let request = DeleteRequest { session_id: self.id.clone() };
        let done = self.bough.service().delete(self.bough.scope(), request).await?;
        Ok(done.deleted)
    }

    /// Watches this session from now on.
    pub async fn watch(&self) -> Result<Subscription, Error> {
        self.watch_from(StartAt::Now).await
    }

    /// Watches this session from a place on.
    pub async fn watch_from(&self, start: StartAt) -> Result<Subscription, Error> {
        let filter = EventFilter::everything().in_session(self.id.clone());
        self.bough.watch_from(filter, start).await
    }

    fn append_request(&self) -> AppendRequest {
        AppendRequest {
            session_id: self.id.clone(),
            message: None,
            custom: None,
            parent_id: None,
            entry_id: None,
            origin: None,
            stream: None,
            expected_leaf: None,
        }
    }

    async fn append_with(&self, request: AppendRequest) -> Result<EntryId, Error> {
        let appended = self.bough.service().append(self.bough.scope(), request).await?;
        Ok(appended.entry_id)
    }

    async fn read_path(&self, from: Option<EntryId>) -> Result<Vec<PathMessage>, Error> {
        let mut request = MessagesRequest {
            session_id: self.id.clone(),
            limit: Some(usize::MAX),
            cursor: None,
            roles: None,
            from_entry_id: from,
            include_custom: None,
        };
        let mut said = Vec::new();
        loop {
            let page = self.bough.service().messages(self.bough.scope(), request.clone()).await?;
            said.extend(page.messages.into_iter().filter_map(|item| {
                Some(PathMessage { entry_id: item.entry_id, message: item.message? })
            }));
            if page.next_cursor.is_none() {
                return Ok(said);
            }
            request.cursor = page.next_cursor;
        }
    }
}

/// What [`Session::fork_with`] copies, and what it calls the copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkOptions {
    /// Where the path ends that is copied; `None` is the active leaf.
    pub entry_id: Option<EntryId>,
    /// The id of the new session; `None` is a fresh one.
    pub session_id: Option<SessionId>,
    /// The title of the new session; `None` is that of this one.
    pub title: Option<String>,
    /// Whether every branch is copied; `entry_id` then says only where the active path ends.
    pub whole: bool,
    /// Whether the copies have the ids of their originals.
    pub keep_ids: bool,
}
