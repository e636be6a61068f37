use std::path::PathBuf;

use bough_service::api::{
    CompactRequest, CompactionResponse, PlanCompactionRequest, UndoCompactionRequest,
    UndoCompactionResponse,
};
use bough_service::compaction::NothingToCompact;
use bough_session::estimate_text_tokens;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::backend::{Backend, ListRequest, Summary};
use crate::command_error::{CommandError, CommandResult};
use crate::limits::SEARCH_PAGE;
use crate::output::{Line, Style};
use crate::resolve;
use crate::summarise::{Configured, SummarySource};
use crate::text::{count, shell_word, tokens};

/// Summarise the older part of a conversation, so that a model is sent less
///
/// Nothing is removed: the summary is added, and `--undo` takes it out of the context again. It is shown before it is
/// written. In a recorded session the summary stands for turns of the loops, and the recorder's loader uses it too.
///
/// The summary comes from `--summary-file`, from a program (`--command`, or `compaction.command` in the configuration)
/// that reads the conversation on its standard input and prints the summary, or else from fixed rules that
/// need no model: the first user message, counts, the last messages, and the files that were read and changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough compact last
  bough compact last --dry-run
  bough compact last --command 'my-model --summarise' --focus 'the parser'
  bough compact last --summary-file summary.md --yes
  bough compact last --undo
  bough compact --auto             every session that outgrew its model's window")]
pub(crate) struct Args {
    /// The session; with --auto, all sessions when none is named
    #[arg(required_unless_present = "auto")]
    session: Option<String>,

    /// Compact only sessions that exceed their model's window minus the reserve, without asking
    #[arg(long)]
    auto: bool,

    /// Undo the last compaction
    #[arg(long, conflicts_with_all = ["auto", "dry_run", "summary_file", "command", "focus"])]
    undo: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    yes: bool,

    /// Take the summary from this file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["auto", "command"])]
    summary_file: Option<PathBuf>,

    /// Let this program write the summary
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,

    /// Write the summary by the fixed rules, whatever is configured
    #[arg(long, conflicts_with_all = ["command", "summary_file"])]
    digest: bool,

    /// The subject that the program should pay attention to
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,

    /// How much of the newest conversation stays as it is
    #[arg(long, value_name = "TOKENS")]
    keep_recent: Option<u64>,
}

/// How sessions are compacted.
struct Compacting<'a> {
    app: &'a App,
    backend: &'a Backend,
    args: &'a Args,
    configured: &'a Configured,
    source: SummarySource,
}

/// A compaction that can be written.
struct Ready {
    plan: CompactionResponse,
    /// The summary; `None` if the fixed rules write it.
    summary: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let configured = Configured::load(&app.globals)?;
    let source = source(&args, &configured)?;
    app.with_backend(async |backend| {
        backend.set_compaction(&configured.settings);
        let work = Compacting { app, backend, args: &args, configured: &configured, source };
        if args.auto {
            return work.automatic().await;
        }
        let name = args.session.as_deref().unwrap_or_default();
        let session = resolve::session(backend, name).await?;
        if args.undo {
            let request =
                UndoCompactionRequest { session_id: session.id().clone(), expected_leaf: None };
            let undone = backend.call("session::undo-compaction", &request).await?;
            return report_undone(app, &undone);
        }
        match work.prepare(&session, false).await? {
            Ok(ready) => work.ask_and_write(&session, ready).await,
            Err(nothing) => report(app, &nothing),
        }
    })
    .await
}

fn source(args: &Args, configured: &Configured) -> CommandResult<SummarySource> {
    if let Some(file) = &args.summary_file {
        return SummarySource::from_file(file);
    }
    let focus = args.focus.clone();
    if let Some(command) = &args.command {
        return Ok(SummarySource::command(crate::editor::words(command), focus));
    }
    if args.digest {
        return Ok(SummarySource::Digest);
    }
    Ok(configured.source(focus))
}

