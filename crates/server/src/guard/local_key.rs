//! A key for commands on the same machine: a program that can read the data directory may use the server on it.

use std::io;
use std::time::Duration;

use bough_platform::{Access, Clock, Disk, Entropy, RelPath};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::secret::{SECRET_CHARS, draw_secret};
use crate::net::Peer;

/// The file that holds the key while a server runs, below the data directory.
pub const LOCAL_KEY_FILE: &str = "server.key";

/// The prefix of a key.
const PREFIX: &str = "bough_local_";
/// The bytes of a key: the beginning, and a secret.
const KEY_BYTES: usize = PREFIX.len() + SECRET_CHARS;

/// How often, and after which pauses, a key is looked for that another server is writing.
const READS_MAX: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// A key that is stored where only the user can read it. All servers on a directory share it, so a command may use any
/// of them. It is valid on loopback only.
pub(crate) struct LocalKey {
    text: String,
    digest: [u8; 32],
}

impl LocalKey {
    /// Reads the stored key, or draws one and stores it. If several servers start at once, the first one's key is used
    /// by all.
    pub(crate) fn draw(
        disk: &dyn Disk,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> io::Result<Self> {
        let text = format!("{PREFIX}{}", draw_secret(entropy)?);
        for _ in 0..READS_MAX {
            if write_new(disk, &text)? {
                return Ok(Self::of(text));
            }
            if let Some(text) = written(disk)? {
                return Ok(Self::of(text));
            }
            clock.sleep(PAUSE);
        }
        // Its writer did not finish it.
        let mut part = [0; 8];
        entropy.fill(&mut part)?;
        let temp = format!("{LOCAL_KEY_FILE}.{:016x}.tmp", u64::from_be_bytes(part));
        disk.replace(&path()?, &RelPath::root().join(&temp)?, text.as_bytes())?;
        Ok(Self::of(text))
    }

    fn of(text: String) -> Self {
        let digest = Sha256::digest(text.as_bytes()).into();
        Self { text, digest }
    }

    /// Stores the key again if another server removed it when it ended.
    pub(crate) fn keep(&self, disk: &dyn Disk) -> io::Result<()> {
        write_new(disk, &self.text).map(drop)
    }

    /// Whether a caller on this machine sent the key.
    pub(crate) fn opens(&self, text: &str, peer: Peer) -> bool {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let is_equal: bool = self.digest.ct_eq(&digest).into();
        is_equal && peer.remote.ip().to_canonical().is_loopback()
    }

    /// Removes the key. Another server that uses it stores it again.
    pub(crate) fn remove(&self, disk: &dyn Disk) -> io::Result<()> {
        if written(disk)?.as_ref() == Some(&self.text) {
            return disk.remove_file(&path()?);
        }
        Ok(())
    }
}

fn path() -> io::Result<RelPath> {
    Ok(RelPath::root().join(LOCAL_KEY_FILE)?)
}

/// Stores a key unless there is one; returns whether it did.
fn write_new(disk: &dyn Disk, text: &str) -> io::Result<bool> {
    let file = match disk.create(&path()?) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    file.write_at(0, text.as_bytes())?;
    file.sync()?;
    Ok(true)
}

/// The stored key, if it is complete.
fn written(disk: &dyn Disk) -> io::Result<Option<String>> {
    let file = match disk.open(&path()?, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; KEY_BYTES + 1];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    let text = String::from_utf8(bytes).ok();
    Ok(text.filter(|text| text.len() == KEY_BYTES && text.starts_with(PREFIX)))
}

impl std::fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LocalKey(...)")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bough_platform::{OsDisk, OsEntropy, SystemClock};

    use super::*;

    fn draw(disk: &Arc<dyn Disk>) -> LocalKey {
        LocalKey::draw(&**disk, &SystemClock::new(), &OsEntropy).unwrap()
    }

    #[test]
    fn servers_that_start_at_once_have_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        let keys: Vec<String> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..8).map(|_| scope.spawn(|| draw(&disk).text)).collect();
            starting.into_iter().map(|server| server.join().unwrap()).collect()
        });
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), 1);
        assert_eq!(written(&*disk).unwrap().as_ref(), keys.first());
    }

    #[test]
    fn a_key_goes_with_the_last_server_that_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        let (first, second) = (draw(&disk), draw(&disk));
        first.remove(&*disk).unwrap();
        second.keep(&*disk).unwrap();
        assert_eq!(written(&*disk).unwrap().as_ref(), Some(&second.text));
        second.remove(&*disk).unwrap();
        assert!(written(&*disk).unwrap().is_none());
    }

    #[test]
    fn a_key_that_was_written_by_half_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        disk.create(&path().unwrap()).unwrap().write_at(0, b"bough_lo").unwrap();
        let key = draw(&disk);
        assert_eq!(written(&*disk).unwrap().as_ref(), Some(&key.text));
    }

    #[test]
    fn the_key_opens_from_this_machine_only() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
        let key = draw(&disk);
        let written = written(&*disk).unwrap().unwrap();
        let from = |remote: &str| Peer {
            local: "10.0.0.1:1".parse().unwrap(),
            remote: remote.parse().unwrap(),
            kind: crate::net::PeerKind::Tcp,
        };
        assert!(key.opens(&written, from("127.0.0.1:5")));
        assert!(!key.opens(&written, from("10.0.0.2:5")));
        assert!(!key.opens("bough_local_x", from("127.0.0.1:5")));
        assert!(!format!("{key:?}").contains(&written));
    }
}
