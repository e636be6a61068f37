//! A large session, built out of sight batch by batch, and shown with one rename.

use std::sync::Arc;

use async_trait::async_trait;
use bough_log as log;
use bough_record::Head;
use bough_session::{NewRecord, SessionId, SessionState, codec, hex};

use super::writes::{Live, hold};
use super::{Shared, convert, task_failed};
use crate::StoreError;
use crate::store::Draft;
use crate::types::{Appended, Durable, check_batch, check_first};

/// A session that is being built in `staging/`. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct NativeDraft {
    shared: Arc<Shared>,
    session: SessionId,
    /// `None` while a step is at work on it, and at the end.
    staging: Option<log::Staging<SessionState>>,
    has_begun: bool,
}

impl NativeDraft {
    pub(super) fn begin(shared: &Arc<Shared>, session: &SessionId) -> Result<Self, StoreError> {
        let mut random = [0; 8];
        shared.platform.entropy.fill(&mut random)?;
        let staging = shared.log.stage(&format!("draft-{}", hex(&random)));
        let staging = staging.map_err(|error| convert::error(error, session))?;
        Ok(Self {
            shared: Arc::clone(shared),
            session: session.clone(),
            staging: Some(staging),
            has_begun: false,
        })
    }

    /// Runs a step where blocking is allowed.
    async fn step<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&log::Staging<SessionState>, &SessionId) -> log::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let broken = || StoreError::Unavailable { reason: "the draft was given up".to_owned() };
        let staging = self.staging.take().ok_or_else(broken)?;
        let session = self.session.clone();
        let step = tokio::task::spawn_blocking(move || {
            let done = work(&staging, &session).map_err(|error| convert::error(error, &session));
            (staging, done)
        });
        let (staging, done) = step.await.map_err(task_failed)?;
        self.staging = Some(staging);
        done
    }
}

#[async_trait]
impl Draft for NativeDraft {
    async fn add(&mut self, records: Vec<NewRecord>) -> Result<(), StoreError> {
        check_batch(&records)?;
        if !self.has_begun {
            check_first(&records)?;
        }
        let begins = !std::mem::replace(&mut self.has_begun, true);
        self.step(move |staging, session| {
            // Each is let go of as soon as it is encoded: a batch may be many megabytes.
            let encode = |new: NewRecord| codec::encode(&new.record, new.at_ms).into_owned();
            let records: Vec<_> = records.into_iter().map(encode).collect();
            staging.keep_alive()?;
            match begins {
                true => staging.store().create(session.as_str(), records).map(drop),
                false => {
                    let expected = log::Expected::Any;
                    staging.store().append(session.as_str(), expected, records).map(drop)
                }
            }
        })
        .await
    }

    async fn finish(mut self: Box<Self>) -> Result<Appended, StoreError> {
        self.step(|staging, session| {
            staging.store().close(session.as_str())?;
            staging.move_in(session.as_str())
        })
        .await?;
        self.shown().await
    }

    async fn replace(mut self: Box<Self>, expected: &Head) -> Result<Appended, StoreError> {
        let (shared, expected) = (Arc::clone(&self.shared), *expected);
        self.step(move |staging, session| {
            // Held until the new log answers: nothing is accepted for the old one meanwhile.
            let slot = shared.slot(session);
            let mut live = hold(&slot);
            let replaced = staging.replace(session.as_str(), expected);
            *live = Live::default();
            replaced
        })
        .await?;
        self.shown().await
    }
}

impl NativeDraft {
    /// Tells of the session that stands now.
    async fn shown(&self) -> Result<Appended, StoreError> {
        let (shared, session) = (Arc::clone(&self.shared), self.session.clone());
        let shown = tokio::task::spawn_blocking(move || {
            let missing = || StoreError::NotFound { session: session.clone() };
            let snapshot = shared.state(&session)?.ok_or_else(missing)?;
            shared.announce(&session, (snapshot.head.incarnation, snapshot.position));
            shared.show();
            Ok::<_, StoreError>(snapshot)
        });
        let snapshot = shown.await.map_err(task_failed)??;
        Ok(Appended { head: snapshot.head, position: snapshot.position, durable: Durable::ready() })
    }
}

impl Drop for NativeDraft {
    fn drop(&mut self) {
        if let Some(staging) = self.staging.take() {
            // What cannot be removed now is swept away later, as what a crash leaves is.
            self.shared.runtime.spawn_blocking(move || drop(staging.discard()));
        }
    }
}
