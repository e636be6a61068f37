//! `bough serve --socket`: one server for all programs of a user that want one.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::process::{PATIENCE, until};

/// A server on a socket, which was started in a folder.
struct OnSocket {
    child: Child,
    path: PathBuf,
}

fn command(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bough"));
    command.env_clear().env("HOME", folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.arg("serve").arg("--data-dir").arg(folder.join("data"));
    command.arg("--socket").arg(folder.join("s")).args(more);
    command
}

impl OnSocket {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let child = command(folder, more).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, path: folder.join("s") };
        until("an answer on the socket", || server.get("/healthz").is_some());
        server
    }

    /// The status of a request without a token; `None` when nobody answers.
    fn get(&self, path: &str) -> Option<u16> {
        let mut stream = UnixStream::connect(&self.path).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for OnSocket {
    fn drop(&mut self) {
        // A process that has ended cannot be killed again.
        let _ = self.child.kill().is_ok();
        let _ = self.child.wait().is_ok();
    }
}

fn second_start(folder: &Path) -> Output {
    command(folder, &[]).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_second_start_names_the_server_that_is_there_and_a_killed_one_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = OnSocket::start(folder.path(), &[]);
    let second = second_start(folder.path());
    assert_eq!(second.status.code(), Some(4));
    let words = String::from_utf8(second.stderr).unwrap();
    let (_, address) = words.split_once("http://").unwrap_or_else(|| panic!("{words}"));
    let port = address.split(';').next().unwrap().split(':').nth(1).unwrap();
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{words}");
    first.kill();
    assert!(first.path.exists(), "a killed server leaves its socket");
    let third = OnSocket::start(folder.path(), &[]);
    assert_eq!(third.get("/v1/sessions"), Some(200));
}

/// The socket belongs to one user; everybody on the machine can reach the port, so it needs a token.
#[test]
fn the_socket_needs_no_token_and_the_port_beside_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = OnSocket::start(folder.path(), &[]);
    assert_eq!(server.get("/v1/sessions"), Some(200));
    let words = String::from_utf8(second_start(folder.path()).stderr).unwrap();
    let address = words.split_once("http://").unwrap().1.split(';').next().unwrap();
    let by_port = super::client::request(address.parse().unwrap(), "GET", "/v1/sessions", None);
    assert_eq!(by_port.unwrap().status, 401);
}

#[test]
fn a_server_without_clients_ends_by_itself_and_leaves_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = OnSocket::start(folder.path(), &["--idle-exit", "1"]);
    let held = UnixStream::connect(&server.path).unwrap();
    assert_eq!(server.get("/healthz"), Some(200));
    assert!(server.child.try_wait().unwrap().is_none(), "a client is connected");
    drop(held);
    let mut ended = None;
    until("the end of the server", || {
        ended = server.child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(ended.unwrap().success());
    assert!(!server.path.exists());
}
