use std::path::Path;
use std::sync::Arc;

use bough_platform::{Clock, Entropy, OsEntropy, Platform, SystemClock};
use bough_recorder::{
    DurableOptions, RecordFold, RecordSink as _, RecordedSession, Replay, fold_records,
};
use bough_search::NativeIndex;
use bough_service::api::{
    CreateRequest, EnsureRequest, ListRequest, ListResponse, SearchRequest, SearchResponse,
    UndeleteRequest,
};
use bough_service::{EventFilter, RecordingSink, Scope, Service, ServiceError, StartAt};
use bough_session::{SessionId, SessionMeta};
use bough_store::shared_state::NativeSharedState;
use bough_store::{MemoryStore, NativeOptions, NativeStore, Store};

use crate::{Error, Recorder, Session, Subscription};

/// A store of sessions. Cheap to clone; all clones are the same store.
///
/// It must be used inside a tokio runtime.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::{Bough, user};
///
/// let bough = Bough::in_memory()?;
/// let session = bough.create("Weather").await?;
/// session.append(user("Will it rain?")).await?;
/// assert_eq!(bough.list().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bough {
    service: Service,
    scope: Scope,
}

impl Bough {
    /// Opens the store in a folder, which is made if it is missing. Several processes may open one folder.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(folder, NativeOptions::default()).await
    }

    /// The same, with options.
    pub async fn open_with(
        folder: impl AsRef<Path>,
        options: NativeOptions,
    ) -> Result<Self, Error> {
        let platform = Platform::system(&folder)?;
        let root = folder.as_ref().to_owned();
        let (clock, entropy) = (platform.clock.clone(), platform.entropy.clone());
        let disk = platform.disk.clone();
        let store = NativeStore::open(platform, root.clone(), options).await?;
        let bough = Self::over(Arc::new(store), clock.clone(), entropy);
        // A reply that a crash left open is found here by the task that closes abandoned ones.
        bough.service.set_open_streams(Arc::new(NativeSharedState::open(&*disk, &root)?));
        bough.service.set_search_index(Some(Arc::new(NativeIndex::in_folder(disk, &root, clock)?)));
        Ok(bough)
    }

    /// A store that lasts as long as the program.
    pub fn in_memory() -> Result<Self, Error> {
        let store = MemoryStore::new(Arc::new(OsEntropy))?;
        let bough = Self::on(Arc::new(store));
        bough.service.set_search_index(Some(Arc::new(NativeIndex::in_memory()?)));
        Ok(bough)
    }

    /// Any other store, such as the files of another program or one of your own.
    #[must_use]
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self::over(store, Arc::new(SystemClock::new()), Arc::new(OsEntropy))
    }

    fn over(store: Arc<dyn Store>, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { service: Service::new(store, clock, entropy), scope: Scope::owner() }
    }

    /// The same store as another caller sees it: only the sessions, rights and functions of the scope.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::{Bough, Right, Scope};
    ///
    /// let bough = Bough::in_memory()?;
    /// let owner = serde_json::json!({ "owner": "u_1" });
    /// let scope = Scope::new("u_1", [Right::Read, Right::Write])
    ///     .only_sessions_with(owner.as_object().cloned().unwrap_or_default());
    /// let theirs = bough.scoped(scope);
    /// bough.create("not theirs").await?;
    /// theirs.create("theirs").await?;
    /// assert_eq!(theirs.list().await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn scoped(&self, scope: Scope) -> Self {
        Self { service: self.service.clone(), scope }
    }

    /// Makes a session.
    pub async fn create(&self, title: &str) -> Result<Session, Error> {
        let title = Some(title.to_owned());
        self.create_with(CreateRequest { title, ..CreateRequest::default() }).await
    }

    /// The same with a description and metadata, which lists, feeds and scopes filter by.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    /// use boughdb::api::{CreateRequest, ListRequest};
    /// use serde_json::json;
    ///
    /// let bough = Bough::in_memory()?;
    /// let metadata = json!({ "user": "u7" }).as_object().cloned();
    /// let request = CreateRequest { metadata: metadata.clone(), ..CreateRequest::default() };
    /// bough.create_with(request).await?;
    /// bough.create("of another team").await?;
    /// let page = bough.list_with(ListRequest { metadata, ..ListRequest::default() }).await?;
    /// assert_eq!(page.sessions.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_with(&self, request: CreateRequest) -> Result<Session, Error> {
        let created = self.service.create(&self.scope, request).await?;
        Ok(self.at(created.session_id))
    }

    /// The session with an id of your own; made if it is missing.
    pub async fn ensure(&self, id: &str) -> Result<Session, Error> {
        self.ensure_with(id, CreateRequest::default()).await
    }

    /// The same; the request counts only when the session is made.
    pub async fn ensure_with(&self, id: &str, request: CreateRequest) -> Result<Session, Error> {
        let request = EnsureRequest {
            session_id: SessionId::from_stored(id),
            title: request.title,
            description: request.description,
            metadata: request.metadata,
        };
        let ensured = self.service.ensure(&self.scope, request).await?;
        Ok(self.at(ensured.session_id))
    }

    /// Names a session, without asking whether there is one; [`Session::exists`] asks.
    #[must_use]
    pub fn session(&self, id: &str) -> Session {
        self.at(SessionId::from_stored(id))
    }

    /// The sessions that changed last, the first page of them.
    pub async fn list(&self) -> Result<Vec<SessionMeta>, Error> {
        Ok(self.list_with(ListRequest::default()).await?.sessions)
    }

    /// A page of sessions, with filters and in an order; the next one with its `next_cursor` as `cursor`.
    pub async fn list_with(&self, request: ListRequest) -> Result<ListResponse, Error> {
        Ok(self.service.list(&self.scope, request).await?)
    }

    /// Brings a deleted session back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// let bough = boughdb::Bough::in_memory()?;
    /// let session = bough.ensure("chat-42").await?;
    /// session.delete().await?;
    /// assert!(bough.undelete("chat-42").await?.exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn undelete(&self, id: &str) -> Result<Session, Error> {
        let request = UndeleteRequest { session_id: SessionId::from_stored(id), incarnation: None };
        self.service.undelete(&self.scope, request).await?;
        Ok(self.session(id))
    }

    /// Searches the messages of all sessions, the best hits first: words, `"a phrase"`, `role:user`, `tool:bash`, `after:2026-10-01`.
    /// [`Bough::search_with`] has further pages.
    ///
    /// The index takes up new entries at each search; a program that runs long keeps it up with
    /// [`Service::keep_indexing`].
    pub async fn search(&self, query: &str) -> Result<SearchResponse, Error> {
        let query = query.to_owned();
        self.search_with(SearchRequest { query, ..SearchRequest::default() }).await
    }

    /// The same in sessions with some metadata, with a page size, and from a cursor on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::Bough;
    /// use boughdb::api::SearchRequest;
    ///
    /// let bough = Bough::in_memory()?;
    /// let session = bough.create("Weather").await?;
    /// session.append_many(["Will it rain?", "Rain or snow?"]).await?;
    /// let mut request = SearchRequest { query: "rain".into(), limit: Some(1), ..SearchRequest::default() };
    /// let first = bough.search_with(request.clone()).await?;
    /// request.cursor = first.next_cursor;
    /// let second = bough.search_with(request).await?;
    /// assert_ne!(first.hits[0].entry_id, second.hits[0].entry_id);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn search_with(&self, request: SearchRequest) -> Result<SearchResponse, Error> {
        Ok(self.service.search(&self.scope, request).await?)
    }

    /// Watches all sessions from now on.
    pub async fn watch(&self) -> Result<Subscription, Error> {
        self.watch_from(EventFilter::everything(), StartAt::Now).await
    }

    /// Watches what a filter wants, from a place on.
    pub async fn watch_from(
        &self,
        filter: EventFilter,
        start: StartAt,
    ) -> Result<Subscription, Error> {
        let subscription = self.service.subscribe(&self.scope, filter, start).await?;
        Ok(Subscription::new(subscription))
    }

    /// Starts a recorder: agent events in, sessions out, durable while they arrive.
    ///
    /// `Forbidden` if this handle does not have every right on every session: a recorder does not look at rights.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), boughdb::Error> {
    /// use boughdb::recording::{AgentEnd, AgentStart, Timestamp};
    /// use boughdb::{Bough, assistant, user};
    ///
    /// let bough = Bough::in_memory()?;
    /// let recorder = bough.recorder()?;
    /// let now = Timestamp::now();
    /// recorder.record(AgentStart::new("agent", "chat-1", "chat-1.main.1", now)).await?;
    /// let messages = [user("Hello"), assistant("local", "small", "Hi!")];
    /// recorder.record(AgentEnd::new("chat-1.main.1", messages, now)).await?;
    /// recorder.finish().await?;
    ///
    /// // A recorded session is a session like any other, and keeps its loops.
    /// let session = bough.session("chat-1");
    /// assert_eq!(session.messages().await?.len(), 2);
    /// let recorded = bough.recorded("chat-1").await?.expect("it has loops");
    /// assert_eq!(recorded.loops[0].loop_id, "chat-1.main.1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn recorder(&self) -> Result<Recorder, Error> {
        self.recorder_with(DurableOptions::default())
    }

    /// Starts a recorder with options: hooks, streaming events, an inactivity timeout, a function for notices.
    pub fn recorder_with(&self, options: DurableOptions) -> Result<Recorder, Error> {
        Ok(Recorder::start(self.recording_sink()?, options))
    }

    /// A recorded session with its loops, turns, groups and links, from its log. `None` if there is no such session, or
    /// if it was not recorded from events.
    pub async fn recorded(&self, id: &str) -> Result<Option<RecordedSession>, Error> {
        let records = self.recording_sink()?.load(id).await?;
        Ok(fold_records(id, &records))
    }

    /// The events of a recorded session, in the order in which they came. `None` as for [`Bough::recorded`].
    pub async fn replay(&self, id: &str) -> Result<Option<Replay>, Error> {
        let records = self.recording_sink()?.load(id).await?;
        let mut fold = RecordFold::to_replay(id);
        records.iter().for_each(|record| fold.read(record));
        Ok(fold.replay())
    }

    /// A sink does not look at the rights of a scope, so only the owner may record or read recordings with one.
    fn recording_sink(&self) -> Result<RecordingSink, Error> {
        if self.scope == Scope::owner() {
            return Ok(RecordingSink::new(&self.service, &self.scope));
        }
        let reason = "only the owner of a store may record into it or read recordings".to_owned();
        Err(ServiceError::Forbidden { reason }.into())
    }

    /// Finishes what can be finished and releases the folder.
    pub async fn close(&self) -> Result<(), Error> {
        Ok(self.service.store().close().await?)
    }

    /// Everything else: every function of the API, typed and by name.
    #[must_use]
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// Who calls.
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn at(&self, id: SessionId) -> Session {
        Session::new(self.clone(), id)
    }
}
