use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_recorder::{
    AgentEvent, DurableError, DurableOptions, DurableRecorder, Fact, Notice, RecordedSession,
    Recording, Replay, SessionRecorderConfig, SessionScope,
};
use bough_server::config::{self, Span};
use bough_server::shutdown_on_signals;
use bough_service::{RecordingSink, Service, ServiceError};
use bough_session::SessionId;
use bough_store::MemoryStore;
use tokio::sync::mpsc;

use crate::app::App;
use crate::backend::{Backend, CallError, Local};
use crate::command_error::{CommandError, CommandResult};
use crate::files::{self, FileReader, LineRead, Lines};
use crate::limits::{
    EVENT_LINE_BYTES_MAX, EVENT_LINES_WAITING, PASSED_OVER_TOLD, SESSION_FILE_BYTES_MAX,
    UNKNOWN_FIELDS_TOLD,
};
use crate::output::{Line, Style};
use crate::text::count;

const NO_FILE: &str = "give a file of events, or nothing to read them from standard input";

/// Record agent events into sessions, durably while they arrive
///
/// Events are JSON, one a line, from standard input or a file: the events themselves, or the lines of an event log of
/// phi-core (`SESSION.events.jsonl`). A session file of phi-core (`SESSION.json`) is recorded as the events that make it;
/// so is what `--print sessions` printed, in a file whose name ends with `.json`.
/// Each event is on the disk soon after it came; a recording that was broken off goes on when the next events of its
/// sessions come. Lines that are not events are reported with their number and passed over; with `--strict` they end
/// the recording.
///
/// Each session has a scope: whether its application wants to keep it (`--scope`). Bough stores it either way, unless
/// `--memory` is given: then the sessions are gone when the command ends, and only `--print sessions` shows them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  my-agent --events | bough record
  my-agent --events | bough record --inactivity-timeout 30m --scope persistent
  bough record events.jsonl --print sessions
  bough record events.jsonl --memory --print sessions
  bough record events.jsonl --strict --include-streaming-events")]
pub(crate) struct Args {
    /// The events [default: standard input]
    file: Option<PathBuf>,

    /// Print the recorded sessions as a JSON array when the input ends [default: their ids]
    #[arg(long, value_name = "WHAT")]
    print: Option<Print>,

    /// Keep the pieces of streamed messages too
    #[arg(long)]
    include_streaming_events: bool,

    /// Stop at the first line that is not an event
    #[arg(long)]
    strict: bool,

    /// How long an agent may be idle; a session that it begins later in this recording is marked as begun after a timeout
    #[arg(long, value_name = "TIME")]
    inactivity_timeout: Option<Span>,

    /// The scope of the recorded sessions [default: session.scope of the configuration]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,

