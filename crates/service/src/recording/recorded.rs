//! Recorded sessions as their logs make them, kept at hand while somebody asks about them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bough_recorder::{RecordFold, RecordedSession};
use bough_session::{Incarnation, SessionId};
use bough_store::{Position, Store, StoreError, StoreExt};

use crate::limits::{RECORDED_SESSION_RECORDS_PER_READ, RECORDED_SESSIONS_AT_HAND};

/// The recorded sessions that were asked about last.
#[derive(Default)]
pub(crate) struct RecordedSessions {
    /// The one that was asked about last is at the back.
    folds: Mutex<VecDeque<(SessionId, Arc<SessionFold>)>>,
}

/// The fold of one session's log.
type SessionFold = tokio::sync::Mutex<Option<FoldAt>>;

/// A fold, and how far it has read.
struct FoldAt {
    incarnation: Incarnation,
    position: Position,
    fold: RecordFold,
}

impl RecordedSessions {
    /// Looks at a session as of now; `None` if nothing was recorded in it. Reads only what was written since the last look.
    pub(super) async fn look<T>(
        &self,
        store: &dyn Store,
        session: &SessionId,
        look: impl FnOnce(Option<&RecordedSession>) -> T,
    ) -> Result<T, StoreError> {
        let fold = self.fold_of(session);
        let mut fold = fold.lock().await;
        let folded = catch_up(store, session, fold.take()).await?;
        let answer = look(folded.as_ref().and_then(|folded| folded.fold.session()));
        *fold = folded;
        Ok(answer)
    }

    fn fold_of(&self, session: &SessionId) -> Arc<SessionFold> {
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        let at = folds.iter().position(|(id, _)| id == session);
        let found = at.and_then(|at| folds.remove(at));
        let (id, fold) = found.unwrap_or_else(|| (session.clone(), Arc::default()));
        folds.push_back((id, Arc::clone(&fold)));
        if folds.len() > RECORDED_SESSIONS_AT_HAND {
            folds.pop_front();
        }
        fold
    }
}

/// Reads what a fold does not know yet.
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
