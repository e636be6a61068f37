use std::collections::BTreeSet;
use std::sync::Arc;

use bough_session::{Incarnation, SessionDetails, SessionId, SessionMeta};
use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Row, Statement, Transaction,
    TransactionBehavior, params,
};
use serde::{Deserialize, Serialize};

use super::GONE_KEPT;
use super::facets::{self, Facet};
use super::feed::{Log, Written};
use super::queue::{Pending, Queue};
use super::usage;
use crate::listing::search_text;
use crate::types::Listed;
use bough_record::Position;

/// What the catalogue stores of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueRow {
    /// The incarnation of the session.
    pub incarnation: Incarnation,
    /// Where its feed ends.
    pub position: Position,
    /// What lists show.
    pub listed: Listed,
    /// How large its container is, for telling after an unclean end whether it has changed since.
    pub size: u64,
}

impl CatalogueRow {
    /// The same row of a session that has gone on since.
    pub(super) fn moved_to(&self, position: Position) -> Self {
        Self { position: self.position.join(position), ..self.clone() }
    }
}

/// What the catalogue knows of a session's container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The session.
    pub session_id: SessionId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Where its feed ended.
    pub position: Position,
    /// How large its container was.
    pub size: u64,
}

/// Writes queued changes in one transaction.
pub(super) fn write(connection: &mut Connection, queued: &Queue) -> rusqlite::Result<Written> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut log = Log::go_on(&transaction)?;
    let mut moves = Moves::of(&transaction)?;
    for (session, change) in queued.in_order() {
        match change {
            Pending::Put(row) => put(&transaction, &mut log, row, None)?,
            Pending::Revived(row) => {
                let ended = take_gone(&transaction, session, row.incarnation)?;
                put(&transaction, &mut log, row, ended)?;
            }
            Pending::Moved { incarnation, position } => {
                moves.write(&mut log, session, *incarnation, *position)?;
            }
            Pending::Gone { incarnation, position } => {
                gone(&transaction, &mut log, session, *incarnation, *position)?;
            }
        }
    }
    drop(moves);
    let written = log.finish()?;
    prune_gone(&transaction)?;
    transaction.commit()?;
    Ok(written)
}

/// What is known of one session's container.
pub(super) fn fingerprint(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<Fingerprint>> {
    connection
        .prepare_cached(
            "SELECT session_id, incarnation, seq, step, size FROM sessions WHERE session_id = ?",
        )?
        .query_row([session.as_str()], read_fingerprint)
        .optional()
}

/// What is known of containers, by session id.
pub(super) fn fingerprints(
    connection: &Connection,
    after: Option<&SessionId>,
    limit: usize,
) -> rusqlite::Result<Vec<Fingerprint>> {
    let after = after.map(SessionId::as_str);
    connection
        .prepare_cached(
            "SELECT session_id, incarnation, seq, step, size FROM sessions
             WHERE ?1 IS NULL OR session_id > ?1 ORDER BY session_id LIMIT ?2",
        )?
        .query_map(params![after, limit_of(limit)], read_fingerprint)?
        .collect()
}

/// A limit as SQLite counts.
pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// What lists show, as it is kept.
#[derive(Serialize, Deserialize)]
struct Shown {
    meta: SessionMeta,
    details: SessionDetails,
}

/// The columns that [`read_shown`] reads.
pub(super) const SHOWN: &str = "s.listed, s.session_id, s.created_at, s.updated_at, s.archived";

/// What a list shows of a row of [`SHOWN`], and whether the row could be read whole. One that cannot is made from the columns
/// that order it: it is one session, and must not keep the others of its page from being seen.
pub(super) fn read_shown(row: &Row<'_>) -> rusqlite::Result<(Listed, bool)> {
    if let Ok(Shown { meta, details }) = serde_json::from_str(row.get_ref(0)?.as_str()?) {
        return Ok((Listed { meta, details, by_day: Arc::default() }, true));
    }
    let meta = SessionMeta::new(SessionId::from_stored(row.get::<_, String>(1)?));
    let meta = SessionMeta { created_at: row.get(2)?, updated_at: row.get(3)?, ..meta };
    let details = SessionDetails { archived: row.get(4)?, ..SessionDetails::default() };
    Ok((Listed { meta, details, by_day: Arc::default() }, false))
}

/// An incarnation in its own column.
pub(super) fn read_incarnation(row: &Row<'_>, column: usize) -> rusqlite::Result<Incarnation> {
    row.get_ref(column)?.as_str()?.parse().map_err(|error: bough_session::IncarnationError| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, Box::new(error))
    })
}