    /// Keep the sessions in memory only: nothing is stored
    #[arg(long)]
    memory: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Scope {
    /// The application does not need to keep them
    Ephemeral,
    /// The application wants to keep them
    Persistent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Print {
    /// The documents that session files hold
    Sessions,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.globals.data_dir_only("record")?;
    let config = SessionRecorderConfig {
        include_streaming_events: args.include_streaming_events,
        scope: match args.scope {
            Some(Scope::Ephemeral) => SessionScope::Ephemeral,
            Some(Scope::Persistent) => SessionScope::Persistent,
            None => configured_scope(app)?,
        },
        inactivity_timeout: args.inactivity_timeout.and_then(Span::duration),
        ..SessionRecorderConfig::default()
    };
    if args.memory {
        let store = MemoryStore::new(Arc::clone(&app.entropy)).map_err(CommandError::failed)?;
        let service = Service::new(Arc::new(store), app.clock.clone(), app.entropy.clone());
        let sink = Local::of_service(service).recording_sink();
        let (recording, events, stopped) = record(app, &args, config, sink).await?;
        report(app, &args, recording, events)?;
        return stopped.map_or(Ok(()), Err);
    }
    app.with_backend(async |backend| {
        let Backend::Local(local) = backend else {
            return Err(CommandError::usage("recording works on a data directory"));
        };
        let (recording, events, stopped) =
            record(app, &args, config, local.recording_sink()).await?;
        report(app, &args, recording, events)?;
        stopped.map_or(Ok(()), Err)
    })
    .await
}

/// The scope of recorded sessions in the configuration.
fn configured_scope(app: &App) -> CommandResult<SessionScope> {
    let loaded = app.globals.load_config(None).map_err(|error| {
        CommandError::failed(error).hint("`bough config check` shows what is wrong with it")
    })?;
    Ok(match loaded.config.session.scope {
        config::SessionScope::Ephemeral => SessionScope::Ephemeral,
        config::SessionScope::Persistent => SessionScope::Persistent,
    })
}

/// Records until the input ends. Returns what was recorded, from how many events, and why it stopped before the end.
async fn record(
    app: &App,
    args: &Args,
    config: SessionRecorderConfig,
    sink: RecordingSink,
) -> CommandResult<(Recording<ServiceError>, Events, Option<CommandError>)> {
    let (notices, mut heard) = mpsc::unbounded_channel();
    let options = DurableOptions {
        config,
        on_notice: Some(Arc::new(move |event, notice: &Notice| {
            // The receiver exists as long as the recorder.
            drop(notices.send((event, notice.clone())));
        })),
        ..DurableOptions::default()
    };
    let recorder = DurableRecorder::start(Arc::new(sink), options);
    let mut lines = read_lines(args.file.clone())?;
    let (mut events, mut passed_over) = (Events::default(), PassedOver::default());
    // Ctrl-C and SIGTERM end the recording, not the program: what was read is stored.
    let shutdown = shutdown_on_signals();
    let stopped = loop {
        let line = tokio::select! {
            Some(notice) = heard.recv() => {
                events.hear(app, notice);
                continue;
            }
            line = lines.recv() => line,
            () = shutdown.begun() => None,
        };
        let Some(line) = line else { break None };
        let (number, line) = match line {
            Ok(line) => line,
            Err(error) => break Some(unreadable(args, &error)),
        };
        match event_of(line).map(|read| events.not_kept.report(app, number, read)) {
            Ok(None) => {}
            Ok(Some(AgentEvent::MessageUpdate(_))) if !args.include_streaming_events => {
                events.pieces += 1;
            }
            Ok(Some(event)) => {
                events.lines.add(number);
                events.facts += u64::from(Fact::from_event(&event).is_some());
                recorder.record(event).await.map_err(CommandError::failed)?;
            }
            Err(reason) if args.strict => {
                let stopped = CommandError::failed(format!("line {number}: {reason}"));
                break Some(stopped.hint("leave --strict out to pass over such lines"));
            }
            Err(reason) => passed_over.add(app, number, &reason),
        }
    };
    let recording = recorder.finish().await.map_err(CommandError::failed)?;
    while let Ok(notice) = heard.try_recv() {
        events.hear(app, notice);
    }
    events.not_kept.end(app);
    let stopped = stopped.or_else(|| passed_over.end(app, events.lines.events + events.pieces));
    Ok((recording, events, stopped))
}

/// Lines that are not events. The first ones are reported one by one, the others by their number.
#[derive(Debug, Default)]
struct PassedOver(u64);

impl PassedOver {
    fn add(&mut self, app: &App, line: u64, reason: &str) {
        self.0 += 1;
        if self.0 <= PASSED_OVER_TOLD {
            app.output.warn(&format!("line {line}: {reason}; passed over"));
        }
    }

    /// Reports the rest of them. Fails if there was nothing else.
    fn end(&self, app: &App, events: u64) -> Option<CommandError> {
        let untold = self.0.saturating_sub(PASSED_OVER_TOLD);
        if untold > 0 {
            let lines = count(untold, "more line is", "more lines are");
            app.output.warn(&format!("{lines} not an event; passed over"));
        }
        let nothing = CommandError::failed("there is no event in the input");
        (self.0 > 0 && events == 0)
            .then(|| nothing.hint("events are JSON objects with a \"type\", one a line; `bough replay SESSION` shows some"))
    }
}

/// Unknown fields of known events. They are not kept, and each is reported once.
#[derive(Debug, Default)]
struct NotKept {
    reported: BTreeSet<(String, String)>,
    untold: u64,
}

impl NotKept {
    /// The event of a line; reports its fields that are not kept.
    fn report(
        &mut self,
        app: &App,
        line: u64,
        read: Option<(AgentEvent, Vec<String>)>,
    ) -> Option<AgentEvent> {
        let (event, fields) = read?;
        for field in fields {
            let named = (event.type_name().to_owned(), field);
            if self.reported.contains(&named) {
                continue;
            }
            if self.reported.len() >= UNKNOWN_FIELDS_TOLD {
                self.untold += 1;
                continue;
            }
            let (event_type, field) = &named;
            app.output
                .warn(&format!("line {line}: {event_type} has a field {field:?} that is not kept"));
            self.reported.insert(named);
        }
        Some(event)
    }

    fn end(&self, app: &App) {
        if self.untold > 0 {
            let more = count(self.untold, "more field was", "more fields were");
            app.output.warn(&format!("{more} not kept"));
        }
    }
}

fn unreadable(args: &Args, error: &std::io::Error) -> CommandError {
    let from = args.file.as_ref().map_or("standard input".into(), |file| file.to_string_lossy());
    CommandError::failed(format!("{from}: {error}"))
        .hint("record a file of events, one a line, or pipe them to standard input")
}

/// The events that were read.
#[derive(Debug, Default)]
struct Events {
    lines: LineNumbers,
    /// How many of them were recorded before.
    already: u64,
    /// How many of them are facts, which a replay states beside the events of agents.
    facts: u64,
    /// How many of them could not be recorded.
    lost: u64,
    not_kept: NotKept,
    /// How many streamed pieces there were besides, which were not to be kept.
    pieces: u64,
}

impl Events {
    /// Reports what was unexpected about an event. Events that are recorded already are only counted.
    fn hear(&mut self, app: &App, (event, notice): (u64, Notice)) {
        if matches!(notice, Notice::AlreadyRecorded { .. }) {
            self.already += 1;
            return;
        }
        // Events of a session that could not be stored are counted when the recording ends.
        if notice.is_lost() && !matches!(notice, Notice::NotStored { .. }) {
            self.lost += 1;
        }
        app.output.warn(&format!("line {}: {notice}", self.lines.line_of(event)));
    }
}

fn report(
    app: &App,
    args: &Args,
    recording: Recording<ServiceError>,
    mut events: Events,
) -> CommandResult<()> {
    events.lost += recording.events_not_stored;
    if args.print == Some(Print::Sessions) || app.output.is_json() {
        app.output.json(&recording.sessions)?;
    } else {
        for session in &recording.sessions {
            app.output.line(&*session.session_id)?;
        }
    }
    app.output.note(Line::of(Style::Dim, summary(&events, recording.sessions.len() as u64)));
    recording.failures.into_iter().next().map_or(Ok(()), |failure| Err(not_stored(failure)))
}

/// Why a session was not stored, with the message and the exit code that other commands use.
fn not_stored(failure: DurableError<ServiceError>) -> CommandError {
    let DurableError::NotStored { session_id, source } = failure else {
        return CommandError::failed(failure);
    };
    if SessionId::parse(session_id.as_str()).is_err() {
        return CommandError::failed(format!("session {session_id:?} cannot be stored: {source}"))
            .hint("give it another session_id in its events");
    }
    let failed = CommandError::from(CallError::from(ServiceError::clone(&source)));
    let text = format!("session {session_id:?} is not stored: {failed}");
    CommandError { error: text.into(), ..failed }
}

/// A summary of the recording in one line.
fn summary(events: &Events, sessions: u64) -> String {
    let others = events.already + events.lost + events.facts;
    let new = events.lines.events.saturating_sub(others);
    let of = count(sessions, "session", "sessions");
    let mut text = format!("recorded {} of {of}", count(new, "event", "events"));
    if events.already > 0 {
        let already = count(events.already, "event was", "events were");
        text.push_str(&format!("; {already} recorded before"));
    }
    if events.lost > 0 {
        let lost = count(events.lost, "event", "events");
        text.push_str(&format!("; {lost} left out"));
    }
    if events.pieces > 0 {
        let pieces = count(events.pieces, "piece", "pieces");
        text.push_str(&format!("; {pieces} of messages not kept (--include-streaming-events)"));
    }
    text
}

/// The line number of each event, in memory proportional to the lines without one.
#[derive(Debug, Default)]
struct LineNumbers {
    events: u64,
    /// By event, how many lines up to it held none, if that changes.
    skipped: BTreeMap<u64, u64>,
}

impl LineNumbers {
    /// Notes the line of the next event.
    fn add(&mut self, line: u64) {
        self.events += 1;
        let skipped = line.saturating_sub(self.events);
        if self.skipped.last_key_value().map_or(0, |(_, last)| *last) != skipped {
            self.skipped.insert(self.events, skipped);
        }
    }

    fn line_of(&self, event: u64) -> u64 {
        let skipped = self.skipped.range(..=event).next_back();
        event + skipped.map_or(0, |(_, skipped)| *skipped)
    }
}

/// The event of a line and its fields that are not kept; `None` for an empty line.
fn event_of(line: LineRead) -> Result<Option<(AgentEvent, Vec<String>)>, String> {
    let LineRead::Line(bytes) = line else {
        return Err(format!("longer than {EVENT_LINE_BYTES_MAX} bytes"));
    };
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    AgentEvent::from_line(&text).map(Some).map_err(|error| {
        // The text has one line, and its number in the input is printed before this.
        let reason = error.to_string().replace(" at line 1 column ", " at column ");
        format!("not an event: {reason}")
    })
}

/// A line with its number, or why no more can be read.
type NextLine = std::io::Result<(u64, LineRead)>;

/// The sessions in a session file of phi-core, whatever its name, or in what `--print sessions` printed; `None` for a file
/// of events, one a line.
fn sessions_in(path: &Path) -> CommandResult<Option<Vec<RecordedSession>>> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(None);
    }
    let text = files::read_text_up_to(path, SESSION_FILE_BYTES_MAX)
        .map_err(|error| error.hint(NO_FILE))?;
    let text = text.trim_start();
    let sessions = if text.starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|session| vec![session])
    };
    match sessions {
        Ok(sessions) => Ok(Some(sessions)),
        // A document of several lines has no events, one a line.
        Err(error) if matches!(text.lines().next(), Some("{" | "[")) => {
            let path = path.display();
            Err(CommandError::failed(format!("{path} is not a session file of phi-core: {error}"))
                .hint("give a session file, or a file of events, one JSON object a line"))
        }
        Err(_) => Ok(None),
    }
}

