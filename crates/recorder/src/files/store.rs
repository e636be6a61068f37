//! The trait of a store of whole sessions, and its implementation in files.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bough_platform::Disk;

use super::{AgentSessions, SessionError, SessionFolder};
use crate::model::RecordedSession;

/// A store of whole sessions.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Stores a session. When this returns, it is stored as durably as the store can.
    ///
    /// A session that lacks something that is stored already is not stored ([`SessionError::LostUpdate`]). The call
    /// never waits for another writer ([`SessionError::Locked`]).
    ///
    /// Nothing tells a session from which something was taken out from one that is older. So what was taken out of the
    /// stored one, such as a whole loop, is there again after a recorder that still has it saves its session.
    async fn save(&self, session: &RecordedSession) -> Result<(), SessionError>;

    /// A stored session.
    async fn load(&self, session_id: &str) -> Result<RecordedSession, SessionError>;

    /// The ids of all stored sessions, last changed first.
    async fn list_ids(&self) -> Result<Vec<String>, SessionError>;

    /// Removes a session.
    async fn delete(&self, session_id: &str) -> Result<(), SessionError>;

    /// All sessions of an agent, last changed first. A session that cannot be read does not hide the others.
    ///
    /// The default loads every session; a store with an index may do better.
    async fn list_for_agent(&self, agent_id: &str) -> Result<AgentSessions, SessionError> {
        let mut found = AgentSessions::default();
        for id in self.list_ids().await? {
            match self.load(&id).await {
                Ok(session) if session.agent_id == agent_id => found.sessions.push(session),
                Ok(_) | Err(SessionError::NotFound { .. }) => {}
                Err(error) => {
                    found.unreadable.insert(id, error);
                }
            }
        }
        Ok(found)
    }
}

/// Session files in a folder. The work is done on threads of the tokio runtime that may block.
#[derive(Clone, Debug)]
pub struct FileSystemSessionStore {
    location: Location,
}

#[derive(Clone, Debug)]
enum Location {
    /// A folder that is created at the first save.
    Path(PathBuf),
    Disk(SessionFolder),
}

impl FileSystemSessionStore {
    /// Sessions in a folder, which is created with the first of them.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { location: Location::Path(dir.into()) }
    }

    /// Sessions at the root of a disk.
    #[must_use]
    pub fn on(disk: Arc<dyn Disk>) -> Self {
        Self { location: Location::Disk(SessionFolder::new(disk)) }
    }

    /// Works on the folder; on none if there is none.
    async fn run<T: Send + 'static>(
        &self,
        session_id: &str,
        work: impl FnOnce(Option<&SessionFolder>) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let location = self.location.clone();
        let broken_off = SessionError::BrokenOff { session_id: session_id.to_owned() };
        let work = move || match location {
            Location::Disk(folder) => work(Some(&folder)),
            Location::Path(dir) => work(super::open(&dir)?.as_ref()),
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(Err(broken_off))
    }
}

fn not_found<T>(session_id: String) -> Result<T, SessionError> {
    Err(SessionError::NotFound { session_id })
}

#[async_trait]
impl SessionStore for FileSystemSessionStore {
    async fn save(&self, session: &RecordedSession) -> Result<(), SessionError> {
        // The copy shares the loops with the caller's session, and its knowledge of the file.
        let mut copy = session.clone();
        copy.lineage = session.lineage.shared();
        let location = self.location.clone();
        let work = move |folder: Option<&SessionFolder>| match (folder, location) {
            (Some(folder), _) => folder.save(&copy),
            (None, Location::Path(dir)) => super::save_session(&copy, &dir).map(drop),
            (None, Location::Disk(folder)) => folder.save(&copy),
        };
        self.run(&session.session_id, work).await
    }

    async fn load(&self, session_id: &str) -> Result<RecordedSession, SessionError> {
        let id = session_id.to_owned();
        let work = move |folder: Option<&SessionFolder>| match folder {
            Some(folder) => folder.load(&id),
            None => not_found(id),
        };
        self.run(session_id, work).await
    }

    async fn list_ids(&self) -> Result<Vec<String>, SessionError> {
        self.run("", |folder| folder.map_or_else(|| Ok(Vec::new()), SessionFolder::list_ids)).await
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionError> {
        let id = session_id.to_owned();
        let work = move |folder: Option<&SessionFolder>| match folder {
            Some(folder) => folder.delete(&id),
            None => not_found(id),
        };
        self.run(session_id, work).await
    }

    async fn list_for_agent(&self, agent_id: &str) -> Result<AgentSessions, SessionError> {
        let agent_id = agent_id.to_owned();
        self.run("", move |folder| {
            folder.map_or_else(
                || Ok(AgentSessions::default()),
                |folder| folder.load_for_agent(&agent_id),
            )
        })
        .await
    }
}
