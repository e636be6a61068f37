//! Finds out which kind of main is at the other end.

use std::sync::{Arc, Mutex, OnceLock};

use bough_platform::Entropy;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use serde_json::{Value, json};

use super::client::{CallError, Client};
use super::session_manager::{SessionManager, is_session_manager};
use super::store::READ;
use crate::StoreError;
use crate::changes::ChangeHub;
use crate::sync::lock;

/// Finds out once, as soon as the main answers. Cheap to clone; clones share the result.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    client: Client,
    hub: ChangeHub,
    entropy: Arc<dyn Entropy>,
    found: Arc<OnceLock<Option<SessionManager>>>,
    attempt: Arc<Mutex<Option<Attempt>>>,
}

/// One attempt to find out, shared by all callers that wait for it.
type Attempt = Shared<BoxFuture<'static, Result<(), CallError>>>;

impl Kind {
    pub(super) fn new(client: Client, hub: ChangeHub, entropy: Arc<dyn Entropy>) -> Self {
        Self { client, hub, entropy, found: Arc::default(), attempt: Arc::default() }
    }

    /// The session-manager main, if the other end is one; `None` for a main with atomic commits.
    pub(super) async fn session_manager(&self) -> Result<Option<&SessionManager>, StoreError> {
        loop {
            if let Some(found) = self.found.get() {
                return Ok(found.as_ref());
            }
            self.attempt().await?;
        }
    }

    /// The running attempt, or a new one. No caller waits for one attempt only to begin another.
    fn attempt(&self) -> Attempt {
        let mut attempt = lock(&self.attempt);
        if let Some(under_way) = attempt.as_ref().filter(|attempt| attempt.peek().is_none()) {
            return under_way.clone();
        }
        // It continues even if the caller that began it no longer waits.
        let task = tokio::spawn(self.clone().find());
        let ended = |ended: Result<_, tokio::task::JoinError>| match ended {
            Ok(found) => found,
            Err(error) => Err(CallError::Lost(error.to_string())),
        };
        attempt.insert(task.map(ended).boxed().shared()).clone()
    }

    async fn find(self) -> Result<(), CallError> {
        let found = self.ask().await?;
        // Only one attempt runs at a time, so this cannot fail.
        let _ = self.found.set(found).is_ok();
        Ok(())
    }

    async fn ask(&self) -> Result<Option<SessionManager>, CallError> {
        match self.client.call(READ, json!({"op": "changes", "limit": 1})).await {
            Ok(Value::Null) | Err(CallError::NoFunction) => {}
            Ok(_) => return Ok(None),
            Err(error) => return Err(error),
        }
        // An engine whose main is not there yet knows neither.
        if !is_session_manager(&self.client).await? {
            return Err(CallError::NoFunction);
        }
        let main =
            SessionManager::new(self.client.clone(), self.hub.clone(), self.entropy.as_ref());
        main.map(Some).map_err(|error| CallError::Lost(error.to_string()))
    }
}
