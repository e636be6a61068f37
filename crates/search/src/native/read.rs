use bough_record::Position;
use bough_session::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};

use super::narrow::{self, Narrowed};
use super::rank::{self, Match};
use super::write::comparable;
use crate::SearchError;
use crate::index::{Candidate, CandidatePage, IndexCounts, IndexedSession, SearchAsk};
use crate::limits::RANKED_TOGETHER;
use crate::query::Query;

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

pub(super) fn counts(connection: &Connection) -> rusqlite::Result<IndexCounts> {
    let one = |sql: &str| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, u64>(0));
    Ok(IndexCounts {
        stale_sessions: one("SELECT count(*) FROM sessions WHERE stale")?,
        documents: one("SELECT value - 1 FROM facts WHERE name = 'next_doc'")?,
    })
}

pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A search with everything that it needs to run on another thread.
pub(super) struct Ask {
    pub(super) query: Query,
    /// Only sessions with these pairs of metadata.
    pub(super) metadata: Vec<(String, String)>,
    limit: usize,
    place: PageStart,
    pub(super) now_ms: i64,
}

/// Where a page starts: among the matches up to a document's number, after this many ranked ones.
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
        let pairs = ask.metadata.iter();
        Ok(Self {
            query: ask.query.clone(),
            metadata: pairs.map(|(key, value)| ((*key).to_owned(), comparable(value))).collect(),
            limit: ask.limit,
            place,
            now_ms: ask.now_ms,
        })
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

pub(super) fn search(connection: &Connection, ask: &Ask) -> rusqlite::Result<CandidatePage> {
    // One transaction, so that the matches and their sessions are consistent.
    let transaction = connection.unchecked_transaction()?;
    let Some(narrowed) = narrow::narrow(&transaction, ask)? else {
        return Ok(CandidatePage::default());
    };
    let mut matches = newest(&transaction, ask, narrowed)?;
    let newest = matches.first().map_or(ask.place.newest, |newest| newest.doc);
    // The matches that are older than the ranked ones.
    let older = matches.last().map(|oldest| PageStart { newest: oldest.doc - 1, skipped: 0 });
    let is_full = matches.len() >= RANKED_TOGETHER;
    rank::rank(&transaction, ask, &mut matches)?;
    let ranked = matches.len();
    let mut page = CandidatePage::default();
    for (number, found) in matches.iter().enumerate().skip(ask.place.skipped).take(ask.limit) {
        // The first page fixes the newest document, so later pages continue with the same matches.
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

/// The newest matches, up to the number that is ranked together.
fn newest(
    transaction: &Transaction<'_>,
    ask: &Ask,
    narrowed: Narrowed,
) -> rusqlite::Result<Vec<Match>> {
    // The words come first in the join: a search reads only as many documents as it ranks, the
    // newest first.
    let mut sql = "SELECT words.rowid, docs.session, docs.seq, docs.old, docs.at, docs.weight \
                   FROM words CROSS JOIN docs ON docs.doc = words.rowid \
                   WHERE words MATCH ? AND words.rowid <= ? AND docs.old IS "
        .to_owned();
    sql.push_str(if ask.query.filters.is_old { "NOT NULL" } else { "NULL" });
    sql.push_str(&narrowed.sql);
    sql.push_str(" ORDER BY words.rowid DESC LIMIT ?");
    let mut values = vec![Value::Text(narrowed.expression), Value::Integer(ask.place.newest)];
    values.extend(narrowed.values);
    values.push(Value::Integer(limit_of(RANKED_TOGETHER)));
    transaction
        .prepare_cached(&sql)?
        .query_map(params_from_iter(&values), |row| {
            Ok(Match {
                doc: row.get(0)?,
                session: row.get(1)?,
                seq: row.get(2)?,
                old: row.get(3)?,
                at_ms: row.get(4)?,
                weight: row.get(5)?,
                score: 0.0,
            })
        })?
        .collect()
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
