//! How the last reload of the configuration ended, and who does the reloading.

use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;

use crate::api::{ReloadOutcome, ReloadStatus};
use crate::lock::lock;
use crate::service::Service;

/// Reads the configuration from where it lives and applies it; the server's part of
/// `session::on-config-change`.
#[async_trait]
pub trait Reload: Send + Sync {
    /// Reads and applies. An error means that the configuration could not be read at all; one that was read and
    /// could not be built is reported to [`Service::note_reload`] and is no error here.
    async fn reload(&self, service: &Service) -> Result<(), ReloadError>;
}

/// The configuration could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration could not be read: {reason}")]
pub struct ReloadError {
    /// What happened.
    pub reason: String,
}

#[derive(Default)]
pub(crate) struct ReloadState {
    status: Mutex<ReloadStatus>,
    hook: OnceLock<Arc<dyn Reload>>,
    /// One reload at a time, each reading the configuration after the one before has been applied.
    turn: tokio::sync::Mutex<()>,
}

impl ReloadState {
    pub(crate) fn status(&self) -> ReloadStatus {
        lock(&self.status).clone()
    }

    pub(crate) fn note(&self, outcome: Result<(), String>) {
        let mut status = lock(&self.status);
        match outcome {
            Ok(()) => {
                status.last_outcome = ReloadOutcome::Applied;
                status.last_error = None;
            }
            Err(error) => {
                status.last_outcome = ReloadOutcome::Rejected;
                status.last_error = Some(error);
                status.rejected_reloads += 1;
            }
        }
    }

    pub(crate) fn note_waiting(&self, fields: Vec<String>) {
        lock(&self.status).needs_restart = fields;
    }

    pub(crate) fn set_hook(&self, hook: Arc<dyn Reload>) -> bool {
        self.hook.set(hook).is_ok()
    }

    pub(crate) async fn run(&self, service: &Service) -> Result<(), ReloadError> {
        let Some(hook) = self.hook.get() else {
            return Ok(());
        };
        let turn = self.turn.lock().await;
        let done = hook.reload(service).await;
        drop(turn);
        done
    }
}
