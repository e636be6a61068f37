//! What each session used, by day, model and tool; summed by the database.

use bough_session::{SessionId, UsageOf, UsageTotals, Used};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};

use super::facets;
use crate::listing::{About, report};
use crate::types::{Listed, UsageGroup, UsageName, UsageQuery, UsageReport, UsageSum};

pub(super) const TABLE: &str = "
CREATE TABLE usage (
    row INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_tool INTEGER NOT NULL,
    name TEXT NOT NULL,
    project TEXT,
    agent TEXT,
    tenant TEXT,
    messages INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    errors INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (row, day, is_tool, name)
) WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day);
";

/// The columns of a [`Used`], in the order in which they are written.
const USED: [&str; 9] = [
    "messages",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "cost_usd",
    "errors",
    "time_ms",
];

/// Writes what a session used. Nearly always only the newest rows differ from what is there.
pub(super) fn put(
    transaction: &Transaction<'_>,
    place: i64,
    listed: &Listed,
) -> rusqlite::Result<()> {
    write(transaction, place, listed)?;
    let kept: usize = transaction
        .prepare_cached("SELECT count(*) FROM usage WHERE row = ?")?
        .query_row([place], |row| row.get(0))?;
    if kept > listed.by_day.iter().count() {
        // The oldest rows were joined, or another incarnation began.
        transaction.prepare_cached("DELETE FROM usage WHERE row = ?")?.execute([place])?;
        write(transaction, place, listed)?;
    }
    Ok(())
}

fn write(transaction: &Transaction<'_>, place: i64, listed: &Listed) -> rusqlite::Result<()> {
    let about = About::of(listed);
    let mut insert = transaction.prepare_cached(
        "INSERT INTO usage (row, day, is_tool, name, project, agent, tenant, messages, input,
             output, cache_read, cache_write, reasoning, cost_usd, errors, time_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT DO UPDATE SET project = ?5, agent = ?6, tenant = ?7, messages = ?8,
             input = ?9, output = ?10, cache_read = ?11, cache_write = ?12, reasoning = ?13,
             cost_usd = ?14, errors = ?15, time_ms = ?16
         WHERE messages <> ?8 OR input <> ?9 OR output <> ?10 OR cache_read <> ?11
             OR cache_write <> ?12 OR reasoning <> ?13 OR cost_usd <> ?14 OR errors <> ?15
             OR time_ms <> ?16 OR project IS NOT ?5 OR agent IS NOT ?6 OR tenant IS NOT ?7",
    )?;
    for ((day, of, name), used) in listed.by_day.iter() {
        let totals = used.totals;
        insert.execute(params![
            place,
            day,
            *of == UsageOf::Tool,
            name,
            about.project,
            about.agent,
            about.tenant,
            count(totals.messages),
            count(totals.input),
            count(totals.output),
            count(totals.cache_read),
            count(totals.cache_write),
            count(totals.reasoning),
            totals.cost_usd,
            count(used.errors),
            count(used.time_ms),
        ])?;
    }
    Ok(())
}

/// A count as SQLite counts.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Sums of what sessions used.
pub(super) fn sums(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<UsageReport> {
    let (sql, values) = statement(query);
    let sums = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| read(row, query))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(UsageReport { sessions: count_sessions(connection, query)?, ..report(sums, query) })
}

/// How many sessions there are.
fn count_sessions(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<u64> {
    let facets = facets::of_metadata(&query.metadata, &query.scope);
    let has = "EXISTS (SELECT 1 FROM facets g WHERE g.row = s.row AND g.facet = ?)";
    let all = std::iter::once("1").chain(facets.iter().map(|_| has)).collect::<Vec<_>>();
    let sql = format!("SELECT count(*) FROM sessions s WHERE {}", all.join(" AND "));
    let values = facets.iter().map(|facet| facet.to_vec());
    connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))
}

/// A sum of counts is a whole number; one that no count holds stays at the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats saturate, and counts are not negative"
)]
const fn whole(sum: f64) -> u64 {
    sum as u64
}

