use std::path::PathBuf;

use bough_service::compaction::{BlockPlan, CompactionSettings, Undo, undo};
use bough_session::{EntryId, SessionId};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::backend::{Backend, ListRequest, Summary};
use crate::command_error::{CommandError, CommandResult};
use crate::compacting::{NotDue, Work, due};
use crate::limits::SEARCH_PAGE;
use crate::output::{Line, Style};
use crate::recorded::Recorded;
use crate::resolve;
use crate::summarise::{Configured, SummarySource, summarise};
use crate::text::{count, tokens};

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

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let mut configured = Configured::load(&app.globals)?;
    if let Some(tokens) = args.keep_recent {
        configured.settings.keep_recent_tokens = tokens;
    }
    let source = source(&args, &configured)?;
    app.with_backend(async |backend| {
        if args.auto {
            return automatic(app, backend, &args, &configured, &source).await;
        }
        let name = args.session.as_deref().unwrap_or_default();
        let session = resolve::session(backend, name).await?;
        let recorded = Recorded::load(app, backend, &session).await?;
        if let Some(recorded) = &recorded {
            let how = (&configured.settings, &source);
            return compact_recorded(app, backend, &args, &session, recorded, how).await;
        }
        if args.undo {
            return take_back(app, backend, &session).await;
        }
        let work = Work::load(backend, session, &configured.settings).await?;
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

/// Compacts a recorded session with blocks over its loops, or removes them.
async fn compact_recorded(
    app: &App,
    backend: &Backend,
    args: &Args,
    session: &Summary,
    recorded: &Recorded,
    (settings, source): (&CompactionSettings, &SummarySource),
) -> CommandResult<()> {
    if args.undo {
        return match recorded.take_back(backend).await? {
            0 => nothing_to_do(app, session, "no compaction is in force"),
            loops => report_taken_back(app, session, loops as u64),
        };
    }
    let Some(plan) = recorded.plan(settings, source).await? else {
        return nothing_to_do(app, session, "everything fits into the part that is kept");
    };
    if !app.output.is_json() {
        show_block_plan(app, session, &plan)?;
    }
    if args.dry_run {
        return report_blocks(app, session, &plan, false);
    }
    let turns = count(plan.summarised_turns, "turn", "turns");
    let ask = || app.output.confirm(&format!("Write this summary of {turns}?"), "--yes");
    if !args.yes
        && !ask().map_err(|error| error.hint("pass --dry-run to see it without a change"))?
    {
        return Err(CommandError::cancelled());
    }
    recorded.write(backend, &plan).await?;
    report_blocks(app, session, &plan, true)
}

fn show_block_plan(app: &App, session: &Summary, plan: &BlockPlan) -> CommandResult<()> {
    let (before, after) = (tokens(plan.tokens_before), tokens(plan.tokens_after));
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    app.output.line(format!("context    about {before} tokens, {after} afterwards"))?;
    let turns = count(plan.summarised_turns, "turn", "turns");
    let loops = count(plan.blocks.len() as u64, "loop", "loops");
    app.output.line(format!("summed up  {turns} of {loops}"))?;
    app.output.line("")?;
    app.output.text(&plan.summary())?;
    app.output.line("")
}

fn report_blocks(
    app: &App,
    session: &Summary,
    plan: &BlockPlan,
    is_written: bool,
) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(&block_document(session, plan, is_written));
    }
    if !is_written {
        app.output.note(Line::of(Style::Dim, "nothing was written (--dry-run)"));
        return Ok(());
    }
    let loops = count(plan.blocks.len() as u64, "loop", "loops");
    app.output.line(format!("compacted {loops}"))?;
    let hint = format!("undo it with `bough compact {} --undo`", session.id());
    app.output.note(Line::of(Style::Dim, hint));
    Ok(())
}

fn block_document(session: &Summary, plan: &BlockPlan, is_written: bool) -> Value {
    let loops: Vec<&str> = plan.blocks.iter().map(|(loop_id, _)| loop_id.as_str()).collect();
    json!({
        "session_id": session.id(), "written": is_written, "loops": loops,
        "summary": plan.summary(), "summarised_turns": plan.summarised_turns,
        "tokens_before": plan.tokens_before, "tokens_after": plan.tokens_after,
    })
}

