//! The filters beside the words: months and sessions, as terms where they are few enough.

use rusqlite::types::Value;
use rusqlite::{Transaction, params_from_iter};

use super::expression::{Narrowing, expression, has_terms, months_of};
use super::read::{Ask, limit_of};
use crate::limits::{MONTH_TERMS_MAX, SESSION_TERMS_MAX};

/// A query in the words of SQLite.
pub(super) struct Narrowed {
    /// For FTS5.
    pub(super) expression: String,
    /// The conditions that FTS5 does not check.
    pub(super) sql: String,
    /// The values of that.
    pub(super) values: Vec<Value>,
}

/// `None` when nothing can fit.
pub(super) fn narrow(
    transaction: &Transaction<'_>,
    ask: &Ask,
) -> rusqlite::Result<Option<Narrowed>> {
    let filters = &ask.query.filters;
    let mut narrowing = Narrowing::default();
    let (mut sql, mut values) = times(ask);
    if let Some((of_sessions, of_values)) = sessions(ask) {
        let few = few_sessions(transaction, &of_sessions, &of_values)?;
        match few {
            Some(few) if few.is_empty() => return Ok(None),
            Some(few) => narrowing.sessions = Some(few),
            None => {
                sql.push_str(&format!(" AND docs.session IN ({of_sessions})"));
                values.extend(of_values);
            }
        }
    }
    let has_times = filters.after_ms.is_some() || filters.before_ms.is_some();
    let is_bare = !has_terms(&ask.query) && narrowing.sessions.is_none();
    if has_times || is_bare {
        let known = known_months(transaction)?;
        let months = months_of(&ask.query, &known);
        if months.is_empty() {
            return Ok(None);
        }
        // If nearly all months match, compare the rows one by one.
        let is_narrow = months.len() < known.len() && months.len() <= MONTH_TERMS_MAX;
        narrowing.months = (is_narrow || is_bare).then_some(months);
    }
    let expression = expression(&ask.query, &narrowing);
    Ok(Some(Narrowed { expression, sql, values }))
}

fn times(ask: &Ask) -> (String, Vec<Value>) {
    let (mut sql, mut values) = (String::new(), Vec::new());
    if let Some(after) = ask.query.filters.after_ms {
        sql.push_str(" AND docs.at >= ?");
        values.push(Value::Integer(after));
    }
    if let Some(before) = ask.query.filters.before_ms {
        sql.push_str(" AND docs.at < ?");
        values.push(Value::Integer(before));
    }
    (sql, values)
}

/// The numbers of the sessions that the search is limited to, as a subquery; `None` for all.
fn sessions(ask: &Ask) -> Option<(String, Vec<Value>)> {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let filters = &ask.query.filters;
    if let Some(session) = &filters.session {
        if filters.is_whole_session {
            conditions.push("session_id = ?");
        } else {
            conditions.push("substr(session_id, 1, ?) = ?");
            values.push(Value::Integer(limit_of(session.chars().count())));
        }
        values.push(Value::Text(session.clone()));
    }
    if let Some(project) = &filters.project {
        // The caller compares exactly; this only leaves fewer sessions.
        conditions.push("instr(project, ?)");
        values.push(Value::Text(project.trim_end_matches('/').to_owned()));
    }
    for (key, value) in &ask.metadata {
        conditions.push("no IN (SELECT session FROM metadata WHERE key = ? AND value = ?)");
        values.extend([key, value].map(|text| Value::Text(text.clone())));
    }
    let sql = format!("SELECT no FROM sessions WHERE {}", conditions.join(" AND "));
    (!conditions.is_empty()).then_some((sql, values))
}

/// The sessions, unless they are too many to be terms of the expression.
fn few_sessions(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[Value],
) -> rusqlite::Result<Option<Vec<i64>>> {
    let limited = format!("{sql} LIMIT {}", SESSION_TERMS_MAX + 1);
    let found: Vec<i64> = transaction
        .prepare_cached(&limited)?
        .query_map(params_from_iter(values), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok((found.len() <= SESSION_TERMS_MAX).then_some(found))
}

fn known_months(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<i64>> {
    transaction
        .prepare_cached("SELECT month FROM months ORDER BY month")?
        .query_map([], |row| row.get(0))?
        .collect()
}
