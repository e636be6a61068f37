use std::io::{BufReader, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use bough_mcp::limits::LINE_BYTES_MAX;
use bough_mcp::{CallRefused, Functions, Line, SessionHost, converse};
use bough_service::Function;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::app::App;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};
use crate::files::{LineRead, Lines};
use crate::limits::MCP_LINES_WAITING;

/// Serve the sessions to an agent over the Model Context Protocol (MCP)
///
/// Uses standard input and output, as clients that start their own servers expect, and ends when the client closes its
/// input. A running `bough serve` speaks the same protocol over HTTP at `/mcp`.
///
/// The tools find, read, append to and fork sessions. Sessions are resources, `bough://sessions/ID`, which a client can follow.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough mcp
  bough mcp --data-dir ./data
  bough mcp --server http://127.0.0.1:7717

For a client that is configured with JSON:
  {\"mcpServers\": {\"bough\": {\"command\": \"bough\", \"args\": [\"mcp\"]}}}")]
pub(crate) struct Args {}

pub(crate) async fn run(app: &App, _: Args) -> CommandResult<()> {
    if app.output.can_show_screens() {
        app.output.warn("this waits for a client of the Model Context Protocol; Ctrl-D ends it");
    }
    app.with_backend(async |backend| {
        let host = Arc::new(SessionHost::new(ThroughBackend(backend.clone())));
        let (outgoing, writer) = write_lines();
        converse(host, read_lines(), outgoing).await;
        // The last answers are still being written.
        let written = tokio::task::spawn_blocking(|| writer.join()).await;
        match written {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(CommandError::from(error)),
            Ok(Err(_)) | Err(_) => Err(CommandError::failed("the answers could not be written")),
        }
    })
    .await
}

/// The functions, in this process or behind a server, which checks the rights of its token.
struct ThroughBackend(Backend);

#[async_trait]
impl Functions for ThroughBackend {
    fn may_call(&self, _: &Function) -> bool {
        true
    }

    async fn call(
        &self,
        function: &'static Function,
        request: Value,
    ) -> Result<Value, CallRefused> {
        let answer = self.0.call_value(function.id, request).await;
        answer.map_err(|error| CallRefused { code: error.code, message: error.message })
    }
}

/// Lines of standard input, read by a thread of their own, because the blocking read ends only when the client closes
/// it.
fn read_lines() -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(MCP_LINES_WAITING);
    std::thread::spawn(move || {
        let mut lines = Lines::new(BufReader::new(std::io::stdin()), LINE_BYTES_MAX);
        while let Ok(Some((_, line))) = lines.next() {
            let line = match line {
                LineRead::Line(bytes) => Line::Bytes(bytes),
                LineRead::TooLong => Line::TooLong,
            };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes lines to standard output until there are no more, or the reader is gone.
fn write_lines() -> (mpsc::Sender<String>, JoinHandle<std::io::Result<()>>) {
    let (sender, mut receiver) = mpsc::channel::<String>(MCP_LINES_WAITING);
    let writer = std::thread::spawn(move || {
        let mut out = std::io::stdout().lock();
        while let Some(mut line) = receiver.blocking_recv() {
            line.push('\n');
            out.write_all(line.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    });
    (sender, writer)
}