fn read_fingerprint(row: &Row<'_>) -> rusqlite::Result<Fingerprint> {
    Ok(Fingerprint {
        session_id: SessionId::from_stored(row.get::<_, String>(0)?),
        incarnation: read_incarnation(row, 1)?,
        position: Position { seq: row.get(2)?, step: row.get(3)? },
        size: row.get(4)?,
    })
}

/// Writes a row and its change, unless it says less than what is known, or speaks of an incarnation that is
/// gone. `ended` is where an incarnation ended that is back.
///
/// Where the change begins is what the table knows, not what the writer says: so the changes of an incarnation have no hole, whichever process
/// writes them and whatever was lost in a crash.
fn put(
    transaction: &Transaction<'_>,
    log: &mut Log<'_>,
    row: &CatalogueRow,
    ended: Option<Position>,
) -> rusqlite::Result<()> {
    let session = &row.listed.meta.session_id;
    if is_gone(transaction, session, row.incarnation)? {
        return Ok(());
    }
    let mut after = ended.unwrap_or_default();
    let mut number = None;
    if let Some(known) = known(transaction, session)? {
        if known.incarnation == row.incarnation {
            if known.position != row.position && known.position.covers(row.position) {
                return Ok(());
            }
            after = known.position;
            number = (known.position == row.position).then_some(known.change);
        } else if known.created_at > row.listed.meta.created_at {
            // News of an earlier incarnation that comes late.
            return Ok(());
        } else {
            // A new incarnation means that the old one is over, even if that was not announced yet.
            gone(transaction, log, session, known.incarnation, known.position)?;
        }
    }
    let row = &row.moved_to(after);
    let number = match number {
        Some(number) => number,
        None => log.add(session, row.incarnation, after..row.position, false)?,
    };
    write_row(transaction, row, number)
}

/// What is written again and again while a subscriber follows all sessions: its statements are looked up once.
struct Moves<'a> {
    known: CachedStatement<'a>,
    update: CachedStatement<'a>,
}

impl<'a> Moves<'a> {
    fn of(transaction: &'a Transaction<'_>) -> rusqlite::Result<Self> {
        let update = "UPDATE sessions SET seq = ?, step = ?, change = ? WHERE session_id = ?";
        Ok(Self {
            known: transaction.prepare_cached(KNOWN)?,
            update: transaction.prepare_cached(update)?,
        })
    }

    /// Writes the change of an incarnation that is listed and has gone on. One that is not gets its change with its row.
    fn write(
        &mut self,
        log: &mut Log<'_>,
        session: &SessionId,
        incarnation: Incarnation,
        position: Position,
    ) -> rusqlite::Result<()> {
        let known = read_known(&mut self.known, session)?;
        let is_news =
            |known: &Known| known.incarnation == incarnation && !known.position.covers(position);
        let Some(known) = known.filter(is_news) else { return Ok(()) };
        let position = known.position.join(position);
        let number = log.add(session, incarnation, known.position..position, false)?;
        let Position { seq, step } = position;
        self.update.execute(params![seq, step, number, session.as_str()]).map(drop)
    }
}

