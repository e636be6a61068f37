use bough_record::Position;
use bough_session::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::expression::expression;
use super::write::comparable;
use crate::SearchError;
use crate::index::{Candidate, CandidatePage, IndexedSession, SearchAsk};
use crate::limits::RANKED_TOGETHER;

pub(super) fn cursor(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let found = connection
        .prepare_cached("SELECT value FROM facts WHERE name = 'cursor'")?
        .query_row([], |row| row.get::<_, Option<String>>(0))
        .optional()?;
    Ok(found.flatten())
}

const SESSION: &str = "SELECT session_id, incarnation, seq, step, stale, agent FROM sessions";

fn read_session(row: &Row<'_>) -> rusqlite::Result<IndexedSession> {
    Ok(IndexedSession {
        session_id: SessionId::from_stored(row.get::<_, String>(0)?),
        incarnation: incarnation(row, 1)?,
        place: Position { seq: row.get(2)?, step: row.get(3)? },
        is_stale: row.get(4)?,
        agent: row.get(5)?,
    })
}

fn incarnation(row: &Row<'_>, column: usize) -> rusqlite::Result<bough_session::Incarnation> {
    row.get::<_, String>(column)?.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

pub(super) fn session(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<IndexedSession>> {
    connection
        .prepare_cached(&format!("{SESSION} WHERE session_id = ?"))?
        .query_row([session.as_str()], read_session)
        .optional()
}

pub(super) fn sessions(
    connection: &Connection,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<IndexedSession>> {
    connection
        .prepare_cached(&format!("{SESSION} WHERE session_id > ? ORDER BY session_id LIMIT ?"))?
        .query_map(params![after, limit_of(limit)], read_session)?
        .collect()
}

pub(super) fn stale(
    connection: &Connection,
    limit: usize,
) -> rusqlite::Result<Vec<IndexedSession>> {
    connection
        .prepare_cached(&format!("{SESSION} WHERE stale LIMIT ?"))?
        .query_map(params![limit_of(limit)], read_session)?
        .collect()
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A search in SQL.
pub(super) struct Ask {
    sql: String,
    values: Vec<Value>,
    limit: usize,
    place: PageStart,
    now_ms: i64,
}

/// Where a page starts: among the matches up to a document's number, after so many of the ranked ones.
#[derive(Clone, Copy, Debug)]
struct PageStart {
    newest: i64,
    skipped: usize,
}

impl Ask {
    pub(super) fn of(ask: &SearchAsk<'_>) -> Result<Self, SearchError> {
        let place = match ask.cursor {
            Some(cursor) => PageStart::parse(cursor).ok_or(SearchError::InvalidCursor)?,
            None => PageStart { newest: i64::MAX, skipped: 0 },
        };
        // The words lead: a search reads as many documents as it ranks, the newest first, and no more.
        let mut sql =
            "SELECT words.rowid, docs.session, docs.seq, docs.old, docs.at, docs.weight, \
             bm25(words, 1.0, 0.0) FROM words CROSS JOIN docs ON docs.doc = words.rowid \
             WHERE words MATCH ? AND words.rowid <= ? AND docs.old IS "
                .to_owned();
        sql.push_str(if ask.query.filters.is_old { "NOT NULL" } else { "NULL" });
        let mut values = vec![Value::Text(expression(ask.query)), Value::Integer(place.newest)];
        add_filters(ask, &mut sql, &mut values);
        sql.push_str(" ORDER BY words.rowid DESC LIMIT ?");
        values.push(Value::Integer(limit_of(RANKED_TOGETHER)));
        Ok(Self { sql, values, limit: ask.limit, place, now_ms: ask.now_ms })
    }
}

fn add_filters(ask: &SearchAsk<'_>, sql: &mut String, values: &mut Vec<Value>) {
    let filters = &ask.query.filters;
    if let Some(after) = filters.after_ms {
        sql.push_str(" AND docs.at >= ?");
        values.push(Value::Integer(after));
    }
    if let Some(before) = filters.before_ms {
        sql.push_str(" AND docs.at < ?");
        values.push(Value::Integer(before));
    }
    if let Some(session) = &filters.session {
        sql.push_str(
            " AND docs.session IN (SELECT no FROM sessions WHERE substr(session_id, 1, ?) = ?)",
        );
        values.push(Value::Integer(limit_of(session.chars().count())));
        values.push(Value::Text(session.clone()));
    }
    if let Some(project) = &filters.project {
        // Compared exactly by the caller; here so that few sessions are left.
        sql.push_str(" AND docs.session IN (SELECT no FROM sessions WHERE instr(project, ?))");
        values.push(Value::Text(project.trim_end_matches('/').to_owned()));
    }
    for (key, value) in &ask.metadata {
        sql.push_str(
            " AND docs.session IN (SELECT session FROM metadata WHERE key = ? AND value = ?)",
        );
        values.push(Value::Text((*key).to_owned()));
        values.push(Value::Text(comparable(value)));
    }
}

impl PageStart {
    fn parse(text: &str) -> Option<Self> {
        let (newest, skipped) = text.split_once('.')?;
        Some(Self { newest: newest.parse().ok()?, skipped: skipped.parse().ok()? })
    }

    fn to_text(self) -> String {
        format!("{}.{}", self.newest, self.skipped)
    }
}

/// A match before it is known which session it is of.
struct Match {
    doc: i64,
    session: i64,
    seq: u64,
    old: Option<u64>,
    score: f64,
}

pub(super) fn search(connection: &Connection, ask: &Ask) -> rusqlite::Result<CandidatePage> {
    // One transaction, so that the matches and their sessions are of one moment.
    let transaction = connection.unchecked_transaction()?;
    let mut matches: Vec<Match> = transaction
        .prepare_cached(&ask.sql)?
        .query_map(params_from_iter(&ask.values), |row| read_match(row, ask.now_ms))?
        .collect::<rusqlite::Result<_>>()?;
    let newest = matches.first().map_or(ask.place.newest, |newest| newest.doc);
    // The matches that are older than those which are ranked together.
    let older = matches.last().map(|oldest| PageStart { newest: oldest.doc - 1, skipped: 0 });
    let is_full = matches.len() >= RANKED_TOGETHER;
    matches.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.doc.cmp(&a.doc)));
    let ranked = matches.len();
    let mut page = CandidatePage::default();
    for (number, found) in matches.iter().enumerate().skip(ask.place.skipped).take(ask.limit) {
        // The first page fixes where "the newest" is, so that later pages go on with the same matches.
        let next = match number + 1 < ranked {
            true => Some(PageStart { newest, skipped: number + 1 }),
            false => older.filter(|_| is_full),
        };
        if let Some(candidate) = candidate(&transaction, found, next.map(PageStart::to_text))? {
            page.candidates.push(candidate);
        }
    }
    let read = ask.place.skipped.saturating_add(ask.limit);
    page.next_cursor = match read < ranked {
        true => Some(PageStart { newest, skipped: read }.to_text()),
        false => older.filter(|_| is_full).map(PageStart::to_text),
    };
    Ok(page)
}

fn read_match(row: &Row<'_>, now_ms: i64) -> rusqlite::Result<Match> {
    let (at, weight, rank): (i64, i64, f64) = (row.get(4)?, row.get(5)?, row.get(6)?);
    Ok(Match {
        doc: row.get(0)?,
        session: row.get(1)?,
        seq: row.get(2)?,
        old: row.get(3)?,
        score: -rank * as_f64(weight) / 100.0 * freshness(now_ms.saturating_sub(at)),
    })
}

/// From 1 for what is old to 1.5 for what was just written: of two that fit as well, the newer is more likely meant.
fn freshness(age_ms: i64) -> f64 {
    const WEEK_MS: f64 = 7.0 * 24.0 * 60.0 * 60.0 * 1000.0;
    1.0 + 0.5 / (1.0 + as_f64(age_ms.max(0)) / WEEK_MS)
}

#[expect(clippy::cast_precision_loss, reason = "times and weights stay far below 2^53")]
const fn as_f64(number: i64) -> f64 {
    number as f64
}

fn candidate(
    connection: &Connection,
    found: &Match,
    cursor: Option<String>,
) -> rusqlite::Result<Option<Candidate>> {
    connection
        .prepare_cached("SELECT session_id, incarnation FROM sessions WHERE no = ?")?
        .query_row([found.session], |row| {
            Ok(Candidate {
                session_id: SessionId::from_stored(row.get::<_, String>(0)?),
                incarnation: incarnation(row, 1)?,
                seq: found.seq,
                old_revision: found.old,
                score: found.score,
                cursor,
            })
        })
        .optional()
}