/// Reads lines on a thread of its own, since standard input can only be read by blocking.
fn read_lines(file: Option<PathBuf>) -> CommandResult<mpsc::Receiver<NextLine>> {
    let (sender, receiver) = mpsc::channel(EVENT_LINES_WAITING);
    if let Some(sessions) = file.as_deref().map(sessions_in).transpose()?.flatten() {
        std::thread::spawn(move || {
            let events = sessions.iter().flat_map(|session| Replay::of(session).events());
            for (number, event) in (1..).zip(events) {
                let line = serde_json::to_vec(&event).map(|bytes| (number, LineRead::Line(bytes)));
                if sender.blocking_send(line.map_err(Into::into)).is_err() {
                    return;
                }
            }
        });
        return Ok(receiver);
    }
    let from: Box<dyn std::io::Read + Send> = match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            let opened = files::open(&path).map_err(|error| error.hint(NO_FILE));
            Box::new(FileReader::new(opened?))
        }
        None => Box::new(std::io::stdin()),
    };
    std::thread::spawn(move || {
        let mut lines = Lines::new(BufReader::new(from), EVENT_LINE_BYTES_MAX);
        while let Some(line) = lines.next().transpose() {
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_know_their_lines() {
        let mut numbers = LineNumbers::default();
        for line in [1, 2, 5, 6, 9] {
            numbers.add(line);
        }
        let lines: Vec<u64> = (1..=5).map(|event| numbers.line_of(event)).collect();
        assert_eq!(lines, [1, 2, 5, 6, 9]);
        assert_eq!(numbers.skipped.len(), 2);
    }
}
