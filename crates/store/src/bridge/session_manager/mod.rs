//! Storing through session-manager as the main: it offers metadata, entries and leaves one by one, and no atomic
//! commit.
//!
//! Each session is kept here as a log of what was seen of it. What this instance writes is added as it is; what others
//! wrote is found as the difference to the main's present state. So subscribers here receive everything once. Only a
//! bounded number of sessions is kept; changes of an evicted one are delivered as a gap. Records that session-manager
//! cannot express are stored as reserved custom entries, as in its files. Two instances that write to one session at
//! the same moment can still overtake each other, as they can with session-manager alone: only a main with
//! `session::store::commit` can refuse one of them.

mod events;
mod outgoing;
mod sessions;

use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Entropy;
use bough_session::{BranchHead, EntryId, NewRecord, SessionId, SessionMeta, UsageByDay};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::sessions::{Kept, Sessions};
use super::client::{CallError, Client, Link};
use crate::changes::ChangeHub;
use crate::limits::MANAGED_SESSIONS_MAX;
use crate::listing::{self, ListItem};
use crate::memory::{delta_record, new_incarnation};
use crate::memory_session::MemorySession;
use crate::types::{
    Appended, Durable, EntryQuery, IncarnationPosition, ListPage, ListQuery, Listed, Loaded,
    PathPage, PathQuery, RecordPage, RecordQuery, StoredEntry, Trashed, UsageQuery, UsageReport,
    Write,
};
use crate::{ReadStore, StoreError};
use bough_record::{Head, Position};

const PREFIX: &str = "session::store::";

/// A main that is session-manager. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct SessionManager {
    client: Client,
    hub: ChangeHub,
    sessions: Arc<Sessions>,
}

/// Whether the main is session-manager.
pub(super) async fn is_session_manager(client: &Client) -> Result<bool, CallError> {
    match client.call("session::store::list-metas", json!({})).await {
        Ok(_) => Ok(true),
        Err(CallError::NoFunction) => Ok(false),
        Err(error) => Err(error),
    }
}

impl SessionManager {
    pub(super) fn new(
        client: Client,
        hub: ChangeHub,
        entropy: &dyn Entropy,
    ) -> Result<Self, StoreError> {
        let sessions = Arc::new(Sessions::new(new_incarnation(entropy)?, MANAGED_SESSIONS_MAX));
        Ok(Self { client, hub, sessions })
    }

    async fn call<T: DeserializeOwned>(&self, name: &str, data: Value) -> Result<T, StoreError> {
        let answer = self.client.call(&format!("{PREFIX}{name}"), data).await?;
        serde_json::from_value(answer).map_err(|error| StoreError::Unavailable {
            reason: format!("the main's answer cannot be read: {error}"),
        })
    }

