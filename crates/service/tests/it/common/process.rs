//! Another process on the same data directory, which answers calls until it is ended or killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bough_platform::{OsEntropy, Platform, SystemClock};
use bough_service::{Scope, Service};
use bough_store::{NativeOptions, NativeStore, Store};
use serde_json::{Value, json};

/// Says to the child where the data are; see `crate::processes::child`.
const DIRECTORY: &str = "BOUGH_TEST_DIRECTORY";
/// Begins each line that is an answer; the test harness writes lines of its own.
const MARK: &str = "@";
/// A child that does not answer for so long never will.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a session rests before its lock is given up, in these tests.
const IDLE: Duration = Duration::from_millis(50);

/// A service on a data directory, as a program has one.
pub async fn service_on(directory: &Path) -> Service {
    let platform = Platform::system(directory).unwrap();
    let options = NativeOptions { idle: IDLE, ..NativeOptions::default() };
    let store = NativeStore::open(platform, directory.to_owned(), options).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    Service::new(store, Arc::new(SystemClock::new()), Arc::new(OsEntropy))
}

/// A process of its own.
pub struct Other {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<Value>,
}

impl Other {
    pub fn start(directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The harness may have begun the line.
                if let Some((_, answer)) = line.split_once(MARK)
                    && send.send(serde_json::from_str(answer).unwrap()).is_err()
                {
                    return;
                }
            }
        });
        Self { child, orders, answers }
    }

    /// Asks for something without waiting for the answer.
    pub fn order(&mut self, function: &str, request: Value) {
        writeln!(self.orders, "{}", json!([function, request])).unwrap();
    }

    /// The answer to the oldest order that was not answered yet: `ok` or `error`.
    pub fn answer(&mut self) -> Value {
        self.answers.recv_timeout(PATIENCE).expect("the other process answers")
    }

    pub fn call(&mut self, function: &str, request: Value) -> Result<Value, String> {
        self.order(function, request);
        let answer = self.answer();
        match answer.get("ok") {
            Some(ok) => Ok(ok.clone()),
            None => Err(answer["error"].as_str().unwrap().to_owned()),
        }
    }

    pub fn ok(&mut self, function: &str, request: Value) -> Value {
        self.call(function, request).unwrap()
    }

    /// Ends it as a power switch would, whatever it is doing; gives the answers that it still had sent.
    pub fn kill(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.answers.iter().collect()
    }

    /// Lets it close its store and end.
    pub fn end(mut self) {
        drop(self.orders);
        assert!(self.child.wait().unwrap().success());
    }
}

/// What the other process does. In the process of the test itself, nothing.
pub fn answer_calls() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let service = service_on(Path::new(&directory)).await;
        let mut lines = std::io::stdin().lines();
        while let Some(Ok(line)) = tokio::task::block_in_place(|| lines.next()) {
            let (function, request): (String, Value) = serde_json::from_str(&line).unwrap();
            let answer = match service.call(&Scope::owner(), &function, request).await {
                Ok(ok) => json!({"ok": ok}),
                Err(error) => json!({"error": error.code()}),
            };
            let mut out = std::io::stdout().lock();
            writeln!(out, "{MARK}{answer}").unwrap();
            out.flush().unwrap();
        }
        service.store().close().await.unwrap();
    });
}
