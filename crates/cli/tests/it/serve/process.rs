//! The real program, in a folder of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, WaitOptions, waitpid};
use serde_json::{Value, json};

use super::client::{self, Answer, Stream};
pub(crate) use crate::common::{PATIENCE, until};

/// A server that runs, or ran.
pub(crate) struct Bough {
    child: Child,
    folder: Arc<tempfile::TempDir>,
    more: Vec<String>,
    pub(crate) http: SocketAddr,
    pub(crate) bus: Option<SocketAddr>,
    _output: BufReader<ChildStdout>,
}

impl Bough {
    /// Starts a server with this configuration on ports of the system's choice.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_with(config, &[])
    }

    /// The same with more flags.
    pub(crate) fn start_with(config: &str, more: &[&str]) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("config.yaml"), config).unwrap();
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        Self::launch(folder, "127.0.0.1:0", "127.0.0.1:0", more)
    }

    /// An instance that stores through the main whose bus is at this address.
    pub(crate) fn bridge_to(main: SocketAddr) -> Self {
        Self::start(&bridge_config(main))
    }

    fn launch(folder: Arc<tempfile::TempDir>, http: &str, bus: &str, more: Vec<String>) -> Self {
        let mut command = command(folder.path(), http, bus);
        let mut child = command.args(&more).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (mut http, mut bus) = (None, None);
        let mut line = String::new();
        while http.is_none() || !line.trim_start().starts_with("data") {
            line.clear();
            if output.read_line(&mut line).unwrap() == 0 {
                panic!("the server did not start: {}", log(folder.path()));
            }
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["HTTP", url] => http = url.strip_prefix("http://").and_then(|at| at.parse().ok()),
                ["bus", url] => bus = url.strip_prefix("ws://").and_then(|at| at.parse().ok()),
                _ => {}
            }
        }
        Self { child, folder, more, http: http.unwrap(), bus, _output: output }
    }

    /// Kills the process, as a power cut would, and starts it again in the same place.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    pub(crate) fn restart(&mut self) {
        let bus = self.bus.map_or_else(|| "off".to_owned(), |bus| bus.to_string());
        let more = self.more.clone();
        *self = Self::launch(self.folder.clone(), &self.http.to_string(), &bus, more);
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Stops the process until it gets the signal CONT. None of its threads runs any more when the call returns.
    pub(crate) fn stop(&self) {
        self.signal("STOP");
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()), "{stopped:?}");
    }

    /// Waits until the process has ended.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the end of the process", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }

    /// Replaces its configuration file at once, as an editor does.
    pub(crate) fn reconfigure(&self, config: &str) {
        let (file, new) = (self.folder.path().join("config.yaml"), self.folder.path().join("new"));
        std::fs::write(&new, config).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        log(self.folder.path())
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        client::request(self.http, method, path, body.as_ref()).unwrap()
    }

    /// Asks, and expects a good answer.
    #[track_caller]
    pub(crate) fn ok(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let answer = self.send(method, path, body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        answer.body
    }

    pub(crate) fn new_session(&self) -> String {
        let made = self.ok("POST", "/v1/sessions", Some(json!({"title": "t"})));
        made["session_id"].as_str().unwrap().to_owned()
    }

    /// The texts of a session's messages, oldest first.
    pub(crate) fn texts(&self, session: &str) -> Vec<String> {
        let page = self.ok("GET", &format!("/v1/sessions/{session}/messages?limit=500"), None);
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|item| client::text_of(&item["message"])).collect()
    }

    pub(crate) fn stream(&self, path: &str) -> Stream {
        Stream::open(self.http, path, None).unwrap()
    }
}

impl Drop for Bough {
    fn drop(&mut self) {
        // A process that has ended cannot be killed again.
        let _ = self.child.kill().is_ok();
        let _ = self.child.wait().is_ok();
    }
}

pub(crate) fn bridge_config(main: SocketAddr) -> String {
    format!("adapter: {{name: bridge, config: {{url: 'ws://{main}', timeout_ms: 2000}}}}")
}

/// The command that serves a folder; its log is a file there.
pub(crate) fn command(folder: &Path, http: &str, bus: &str) -> Command {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bough"));
    command.env_clear().env("HOME", folder).stdin(Stdio::null()).stderr(log.unwrap());
    command.arg("serve").arg("--data-dir").arg(folder);
    command.args(["--listen", http, "--bus", bus]);
    command
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}