impl Compacting<'_> {
    /// Plans a compaction and gets its summary; the inner error says why there is nothing to do.
    async fn prepare(
        &self,
        session: &Summary,
        only_if_due: bool,
    ) -> CommandResult<Result<Ready, CompactionResponse>> {
        let request = PlanCompactionRequest {
            session_id: session.id().clone(),
            keep_recent_tokens: self.keep_recent_tokens(),
            only_if_due: Some(only_if_due),
            include_conversation: Some(self.source.reads_conversation()),
        };
        let mut plan: CompactionResponse =
            self.backend.call("session::plan-compaction", &request).await?;
        let conversation = plan.conversation.take().unwrap_or_default();
        if plan.reason.is_some() {
            return Ok(Err(plan));
        }
        let summary = self.source.text(&conversation).await?;
        if let Some(text) = &summary {
            set_summary(&mut plan, text);
        }
        Ok(Ok(Ready { plan, summary }))
    }

    async fn write(&self, ready: Ready, only_if_due: bool) -> CommandResult<CompactionResponse> {
        let request = CompactRequest {
            session_id: ready.plan.session_id.clone(),
            digest: Some(ready.summary.is_none()),
            summary: ready.summary,
            keep_recent_tokens: self.keep_recent_tokens(),
            only_if_due: Some(only_if_due),
            expected_leaf: Some(ready.plan.expected_leaf()),
        };
        Ok(self.backend.call("session::compact", &request).await?)
    }

    /// A server that writes in the place of this process keeps as much as was planned.
    fn keep_recent_tokens(&self) -> Option<u64> {
        let is_local = matches!(self.backend, Backend::Local(_));
        let configured = is_local.then_some(self.configured.settings.keep_recent_tokens);
        self.args.keep_recent.or(configured)
    }

    /// Shows what would be done, asks, and does it.
    async fn ask_and_write(&self, session: &Summary, ready: Ready) -> CommandResult<()> {
        let output = &self.app.output;
        if !output.is_json() {
            show_plan(self.app, session, &ready.plan)?;
        }
        if self.args.dry_run {
            return report(self.app, &ready.plan);
        }
        let ask = || output.confirm(&question(&ready.plan), "--yes");
        if !self.args.yes
            && !ask().map_err(|error| error.hint("pass --dry-run to see it without a change"))?
        {
            return Err(CommandError::cancelled());
        }
        report(self.app, &self.write(ready, false).await?)
    }

    /// Compacts sessions that exceed their window: one session, or all of them.
    async fn automatic(&self) -> CommandResult<()> {
        let (output, is_named) = (&self.app.output, self.args.session.is_some());
        let sessions = match &self.args.session {
            Some(name) => vec![resolve::session(self.backend, name).await?],
            None => self.with_windows().await?,
        };
        let (mut done, mut why) = (Vec::new(), Why::new(is_named, self.configured));
        for session in sessions {
            let answer = match self.prepare(&session, true).await? {
                Ok(ready) if self.args.dry_run => ready.plan,
                Ok(ready) => self.write(ready, true).await?,
                Err(nothing) => nothing,
            };
            if answer.reason.is_some() {
                why.note(&session, &answer);
                continue;
            }
            if !output.is_json() {
                let would = if self.args.dry_run { "would be compacted" } else { "compacted" };
                let before = tokens(answer.tokens_before.unwrap_or_default());
                let caption = session.caption();
                output.line(format!("{caption}: {would} from about {before} tokens"))?;
            }
            done.push(answer);
        }
        if output.is_json() {
            return output.json(&why.beside(json!({ "compacted": done })));
        }
        why.lines.iter().try_for_each(|line| output.line(line.as_str()))?;
        if done.is_empty() && why.lines.is_empty() {
            output.line("nothing to do: no session exceeds its model's window")?;
        }
        Ok(())
    }

    /// All sessions whose model's window is known. Which windows a server knows is not known here.
    async fn with_windows(&self) -> CommandResult<Vec<Summary>> {
        let windows = &self.configured.settings.windows;
        let is_remote = matches!(self.backend, Backend::Remote(_));
        let may_be_due =
            |found: &Summary| is_remote || windows.of_session(&found.details).is_some();
        let mut ask = ListRequest::recent(SEARCH_PAGE);
        let mut found = Vec::new();
        loop {
            let page = self.backend.list(&ask).await?;
            found.extend(page.sessions.into_iter().filter(may_be_due));
            match page.next_cursor {
                Some(next) => ask.cursor = Some(next),
                None => return Ok(found),
            }
        }
    }
}

/// Puts a summary into a plan, which has the digest.
fn set_summary(plan: &mut CompactionResponse, text: &str) {
    let text = plan.files.below(text);
    let size = |text: &str| estimate_text_tokens(text) as u64;
    let digest = size(plan.summary.as_deref().unwrap_or_default());
    plan.tokens_after =
        plan.tokens_after.map(|tokens| tokens.saturating_sub(digest).saturating_add(size(&text)));
    plan.summary = Some(text);
}

