use bough_session::{EntryId, SessionDetails, SessionId, SessionMeta};
use bough_store::{PathQuery, PathStart, Store, StoreError, StoreExt};
use schemars::JsonSchema;
use serde::Serialize;

use super::cursor::SessionCursor;
use crate::api::EntryItem;
use crate::limits::SNAPSHOT_MESSAGES;
use crate::rules::entries::ItemShape;

/// A session as it is at one place of its feed, to be shown before what follows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionSnapshot {
    /// Its metadata record.
    pub meta: SessionMeta,
    /// What is known beyond that.
    pub details: SessionDetails,
    /// Where its active path ends, not counting labels: what `expected_leaf` is compared with. Absent in a session without
    /// entries, where `expected_leaf` is `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_leaf: Option<EntryId>,
    /// The newest messages of the active path, oldest first, as the list of messages shows them but without siblings.
    pub messages: Vec<EntryItem>,
    /// Whether older ones were left out; the list of messages has them.
    pub more_messages: bool,
}

impl SessionSnapshot {
    /// Roughly how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        let messages = self.messages.iter().filter_map(|item| item.message.as_ref());
        messages.map(|message| message.get().len()).sum()
    }
}

/// Reads a session until it does not change meanwhile, so that the snapshot is of one position. A session that changes all
/// the time is shown a little ahead of its position: the events after it may repeat something, but leave out nothing.
pub(super) async fn take(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<(SessionSnapshot, SessionCursor)>, StoreError> {
    /// How often to read.
    const READS_MAX: usize = 4;
    let mut reads = 0;
    loop {
        reads += 1;
        let Some(before) = store.state(session).await? else {
            return Ok(None);
        };
        let query = PathQuery { leaf: None, start: PathStart::Leaf, limit: SNAPSHOT_MESSAGES };
        let page = match store.path(session, &query).await {
            Ok(page) => page,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let now = store.state(session).await?;
        let is_unchanged = now.as_ref().is_some_and(|now| now.position == before.position);
        if !is_unchanged && reads < READS_MAX {
            continue;
        }
        let later = now.as_ref().map_or(&before.state.streams, |now| &now.state.streams);
        let shape = ItemShape { format: None, streams: &[&before.state.streams, later] };
        let messages = page.entries.iter().rev().map(|stored| shape.item(&stored.entry));
        let cursor = SessionCursor::at(before.head.incarnation, before.position);
        let snapshot = SessionSnapshot {
            meta: before.state.meta.clone(),
            details: before.state.details(),
            messages: messages.filter(|item| item.message.is_some()).collect(),
            active_leaf: before.state.leaf_without_labels().cloned(),
            more_messages: page.more,
        };
        return Ok(Some((snapshot, cursor)));
    }
}
