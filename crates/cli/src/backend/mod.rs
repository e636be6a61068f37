//! The sessions that a command works on: in a data directory that this process opens, or behind a server.
//!
//! Every command calls functions of the service's table on a [`Backend`], so it works the same on either. A session
//! that another process holds is reached through that process's server, if it has one.

mod calls;
mod direct;
mod error;
mod local;
mod pi_files;
mod remote;
mod search;
mod types;

use std::sync::Arc;

use bough_service::compaction::CompactionSettings;
use bough_store::ReadStore;
use bough_store::bridge::RemoteReads;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::command_error::CommandResult;
use crate::globals::Globals;

pub(crate) use calls::ListRequest;
pub(crate) use error::{CallError, describe_damage, service_failed, store_failed};
pub(crate) use local::Local;
pub(crate) use remote::Remote;
pub(crate) use types::{
    EntriesPage, EventPage, ListPage, Outline, PathPage, SessionEvent, Summary, TrashedSession,
};

/// Where sessions are. Cheap to clone; clones are the same place.
#[derive(Clone)]
pub(crate) enum Backend {
    /// A data directory of this machine.
    Local(Local),
    /// A server.
    Remote(Remote),
}

impl Backend {
    /// Opens what the command line names: the server if one is given, the data directory otherwise.
    pub(crate) async fn open(globals: &Globals) -> CommandResult<Self> {
        if let Some(server) = &globals.server {
            let remote = Remote::new(server, globals.token.clone())?;
            return Ok(Self::Remote(remote));
        }
        Ok(Self::Local(Local::open(globals.data_dir()?).await?))
    }

    /// Calls a function of the service's table.
    pub(crate) async fn call<A: DeserializeOwned>(
        &self,
        function: &'static str,
        request: &impl Serialize,
    ) -> Result<A, CallError> {
        let request = serde_json::to_value(request).map_err(|error| CallError::shape(&error))?;
        let answer = self.call_value(function, request).await?;
        serde_json::from_value(answer).map_err(|error| CallError::shape(&error))
    }

    /// The same with JSON in and out.
    pub(crate) async fn call_value(
        &self,
        function: &'static str,
        request: Value,
    ) -> Result<Value, CallError> {
        match self {
            Self::Local(local) => local.call(function, request).await,
            Self::Remote(remote) => remote.call(function, request).await,
        }
    }

    /// Sets when and how conversations are compacted. A server has settings of its own.
    pub(crate) fn set_compaction(&self, settings: &CompactionSettings) {
        if let Self::Local(local) = self {
            local.set_compaction(settings);
        }
    }

    /// What single sessions are read from, here or through a server.
    pub(crate) fn reads(&self) -> Arc<dyn ReadStore> {
        match self {
            Self::Local(local) => local.store(),
            Self::Remote(remote) => Arc::new(RemoteReads::through(remote.clone())),
        }
    }

    /// Finishes pending work and releases locks.
    pub(crate) async fn close(&self) -> CommandResult<()> {
        match self {
            Self::Local(local) => local.close().await,
            Self::Remote(_) => Ok(()),
        }
    }
}