/// What a plan sums up: entries, or turns of loops.
fn summed(plan: &CompactionResponse) -> String {
    match plan.loops.len() as u64 {
        0 => count(plan.summarised_entries, "entry", "entries"),
        loops => {
            let turns = count(plan.summarised_turns, "turn", "turns");
            format!("{turns} of {}", count(loops, "loop", "loops"))
        }
    }
}

/// The question repeats the subject, because a long summary may have scrolled it away.
fn question(plan: &CompactionResponse) -> String {
    match plan.first_kept_entry_id {
        Some(_) => format!("Write this summary of {} ({} stay)?", summed(plan), plan.kept_entries),
        None => format!("Write this summary of {}?", summed(plan)),
    }
}

fn show_plan(app: &App, session: &Summary, plan: &CompactionResponse) -> CommandResult<()> {
    let size = |number: Option<u64>| tokens(number.unwrap_or_default());
    let (before, after) = (size(plan.tokens_before), size(plan.tokens_after));
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    app.output.line(format!("context    about {before} tokens, {after} afterwards"))?;
    app.output.line(format!("summed up  {}", summed(plan)))?;
    if let Some(first) = &plan.first_kept_entry_id {
        let kept = count(plan.kept_entries, "entry", "entries");
        let size = tokens(plan.kept_tokens);
        app.output.line(format!("kept       {kept}, about {size} tokens, from {first}"))?;
    }
    if plan.split_turn {
        app.output.line(Line::of(Style::Dim, "the cut goes through a turn"))?;
    }
    app.output.line("")?;
    app.output.text(plan.summary.as_deref().unwrap_or_default())?;
    app.output.line("")
}

fn report(app: &App, answer: &CompactionResponse) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(answer);
    }
    if let Some(why) = &answer.nothing_to_do {
        return app.output.line(format!("nothing to do: {why}"));
    }
    if !answer.written {
        app.output.note(Line::of(Style::Dim, "nothing was written (--dry-run)"));
        return Ok(());
    }
    match &answer.entry_id {
        Some(entry) => app.output.line(format!("compacted as {entry}"))?,
        None => {
            let loops = count(answer.loops.len() as u64, "loop", "loops");
            app.output.line(format!("compacted {loops}"))?;
        }
    }
    let session = shell_word(answer.session_id.as_str());
    let hint = format!("undo it with `bough compact {session} --undo`");
    app.output.note(Line::of(Style::Dim, hint));
    Ok(())
}

fn report_undone(app: &App, answer: &UndoCompactionResponse) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(answer);
    }
    match (&answer.nothing_to_do, &answer.undone) {
        (Some(why), _) => app.output.line(format!("nothing to do: {why}")),
        (None, Some(compaction)) => {
            app.output.line(format!("the compaction {compaction} is undone"))
        }
        (None, None) => {
            let loops = count(answer.loops.len() as u64, "loop", "loops");
            app.output.line(format!("the compaction of {loops} is undone"))
        }
    }
}

/// Why sessions were not compacted, for callers that ask.
struct Why {
    /// Whether one session was named: then the answer also reports that its context still fits.
    asked: bool,
    lines: Vec<String>,
    /// The same by session, for programs.
    reasons: Map<String, Value>,
}

impl Why {
    fn new(asked: bool, configured: &Configured) -> Self {
        let off = format!("nothing to do: {}", NothingToCompact::SwitchedOff);
        let lines = Some(off).filter(|_| !configured.settings.enabled).into_iter().collect();
        Self { asked, lines, reasons: Map::new() }
    }

    /// Adds the reasons to an answer, if there are some.
    fn beside(self, mut answer: Value) -> Value {
        if let Some(members) = answer.as_object_mut().filter(|_| !self.lines.is_empty()) {
            let why = json!({ "said": self.lines, "sessions": self.reasons });
            members.insert("nothing_to_do".to_owned(), why);
        }
        answer
    }

    fn note(&mut self, session: &Summary, answer: &CompactionResponse) {
        use NothingToCompact::{Fits, NoWindow, SwitchedOff};
        let is_news = self.asked || !matches!(answer.reason, Some(Fits | NoWindow));
        if is_news && answer.reason != Some(SwitchedOff) {
            let why = answer.nothing_to_do.clone().unwrap_or_default();
            self.lines.push(format!("nothing to do for {}: {why}", session.caption()));
            self.reasons.insert(session.id().to_string(), why.into());
        }
    }
}
