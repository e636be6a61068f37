//! A key for commands on the same machine: whoever can read the data directory may use the server on it.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_platform::{Disk, Entropy, RelPath};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::net::Peer;

/// The file that holds the key while a server runs, below the data directory.
pub const LOCAL_KEY_FILE: &str = "server.key";

/// How the bearer of the key is called in the log.
pub(super) const LOCAL_KEY_ID: &str = "local-key";

/// A key that is drawn at each start and written where only the user can read it. It is good on loopback only.
pub(crate) struct LocalKey {
    text: String,
    digest: [u8; 32],
}

impl LocalKey {
    /// Draws a key and writes it down.
    pub(crate) fn draw(disk: &dyn Disk, entropy: &dyn Entropy) -> io::Result<Self> {
        let mut secret = [0; 32];
        entropy.fill(&mut secret)?;
        let text = format!("bough_local_{}", URL_SAFE_NO_PAD.encode(secret));
        let path = RelPath::root().join(LOCAL_KEY_FILE)?;
        let temp = RelPath::root().join("server.key.tmp")?;
        disk.replace(&path, &temp, text.as_bytes())?;
        let digest = Sha256::digest(text.as_bytes()).into();
        Ok(Self { text, digest })
    }

    /// Whether a caller on this machine shows the key.
    pub(crate) fn opens(&self, text: &str, peer: Peer) -> bool {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let is_equal: bool = self.digest.ct_eq(&digest).into();
        is_equal && peer.remote.ip().to_canonical().is_loopback()
    }

    /// Takes the key away, unless another server has written its own.
    pub(crate) fn remove(&self, disk: &dyn Disk) -> io::Result<()> {
        let path = RelPath::root().join(LOCAL_KEY_FILE)?;
        let limit = u64::try_from(self.text.len()).unwrap_or(u64::MAX);
        let is_ours = disk.read_all(&path, limit).is_ok_and(|bytes| bytes == self.text.as_bytes());
        if is_ours { disk.remove_file(&path) } else { Ok(()) }
    }
}

impl std::fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LocalKey(...)")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bough_platform::{OsDisk, OsEntropy};

    use super::*;

    #[test]
    fn the_key_opens_from_this_machine_only() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        let key = LocalKey::draw(&*disk, &OsEntropy).unwrap();
        let path = RelPath::parse(LOCAL_KEY_FILE).unwrap();
        let written = String::from_utf8(disk.read_all(&path, 1000).unwrap()).unwrap();
        let from = |remote: &str| Peer {
            local: "10.0.0.1:1".parse().unwrap(),
            remote: remote.parse().unwrap(),
        };
        assert!(key.opens(&written, from("127.0.0.1:5")));
        assert!(!key.opens(&written, from("10.0.0.2:5")));
        assert!(!key.opens("bough_local_x", from("127.0.0.1:5")));
        assert!(!format!("{key:?}").contains(&written));
        let newer = LocalKey::draw(&*disk, &OsEntropy).unwrap();
        key.remove(&*disk).unwrap();
        assert!(disk.stat(&path).unwrap().is_some(), "another server's key stays");
        newer.remove(&*disk).unwrap();
        assert!(disk.stat(&path).unwrap().is_none());
    }
}
