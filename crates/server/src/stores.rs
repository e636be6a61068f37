//! Makes a store from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_platform::{OsDisk, Platform};
use bough_search::{NativeIndex, SearchError, SearchIndex};
use bough_store::bridge::{BridgeOptions, BridgeStore};
use bough_store::{FsStore, MemoryStore, NativeOptions, NativeStore, Store, StoreError};

use crate::config::{
    AdapterConfig, BridgeConfig, Config, ConfigError, Durability, NativeConfig, WsUrl, expand_home,
    without_password,
};
use crate::inspection::StoreDirectory;
use crate::settings::Sources;

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

fn native_dir(native: &NativeConfig, sources: &Sources) -> PathBuf {
    match &native.data_dir {
        Some(text) => expand_home(text, &*sources.environment),
        None => sources.data_dir.clone(),
    }
}

impl Sources {
    /// Where a configuration stores the sessions, in words for people; never with a secret.
    pub(crate) fn where_kept(&self, config: &Config) -> String {
        let location = match &config.adapter {
            AdapterConfig::Native(native) => native_dir(native, self).display().to_string(),
            AdapterConfig::Fs(fs) => {
                expand_home(&fs.data_dir, &*self.environment).display().to_string()
            }
            AdapterConfig::Memory(_) => "in memory, until the server ends".to_owned(),
            AdapterConfig::Bridge(bridge) => {
                match WsUrl::parse("adapter.config.url", &bridge.url) {
                    Ok(url) => format!("at the main {url}"),
                    Err(_) => "at the main".to_owned(),
                }
            }
        };
        format!("{location} ({})", config.adapter.name())
    }

    /// The directory of the files of a configuration's store, and of the results of reading them; `None` if they are not on this
    /// machine.
    pub(crate) fn directory(&self, config: &Config) -> Result<Option<StoreDirectory>, OpenError> {
        let AdapterConfig::Native(native) = &config.adapter else { return Ok(None) };
        let path = native_dir(native, self);
        let platform = self.platform(&path)?;
        let (server_disk, shared) = (self.disk.clone(), self.shared.clone());
        Ok(Some(StoreDirectory { path, platform, server_disk, shared }))
    }

    /// Makes the store that a configuration asks for.
    pub(crate) async fn open(&self, config: &Config) -> Result<Arc<dyn Store>, OpenError> {
        let adapter = config.adapter.name();
        let failed = |source| OpenError::Store { adapter, source };
        match &config.adapter {
            AdapterConfig::Native(native) => {
                let dir = native_dir(native, self);
                let platform = self.platform(&dir)?;
                let options = NativeOptions {
                    durability: durability(config.durability),
                    address: self.address.clone(),
                    ..NativeOptions::default()
                };
                let opened = NativeStore::open(platform.clone(), dir, options).await;
                let store = opened.map_err(failed)?;
                match &self.wrap_native {
                    Some(wrap) => wrap(store, platform).map_err(failed),
                    None => Ok(Arc::new(store)),
                }
            }
            AdapterConfig::Fs(fs) => {
                let dir = expand_home(&fs.data_dir, &*self.environment);
                let platform = self.platform(&dir)?;
                Ok(Arc::new(FsStore::open(platform, dir).map_err(failed)?))
            }
            AdapterConfig::Memory(_) => {
                Ok(Arc::new(MemoryStore::new(self.entropy.clone()).map_err(failed)?))
            }
            AdapterConfig::Bridge(bridge) => self.open_bridge(bridge).await,
        }
    }

    /// Opens the search index of the store that a configuration asks for. It is beside the sessions, where other processes
    /// find it; a store without files here has its index in memory. Through a bridge only the main instance has one.
    pub(crate) fn open_index(
        &self,
        config: &Config,
    ) -> Result<Option<Arc<dyn SearchIndex>>, OpenError> {
        let folder = match &config.adapter {
            AdapterConfig::Native(native) => native_dir(native, self),
            AdapterConfig::Fs(_) => self.data_dir.clone(),
            AdapterConfig::Memory(_) => return Ok(Some(Arc::new(NativeIndex::in_memory()?))),
            AdapterConfig::Bridge(_) => return Ok(None),
        };
        let disk = self.platform(&folder)?.disk;
        Ok(Some(Arc::new(NativeIndex::in_folder(disk, &folder, self.clock.clone())?)))
    }

    async fn open_bridge(&self, config: &BridgeConfig) -> Result<Arc<dyn Store>, OpenError> {
        let url = WsUrl::parse("adapter.config.url", &config.url)?;
        let itself = || OpenError::SelfReference { url: without_password(&config.url) };
        if self.own.include(&url.host, url.port).await {
            return Err(itself());
        }
        let options = BridgeOptions {
            host: url.host,
            port: url.port,
            url: config.url.clone(),
            timeout: std::time::Duration::from_millis(config.timeout_ms),
            token: config.token.clone(),
            instance: self.instance.clone(),
        };
        let opened = BridgeStore::open(options, self.entropy.clone()).await;
        let store = opened.map_err(|source| OpenError::Store { adapter: "bridge", source })?;
        if store.is_self() { Err(itself()) } else { Ok(Arc::new(store)) }
    }

    fn platform(&self, dir: &Path) -> Result<Platform, OpenError> {
        let disk = OsDisk::create(dir)
            .map_err(|source| OpenError::Directory { path: dir.to_owned(), source })?;
        let (clock, entropy) = (self.clock.clone(), self.entropy.clone());
        Ok(Platform { disk: Arc::new(disk), clock, entropy })
    }
}

const fn durability(durability: Durability) -> bough_store::Durability {
    match durability {
        Durability::Synced => bough_store::Durability::Synced,
        Durability::MayLoseNewestOnPowerCut => bough_store::Durability::MayLoseNewestOnPowerCut,
    }
}
