//! Blobs in the data directory: one file each, in folders by the first two digits of the digest.

use std::io;

use async_trait::async_trait;
use bough_platform::{Platform, RelPath, if_there};
use bough_session::hex;

use super::limits::{BLOB_BYTES_MAX, UNFINISHED_AGE_MS_MAX};
use super::{BlobDigest, BlobError, Blobs, digest_to_keep};

/// The folder's name in the data directory.
const FOLDER: &str = "blobs";
/// The folder of files that are being written.
const UNFINISHED: &str = "unfinished";
/// How many digits name a folder.
const FOLDER_DIGITS: usize = 2;

/// Blobs in a data directory, which several processes may use at once.
#[derive(Clone, Debug)]
pub struct NativeBlobs {
    platform: Platform,
}

impl NativeBlobs {
    /// The blobs of a data directory; `platform.disk` is rooted there. Nothing is created before the first blob.
    pub fn open(platform: Platform) -> io::Result<Self> {
        let blobs = Self { platform };
        blobs.remove_leftovers()?;
        Ok(blobs)
    }

    /// Removes files of processes that ended. A younger file may belong to a running process.
    fn remove_leftovers(&self) -> io::Result<()> {
        let folder = RelPath::parse(FOLDER)?.join(UNFINISHED)?;
        let disk = &*self.platform.disk;
        if disk.stat(&folder)?.is_none() {
            return Ok(());
        }
        let oldest = self.platform.clock.now_ms().saturating_sub(UNFINISHED_AGE_MS_MAX);
        for listed in disk.list(&folder)? {
            let path = folder.join(&listed.name)?;
            let is_old = disk.stat(&path)?.is_some_and(|stat| stat.modified_ms < oldest);
            if is_old && !listed.is_dir {
                disk.remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn keep(&self, digest: BlobDigest, bytes: &[u8]) -> io::Result<()> {
        let disk = &*self.platform.disk;
        let (folder, path) = place(digest)?;
        if disk.stat(&path)?.is_some_and(|stat| stat.len == bytes.len() as u64) {
            // Its writer may not have synced the folder yet.
            return disk.sync_dir(&folder);
        }
        let unfinished = RelPath::parse(FOLDER)?.join(UNFINISHED)?;
        self.make_folders(&[&unfinished, &folder])?;
        let mut random = [0; 16];
        self.platform.entropy.fill(&mut random)?;
        disk.replace(&path, &unfinished.join(&hex(&random))?, bytes)
    }

    /// Makes the folders that are missing, durable before anything is in them.
    fn make_folders(&self, folders: &[&RelPath]) -> io::Result<()> {
        let disk = &*self.platform.disk;
        let top = RelPath::parse(FOLDER)?;
        disk.ensure_dir(&top)?;
        disk.sync_dir(&RelPath::root())?;
        for folder in folders {
            disk.ensure_dir(folder)?;
        }
        disk.sync_dir(&top)
    }

    fn read(&self, digest: BlobDigest) -> Result<Option<Vec<u8>>, BlobError> {
        let (_, path) = place(digest).map_err(unavailable)?;
        let found = if_there(self.platform.disk.read_all(&path, BLOB_BYTES_MAX as u64));
        let Some(bytes) = found.map_err(unavailable)? else { return Ok(None) };
        if BlobDigest::of(&bytes) != digest {
            let reason = format!("{path} has {} bytes with another digest", bytes.len());
            return Err(BlobError::Corrupt { digest, reason });
        }
        Ok(Some(bytes))
    }

    fn list_after(
        &self,
        after: Option<BlobDigest>,
        limit: usize,
    ) -> io::Result<Vec<(BlobDigest, u64)>> {
        let disk = &*self.platform.disk;
        let top = RelPath::parse(FOLDER)?;
        let first = after.map(|digest| folder_name(&digest.hex()).to_owned()).unwrap_or_default();
        let mut found = Vec::new();
        let folders = disk.list_if_there(&top)?.into_iter();
        for folder in folders.filter(|listed| listed.name >= first && listed.name != UNFINISHED) {
            let folder = top.join(&folder.name)?;
            for listed in disk.list(&folder)? {
                let digest = BlobDigest::from_hex(&listed.name);
                let Some(digest) = digest.filter(|digest| Some(*digest) > after) else { continue };
                if found.len() >= limit {
                    return Ok(found);
                }
                let stat = disk.stat(&folder.join(&listed.name)?)?;
                found.extend(stat.map(|stat| (digest, stat.len)));
            }
        }
        Ok(found)
    }

    fn forget(&self, digest: BlobDigest) -> io::Result<bool> {
        let (folder, path) = place(digest)?;
        let disk = &self.platform.disk;
        let is_removed = if_there(disk.remove_file(&path))?.is_some();
        if is_removed {
            disk.sync_dir(&folder)?;
        }
        Ok(is_removed)
    }

    /// Runs work on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, BlobError> {
        let blobs = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&blobs)).await;
        done.map_err(|error| unavailable(io::Error::other(error)))?
    }
}

fn folder_name(digits: &str) -> &str {
    digits.get(..FOLDER_DIGITS).unwrap_or(digits)
}

/// The folder and the file of a blob.
fn place(digest: BlobDigest) -> io::Result<(RelPath, RelPath)> {
    let digits = digest.hex();
    let folder = RelPath::parse(FOLDER)?.join(folder_name(&digits))?;
    let file = folder.join(&digits)?;
    Ok((folder, file))
}

fn unavailable(error: io::Error) -> BlobError {
    BlobError::Unavailable { reason: error.to_string() }
}

#[async_trait]
impl Blobs for NativeBlobs {
    async fn put(&self, bytes: Vec<u8>) -> Result<BlobDigest, BlobError> {
        self.run(move |blobs| {
            let digest = digest_to_keep(&bytes)?;
            blobs.keep(digest, &bytes).map_err(unavailable)?;
            Ok(digest)
        })
        .await
    }

    async fn get(&self, digest: BlobDigest) -> Result<Option<Vec<u8>>, BlobError> {
        self.run(move |blobs| blobs.read(digest)).await
    }

    async fn list(
        &self,
        after: Option<BlobDigest>,
        limit: usize,
    ) -> Result<Vec<(BlobDigest, u64)>, BlobError> {
        self.run(move |blobs| blobs.list_after(after, limit).map_err(unavailable)).await
    }

    async fn remove(&self, digest: BlobDigest) -> Result<bool, BlobError> {
        self.run(move |blobs| blobs.forget(digest).map_err(unavailable)).await
    }
}
