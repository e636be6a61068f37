use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bough_recorder::{
    AgentEvent, DurableOptions, DurableRecorder, Notice, RecordSink, SessionRecorderConfig,
};
use bough_session::{MetaChange, NewRecord, Record, SessionId};
use bough_store::{Position, Store, StoreError};
use tokio::sync::mpsc;

use crate::app::App;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};
use crate::files::{self, FileReader, LineRead, Lines};
use crate::limits::{ENTRIES_PAGE, EVENT_LINE_BYTES_MAX};
use crate::output::{Line, Style};
use crate::text::count;

/// Record agent events into sessions, durably while they arrive
///
/// Events are JSON, one a line, from standard input or a file. Lines that are not events are reported with their
/// number and passed over; with `--strict` they end the recording.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  my-agent --events | bough record
  bough record events.jsonl --print sessions
  bough record events.jsonl --strict --include-streaming-events")]
pub(crate) struct Args {
    /// The events [default: standard input]
    file: Option<PathBuf>,

    /// Print the recorded sessions as a JSON array when the input ends
    #[arg(long, value_name = "WHAT")]
    print: Option<Print>,

    /// Keep the pieces of streamed messages too
    #[arg(long)]
    include_streaming_events: bool,

    /// Stop at the first line that is not an event
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Print {
    /// The documents that session files hold
    Sessions,
}

/// Lines that may wait to be recorded.
const LINES_WAITING: usize = 1_024;
/// How often an append looks again when somebody else was faster.
const APPEND_TRIES: u32 = 16;

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.globals.data_dir_only("record")?;
    app.with_backend(async |backend| {
        let Backend::Local(local) = backend else {
            return Err(CommandError::usage("recording works on a data directory"));
        };
        record(app, &args, local.store()).await
    })
    .await
}

async fn record(app: &App, args: &Args, store: Arc<dyn Store>) -> CommandResult<()> {
    let (notices, mut heard) = mpsc::unbounded_channel();
    let options = DurableOptions {
        config: SessionRecorderConfig {
            include_streaming_events: args.include_streaming_events,
            ..SessionRecorderConfig::default()
        },
        on_notice: Some(Arc::new(move |event, notice: &Notice| {
            // The receiver lives as long as the recorder.
            drop(notices.send((event, notice.to_string())));
        })),
        ..DurableOptions::default()
    };
    let recorder = DurableRecorder::start(Arc::new(StoreSink { store }), options);
    let mut lines = read_lines(args.file.clone())?;
    let mut numbers = Vec::new();
    let mut events = 0_u64;
    let mut stopped = None;
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                None
            }
        };
        let Some((number, line)) = line else { break };
        match event_of(line) {
            Ok(None) => {}
            Ok(Some(event)) => {
                events += 1;
                numbers.push(number);
                recorder.record(event).await.map_err(CommandError::failed)?;
            }
            Err(reason) if args.strict => {
                stopped = Some(format!("line {number}: {reason}"));
                break;
            }
            Err(reason) => app.output.warn(&format!("line {number}: {reason}; passed over")),
        }
    }
    let recording = recorder.finish().await.map_err(CommandError::failed)?;
    while let Ok((event, notice)) = heard.try_recv() {
        let at = usize::try_from(event).unwrap_or(0).saturating_sub(1);
        let number = numbers.get(at).copied().unwrap_or(event);
        app.output.warn(&format!("line {number}: {notice}"));
    }
    if args.print == Some(Print::Sessions) || app.output.is_json() {
        app.output.json(&recording.sessions)?;
    } else {
        for session in &recording.sessions {
            app.output.line(&*session.session_id)?;
        }
    }
    let recorded = count(events, "event", "events");
    let sessions = count(recording.sessions.len() as u64, "session", "sessions");
    app.output.note(Line::of(Style::Dim, format!("recorded {recorded} of {sessions}")));
    if let Some(failure) = recording.failures.into_iter().next() {
        return Err(CommandError::failed(failure.to_string()));
    }
    match stopped {
        Some(text) => {
            Err(CommandError::failed(text).hint("leave --strict out to pass over such lines"))
        }
        None => Ok(()),
    }
}

/// The event of a line; `None` for an empty one.
fn event_of(line: LineRead) -> Result<Option<AgentEvent>, String> {
    let LineRead::Line(bytes) = line else {
        return Err(format!("longer than {EVENT_LINE_BYTES_MAX} bytes"));
    };
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    AgentEvent::from_json(&text).map(Some).map_err(|error| format!("not an event: {error}"))
}

/// Reads lines on a thread of its own, since standard input can only be waited for by blocking.
fn read_lines(file: Option<PathBuf>) -> CommandResult<mpsc::Receiver<(u64, LineRead)>> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING);
    let from: Box<dyn std::io::Read + Send> = match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => Box::new(FileReader::new(files::open(&path)?)),
        None => Box::new(std::io::stdin()),
    };
    std::thread::spawn(move || {
        let mut lines = Lines::new(BufReader::new(from), EVENT_LINE_BYTES_MAX);
        while let Ok(Some(line)) = lines.next() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// A store as the recorder sees it.
struct StoreSink {
    store: Arc<dyn Store>,
}

#[async_trait]
impl RecordSink for StoreSink {
    type Error = StoreError;

    async fn load(&self, session_id: &str) -> Result<Vec<Record>, StoreError> {
        let session = SessionId::from_stored(session_id);
        let mut records = Vec::new();
        let mut after = Position::default();
        loop {
            let page = match self.store.records(&session, after, ENTRIES_PAGE).await {
                Err(StoreError::NotFound { .. }) => return Ok(records),
                page => page?,
            };
            let Some(last) = page.records.last().map(|stored| stored.position) else {
                return Ok(records);
            };
            records.extend(page.records.into_iter().map(|stored| stored.record));
            if last >= page.end {
                return Ok(records);
            }
            after = last;
        }
    }

    async fn append(&self, session_id: &str, records: Vec<NewRecord>) -> Result<(), StoreError> {
        let session = SessionId::parse(session_id)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let appended = match self.store.state(&session).await? {
                Some(snapshot) => {
                    self.store.append(&session, &snapshot.head, records.clone()).await
                }
                None => self.store.create(&session, with_first_meta(records.clone())).await,
            };
            match appended {
                Ok(appended) => return appended.durable.await,
                Err(StoreError::Conflict { .. } | StoreError::Exists { .. })
                    if tries < APPEND_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The first record of every session says something about it.
fn with_first_meta(mut records: Vec<NewRecord>) -> Vec<NewRecord> {
    let begins = records.first().is_some_and(|first| matches!(first.record, Record::Meta(_)));
    if !begins {
        let at_ms = records.first().map_or(0, |first| first.at_ms);
        records.insert(0, Record::Meta(MetaChange::default()).at(at_ms));
    }
    records
}