fn write_row(
    transaction: &Transaction<'_>,
    row: &CatalogueRow,
    number: u64,
) -> rusqlite::Result<()> {
    let Listed { meta, details, .. } = &row.listed;
    let shown = Shown { meta: meta.clone(), details: details.clone() };
    // Numbers, texts and JSON always have a JSON form.
    let listed = serde_json::to_string(&shown).unwrap_or_default();
    let search = search_text(&row.listed);
    let place = match go_on(transaction, row, number, &listed, &search)? {
        Some(place) => place,
        None => insert(transaction, row, number, &listed, &search)?,
    };
    put_facets(transaction, place, &row.listed)?;
    usage::put(transaction, place, &row.listed)
}

/// Writes the row of an incarnation that goes on. Nearly every row is one, and the indexes over what does not change are left alone.
fn go_on(
    transaction: &Transaction<'_>,
    row: &CatalogueRow,
    number: u64,
    listed: &str,
    search: &str,
) -> rusqlite::Result<Option<i64>> {
    let Listed { meta, details, .. } = &row.listed;
    transaction
        .prepare_cached(
            "UPDATE sessions SET seq = ?, step = ?, updated_at = ?, listed = ?, search = ?,
                 size = ?, change = ?
             WHERE session_id = ? AND incarnation = ? AND created_at = ? AND archived = ?
             RETURNING row",
        )?
        .query_row(
            params![
                row.position.seq,
                row.position.step,
                meta.updated_at,
                listed,
                search,
                row.size,
                number,
                meta.session_id.as_str(),
                row.incarnation.to_string(),
                meta.created_at,
                details.archived,
            ],
            |found| found.get(0),
        )
        .optional()
}

fn insert(
    transaction: &Transaction<'_>,
    row: &CatalogueRow,
    number: u64,
    listed: &str,
    search: &str,
) -> rusqlite::Result<i64> {
    let Listed { meta, details, .. } = &row.listed;
    transaction
        .prepare_cached(
            "INSERT INTO sessions (session_id, incarnation, seq, step, created_at, updated_at,
                 archived, listed, search, container, size, change)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (session_id) DO UPDATE SET incarnation = excluded.incarnation,
                 seq = excluded.seq, step = excluded.step,
                 created_at = excluded.created_at, updated_at = excluded.updated_at,
                 archived = excluded.archived, listed = excluded.listed, search = excluded.search,
                 container = excluded.container, size = excluded.size, change = excluded.change
             RETURNING row",
        )?
        .query_row(
            params![
                meta.session_id.as_str(),
                row.incarnation.to_string(),
                row.position.seq,
                row.position.step,
                meta.created_at,
                meta.updated_at,
                details.archived,
                listed,
                search,
                // The container has the session's name.
                meta.session_id.as_str(),
                row.size,
                number,
            ],
            |found| found.get(0),
        )
}

fn put_facets(transaction: &Transaction<'_>, place: i64, listed: &Listed) -> rusqlite::Result<()> {
    let meta = &listed.meta;
    let facets: BTreeSet<Facet> = facets::of_session(listed).into_iter().collect();
    let stand = (listed.details.archived, meta.created_at);
    if stored_facets(transaction, place, stand)?.as_ref() == Some(&facets) {
        let mut touch =
            transaction.prepare_cached("UPDATE facets SET updated_at = ? WHERE row = ?")?;
        return touch.execute(params![meta.updated_at, place]).map(drop);
    }
    transaction.prepare_cached("DELETE FROM facets WHERE row = ?")?.execute([place])?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO facets (row, facet, archived, created_at, updated_at, session_id)
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for facet in facets {
        insert.execute(params![
            place,
            facet,
            listed.details.archived,
            meta.created_at,
            meta.updated_at,
            meta.session_id.as_str(),
        ])?;
    }
    Ok(())
}

