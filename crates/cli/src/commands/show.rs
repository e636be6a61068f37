use bough_service::api::MessageItem;
use bough_session::EntryId;
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, Summary};
use crate::command_error::CommandResult;
use crate::commands::print::{print_header, print_item};
use crate::limits::ENTRIES_PAGE;
use crate::output::{Line, Style};
use crate::resolve;

/// Show a session and its newest messages
///
/// Shows the messages of the active path, oldest first. Thinking, tool arguments and tool results take one line each;
/// `--full` shows them whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough show last
  bough show \"Fix the parser\" --all --full
  bough show s_4f2a --leaf before-refactor
  bough show last --loops")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
    session: String,

    /// How many of the newest messages to show
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,

    /// Show all messages
    #[arg(short = 'a', long, conflicts_with = "limit")]
    all: bool,

    /// Show the path to this entry (an id, a beginning of one, or a label) instead of the active one
    #[arg(long, value_name = "ENTRY")]
    leaf: Option<String>,

    /// Show thinking, tool arguments and tool results in full
    #[arg(long)]
    full: bool,

    /// Show the loops of the agent and the sub-agents that they started
    #[arg(long)]
    loops: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session_to_show(app, backend, &args.session).await?;
        if args.loops {
            return show_loops(app, backend, &session).await;
        }
        let leaf = resolve::branch_end(backend, &session, args.leaf.as_deref()).await?;
        let limit = if args.all { usize::MAX } else { args.limit };
        let (items, more) = newest(backend, &session, leaf.as_ref(), limit).await?;
        if app.output.is_json() {
            let answer = json!({ "session": session, "messages": items, "more": more });
            return app.output.json(&answer);
        }
        print_header(app, &session)?;
        app.output.line("")?;
        if more {
            let text = "… there are older messages: -n COUNT, or --all";
            app.output.line(Line::of(Style::Dim, text))?;
            app.output.line("")?;
        }
        items.iter().try_for_each(|item| print_item(app, item, args.full))
    })
    .await
}

/// The newest messages of a path with the bookkeeping between and after them, the oldest first, and whether there are
/// older entries. Only messages count towards the limit.
pub(crate) async fn newest(
    backend: &Backend,
    session: &Summary,
    leaf: Option<&EntryId>,
    limit: usize,
) -> CommandResult<(Vec<MessageItem>, bool)> {
    let mut items: Vec<MessageItem> = Vec::new();
    let (mut messages, mut cursor) = (0, None);
    loop {
        // One more than needed shows whether there are older ones.
        let size = (limit - messages).saturating_add(1).min(ENTRIES_PAGE);
        let page = backend.path_page(session.id(), leaf, true, size, cursor.as_deref()).await?;
        for item in page.messages {
            if messages == limit {
                items.reverse();
                return Ok((items, true));
            }
            messages += usize::from(item.message.is_some());
            items.push(item);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            items.reverse();
            return Ok((items, false));
        }
    }
}

async fn show_loops(app: &App, backend: &Backend, session: &Summary) -> CommandResult<()> {
    let loops = backend.loops(session.id()).await?;
    if app.output.is_json() {
        return app.output.json(&json!({ "session_id": session.id(), "loops": loops }));
    }
    if loops.is_empty() {
        app.output.note("the session has no loops; only sessions of `bough record` do");
        return Ok(());
    }
    // Whole ids: they are what `bough replay --loop` takes.
    for line in crate::screens::outline_lines("", &loops) {
        app.output.line(format!("{}{}", "  ".repeat(line.depth), line.text))?;
    }
    Ok(())
}
