use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_migrate::{OsV1Files, Recovered, ServedStore};
use bough_platform::{Disk, OsDisk, Platform, RelPath};
use bough_search::NativeIndex;
use bough_server::LOCAL_KEY_FILE;
use bough_service::compaction::CompactionSettings;
use bough_service::{RecordingSink, Scope, Service, ServiceError, Settings};
use bough_session::SessionId;
use bough_store::{NativeOptions, NativeStore, Store, describe_holder};
use serde::Deserialize;
use serde_json::Value;

use super::{CallError, Remote};
use crate::command_error::{CommandError, CommandResult};
use crate::limits::SERVER_KEY_BYTES_MAX;

/// A data directory that this process opens.
#[derive(Clone)]
pub(crate) struct Local {
    service: Service,
    scope: Scope,
    data_dir: Arc<PathBuf>,
    /// The store below the service, if this process opened it.
    served: Option<ServedStore>,
    /// Interrupted migrations that were found, and what was done about each.
    recovered: Arc<[String]>,
}

impl Local {
    /// Opens a data directory, making it where it is missing.
    pub(crate) async fn open(data_dir: PathBuf) -> CommandResult<Self> {
        let platform = Platform::system(&data_dir).map_err(|error| refused(&data_dir, &error))?;
        let (clock, entropy) = (platform.clock.clone(), platform.entropy.clone());
        let disk = platform.disk.clone();
        let options = NativeOptions::default();
        let opened = NativeStore::open(platform.clone(), data_dir.clone(), options).await;
        let native = opened.map_err(|error| refused(&data_dir, &error))?;
        let served = ServedStore::over(native, platform, Arc::new(OsV1Files));
        let recovered = served.recover().await.map_err(|error| refused(&data_dir, &error))?;
        let recovered =
            recovered.iter().map(|(session, done)| recovery_text(session, done)).collect();
        let service = Service::new(Arc::new(served.clone()), clock.clone(), entropy);
        let index = NativeIndex::for_one_command(disk, &data_dir, clock);
        let index = index.map_err(|error| refused(&data_dir, &error))?;
        service.set_search_index(Some(Arc::new(index)));
        let scope = Scope::owner();
        Ok(Self { service, scope, data_dir: Arc::new(data_dir), served: Some(served), recovered })
    }

    /// The sessions of a service that runs in this process.
    pub(crate) fn of_service(service: Service) -> Self {
        let (scope, data_dir) = (Scope::owner(), Arc::default());
        Self { service, scope, data_dir, served: None, recovered: Arc::new([]) }
    }

    /// Interrupted migrations that were found when the directory was opened, and what was done about each.
    pub(crate) fn recovered(&self) -> &[String] {
        &self.recovered
    }

    /// Serves a session file of pi that was not migrated, and returns its session.
    pub(crate) async fn serve_file(&self, address: &str) -> CommandResult<Option<SessionId>> {
        let Some(served) = &self.served else { return Ok(None) };
        let session = served.serve_file(address).await;
        session.map(Some).map_err(crate::commands::export::failed)
    }

    /// Whether pi wrote to a session file after it was migrated. Those lines are not in the session.
    pub(crate) async fn has_grown_since(&self, address: &str) -> bool {
        let Some(served) = &self.served else { return false };
        served.has_changed_since_migration(address).await.unwrap_or(false)
    }

    /// Updates the lists for sessions that were moved beside this store.
    pub(crate) async fn show(&self, sessions: &[SessionId]) {
        let Some(served) = &self.served else { return };
        for session in sessions {
            served.show(session).await;
        }
    }

    pub(super) async fn call(
        &self,
        function: &'static str,
        request: Value,
    ) -> Result<Value, CallError> {
        match self.service.call(&self.scope, function, request.clone()).await {
            Err(ServiceError::Locked { holder }) => match self.server_of(&holder) {
                Some(server) => server.call(function, request).await,
                None => Err(ServiceError::Locked { holder: describe_holder(&holder) }.into()),
            },
            answer => Ok(answer?),
        }
    }

    pub(super) fn set_compaction(&self, settings: &CompactionSettings) {
        let compaction = Arc::new(settings.clone());
        self.service.set_settings(Settings { compaction, ..self.service.settings() });
    }

    /// The store below the service.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.service.store()
    }

    /// Where a recorder records.
    pub(crate) fn recording_sink(&self) -> RecordingSink {
        RecordingSink::new(&self.service, &self.scope)
    }

    pub(crate) async fn close(&self) -> CommandResult<()> {
        self.store().close().await.map_err(CommandError::failed)
    }

    /// The server of the process that holds a lock, if it has one.
    fn server_of(&self, holder: &str) -> Option<Remote> {
        let holder: Holder = serde_json::from_str(holder).ok()?;
        let address = Some(holder.address).filter(|address| !address.is_empty())?;
        Remote::new(&address, read_key(&self.data_dir)).ok()
    }
}

fn recovery_text(session: &SessionId, done: &Recovered) -> String {
    let what = match done {
        Recovered::Nothing | Recovered::UnderWay => "nothing had to be done".to_owned(),
        Recovered::SourceGoesOn => {
            "a migration was interrupted; its file is used as before".to_owned()
        }
        Recovered::Completed => "an interrupted migration was verified and completed".to_owned(),
        Recovered::ForcedBack { reason } => format!("its file is used again: {reason}"),
        Recovered::RollbackAbandoned => {
            "a rollback was interrupted before it took effect; nothing changed".to_owned()
        }
        Recovered::RollbackFinished => "an interrupted rollback was finished".to_owned(),
        Recovered::NeedsOperator { reason } => {
            format!("it cannot be recovered without help: {reason}")
        }
    };
    format!("{session}: {what}")
}

fn refused(data_dir: &Path, error: &dyn std::error::Error) -> CommandError {
    let text = format!("the data directory {} cannot be opened: {error}", data_dir.display());
    CommandError::failed(text).hint("name another directory with --data-dir, or in BOUGH_DATA_DIR")
}

/// What a process writes into the locks that it holds.
#[derive(Deserialize)]
struct Holder {
    #[serde(default)]
    address: String,
}

/// The key of a server on the same data directory, if there is one.
fn read_key(data_dir: &Path) -> Option<String> {
    let disk = OsDisk::open(data_dir).ok()?;
    let path = RelPath::parse(LOCAL_KEY_FILE).ok()?;
    let bytes = (&disk as &dyn Disk).read_all(&path, SERVER_KEY_BYTES_MAX).ok()?;
    let key = String::from_utf8(bytes).ok()?;
    Some(key.trim().to_owned()).filter(|key| !key.is_empty())
}