/// The facets of a row, unless one of them stands elsewhere than the row does now.
fn stored_facets(
    transaction: &Transaction<'_>,
    place: i64,
    stand: (bool, i64),
) -> rusqlite::Result<Option<BTreeSet<Facet>>> {
    transaction
        .prepare_cached("SELECT facet, archived, created_at FROM facets WHERE row = ?")?
        .query_map([place], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .map(|found| found.map(|(facet, at)| (at == stand).then_some(facet)))
        .collect()
}

/// What the table knows of a session.
struct Known {
    incarnation: Incarnation,
    position: Position,
    created_at: i64,
    change: u64,
}

const KNOWN: &str =
    "SELECT incarnation, seq, step, created_at, change FROM sessions WHERE session_id = ?";

fn known(transaction: &Transaction<'_>, session: &SessionId) -> rusqlite::Result<Option<Known>> {
    read_known(&mut *transaction.prepare_cached(KNOWN)?, session)
}

fn read_known(
    statement: &mut Statement<'_>,
    session: &SessionId,
) -> rusqlite::Result<Option<Known>> {
    statement
        .query_row([session.as_str()], |row| {
            Ok(Known {
                incarnation: read_incarnation(row, 0)?,
                position: Position { seq: row.get(1)?, step: row.get(2)? },
                created_at: row.get(3)?,
                change: row.get(4)?,
            })
        })
        .optional()
}

fn is_gone(
    transaction: &Transaction<'_>,
    session: &SessionId,
    incarnation: Incarnation,
) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT 1 FROM gone WHERE session_id = ? AND incarnation = ?")?
        .exists(params![session.as_str(), incarnation.to_string()])
}

/// Forgets that an incarnation is gone. Returns where it had ended.
fn take_gone(
    transaction: &Transaction<'_>,
    session: &SessionId,
    incarnation: Incarnation,
) -> rusqlite::Result<Option<Position>> {
    transaction
        .prepare_cached(
            "DELETE FROM gone WHERE session_id = ? AND incarnation = ? RETURNING seq, step",
        )?
        .query_row(params![session.as_str(), incarnation.to_string()], |row| {
            Ok(Position { seq: row.get(0)?, step: row.get(1)? })
        })
        .optional()
}

fn gone(
    transaction: &Transaction<'_>,
    log: &mut Log<'_>,
    session: &SessionId,
    incarnation: Incarnation,
    position: Position,
) -> rusqlite::Result<()> {
    if is_gone(transaction, session, incarnation)? {
        return Ok(());
    }
    let known = known(transaction, session)?.filter(|known| known.incarnation == incarnation);
    let after = known.map_or_else(Position::default, |known| known.position);
    let number = log.add(session, incarnation, after..position.join(after), true)?;
    let incarnation = incarnation.to_string();
    for derived in [
        "DELETE FROM facets WHERE row IN
             (SELECT row FROM sessions WHERE session_id = ? AND incarnation = ?)",
        "DELETE FROM usage WHERE row IN
             (SELECT row FROM sessions WHERE session_id = ? AND incarnation = ?)",
    ] {
        transaction.prepare_cached(derived)?.execute(params![session.as_str(), incarnation])?;
    }
    transaction
        .prepare_cached("DELETE FROM sessions WHERE session_id = ? AND incarnation = ?")?
        .execute(params![session.as_str(), incarnation])?;
    transaction
        .prepare_cached(
            "INSERT INTO gone (session_id, incarnation, seq, step, change)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![session.as_str(), incarnation, position.seq, position.step, number])?;
    Ok(())
}

/// Forgets the oldest deletions beyond those that are kept: no write to them is expected so late.
fn prune_gone(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let over: Option<u64> = transaction
        .prepare_cached("SELECT change FROM gone ORDER BY change DESC LIMIT 1 OFFSET ?")?
        .query_row([GONE_KEPT], |row| row.get(0))
        .optional()?;
    let Some(over) = over else { return Ok(()) };
    transaction.prepare_cached("DELETE FROM gone WHERE change <= ?")?.execute([over])?;
    Ok(())
}

/// How many deleted incarnations are remembered.
pub(super) fn gone_count(connection: &Connection) -> rusqlite::Result<u64> {
    connection.prepare_cached("SELECT count(*) FROM gone")?.query_row([], |row| row.get(0))
}
