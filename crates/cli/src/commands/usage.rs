use bough_session::{UsageByModel, UsageTotals};
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, ListAsk};
use crate::command_error::CommandResult;
use crate::limits::SEARCH_PAGE;
use crate::output::{Cell, Line, Style, Table};
use crate::resolve;
use crate::text::{cost, tokens};

/// Add up tokens and cost: of a session and its active branch, or of all sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough usage                      all sessions
  bough usage last
  bough usage last --leaf plan-b --json")]
pub(crate) struct Args {
    /// The session [default: all of them]
    session: Option<String>,

    /// The end of the branch to add up [default: the active leaf]
    #[arg(long, value_name = "ENTRY", requires = "session")]
    leaf: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| match &args.session {
        Some(session) => of_session(app, backend, session, args.leaf.as_deref()).await,
        None => of_all(app, backend).await,
    })
    .await
}

async fn of_session(
    app: &App,
    backend: &Backend,
    name: &str,
    leaf: Option<&str>,
) -> CommandResult<()> {
    let session = resolve::session(backend, name).await?;
    let leaf = match leaf {
        Some(text) => Some(resolve::entry(backend, &session, text).await?),
        None => None,
    };
    let usage = backend.usage(session.id(), leaf.as_ref()).await?;
    if app.output.is_json() {
        return app.output.json(&json!({
            "session_id": session.id(), "session": usage.session, "branch": usage.branch,
        }));
    }
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    let mut table = headings();
    add_rows(&mut table, "session", &usage.session);
    add_rows(&mut table, "branch", &usage.branch);
    app.output.table(&table)
}

async fn of_all(app: &App, backend: &Backend) -> CommandResult<()> {
    let mut ask = ListAsk { archived: "include", ..ListAsk::recent(SEARCH_PAGE) };
    let mut sum = UsageByModel::default();
    let mut sessions = 0_u64;
    loop {
        let page = backend.list(&ask).await?;
        sessions += page.sessions.len() as u64;
        page.sessions.iter().for_each(|session| add(&mut sum, &session.details.usage));
        match page.next_cursor {
            Some(next) => ask.cursor = Some(next),
            None => break,
        }
    }
    if app.output.is_json() {
        return app.output.json(&json!({ "sessions": sessions, "usage": sum }));
    }
    let mut table = headings();
    add_rows(&mut table, &format!("{sessions} sessions"), &sum);
    app.output.table(&table)
}

fn headings() -> Table {
    Table::new(&["", "MODEL", "ANSWERS", "IN", "OUT", "CACHE R", "CACHE W", "COST"], Some(1))
}

fn add_rows(table: &mut Table, name: &str, usage: &UsageByModel) {
    table.row(row(Cell::of(Style::Strong, name), Cell::of(Style::Strong, "all"), &usage.total));
    for (model, totals) in &usage.models {
        table.row(row(Cell::new(""), Cell::new(model), totals));
    }
}

fn row(name: Cell, model: Cell, totals: &UsageTotals) -> Vec<Cell> {
    let number = |number: u64| Cell::new(tokens(number)).right();
    vec![
        name,
        model,
        Cell::new(totals.messages.to_string()).right(),
        number(totals.input),
        number(totals.output),
        number(totals.cache_read),
        number(totals.cache_write),
        Cell::new(cost(totals.cost_usd)).right(),
    ]
}

fn add(sum: &mut UsageByModel, more: &UsageByModel) {
    add_totals(&mut sum.total, &more.total);
    for (model, totals) in &more.models {
        add_totals(sum.models.entry(model.clone()).or_default(), totals);
    }
}

fn add_totals(sum: &mut UsageTotals, more: &UsageTotals) {
    sum.messages = sum.messages.saturating_add(more.messages);
    sum.input = sum.input.saturating_add(more.input);
    sum.output = sum.output.saturating_add(more.output);
    sum.cache_read = sum.cache_read.saturating_add(more.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(more.cache_write);
    sum.reasoning = sum.reasoning.saturating_add(more.reasoning);
    sum.cost_usd += more.cost_usd;
}
