//! A server in a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_platform::{Disk, OsDisk, OsEntropy, RelPath};
use bough_server::{NewToken, ServeOptions, Server, TokenFile};
use bough_service::Right;
use serde_json::Value;

use crate::client::{Client, Worker};

/// A directory, and the server in it.
pub(crate) struct TestServer {
    dir: Arc<tempfile::TempDir>,
    server: Server,
}

impl TestServer {
    /// A server with this configuration.
    pub(crate) async fn with(config: &str) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        write(dir.path(), config);
        Self::again(dir).await
    }

    /// A server that keeps nothing.
    pub(crate) async fn in_memory() -> Self {
        Self::with("adapter: {name: memory}").await
    }

    /// A server on a directory that may already have data.
    pub(crate) async fn again(dir: Arc<tempfile::TempDir>) -> Self {
        let server = Server::start(options(dir.path())).await.unwrap();
        Self { dir, server }
    }

    /// A server with all settings in its file: no flag overrides one.
    pub(crate) async fn by_file(more: &str) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        write(dir.path(), &whole_file(dir.path(), more));
        let options = ServeOptions {
            config: Some(dir.path().join("config.yaml")),
            environment: Some(Arc::new(|_| None)),
            ..ServeOptions::default()
        };
        let server = Server::start(options).await.unwrap();
        Self { dir, server }
    }

    /// Replaces that file; settings that it does not mention are as at the start.
    pub(crate) fn reconfigure_by_file(&self, more: &str) {
        write(self.dir.path(), &whole_file(self.dir.path(), more));
    }

    /// Ends the server, and gives back its directory.
    pub(crate) async fn stop(self) -> Arc<tempfile::TempDir> {
        self.server.stop().await;
        self.dir
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.http_address())
    }

    pub(crate) async fn worker(&self) -> Worker {
        Worker::connect(self.server.bus_address().unwrap(), None).await
    }

    pub(crate) async fn worker_with(&self, token: &str) -> Worker {
        Worker::connect(self.server.bus_address().unwrap(), Some(token)).await
    }

    pub(crate) fn bus(&self) -> std::net::SocketAddr {
        self.server.bus_address().unwrap()
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Replaces the configuration file.
    pub(crate) fn reconfigure(&self, config: &str) {
        write(self.dir.path(), config);
    }
}

pub(crate) fn options(dir: &Path) -> ServeOptions {
    ServeOptions {
        data_dir: Some(dir.to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        bus: Some("127.0.0.1:0".to_owned()),
        environment: Some(Arc::new(|_| None)),
        ..ServeOptions::default()
    }
}

/// Makes a token in a directory; its text.
pub(crate) fn token(dir: &Path, scope: Value, rights: &[Right]) -> String {
    let disk = OsDisk::open(dir).unwrap();
    let new = NewToken {
        scope: scope.as_object().unwrap().clone(),
        rights: rights.to_vec(),
        ..NewToken::default()
    };
    let (text, _) = TokenFile::new(&disk).create(new, &OsEntropy, 1).unwrap();
    text.reveal().to_owned()
}

/// A file that says where the server is, unless `more` does.
fn whole_file(dir: &Path, more: &str) -> String {
    let places = [
        ("listen:", "'127.0.0.1:0'".to_owned()),
        ("bus:", "'127.0.0.1:0'".to_owned()),
        ("data_dir:", format!("'{}'", dir.display())),
    ];
    let said = |name: &str| more.lines().any(|line| line.starts_with(name));
    let missing = places.iter().filter(|(name, _)| !said(name));
    let lines: Vec<String> = missing.map(|(name, value)| format!("{name} {value}")).collect();
    format!("adapter: {{name: memory}}\n{}\n{more}", lines.join("\n"))
}

fn write(dir: &Path, config: &str) {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir).unwrap());
    let (path, temp) = (RelPath::parse("config.yaml").unwrap(), RelPath::parse("c.tmp").unwrap());
    disk.replace(&path, &temp, config.as_bytes()).unwrap();
}
