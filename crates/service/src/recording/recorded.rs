//! Recorded sessions, folded from their logs and cached while they are queried.

use std::sync::{Arc, Mutex};

use bough_recorder::{RecordFold, RecordedSession};
use bough_session::{Incarnation, SessionId};
use bough_store::{Position, Store, StoreError, StoreExt};

use crate::limits::{RECORDED_SESSION_RECORDS_PER_READ, RECORDED_SESSIONS_CACHED_MAX};
use crate::lock::lock;
use crate::recent_map::RecentMap;

/// The recorded sessions that were queried last.
#[derive(Default)]
pub(crate) struct RecordedSessions {
    folds: Mutex<RecentMap<SessionId, Arc<SessionFold>, RECORDED_SESSIONS_CACHED_MAX>>,
}

/// The fold of one session's log.
type SessionFold = tokio::sync::Mutex<Option<FoldAt>>;

/// A fold, and the position up to which it has read.
struct FoldAt {
    incarnation: Incarnation,
    position: Position,
    fold: RecordFold,
}

impl RecordedSessions {
    /// Reads a session in its present state; `None` if nothing was recorded in it. Reads only what was written since
    /// the last call.
    pub(crate) async fn read<T>(
        &self,
        store: &dyn Store,
        session: &SessionId,
        read: impl FnOnce(Option<&RecordedSession>) -> T,
    ) -> Result<T, StoreError> {
        let fold = self.fold_of(session);
        let mut fold = fold.lock().await;
        let folded = catch_up(store, session, fold.take()).await?;
        let answer = read(folded.as_ref().and_then(|folded| folded.fold.session()));
        *fold = folded;
        Ok(answer)
    }

    fn fold_of(&self, session: &SessionId) -> Arc<SessionFold> {
        let mut folds = lock(&self.folds);
        let fold = folds.take(session).unwrap_or_default();
        folds.put(session.clone(), fold.clone());
        fold
    }
}

/// Reads the records that a fold does not have yet.
async fn catch_up(
    store: &dyn Store,
    session: &SessionId,
    mut known: Option<FoldAt>,
) -> Result<Option<FoldAt>, StoreError> {
    loop {
        let after = known.as_ref().map_or_else(Position::default, |known| known.position);
        let page = match store.records(session, after, RECORDED_SESSION_RECORDS_PER_READ).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            page => page?,
        };
        let incarnation = page.incarnation;
        if known.as_ref().is_some_and(|known| known.incarnation != incarnation) {
            known = None;
            continue;
        }
        let (position, more) = (page.position_after(after), page.more);
        let folded = known.get_or_insert_with(|| FoldAt {
            incarnation,
            position,
            fold: RecordFold::new(session.as_str()),
        });
        folded.position = position;
        page.records.iter().for_each(|stored| folded.fold.read(&stored.record));
        if !more {
            return Ok(known);
        }
    }
}
