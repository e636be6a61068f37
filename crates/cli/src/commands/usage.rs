use bough_session::{UsageByModel, UsageTotals};
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, ListAsk, Summary};
use crate::command_error::CommandResult;
use crate::limits::SEARCH_PAGE;
use crate::output::{Cell, Line, Style, Table};
use crate::resolve;
use crate::text::{cost, count, tokens};

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
    let (mut sum, mut copied) = (UsageByModel::default(), UsageByModel::default());
    let mut sessions = 0_u64;
    loop {
        let page = backend.list(&ask).await?;
        sessions += page.sessions.len() as u64;
        for Summary { details, .. } in &page.sessions {
            sum.add_sum(&details.usage);
            copied.add_sum(&details.copied_usage);
        }
        match page.next_cursor {
            Some(next) => ask.cursor = Some(next),
            None => break,
        }
    }
    // What a fork copied was paid for once, in the session that it was copied from.
    sum.remove_sum(&copied);
    if app.output.is_json() {
        let answer = json!({ "sessions": sessions, "usage": sum, "copied_by_forks": copied });
        return app.output.json(&answer);
    }
    let mut table = headings();
    add_rows(&mut table, &count(sessions, "session", "sessions"), &sum);
    app.output.table(&table)?;
    if !copied.is_empty() {
        let (answers, money) = (copied.total.messages, cost(copied.total.cost_usd));
        let answers = count(answers, "answer", "answers");
        let text =
            format!("forks copied {answers} ({money}); they are counted once, at their origin");
        app.output.note(Line::of(Style::Dim, text));
    }
    Ok(())
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
