//! Prints messages and sessions to standard output.

use bough_service::api::MessageItem;

use crate::app::App;
use crate::backend::Summary;
use crate::command_error::CommandResult;
use crate::output::{Line, Style};
use crate::text::{cost, count, fit, short_id, stamp, tokens};
use crate::transcript::{Block, BlockKind, Shown, Speaker, shown};

/// The most columns of a block that is folded into its title.
const TITLE_COLUMNS_MAX: usize = 100;
/// Columns that a title stands in from the left, with its mark.
const TITLE_INDENT: usize = 4;

/// Everything about a session but its messages.
pub(crate) fn print_header(app: &App, session: &Summary) -> CommandResult<()> {
    let (meta, details) = (&session.meta, &session.details);
    let row = |name: &str, value: &str| {
        if value.is_empty() {
            return Ok(());
        }
        app.output.line(Line::of(Style::Dim, format!("{name:<9}")).plain(value))
    };
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    row("id", session.id().as_str())?;
    let reason = meta.status_reason.as_ref().map(|reason| format!(": {reason}"));
    let archived = if details.archived { ", archived" } else { "" };
    row("status", &format!("{}{}{archived}", meta.status.as_str(), reason.unwrap_or_default()))?;
    row("created", &stamp(meta.created_at))?;
    row("changed", &stamp(meta.updated_at))?;
    row("model", session.model().unwrap_or_default())?;
    row("folder", session.cwd().unwrap_or_default())?;
    row("task", &task(session))?;
    row("fork of", meta.forked_from.as_ref().map(AsRef::as_ref).unwrap_or_default())?;
    row("usage", &usage(session))?;
    let messages = count(meta.message_count, "message", "messages");
    row("holds", &format!("{messages}, {}", count(details.entry_count, "entry", "entries")))
}

fn task(session: &Summary) -> String {
    let details = &session.details;
    let status = details.task_status.map(|status| format!("({})", status.as_str()));
    let parts = [details.task_name.clone(), status];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn usage(session: &Summary) -> String {
    let total = &session.details.usage.total;
    if total.messages == 0 {
        return String::new();
    }
    let (input, output) = (tokens(total.input), tokens(total.output));
    format!("{input} in, {output} out {}", cost(total.cost_usd)).trim_end().to_owned()
}

/// Prints one message or note. `full` shows blocks that are otherwise folded.
pub(crate) fn print_item(app: &App, item: &MessageItem, full: bool) -> CommandResult<()> {
    let shown = shown(item);
    let heading = heading(&shown, item.entry_id.as_str());
    app.output.line(heading)?;
    for block in &shown.blocks {
        print_block(app, block, full)?;
    }
    app.output.line("")
}

/// The speaker, and the entry's id.
pub(crate) fn heading(shown: &Shown, entry: &str) -> Line {
    let style = match shown.speaker {
        Speaker::User => Style::User,
        Speaker::Assistant => Style::Assistant,
        Speaker::Tool => Style::Tool,
        Speaker::Application | Speaker::Note => Style::Dim,
    };
    Line::of(style, format!("● {}", shown.heading)).dim(format!("  {}", short_id(entry)))
}

/// Prints one block of a message. `full` shows blocks that are otherwise folded.
pub(crate) fn print_block(app: &App, block: &Block, full: bool) -> CommandResult<()> {
    let columns = app.output.columns().saturating_sub(TITLE_INDENT).min(TITLE_COLUMNS_MAX);
    let title = |style: Style, mark: &str| {
        app.output.line(Line::of(style, format!("  {mark}{}", fit(&block.title, columns))))
    };
    match block.kind {
        BlockKind::Text => return print_body(app, block),
        BlockKind::Call => title(Style::Tool, "→ ")?,
        BlockKind::Result => title(Style::Dim, "← ")?,
        BlockKind::Problem => title(Style::Error, "")?,
        BlockKind::Thinking | BlockKind::Summary | BlockKind::Picture => title(Style::Dim, "")?,
    }
    let always = matches!(block.kind, BlockKind::Summary | BlockKind::Problem);
    if full || always { print_body(app, block) } else { Ok(()) }
}

fn print_body(app: &App, block: &Block) -> CommandResult<()> {
    if block.body.is_empty() {
        return Ok(());
    }
    let mut flow = app.output.flow();
    app.output.add_to(&mut flow, block.body.trim_end_matches('\n'))?;
    app.output.finish(&mut flow)
}