    fn kept(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<Kept>> {
        self.sessions.of(session, |session| self.hub.is_watched(session))
    }

    /// Reads a session as the main has it now.
    async fn look<T>(
        &self,
        session: &SessionId,
        look: impl FnOnce(&MemorySession) -> T,
    ) -> Result<Option<T>, StoreError> {
        let kept = self.kept(session);
        let mut kept = kept.lock().await;
        self.refresh(session, &mut kept).await?;
        Ok(kept.image().map(look))
    }

    /// Updates the kept log to the main's present state, and announces what is new.
    async fn refresh(&self, session: &SessionId, kept: &mut Kept) -> Result<(), StoreError> {
        let named = json!({ "session_id": session });
        let meta: Option<SessionMeta> = self.call("get-meta", named.clone()).await?;
        let (before, is_unknown) = (kept.end(), kept.is_unknown);
        if let Some(meta) = meta {
            let entries: Value = self.call("list-entries", named.clone()).await?;
            let leaf: Value = self.call("get-active-leaf", named).await?;
            self.sessions.take_in(session, kept, meta, &entries, &leaf);
        } else {
            kept.forget();
        }
        if is_unknown {
            kept.found_quietly();
        } else {
            self.announce(session, kept, before);
        }
        Ok(())
    }

    fn announce(&self, session: &SessionId, kept: &Kept, before: Option<IncarnationPosition>) {
        let now = kept.end();
        if let Some(end) = now.or(before).filter(|_| now != before) {
            self.hub.publish_since(session, before, end, now.is_none());
        }
    }

    pub(super) async fn write(
        &self,
        session: &SessionId,
        write: Write,
    ) -> Result<Appended, StoreError> {
        write.check()?;
        let kept = self.kept(session);
        let mut kept = kept.lock().await;
        self.refresh(session, &mut kept).await?;
        let present = kept.image().cloned();
        let (image, records, is_new) = match write {
            _ if session.is_documents() => {
                return Err(StoreError::Unsupported { capability: "hold documents by key" });
            }
            Write::Replace { .. } => {
                return Err(StoreError::Unsupported { capability: "replace another" });
            }
            Write::Create(_) if present.is_some() => {
                return Err(StoreError::exists(session));
            }
            Write::Create(batch) => {
                (MemorySession::new(session, self.sessions.new_incarnation()), batch.records, true)
            }
            Write::Append { expected, batch } => {
                let image = present.ok_or_else(|| StoreError::not_found(session))?;
                image.expect_head(&expected)?;
                (image, batch.records, false)
            }
            Write::Step(delta) => {
                let image = present.ok_or_else(|| StoreError::not_found(session))?;
                let step = delta_record(&image, delta)?;
                (image, vec![step], false)
            }
        };
        image.check(&records)?;
        self.send(session, &mut kept, image, records, is_new).await
    }

    /// Writes records to the main one by one, then adds them to the kept log, then announces them.
    async fn send(
        &self,
        session: &SessionId,
        kept: &mut Kept,
        before: MemorySession,
        records: Vec<NewRecord>,
        is_new: bool,
    ) -> Result<Appended, StoreError> {
        let mut after = before.clone();
        records.iter().for_each(|new| after.push(new.clone()));
        let calls = outgoing::calls(&before, &after, &records, is_new, &self.sessions.name())?;
        for (name, data) in calls {
            let entry = data.get("entry").cloned().unwrap_or_default();
            // If one fails, a part of the batch is stored: it is found as a difference at the next
            // read.
            self.call::<Value>(name, data).await?;
            kept.note(&entry);
        }
        let end = kept.end();
        let (head, position) = (after.head(), Position::at(after.seq()));
        let events = events::envelopes(&before, &after, &records, is_new);
        kept.put(after);
        self.announce(session, kept, end);
        self.publish(events).await;
        Ok(Appended { head, position, durable: Durable::ready() })
    }

    /// Publishes events to the main, which notifies its own subscribers and the other instances. The records are stored
    /// already, so a main that is gone by now is not a failure.
    async fn publish(&self, events: Vec<Value>) {
        if !events.is_empty() {
            self.call::<Value>("publish-events", json!({ "events": events })).await.ok();
        }
    }

    pub(super) async fn delete(
        &self,
        session: &SessionId,
        at_ms: i64,
    ) -> Result<Option<Trashed>, StoreError> {
        let kept = self.kept(session);
        let mut kept = kept.lock().await;
        self.refresh(session, &mut kept).await?;
        let Some(image) = kept.image().cloned() else {
            return Ok(None);
        };
        for step in ["delete-entries", "delete-active-leaf", "delete-meta"] {
            self.call::<Value>(step, json!({ "session_id": session })).await?;
        }
        let before = kept.end();
        kept.forget();
        self.announce(session, &kept, before);
        self.publish(vec![events::deleted(&image, at_ms)]).await;
        Ok(Some(Trashed {
            session_id: session.clone(),
            incarnation: image.incarnation,
            deleted_at: Some(at_ms),
            state: image.state,
        }))
    }

    pub(super) async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let now = self.hub.cursor();
        listing::list(&self.items().await?, query, now)
    }

    pub(super) async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError> {
        Ok(listing::sums(self.items().await?.iter().map(|item| &item.listed), query))
    }

    /// session-manager lists metadata; further details come from the kept log of the session.
    async fn items(&self) -> Result<Vec<ListItem>, StoreError> {
        let mut items = Vec::new();
        for meta in self.metas().await? {
            let details = match self.sessions.peek(&meta.session_id) {
                Some(kept) => kept.lock().await.image().map(|image| image.state.details()),
                None => self.sessions.details(&meta.session_id),
            };
            let details = details.unwrap_or_default();
            let mut own = details.usage.clone();
            own.remove_sum(&details.copied_usage);
            let by_day = Arc::new(UsageByDay::on_one_day(meta.updated_at, &own.models));
            let listed = Listed { meta, details, by_day };
            items.push(ListItem { listed, change: 0 });
        }
        Ok(items)
    }

