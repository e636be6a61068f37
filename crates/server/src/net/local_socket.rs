//! A Unix socket that one server at a time can serve.

use std::io;
use std::path::Path;
use std::time::Duration;

use bough_platform::{Disk, Lock, LockError, RelPath};
use tokio::net::{UnixListener, UnixStream};

use crate::config::beside;
use crate::limits::SOCKET_WAIT;

/// Why a socket is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalSocketError {
    /// Another server serves it; the address of that one.
    #[error("a server at {address} serves it already")]
    Served { address: String },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A Unix socket that this server serves. It ends with [`LocalSocket::remove`], or when the process does.
#[derive(Debug)]
pub(crate) struct LocalSocket {
    listener: UnixListener,
    owner: u32,
}

/// Keeps other servers from a socket, and removes its file.
#[derive(Debug)]
pub(crate) struct SocketClaim {
    disk: Box<dyn Disk>,
    name: RelPath,
    lock: Box<dyn Lock>,
}

/// Claims a socket and listens on it. `address` is this server's other address, for a server that finds the socket
/// taken.
///
/// The file of a socket outlives a killed server; the lock beside it does not, so the holder of the lock may replace
/// the file. A server that is starting or ending has the lock and does not answer: it is waited for.
pub(crate) async fn claim(
    path: &Path,
    address: &str,
) -> Result<(LocalSocket, SocketClaim), LocalSocketError> {
    /// The pause between two attempts.
    const PAUSE: Duration = Duration::from_millis(20);
    let (disk, name) = beside(path)?;
    let lock_name = RelPath::root().join(&format!("{name}.lock")).map_err(io::Error::from)?;
    let mut waited = Duration::ZERO;
    let lock = loop {
        let holder = match disk.lock(&lock_name, address) {
            Ok(lock) => break lock,
            Err(LockError::Held { holder }) => holder,
            Err(LockError::Io(error)) => return Err(error.into()),
        };
        if UnixStream::connect(path).await.is_ok() || waited >= SOCKET_WAIT {
            return Err(LocalSocketError::Served { address: holder });
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    };
    remove_socket(&*disk, &name)?;
    let listener = UnixListener::bind(path)?;
    // The system reports the owner of the other end of each connection, also of one with ourselves.
    let owner = UnixStream::pair()?.0.peer_cred()?.uid();
    Ok((LocalSocket { listener, owner }, SocketClaim { disk, name, lock }))
}

/// Removes the socket of a killed server. A socket has no bytes; a file that has some is not one.
fn remove_socket(disk: &dyn Disk, name: &RelPath) -> io::Result<()> {
    match disk.stat(name)? {
        None => Ok(()),
        Some(stat) if !stat.is_dir && stat.len == 0 => disk.remove_file(name),
        Some(_) => {
            let text = "there is a file that is not a socket";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
        }
    }
}

impl LocalSocket {
    /// The next connection of the user that the server belongs to. Others, except the superuser, are refused.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let user = stream.peer_cred()?.uid();
            if user == self.owner || user == 0 {
                return Ok(stream);
            }
            tracing::warn!(user, "connection refused: the socket is of another user");
        }
    }
}

impl SocketClaim {
    /// Removes the socket, so that no client connects to a server that is ending.
    pub(crate) fn remove_socket(&self) -> io::Result<()> {
        remove_socket(&*self.disk, &self.name)
    }

    /// Lets another server have the socket.
    pub(crate) fn release(self) -> io::Result<()> {
        self.lock.remove()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bough.sock");
        (folder, path)
    }

    #[tokio::test]
    async fn a_socket_has_one_server_at_a_time() {
        let (_folder, path) = folder();
        let (_socket, first) = claim(&path, "http://first").await.unwrap();
        let served = claim(&path, "http://second").await.unwrap_err();
        assert!(
            matches!(&served, LocalSocketError::Served { address } if address == "http://first"),
            "{served:?}"
        );
        first.remove_socket().unwrap();
        first.release().unwrap();
        claim(&path, "http://second").await.unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_a_killed_server_left_is_replaced() {
        let (_folder, path) = folder();
        drop(UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).await.is_err());
        let (_socket, _claim) = claim(&path, "http://second").await.unwrap();
        UnixStream::connect(&path).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_is_not_taken_for_a_socket() {
        let (folder, _) = folder();
        let path = folder.path().join("notes.txt");
        let (disk, name) = beside(&path).unwrap();
        disk.create(&name).unwrap().write_at(0, b"mine").unwrap();
        let refused = claim(&path, "http://x").await.unwrap_err();
        assert!(matches!(refused, LocalSocketError::Io(_)), "{refused:?}");
        assert_eq!(disk.read_all(&name, 10).unwrap(), b"mine");
    }
}
