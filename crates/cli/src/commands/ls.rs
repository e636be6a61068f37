use std::num::NonZeroUsize;

use bough_session::{JsonMap, SessionStatus, TaskStatus};
use bough_store::ListOrder;
use serde_json::{Value, json};

use crate::app::App;
use crate::backend::{Backend, ListPage, ListRequest, Summary};
use crate::command_error::{CommandError, CommandResult};
use crate::limits::SEARCH_PAGE;
use crate::output::{Cell, Line, Style, Table};
use crate::text::{age, cost, unique_ids};

/// List sessions, most recently changed first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough ls                           the last 50
  bough ls --here                    the sessions of this directory
  bough ls --search parser -n 5
  bough ls --status error --json
  bough ls --meta owner=u_1 --sort created")]
pub(crate) struct Args {
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "50", value_parser = at_least_one)]
    limit: NonZeroUsize,

    /// Show all sessions, including archived ones
    #[arg(short = 'a', long, conflicts_with = "limit")]
    all: bool,

    /// Show only archived sessions
    #[arg(long, conflicts_with = "all")]
    archived: bool,

    /// Only sessions of the current directory
    #[arg(long)]
    here: bool,

    /// Only sessions with this text in their title, name or first message
    #[arg(short = 's', long, value_name = "TEXT")]
    search: Option<String>,

    /// Only sessions with this status
    #[arg(long, value_name = "STATUS", value_parser = ["idle", "working", "done", "error"])]
    status: Option<String>,

    /// Only sessions whose task has this name
    #[arg(long, value_name = "NAME")]
    task: Option<String>,

    /// Only sessions whose task has this status
    #[arg(long, value_name = "STATUS", value_parser = ["pending", "running", "completed", "failed"])]
    task_status: Option<String>,

    /// Only sessions with this metadata; can be given several times
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    metadata: Vec<String>,

    /// The order of the list
    #[arg(long, value_name = "ORDER", default_value = "updated")]
    sort: Sort,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sort {
    /// Most recently changed first
    Updated,
    /// Most recently created first
    Created,
    /// Oldest first
    Oldest,
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a number of at least 1, or --all".to_owned())
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let ask = ask_of(&args)?;
    let limit = if args.all { usize::MAX } else { args.limit.get() };
    let page = app.with_backend(async |backend| read(backend, ask, limit).await).await?;
    if app.output.is_json() {
        return app.output.json(&json!({
            "sessions": page.sessions, "more": page.next_cursor.is_some(),
        }));
    }
    if page.sessions.is_empty() {
        app.output.note(empty_note(&args));
        return Ok(());
    }
    app.output.table(&table(&page.sessions, app.now_ms()))?;
    if page.next_cursor.is_some() {
        app.output.note(Line::of(Style::Dim, "there are more: -n COUNT, or --all"));
    }
    Ok(())
}

fn ask_of(args: &Args) -> CommandResult<ListRequest> {
    let mut metadata = JsonMap::new();
    for pair in &args.metadata {
        let (key, value) = parse_pair(pair)?;
        metadata.insert(key, value);
    }
    if args.here {
        metadata.insert("cwd".to_owned(), Value::String(current_dir()?));
    }
    let archived = match (args.all, args.archived) {
        (true, _) => "include",
        (_, true) => "only",
        _ => "exclude",
    };
    Ok(ListRequest {
        order: Some(match args.sort {
            Sort::Updated => ListOrder::UpdatedDesc,
            Sort::Created => ListOrder::CreatedDesc,
            Sort::Oldest => ListOrder::CreatedAsc,
        }),
        status: args.status.as_deref().map(word::<SessionStatus>).transpose()?,
        task_status: args.task_status.as_deref().map(word::<TaskStatus>).transpose()?,
        task: args.task.clone(),
        query: args.search.clone(),
        archived,
        metadata,
        ..ListRequest::recent(SEARCH_PAGE)
    })
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> CommandResult<T> {
    Ok(serde_json::from_value(Value::String(text.to_owned()))?)
}

/// Parses a pair. A value that is JSON is taken as JSON, so that numbers and truth values can be searched.
pub(crate) fn parse_pair(pair: &str) -> CommandResult<(String, Value)> {
    let parts = pair.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, text) = parts.ok_or_else(|| {
        CommandError::usage(format!("{pair:?} is not KEY=VALUE")).hint("such as --meta owner=u_1")
    })?;
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    Ok((key.to_owned(), value))
}

/// The directory that the command was called in.
pub(crate) fn current_dir() -> CommandResult<String> {
    Ok(std::env::current_dir()?.to_string_lossy().into_owned())
}

async fn read(backend: &Backend, mut ask: ListRequest, limit: usize) -> CommandResult<ListPage> {
    let mut found = ListPage::default();
    loop {
        ask.limit = SEARCH_PAGE.min(limit - found.sessions.len()).max(1);
        let page = backend.list(&ask).await?;
        found.sessions.extend(page.sessions);
        found.next_cursor = page.next_cursor;
        if found.next_cursor.is_none() || found.sessions.len() >= limit {
            return Ok(found);
        }
        ask.cursor.clone_from(&found.next_cursor);
    }
}

fn table(sessions: &[Summary], now_ms: i64) -> Table {
    let headings = ["ID", "TITLE", "MSGS", "AGE", "MODEL", "COST"];
    let mut table = Table::new(&headings, Some(1)).with_optional(&[4, 5, 2]);
    let ids: Vec<&str> = sessions.iter().map(|session| session.id().as_str()).collect();
    for (session, id) in sessions.iter().zip(unique_ids(&ids)) {
        let style = if session.is_named() { Style::Strong } else { Style::Plain };
        table.row(vec![
            Cell::of(Style::Dim, id),
            Cell::of(style, caption(session)),
            Cell::new(session.meta.message_count.to_string()).right(),
            Cell::new(age(now_ms, session.meta.updated_at)).right(),
            Cell::new(session.model().unwrap_or("-")),
            Cell::new(cost(session.cost_usd())).right(),
        ]);
    }
    table
}

fn caption(session: &Summary) -> String {
    let mark = if session.details.archived { "[archived] " } else { "" };
    let state = match session.meta.status {
        SessionStatus::Working => "* ",
        SessionStatus::Error => "! ",
        SessionStatus::Idle | SessionStatus::Done => "",
    };
    format!("{mark}{state}{}", session.caption())
}

fn empty_note(args: &Args) -> Line {
    let filtered = args.here
        || args.search.is_some()
        || args.status.is_some()
        || args.archived
        || !args.metadata.is_empty();
    if filtered {
        Line::from("no session matches; `bough ls` shows the others")
    } else {
        Line::from("no sessions yet; `bough migrate` brings some in, `bough record` records one")
    }
}
