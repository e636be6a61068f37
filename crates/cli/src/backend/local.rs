use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_platform::{Disk, OsDisk, Platform, RelPath};
use bough_server::LOCAL_KEY_FILE;
use bough_service::{Scope, Service, ServiceError};
use bough_store::{NativeOptions, NativeStore, Store, StoreError};
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
}

impl Local {
    /// Opens a data directory, making it where it is missing.
    pub(crate) async fn open(data_dir: PathBuf) -> CommandResult<Self> {
        let platform = Platform::system(&data_dir).map_err(|error| refused(&data_dir, &error))?;
        let (clock, entropy) = (platform.clock.clone(), platform.entropy.clone());
        let opened = NativeStore::open(platform, data_dir.clone(), NativeOptions::default()).await;
        let store = opened.map_err(|error| refused(&data_dir, &error))?;
        let service = Service::new(Arc::new(store), clock, entropy);
        Ok(Self { service, scope: Scope::owner(), data_dir: Arc::new(data_dir) })
    }

    pub(super) async fn call(
        &self,
        function: &'static str,
        request: Value,
    ) -> Result<Value, CallError> {
        match self.service.call(&self.scope, function, request.clone()).await {
            Err(ServiceError::Locked { holder }) => match self.server_of(&holder) {
                Some(server) => server.call(function, request).await,
                None => Err(ServiceError::Locked { holder: in_words(&holder) }.into()),
            },
            answer => Ok(answer?),
        }
    }

    /// The store below the service.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.service.store()
    }

    pub(super) async fn close(&self) -> CommandResult<()> {
        self.store().close().await.map_err(CommandError::failed)
    }

    /// The server of the process that holds a lock, if it has one.
    fn server_of(&self, holder: &str) -> Option<Remote> {
        let holder: Holder = serde_json::from_str(holder).ok()?;
        let address = Some(holder.address).filter(|address| !address.is_empty())?;
        Remote::new(&address, read_key(&self.data_dir)).ok()
    }
}

fn refused(data_dir: &Path, error: &dyn std::error::Error) -> CommandError {
    let text = format!("the data directory {} cannot be opened: {error}", data_dir.display());
    CommandError::failed(text).hint("name another one with --data-dir, or in BOUGH_DATA_DIR")
}

/// A failure of the store, as the service would tell it.
pub(super) fn store_failed(error: StoreError) -> CallError {
    ServiceError::from(error).into()
}

/// What a process writes into the locks that it holds.
#[derive(Deserialize)]
struct Holder {
    #[serde(default)]
    pid: Option<u32>,
    #[serde(default)]
    address: String,
}

fn in_words(holder: &str) -> String {
    let pid = serde_json::from_str::<Holder>(holder).ok().and_then(|holder| holder.pid);
    pid.map_or_else(|| holder.to_owned(), |pid| format!("process {pid}"))
}

/// The key that lets commands on a server's own data directory in, where it left one.
fn read_key(data_dir: &Path) -> Option<String> {
    let disk = OsDisk::open(data_dir).ok()?;
    let path = RelPath::parse(LOCAL_KEY_FILE).ok()?;
    let bytes = (&disk as &dyn Disk).read_all(&path, SERVER_KEY_BYTES_MAX).ok()?;
    let key = String::from_utf8(bytes).ok()?;
    Some(key.trim().to_owned()).filter(|key| !key.is_empty())
}
