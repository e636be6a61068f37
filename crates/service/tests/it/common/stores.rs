//! The stores that the tests run on. A new adapter is added here and in `on_every_store!`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bough_platform::{Clock, Entropy, OsDisk, Platform};
use bough_store::{FsStore, MemoryStore, NativeOptions, NativeStore, Store};

/// Opens a store on the same data each time.
#[async_trait]
pub trait StoreFactory: Send + Sync {
    async fn open(&self, entropy: Arc<dyn Entropy>, clock: Arc<dyn Clock>) -> Arc<dyn Store>;

    /// Where the data are on the disk, for stores that have some there.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

pub fn memory() -> Arc<dyn StoreFactory> {
    Arc::new(MemoryFactory::default())
}

pub fn fs() -> Arc<dyn StoreFactory> {
    Arc::new(DiskFactory::new(DiskKind::Fs))
}

pub fn native() -> Arc<dyn StoreFactory> {
    Arc::new(DiskFactory::new(DiskKind::Native))
}

#[derive(Default)]
struct MemoryFactory {
    store: Mutex<Option<MemoryStore>>,
}

#[async_trait]
impl StoreFactory for MemoryFactory {
    async fn open(&self, entropy: Arc<dyn Entropy>, _: Arc<dyn Clock>) -> Arc<dyn Store> {
        let mut store = self.store.lock().unwrap();
        let store = store.get_or_insert_with(|| MemoryStore::new(entropy).unwrap());
        Arc::new(store.clone())
    }
}

/// The adapters that keep their data on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    Fs,
    Native,
}

impl DiskKind {
    pub const ALL: [Self; 2] = [Self::Fs, Self::Native];

    /// Opens a store on a disk, which is at `root`; there the native store keeps its catalogue.
    pub async fn open_on(self, platform: Platform, root: PathBuf) -> Arc<dyn Store> {
        match self {
            Self::Fs => Arc::new(FsStore::open(platform, root).unwrap()),
            Self::Native => {
                let opened = NativeStore::open(platform, root, NativeOptions::default()).await;
                Arc::new(opened.unwrap())
            }
        }
    }
}

pub struct DiskFactory {
    pub directory: tempfile::TempDir,
    kind: DiskKind,
}

impl DiskFactory {
    pub fn new(kind: DiskKind) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), kind }
    }
}

#[async_trait]
impl StoreFactory for DiskFactory {
    async fn open(&self, entropy: Arc<dyn Entropy>, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let platform = Platform {
            disk: Arc::new(OsDisk::create(self.directory.path()).unwrap()),
            clock,
            entropy,
        };
        let root = self.directory.path().to_owned();
        self.kind.open_on(platform, root).await
    }

    fn directory(&self) -> Option<&Path> {
        Some(self.directory.path())
    }
}