/// The statement: one line a group, with a column for each group and the sums of models, then of tools.
fn statement(query: &UsageQuery) -> (String, Vec<Value>) {
    let groups: Vec<&str> = query.by.iter().map(|group| column(*group)).collect();
    // Sums of real numbers: those of integers fail where they overflow.
    let sum = |column: &&str, is_tool: bool| {
        let tools = if is_tool { "" } else { "NOT " };
        format!("total(CASE WHEN {tools}u.is_tool THEN u.{column} ELSE 0 END)")
    };
    let columns: Vec<String> = groups
        .iter()
        .map(|&group| group.to_owned())
        .chain(USED.iter().map(|column| sum(column, false)))
        .chain(USED.iter().map(|column| sum(column, true)))
        .collect();
    let mut sql = format!("SELECT {} FROM usage u", columns.join(", "));
    if query.is_by(UsageGroup::Session) {
        sql.push_str(" JOIN sessions s ON s.row = u.row");
    }
    let (conditions, values) = conditions(query);
    if !conditions.is_empty() {
        sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    if groups.is_empty() {
        sql.push_str(" HAVING count(*) > 0");
    } else {
        sql.push_str(&format!(" GROUP BY {}", groups.join(", ")));
    }
    (sql, values)
}

fn conditions(query: &UsageQuery) -> (Vec<&'static str>, Vec<Value>) {
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    if let Some(first) = query.first_day {
        conditions.push("u.day >= ?");
        values.push(Value::from(first));
    }
    if let Some(last) = query.last_day {
        conditions.push("u.day <= ?");
        values.push(Value::from(last));
    }
    if query.is_by(UsageGroup::Model) {
        conditions.push("NOT u.is_tool");
    }
    if query.is_by(UsageGroup::Tool) {
        conditions.push("u.is_tool");
    }
    for facet in facets::of_metadata(&query.metadata, &query.scope) {
        conditions.push("EXISTS (SELECT 1 FROM facets g WHERE g.row = u.row AND g.facet = ?)");
        values.push(Value::from(facet.to_vec()));
    }
    (conditions, values)
}

const fn column(group: UsageGroup) -> &'static str {
    match group {
        UsageGroup::Day => "u.day",
        UsageGroup::Model | UsageGroup::Tool => "u.name",
        UsageGroup::Project => "u.project",
        UsageGroup::Agent => "u.agent",
        UsageGroup::Tenant => "u.tenant",
        UsageGroup::Session => "s.session_id",
    }
}

fn read(row: &Row<'_>, query: &UsageQuery) -> rusqlite::Result<UsageSum> {
    let mut name = UsageName::default();
    for (at, group) in query.by.iter().enumerate() {
        match group {
            UsageGroup::Day => name.day = row.get(at)?,
            UsageGroup::Model => name.model = row.get(at)?,
            UsageGroup::Tool => name.tool = row.get(at)?,
            UsageGroup::Project => name.project = row.get(at)?,
            UsageGroup::Agent => name.agent = row.get(at)?,
            UsageGroup::Tenant => name.tenant = row.get(at)?,
            UsageGroup::Session => {
                name.session_id = row.get::<_, Option<String>>(at)?.map(SessionId::from_stored);
            }
        }
    }
    let models = read_used(row, query.by.len())?;
    let tools = read_used(row, query.by.len() + USED.len())?;
    Ok(UsageSum { name, models, tools })
}

fn read_used(row: &Row<'_>, first: usize) -> rusqlite::Result<Used> {
    let count = |at: usize| row.get(first + at).map(whole);
    Ok(Used {
        totals: UsageTotals {
            messages: count(0)?,
            input: count(1)?,
            output: count(2)?,
            cache_read: count(3)?,
            cache_write: count(4)?,
            reasoning: count(5)?,
            cost_usd: row.get::<_, f64>(first + 6)?.clamp(f64::MIN, f64::MAX),
        },
        errors: count(7)?,
        time_ms: count(8)?,
    })
}
