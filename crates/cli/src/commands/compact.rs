use std::path::PathBuf;

use bough_session::{Bookkeeping, EntryId, SessionId};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::backend::{Backend, ListAsk, Summary};
use crate::command_error::{CommandError, CommandResult};
use crate::compact::{Settings, Undo, undo};
use crate::compacting::{NotDue, Work, due};
use crate::limits::SEARCH_PAGE;
use crate::output::{Line, Style};
use crate::resolve;
use crate::summarise::{Configured, SummarySource, summarise};
use crate::text::{count, tokens};

/// Sum up the older part of a conversation, so that a model is sent less
///
/// Nothing is removed: an entry is added that stands for what came before it, and `--undo` takes it back. The
/// summary is shown before it is written.
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

    /// Act only where the context exceeds the model's window less the reserve, and do not ask
    #[arg(long)]
    auto: bool,

    /// Take the last compaction back
    #[arg(long, conflicts_with_all = ["auto", "dry_run", "summary_file", "command", "focus"])]
    undo: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
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

    /// What the summary should pay attention to; for the program
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,

    /// How much of the newest conversation stays as it is
    #[arg(long, value_name = "TOKENS")]
    keep_recent: Option<u64>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let configured = Configured::load(&app.globals)?;
    let mut settings = configured.settings;
    settings.keep_recent_tokens = args.keep_recent.unwrap_or(settings.keep_recent_tokens);
    let source = source(&args, &configured)?;
    app.with_backend(async |backend| {
        if args.auto {
            return automatic(app, backend, &args, &settings, &source).await;
        }
        let name = args.session.as_deref().unwrap_or_default();
        let session = resolve::session(backend, name).await?;
        if args.undo {
            return take_back(app, backend, &session).await;
        }
        let work = Work::load(backend, session, &settings).await?;
        match work {
            Ok(work) => asked(app, backend, &args, work, &source).await,
            Err((session, nothing)) => nothing_to_do(app, &session, &nothing.to_string()),
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

/// Shows what would be done, asks, and does it.
async fn asked(
    app: &App,
    backend: &Backend,
    args: &Args,
    work: Work,
    source: &SummarySource,
) -> CommandResult<()> {
    if !app.output.is_json() {
        show_plan(app, &work)?;
    }
    let summary = summarise(&work.path, &work.plan, source).await?;
    if !app.output.is_json() {
        app.output.line("")?;
        app.output.text(&summary)?;
        app.output.line("")?;
    }
    if args.dry_run {
        return report(app, &work, &summary, None);
    }
    let ask = || app.output.confirm(&question(&work), "--yes");
    if !args.yes && !ask().map_err(|error| error.hint("pass --dry-run to only look"))? {
        return Err(CommandError::cancelled());
    }
    let entry = work.write(backend, summary.clone()).await?;
    report(app, &work, &summary, Some(&entry))
}

/// The summary may have scrolled away what it is about.
fn question(work: &Work) -> String {
    let summed = count(work.plan.range.len() as u64, "entry", "entries");
    format!("Write this summary of {summed} ({} stay)?", work.plan.kept_entries)
}

fn show_plan(app: &App, work: &Work) -> CommandResult<()> {
    let plan = &work.plan;
    let summed = count(plan.range.len() as u64, "entry", "entries");
    let kept = count(plan.kept_entries as u64, "entry", "entries");
    app.output.line(Line::of(Style::Strong, work.session.caption()))?;
    app.output.line(format!("context    about {} tokens", tokens(plan.tokens_before)))?;
    app.output.line(format!("summed up  {summed}"))?;
    let kept_tokens = tokens(plan.kept_tokens);
    app.output
        .line(format!("kept       {kept}, about {kept_tokens} tokens, from {}", plan.first_kept))?;
    if plan.split_turn.is_some() {
        app.output.line(Line::of(Style::Dim, "the cut goes through a turn"))?;
    }
    Ok(())
}

fn report(app: &App, work: &Work, summary: &str, entry: Option<&EntryId>) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(&document(work, summary, entry));
    }
    match entry {
        Some(entry) => {
            app.output.line(format!("compacted as {entry}"))?;
            let hint = format!("take it back with `bough compact {} --undo`", work.session.id());
            app.output.note(Line::of(Style::Dim, hint));
        }
        None => app.output.note(Line::of(Style::Dim, "nothing was written (--dry-run)")),
    }
    Ok(())
}

fn document(work: &Work, summary: &str, entry: Option<&EntryId>) -> Value {
    let plan = &work.plan;
    json!({
        "session_id": work.session.id(),
        "entry_id": entry,
        "summary": summary,
        "first_kept_entry_id": plan.first_kept,
        "tokens_before": plan.tokens_before,
        "kept_tokens": plan.kept_tokens,
        "summarised_entries": plan.range.len(),
        "kept_entries": plan.kept_entries,
        "split_turn": plan.split_turn.is_some(),
    })
}

fn nothing_to_do(app: &App, session: &Summary, why: &str) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(&json!({
            "session_id": session.id(), "entry_id": null, "nothing_to_do": why,
        }));
    }
    app.output.line(format!("nothing to do: {why}"))
}

