//! A large session, built out of sight batch by batch, and shown with one rename.

use std::sync::Arc;

use async_trait::async_trait;
use bough_record::Head;
use bough_session::{NewRecord, SessionId, codec, hex};

use super::staged::StagedSession;
use super::writes::WriteState;
use super::{Shared, task_failed};
use crate::StoreError;
use crate::store::Draft;
use crate::sync::lock;
use crate::types::{Appended, Batch, Durable, IncarnationPosition, check_batch, check_first};

/// A [`StagedSession`] for callers that must not block. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct NativeDraft {
    shared: Arc<Shared>,
    session: SessionId,
    /// `None` while a step is at work on it, and at the end.
    staged: Option<StagedSession>,
}

impl NativeDraft {
    pub(super) fn begin(shared: &Arc<Shared>, session: &SessionId) -> Result<Self, StoreError> {
        let mut random = [0; 8];
        shared.platform.entropy.fill(&mut random)?;
        let name = format!("draft-{}", hex(&random));
        let staged = StagedSession::begin(&shared.log, session, &name)?;
        Ok(Self { shared: Arc::clone(shared), session: session.clone(), staged: Some(staged) })
    }

    /// Runs a step where blocking is allowed.
    async fn step<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut StagedSession) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let broken = || StoreError::Unavailable { reason: "the draft was given up".to_owned() };
        let mut staged = self.staged.take().ok_or_else(broken)?;
        let step = tokio::task::spawn_blocking(move || {
            let done = work(&mut staged);
            (staged, done)
        });
        let (staged, done) = step.await.map_err(task_failed)?;
        self.staged = Some(staged);
        done
    }
}

#[async_trait]
impl Draft for NativeDraft {
    async fn add(&mut self, batch: Batch) -> Result<(), StoreError> {
        let Batch { records, state } = batch;
        check_batch(&records)?;
        self.step(move |staged| {
            if !staged.has_begun() {
                check_first(&records)?;
            }
            // Each is let go of as soon as it is encoded: a batch may be many megabytes.
            let encode = |new: NewRecord| codec::encode(&new.record, new.at_ms).into_owned();
            staged.add_folded(records.into_iter().map(encode).collect(), state)
        })
        .await
    }

    async fn finish(mut self: Box<Self>) -> Result<Appended, StoreError> {
        self.step(|staged| staged.publish()).await?;
        self.shown().await
    }

    async fn replace(mut self: Box<Self>, expected: &Head) -> Result<Appended, StoreError> {
        let (shared, expected) = (Arc::clone(&self.shared), *expected);
        self.step(move |staged| {
            // Locked until the new log answers: nothing is accepted for the old one meanwhile.
            let slot = shared.write_slot(staged.session());
            let mut writes = lock(&slot);
            let replaced = staged.replace(expected);
            *writes = WriteState::default();
            replaced
        })
        .await?;
        self.shown().await
    }
}

impl NativeDraft {
    /// Announces the session.
    async fn shown(&self) -> Result<Appended, StoreError> {
        let (shared, session) = (Arc::clone(&self.shared), self.session.clone());
        let shown = tokio::task::spawn_blocking(move || {
            let missing = || StoreError::not_found(&session);
            let snapshot = shared.state(&session)?.ok_or_else(missing)?;
            let end = IncarnationPosition::new(snapshot.head.incarnation, snapshot.position);
            shared.announce(&session, end);
            shared.show();
            Ok::<_, StoreError>(snapshot)
        });
        let snapshot = shown.await.map_err(task_failed)??;
        Ok(Appended { head: snapshot.head, position: snapshot.position, durable: Durable::ready() })
    }
}

impl Drop for NativeDraft {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take() {
            self.shared.runtime.spawn_blocking(move || drop(staged));
        }
    }
}
