use std::collections::{BTreeMap, HashSet};

use bough_recorder::RecordFold;
use bough_service::api::{LoopUsage, UsageResponse};
use bough_session::{SessionId, UsageByModel, UsageTotals};
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, ListRequest, Summary};
use crate::command_error::CommandResult;
use crate::limits::SEARCH_PAGE;
use crate::output::{Cell, Line, Style, Table};
use crate::resolve;
use crate::text::{cost, count, tokens};

/// Show tokens and cost of a session and its active branch, or of all sessions
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
    let session = resolve::session_to_show(app, backend, name).await?;
    let leaf = resolve::branch_end(backend, &session, leaf).await?;
    let request = json!({ "session_id": session.id(), "from_entry_id": leaf });
    let usage: UsageResponse = backend.call("session::usage", &request).await?;
    let recorded = Recorded::of(backend, &session).await?;
    if app.output.is_json() {
        let mut answer = json!({
            "session_id": session.id(), "session": usage.session, "branch": usage.branch,
        });
        if let (Some(recorded), Some(answer)) = (&recorded, answer.as_object_mut()) {
            answer.insert("reported".to_owned(), json!(recorded.reported));
            answer.insert("judges".to_owned(), json!(recorded.judges));
        }
        return app.output.json(&answer);
    }
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    let mut table = headings();
    add_rows(&mut table, "session", &usage.session);
    add_rows(&mut table, "branch", &usage.branch);
    if let Some(Recorded { reported, judges }) = &recorded {
        table.row(recorded_row("reported", "by loops", reported));
        table.row(recorded_row("", "by judges", judges));
    }
    app.output.table(&table)
}

/// The usage of a recorded session, beside the sum of its messages.
struct Recorded {
    /// What the loops reported when they ended.
    reported: LoopUsage,
    /// The usage of choosing among parallel loops, which no message of the session has.
    judges: LoopUsage,
}

impl Recorded {
    /// `None` for a session that was not recorded from events.
    async fn of(backend: &Backend, session: &Summary) -> CommandResult<Option<Self>> {
        if session.details.task_status.is_none() {
            return Ok(None);
        }
        let fold = backend.fold(session.id(), RecordFold::new(session.id().as_str())).await?;
        Ok(fold.session().map(|recorded| Self {
            reported: LoopUsage::from(&recorded.total_usage()),
            judges: LoopUsage::from(&recorded.evaluation_usage()),
        }))
    }
}

fn recorded_row(name: &str, who: &str, usage: &LoopUsage) -> Vec<Cell> {
    let number = |number: u64| Cell::new(tokens(number)).right();
    vec![
        Cell::of(Style::Strong, name),
        Cell::new(who),
        Cell::new(""),
        number(usage.input),
        number(usage.output),
        number(usage.cache_read),
        number(usage.cache_write),
        Cell::new(""),
    ]
}

async fn of_all(app: &App, backend: &Backend) -> CommandResult<()> {
    let mut ask = ListRequest { archived: "include", ..ListRequest::recent(SEARCH_PAGE) };
    let mut sums = Sums::default();
    loop {
        let page = backend.list(&ask).await?;
        page.sessions.iter().for_each(|summary| sums.add(summary));
        match page.next_cursor {
            Some(next) => ask.cursor = Some(next),
            None => break,
        }
    }
    let sessions = sums.sessions.len() as u64;
    let (sum, copied) = sums.finish();
    if app.output.is_json() {
        let answer = json!({ "sessions": sessions, "usage": sum, "copied_by_forks": copied });
        return app.output.json(&answer);
    }
    let mut table = headings();
    add_rows(&mut table, &count(sessions, "session", "sessions"), &sum);
    app.output.table(&table)?;
    if !copied.is_empty() {
        let answers = count(copied.total.messages, "answer", "answers");
        let money = cost(copied.total.cost_usd);
        let money = if money.is_empty() { money } else { format!(" ({money})") };
        let text = format!("forks copied {answers}{money} more; each answer is counted once");
        app.output.note(Line::of(Style::Dim, text));
    }
    Ok(())
}

/// Sums over sessions in which an answer counts once, however many forks hold a copy of it.
#[derive(Default)]
struct Sums {
    sessions: HashSet<SessionId>,
    usage: UsageByModel,
    /// What forks copied, by the session that they copied it from.
    copies: BTreeMap<SessionId, Copies>,
}

#[derive(Default)]
struct Copies {
    all: UsageByModel,
    largest: UsageByModel,
}

impl Sums {
    fn add(&mut self, Summary { meta, details, .. }: &Summary) {
        self.sessions.insert(meta.session_id.clone());
        self.usage.add_sum(&details.usage);
        if let Some(source) = &meta.forked_from {
            let copies = self.copies.entry(source.clone()).or_default();
            copies.all.add_sum(&details.copied_usage);
            if details.copied_usage.total.messages > copies.largest.total.messages {
                copies.largest.clone_from(&details.copied_usage);
            }
        }
    }

    /// The sum, and how much was left out of it because it counts elsewhere: at the session that it was copied from or,
    /// if that is gone, at the fork that copied the most.
    fn finish(mut self) -> (UsageByModel, UsageByModel) {
        let mut elsewhere = UsageByModel::default();
        for (source, mut copies) in self.copies {
            if !self.sessions.contains(&source) {
                copies.all.remove_sum(&copies.largest);
            }
            elsewhere.add_sum(&copies.all);
        }
        self.usage.remove_sum(&elsewhere);
        (self.usage, elsewhere)
    }
}

fn headings() -> Table {
    let headings = ["", "MODEL", "ANSWERS", "IN", "OUT", "CACHE R", "CACHE W", "COST"];
    Table::new(&headings, Some(1)).with_optional(&[6, 5, 2])
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
