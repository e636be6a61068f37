//! Makes a store from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_platform::{Clock, Entropy, OsDisk, Platform};
use bough_search::{NativeIndex, SearchError, SearchIndex};
use bough_store::bridge::{BridgeOptions, BridgeStore};
use bough_store::{FsStore, MemoryStore, NativeOptions, NativeStore, Store, StoreError};

use crate::config::{
    AdapterConfig, BridgeConfig, Config, ConfigError, Durability, Lookup, NativeConfig, WsUrl,
    expand_home, without_password,
};
use crate::own_address::OwnAddresses;
use crate::run::NativeWrapper;

/// What a store is made with, beside its configuration.
pub(crate) struct StoreContext<'a> {
    /// The server's data directory.
    pub(crate) data_dir: &'a Path,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The address of this server, written into its locks.
    pub(crate) address: String,
    /// Names this process.
    pub(crate) instance: String,
    /// The addresses of this server's own bus and engine, which a bridge must not lead to.
    pub(crate) own: OwnAddresses,
    pub(crate) lookup: Lookup<'a>,
    /// A wrapper for the native store.
    pub(crate) wrap_native: Option<&'a NativeWrapper>,
}

/// Why a store was not opened. The previous one stays in use.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory is not usable.
    #[error("cannot use the directory {}: {source}; check that it exists and is yours", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The store did not open.
    #[error("the {adapter} adapter did not open: {source}")]
    Store {
        /// Which adapter.
        adapter: &'static str,
        /// The error of the store.
        source: StoreError,
    },
    /// The search index did not open.
    #[error("the search index did not open: {0}")]
    Index(#[from] SearchError),
    /// The bridge would lead back here.
    #[error("the bridge's url {url:?} is this instance itself; name the main instance's bus")]
    SelfReference {
        /// The url.
        url: String,
    },
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Where an adapter stores the sessions, in words for people; never with a secret.
pub(crate) fn where_kept(adapter: &AdapterConfig, data_dir: &Path, lookup: Lookup<'_>) -> String {
    let location = match adapter {
        AdapterConfig::Native(native) => native_dir(native, data_dir, lookup).display().to_string(),
        AdapterConfig::Fs(fs) => expand_home(&fs.data_dir, lookup).display().to_string(),
        AdapterConfig::Memory(_) => "in memory, until the server ends".to_owned(),
        AdapterConfig::Bridge(bridge) => match WsUrl::parse("adapter.config.url", &bridge.url) {
            Ok(url) => format!("at the main {url}"),
            Err(_) => "at the main".to_owned(),
        },
    };
    format!("{location} ({})", adapter.name())
}

fn native_dir(native: &NativeConfig, data_dir: &Path, lookup: Lookup<'_>) -> PathBuf {
    match &native.data_dir {
        Some(text) => expand_home(text, lookup),
        None => data_dir.to_owned(),
    }
}

/// The directory with the files of a configuration's store; `None` if they are not on this machine.
pub(crate) fn native_directory(
    config: &Config,
    context: &StoreContext<'_>,
) -> Result<Option<(PathBuf, Platform)>, OpenError> {
    let AdapterConfig::Native(native) = &config.adapter else { return Ok(None) };
    let dir = native_dir(native, context.data_dir, context.lookup);
    let platform = context.platform(&dir)?;
    Ok(Some((dir, platform)))
}

/// Makes the store that a configuration asks for.
pub(crate) async fn open_store(
    config: &Config,
    context: &StoreContext<'_>,
) -> Result<Arc<dyn Store>, OpenError> {
    let adapter = config.adapter.name();
    let failed = |source| OpenError::Store { adapter, source };
    match &config.adapter {
        AdapterConfig::Native(native) => {
            let dir = native_dir(native, context.data_dir, context.lookup);
            let platform = context.platform(&dir)?;
            let options = NativeOptions {
                durability: durability(config.durability),
                address: context.address.clone(),
                ..NativeOptions::default()
            };
            let opened = NativeStore::open(platform.clone(), dir, options).await;
            let store = opened.map_err(failed)?;
            match context.wrap_native {
                Some(wrap) => wrap(store, platform).map_err(failed),
                None => Ok(Arc::new(store)),
            }
        }
        AdapterConfig::Fs(fs) => {
            let dir = expand_home(&fs.data_dir, context.lookup);
            let platform = context.platform(&dir)?;
            Ok(Arc::new(FsStore::open(platform, dir).map_err(failed)?))
        }
        AdapterConfig::Memory(_) => {
            Ok(Arc::new(MemoryStore::new(context.entropy.clone()).map_err(failed)?))
        }
        AdapterConfig::Bridge(bridge) => open_bridge(bridge, context).await,
    }
}

/// Opens the search index of the store that a configuration asks for. It is beside the sessions, where other processes
/// find it; a store without files here has its index in memory. Through a bridge only the main instance has one.
pub(crate) fn open_index(
    config: &Config,
    context: &StoreContext<'_>,
) -> Result<Option<Arc<dyn SearchIndex>>, OpenError> {
    let folder = match &config.adapter {
        AdapterConfig::Native(native) => native_dir(native, context.data_dir, context.lookup),
        AdapterConfig::Fs(_) => context.data_dir.to_owned(),
        AdapterConfig::Memory(_) => return Ok(Some(Arc::new(NativeIndex::in_memory()?))),
        AdapterConfig::Bridge(_) => return Ok(None),
    };
    let disk = context.platform(&folder)?.disk;
    Ok(Some(Arc::new(NativeIndex::in_folder(disk, &folder, context.clock.clone())?)))
}

async fn open_bridge(
    config: &BridgeConfig,
    context: &StoreContext<'_>,
) -> Result<Arc<dyn Store>, OpenError> {
    let url = WsUrl::parse("adapter.config.url", &config.url)?;
    let itself = || OpenError::SelfReference { url: without_password(&config.url) };
    if context.own.include(&url.host, url.port).await {
        return Err(itself());
    }
    let options = BridgeOptions {
        host: url.host,
        port: url.port,
        url: config.url.clone(),
        timeout: std::time::Duration::from_millis(config.timeout_ms),
        token: config.token.clone(),
        instance: context.instance.clone(),
    };
    let opened = BridgeStore::open(options, context.entropy.clone()).await;
    let store = opened.map_err(|source| OpenError::Store { adapter: "bridge", source })?;
    if store.is_self() { Err(itself()) } else { Ok(Arc::new(store)) }
}

impl StoreContext<'_> {
    fn platform(&self, dir: &Path) -> Result<Platform, OpenError> {
        let disk = OsDisk::create(dir)
            .map_err(|source| OpenError::Directory { path: dir.to_owned(), source })?;
        Ok(Platform {
            disk: Arc::new(disk),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        })
    }
}

const fn durability(durability: Durability) -> bough_store::Durability {
    match durability {
        Durability::Synced => bough_store::Durability::Synced,
        Durability::MayLoseNewestOnPowerCut => bough_store::Durability::MayLoseNewestOnPowerCut,
    }
}