    async fn metas(&self) -> Result<Vec<SessionMeta>, StoreError> {
        #[derive(serde::Deserialize)]
        struct Answer {
            metas: Vec<SessionMeta>,
        }
        Ok(self.call::<Answer>("list-metas", json!({})).await?.metas)
    }

    /// Follows what others write, until the task is ended: the main calls us with each event, and after each reconnect
    /// everything is read again.
    pub(super) async fn follow(&self) {
        let mut calls = self.client.host(&self.sessions.name(), "session::store::events").await;
        let mut link = self.client.link();
        let mut is_begun = self.begin().await;
        loop {
            tokio::select! {
                call = calls.recv() => {
                    let Some(envelope) = call else { return };
                    self.hear(&envelope).await;
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    if *link.borrow_and_update() == Link::Up {
                        match is_begun {
                            true => self.look_at_everything().await,
                            false => is_begun = self.begin().await,
                        }
                    }
                }
            }
        }
    }

    /// Reads the sessions that changed last, as many as are kept. Their present content is not
    /// announced.
    async fn begin(&self) -> bool {
        let Ok(mut metas) = self.metas().await else {
            return false;
        };
        metas.sort_by_key(|meta| std::cmp::Reverse(meta.updated_at));
        for meta in metas.iter().take(self.sessions.most()) {
            self.look_again(&meta.session_id).await;
        }
        if metas.len() <= self.sessions.most() {
            self.sessions.set_whole();
        }
        true
    }

    /// Takes in an event of the main.
    async fn hear(&self, envelope: &Value) {
        let payload = envelope.get("payload").unwrap_or(&Value::Null);
        let Some(session) = payload.get("session_id").and_then(Value::as_str) else { return };
        let session = SessionId::from_stored(session);
        let kept = self.kept(&session);
        let mut kept = kept.lock().await;
        let was_unknown = kept.is_unknown;
        // A session that cannot be read now is read again with the next event or connection.
        if self.refresh(&session, &mut kept).await.is_err() {
            return;
        }
        let is_new =
            envelope.get("trigger_type").and_then(Value::as_str) == Some("session::created");
        if was_unknown && is_new {
            kept.set_announced();
            self.announce(&session, &kept, None);
        } else if was_unknown || kept.is_unannounced(payload) {
            self.announce_unknown(&session, kept.image().is_none());
        }
    }

    /// Announces a change without a known record: a gap, unless the session was deleted.
    fn announce_unknown(&self, session: &SessionId, deleted: bool) {
        let unknown = self.sessions.new_incarnation();
        self.hub.publish(session, unknown, Position::default()..Position::at(1), deleted);
    }

    async fn look_again(&self, session: &SessionId) {
        let kept = self.kept(session);
        let mut kept = kept.lock().await;
        // A session that cannot be read now is read again with the next event or connection.
        let _ = self.refresh(session, &mut kept).await.is_ok();
    }

    /// Finds changes from the time without a connection. For sessions that are not kept, that is a gap.
    async fn look_at_everything(&self) {
        let Ok(metas) = self.metas().await else { return };
        let known = self.sessions.known();
        let mut others = metas.into_iter().map(|meta| meta.session_id);
        let mut others = others.by_ref().filter(|session| !known.contains(session));
        if self.sessions.is_partial() {
            if let Some(session) = others.next() {
                self.announce_unknown(&session, false);
            }
        } else {
            for session in others {
                self.look_again(&session).await;
            }
        }
        for session in known {
            self.look_again(&session).await;
        }
    }
}

/// session-manager keeps nothing of what it deletes: there is only the present incarnation.
#[async_trait]
impl ReadStore for SessionManager {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        Ok(Loaded::unless(known, self.look(session, MemorySession::snapshot).await?))
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        let read = |image: &MemorySession| {
            let is_asked = query.incarnation.is_none_or(|asked| asked == image.incarnation);
            is_asked.then(|| image.read_entry(query)).flatten()
        };
        Ok(self.look(session, read).await?.flatten())
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let page = self.look(session, |image| image.path(query)).await?;
        page.ok_or_else(|| StoreError::not_found(session))?
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        let page = self.look(session, |image| image.records(query)).await?;
        let is_asked =
            |page: &RecordPage| query.incarnation.is_none_or(|asked| asked == page.incarnation);
        page.filter(is_asked).ok_or_else(|| StoreError::not_found(session))
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        let heads = self.look(session, |image| image.branch_heads(before, limit)).await?;
        heads.ok_or_else(|| StoreError::not_found(session))?
    }
}
