//! The context of a session of any length, a part at a time.

use std::sync::Arc;

use bough_session::{ContextOutline, EntryId, SessionId, SessionState};
use bough_store::{ReadStore, StoreExt};

use super::tokens::ContextTokens;
use crate::api::ContextItem;
use crate::error::ServiceError;
use crate::limits::SCAN_ENTRIES;
use crate::rules::reading::{Direction, Walk};

/// What a model would be sent, read a part at a time, so that a context as long as its session need not be in memory.
///
/// The path is read twice: from its end to find the compaction, the edits and the tokens, and then from the first entry
/// that counts.
pub struct ContextStream {
    store: Arc<dyn ReadStore>,
    state: Arc<SessionState>,
    outline: ContextOutline,
    tokens: u64,
    leaf: Option<EntryId>,
    next: Next,
}

/// What is read next.
enum Next {
    /// What the compaction puts first, and the entry that comes after it.
    First,
    /// The path, after this entry; from its root when there is none.
    Path(Option<EntryId>),
    /// Nothing: all of it was read.
    End,
}

impl ContextStream {
    /// Begins to read the context at a leaf (the active one when `None`). `None` if there is no such session, and for a recorded session with
    /// compactions: their blocks are laid over whole loops.
    ///
    /// # Errors
    ///
    /// The store's, or an unknown leaf.
    pub async fn open(
        store: Arc<dyn ReadStore>,
        session: &SessionId,
        leaf: Option<EntryId>,
    ) -> Result<Option<Self>, ServiceError> {
        let Some(snapshot) = store.state(session).await? else { return Ok(None) };
        let state = snapshot.state;
        if state.compactions != Some(0) && state.task_status().is_some() {
            return Ok(None);
        }
        let leaf = leaf.or_else(|| state.leaf.clone());
        let read = read_tokens(&*store, session, leaf.clone()).await?;
        let (tokens, outline) = (read.tokens(), read.outline);
        let next = if leaf.is_some() { Next::First } else { Next::End };
        Ok(Some(Self { store, state, outline, tokens, leaf, next }))
    }

    /// How many tokens it is, estimated as characters / 4.
    #[must_use]
    pub const fn estimated_tokens(&self) -> u64 {
        self.outline.tokens() as u64
    }

    /// How many tokens it is as the newest answer reported it, with estimates for what came after that answer.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The next messages, the oldest first; `None` at the end.
    ///
    /// # Errors
    ///
    /// The store's.
    pub async fn next(&mut self) -> Result<Option<Vec<ContextItem>>, ServiceError> {
        match std::mem::replace(&mut self.next, Next::End) {
            Next::First => self.first_items().await.map(Some),
            Next::Path(after) => self.items_after(after).await,
            Next::End => Ok(None),
        }
    }

    async fn first_items(&mut self) -> Result<Vec<ContextItem>, ServiceError> {
        let mut items = self.outline.first_items();
        let begin = self.outline.begin().cloned();
        if let Some(begin) = &begin
            && let Some(stored) = self.store.entry(&self.state.meta.session_id, begin).await?
        {
            items.extend(self.outline.item(&stored.entry));
        }
        self.next = Next::Path(begin);
        Ok(items.into_iter().map(|item| self.shown(item)).collect())
    }

    async fn items_after(
        &mut self,
        after: Option<EntryId>,
    ) -> Result<Option<Vec<ContextItem>>, ServiceError> {
        let walk = Walk::new(&*self.store, &self.state.meta.session_id, Direction::OldestFirst);
        let mut walk = walk.ending_at(self.leaf.clone()).with_hidden().after(after);
        let Some(entries) = walk.next(SCAN_ENTRIES).await? else { return Ok(None) };
        if !walk.has_ended() {
            self.next = Next::Path(entries.last().map(|stored| stored.entry.id.clone()));
        }
        let items = entries.iter().filter_map(|stored| self.outline.item(&stored.entry));
        Ok(Some(items.map(|item| self.shown(item)).collect()))
    }

    fn shown(&self, item: bough_session::ContextItem) -> ContextItem {
        ContextItem {
            is_streaming: self.state.streams.is_open(&item.entry_id),
            entry_id: item.entry_id,
            message: item.message,
        }
    }
}

/// Reads a path from its end as far as its context needs it.
async fn read_tokens(
    store: &dyn ReadStore,
    session: &SessionId,
    leaf: Option<EntryId>,
) -> Result<ContextTokens, ServiceError> {
    let mut tokens = ContextTokens::default();
    if leaf.is_none() {
        return Ok(tokens);
    }
    let mut walk = Walk::new(store, session, Direction::NewestFirst).ending_at(leaf).with_hidden();
    while !tokens.outline.is_complete()
        && let Some(entries) = walk.next(SCAN_ENTRIES).await?
    {
        for stored in &entries {
            tokens.add(&stored.entry);
            if tokens.outline.is_complete() {
                break;
            }
        }
    }
    Ok(tokens)
}
