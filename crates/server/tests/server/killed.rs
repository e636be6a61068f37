//! Servers that are killed, and subscribers of their bus that must not miss an event.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bough_server::{ServeOptions, Server};
use serde_json::json;

use crate::client::{Client, Worker, soon, until};
use crate::test_server::TestServer;

const DIRECTORY: &str = "BOUGH_TEST_SERVER_DIRECTORY";
const BUS: &str = "BOUGH_TEST_SERVER_BUS";

/// Not a test by itself: with a directory in its environment, this is a server that runs until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn server_in_a_process_of_its_own() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let options = ServeOptions {
        data_dir: Some(directory.into()),
        listen: Some("127.0.0.1:0".to_owned()),
        bus: std::env::var(BUS).ok(),
        environment: Some(Arc::new(|_| None)),
        ..ServeOptions::default()
    };
    let server = Server::start(options).await.unwrap();
    std::future::pending::<()>().await;
    server.stop().await;
}

/// A server in a process of its own, always on the same port and directory.
struct Process {
    directory: tempfile::TempDir,
    bus: SocketAddr,
    child: Child,
}

impl Process {
    fn start(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config.yaml"), config).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let bus = free.local_addr().unwrap();
        drop(free);
        let child = spawn(directory.path(), bus);
        Self { directory, bus, child }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = spawn(self.directory.path(), self.bus);
    }

    async fn worker(&self) -> Worker {
        until(async || tokio::net::TcpStream::connect(self.bus).await.is_ok()).await;
        Worker::connect(self.bus, None).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill().is_ok();
        let _ = self.child.wait().is_ok();
    }
}

fn spawn(directory: &Path, bus: SocketAddr) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::server_in_a_process_of_its_own"])
        .env(DIRECTORY, directory)
        .env(BUS, bus.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Receives events until it has all of these titles. Binds under a new id, as an SDK does in each process.
async fn subscribe_until(process: &Process, id: &str, seen: &mut HashSet<String>, all: &[String]) {
    let mut worker = process.worker().await;
    worker.host("ui::on").await;
    worker.bind(id, "session::created", "ui::on", json!({})).await;
    while !all.iter().all(|title| seen.contains(title)) {
        let call = worker.called("ui::on").await;
        seen.insert(call["data"]["title"].as_str().unwrap().to_owned());
        worker.answer(&call, json!({})).await;
    }
}

async fn create(client: &Client, titles: &[String]) {
    for title in titles {
        client.post("/v1/sessions", json!({ "title": title })).await.ok();
    }
}

fn titles(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}{number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_goes_on_where_its_subscribers_were() {
    subscribers_miss_nothing(Process::start("")).await;
}

/// The adapter `fs` counts changes only while the process runs: a place from before a kill cannot be resumed, and every
/// session is replayed.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_count_that_outlives_the_process_subscribers_get_every_session_again() {
    let files = tempfile::tempdir().unwrap();
    let config =
        format!("adapter: {{name: fs, config: {{data_dir: '{}'}}}}", files.path().display());
    subscribers_miss_nothing(Process::start(&config)).await;
}

/// Kills a process three times while its subscriber is away.
async fn subscribers_miss_nothing(mut process: Process) {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    // A new binding starts at the present, so it must exist before anything is written.
    let mut subscriber = process.worker().await;
    subscriber.host("ui::on").await;
    subscriber.bind("first", "session::created", "ui::on", json!({})).await;
    subscriber.call("engine::workers::list", json!({})).await;
    let mut writer = process.worker().await;
    writer.call("session::create", json!({ "title": "first" })).await;
    let call = subscriber.called("ui::on").await;
    assert_eq!(call["data"]["title"], "first");
    for round in 0..3 {
        let new = titles(&format!("{round}."), 15);
        let mut writer = process.worker().await;
        for title in &new {
            writer.call("session::create", json!({ "title": title })).await;
        }
        all.extend(new);
        process.kill();
        process.start_again();
        let (id, wanted) = (format!("id {round}"), all.clone());
        // In the middle round nobody subscribes: the place is kept over two kills.
        if round != 1 {
            soon(subscribe_until(&process, &id, &mut seen, &wanted)).await;
        }
    }
    assert_eq!(seen.iter().filter(|title| title.as_str() != "first").count(), all.len());
}

/// Three processes that store through one main are killed in turn while others write.
#[tokio::test(flavor = "multi_thread")]
async fn bridged_processes_that_are_killed_miss_nothing() {
    let main = TestServer::with("").await;
    let url = format!("ws://{}", main.bus());
    let config = format!("adapter: {{name: bridge, config: {{url: '{url}', timeout_ms: 20000}}}}");
    let mut bridged: Vec<Process> = (0..3).map(|_| Process::start(&config)).collect();
    let mut seen = vec![HashSet::new(); bridged.len()];
    for (process, seen) in bridged.iter().zip(&mut seen) {
        let mut worker = process.worker().await;
        worker.host("ui::on").await;
        worker.bind("zero", "session::created", "ui::on", json!({})).await;
        worker.call("engine::workers::list", json!({})).await;
        create(&main.client(), &["zero".to_owned()]).await;
        let call = worker.called("ui::on").await;
        worker.answer(&call, json!({})).await;
        seen.insert("zero".to_owned());
    }
    let all = titles("n", 60);
    let is_done = Arc::new(AtomicBool::new(false));
    let (writer, done, written) = (main.client(), is_done.clone(), all.clone());
    let writing = tokio::spawn(async move {
        create(&writer, &written).await;
        done.store(true, Ordering::Release);
    });
    let mut turn = 0;
    while !is_done.load(Ordering::Acquire) {
        let count = bridged.len();
        let process = &mut bridged[turn % count];
        process.kill();
        process.start_again();
        // The next is killed once this one serves again.
        drop(process.worker().await);
        turn += 1;
    }
    writing.await.unwrap();
    for (number, (process, seen)) in bridged.iter().zip(&mut seen).enumerate() {
        soon(subscribe_until(process, &format!("again {number}"), seen, &all)).await;
    }
}