async fn take_back(app: &App, backend: &Backend, session: &Summary) -> CommandResult<()> {
    let path = backend.path(session.id(), None).await?;
    let Some(undo) = undo(&path) else {
        return nothing_to_do(app, session, "no compaction is in force");
    };
    let leaf = path.last().map(|item| item.id.clone());
    let (compaction, entry) = match undo {
        Undo::MoveLeaf { compaction, to } => {
            backend.set_leaf(session.id(), to.as_ref()).await?;
            (compaction, None)
        }
        Undo::Append { compaction, entry } => {
            debug_assert!(matches!(entry, Bookkeeping::Compaction(_)));
            let appended = backend.append_note(session.id(), &entry, leaf.as_ref()).await?;
            (compaction, Some(appended))
        }
    };
    if app.output.is_json() {
        return app.output.json(&json!({
            "session_id": session.id(), "undone": compaction, "entry_id": entry,
        }));
    }
    app.output.line(format!("the compaction {compaction} is taken back"))
}

/// Compacts what outgrew its window: one session, or all of them.
async fn automatic(
    app: &App,
    backend: &Backend,
    args: &Args,
    settings: &Settings,
    source: &SummarySource,
) -> CommandResult<()> {
    let sessions = match &args.session {
        Some(name) => vec![resolve::session(backend, name).await?],
        None => with_windows(backend).await?,
    };
    let (mut done, mut why) = (Vec::new(), Why::new(args.session.is_some(), settings));
    for session in sessions {
        let (id, caption) = (session.id().clone(), session.caption().to_owned());
        let (work, summary) = match due(backend, session, settings, source).await? {
            Ok(due) => due,
            Err(not) => {
                why.note(&id, caption, not);
                continue;
            }
        };
        let entry = match args.dry_run {
            true => None,
            false => Some(work.write(backend, summary.clone()).await?),
        };
        if !app.output.is_json() {
            let (caption, before) = (work.session.caption(), tokens(work.plan.tokens_before));
            let would = if args.dry_run { "would be compacted" } else { "compacted" };
            app.output.line(format!("{caption}: {would} from about {before} tokens"))?;
        }
        done.push(document(&work, &summary, entry.as_ref()));
    }
    if app.output.is_json() {
        return app.output.json(&why.beside(json!({ "compacted": done })));
    }
    why.said.iter().try_for_each(|line| app.output.line(line.as_str()))?;
    if done.is_empty() && why.said.is_empty() {
        app.output.line("nothing to do: no session exceeds its model's window")?;
    }
    Ok(())
}

/// Why sessions were left as they are, where somebody wants to know.
struct Why {
    /// One session was asked for: then also that it has room is news.
    asked: bool,
    said: Vec<String>,
    /// The same by session, for programs.
    reasons: Map<String, Value>,
}

impl Why {
    fn new(asked: bool, settings: &Settings) -> Self {
        let off = format!("nothing to do: {}", NotDue::SwitchedOff);
        let said = Some(off).filter(|_| !settings.enabled).into_iter().collect();
        Self { asked, said, reasons: Map::new() }
    }

    /// An answer with the reasons in it, where there are some.
    fn beside(self, mut answer: Value) -> Value {
        if let Some(members) = answer.as_object_mut().filter(|_| !self.said.is_empty()) {
            let why = json!({ "said": self.said, "sessions": self.reasons });
            members.insert("nothing_to_do".to_owned(), why);
        }
        answer
    }

    fn note(&mut self, session: &SessionId, caption: String, not: NotDue) {
        let is_news = self.asked || matches!(not, NotDue::NothingToCut(_));
        if is_news && not != NotDue::SwitchedOff {
            self.said.push(format!("nothing to do for {caption}: {not}"));
            self.reasons.insert(session.to_string(), not.to_string().into());
        }
    }
}

async fn with_windows(backend: &Backend) -> CommandResult<Vec<Summary>> {
    let mut ask = ListAsk::recent(SEARCH_PAGE);
    let mut found = Vec::new();
    loop {
        let page = backend.list(&ask).await?;
        found.extend(page.sessions.into_iter().filter(|s| s.details.context_window.is_some()));
        match page.next_cursor {
            Some(next) => ask.cursor = Some(next),
            None => return Ok(found),
        }
    }
}