fn report_taken_back(app: &App, session: &Summary, loops: u64) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(&json!({ "session_id": session.id(), "undone_loops": loops }));
    }
    let loops = count(loops, "loop", "loops");
    app.output.line(format!("the compaction of {loops} is undone"))
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
    if !args.yes
        && !ask().map_err(|error| error.hint("pass --dry-run to see it without a change"))?
    {
        return Err(CommandError::cancelled());
    }
    let entry = work.write(backend, summary.clone()).await?;
    report(app, &work, &summary, Some(&entry))
}

/// The question repeats the subject, because a long summary may have scrolled it away.
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
            let hint = format!("undo it with `bough compact {} --undo`", work.session.id());
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
            let appended = backend.append_note(session.id(), &entry, leaf.as_ref()).await?;
            (compaction, Some(appended))
        }
    };
    if app.output.is_json() {
        return app.output.json(&json!({
            "session_id": session.id(), "undone": compaction, "entry_id": entry,
        }));
    }
    app.output.line(format!("the compaction {compaction} is undone"))
}

/// Compacts sessions that exceed their window: one session, or all of them.
async fn automatic(
    app: &App,
    backend: &Backend,
    args: &Args,
    configured: &Configured,
    source: &SummarySource,
) -> CommandResult<()> {
    let sessions = match &args.session {
        Some(name) => vec![resolve::session(backend, name).await?],
        None => with_windows(backend, configured).await?,
    };
    let (mut done, mut why) = (Vec::new(), Why::new(args.session.is_some(), configured));
    for session in sessions {
        let (id, caption) = (session.id().clone(), session.caption().to_owned());
        match compact_one(app, backend, args, session, configured, source).await? {
            Ok((before, document)) => {
                if !app.output.is_json() {
                    let would = if args.dry_run { "would be compacted" } else { "compacted" };
                    let before = tokens(before);
                    app.output.line(format!("{caption}: {would} from about {before} tokens"))?;
                }
                done.push(document);
            }
            Err(not) => why.note(&id, caption, not),
        }
    }
    if app.output.is_json() {
        return app.output.json(&why.beside(json!({ "compacted": done })));
    }
    why.lines.iter().try_for_each(|line| app.output.line(line.as_str()))?;
    if done.is_empty() && why.lines.is_empty() {
        app.output.line("nothing to do: no session exceeds its model's window")?;
    }
    Ok(())
}

/// Compacts a session if it is due. Returns its tokens before, and the answer for programs.
async fn compact_one(
    app: &App,
    backend: &Backend,
    args: &Args,
    session: Summary,
    configured: &Configured,
    source: &SummarySource,
) -> CommandResult<Result<(u64, Value), NotDue>> {
    if let Some(recorded) = Recorded::load(app, backend, &session).await? {
        let plan = match recorded.plan_if_due(&session, configured, source).await? {
            Ok(plan) => plan,
            Err(not) => return Ok(Err(not)),
        };
        if !args.dry_run {
            recorded.write(backend, &plan).await?;
        }
        let document = block_document(&session, &plan, !args.dry_run);
        return Ok(Ok((plan.tokens_before, document)));
    }
    let (work, summary) = match due(backend, session, configured, source).await? {
        Ok(due) => due,
        Err(not) => return Ok(Err(not)),
    };
    let entry = match args.dry_run {
        true => None,
        false => Some(work.write(backend, summary.clone()).await?),
    };
    Ok(Ok((work.plan.tokens_before, document(&work, &summary, entry.as_ref()))))
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
        let off = format!("nothing to do: {}", NotDue::SwitchedOff);
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

    fn note(&mut self, session: &SessionId, caption: String, not: NotDue) {
        let is_news = self.asked || matches!(not, NotDue::NothingToCut(_));
        if is_news && not != NotDue::SwitchedOff {
            self.lines.push(format!("nothing to do for {caption}: {not}"));
            self.reasons.insert(session.to_string(), not.to_string().into());
        }
    }
}

/// All sessions whose model's window is known.
async fn with_windows(backend: &Backend, configured: &Configured) -> CommandResult<Vec<Summary>> {
    let has_window = |found: &Summary| configured.windows.of_session(&found.details).is_some();
    let mut ask = ListRequest::recent(SEARCH_PAGE);
    let mut found = Vec::new();
    loop {
        let page = backend.list(&ask).await?;
        found.extend(page.sessions.into_iter().filter(has_window));
        match page.next_cursor {
            Some(next) => ask.cursor = Some(next),
            None => return Ok(found),
        }
    }
}
