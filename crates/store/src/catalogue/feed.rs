use bough_session::{Incarnation, SessionId};
use rusqlite::{Connection, Row, params};

use super::rows::{limit_of, read_incarnation};
use super::schema;
use crate::types::{ChangeCursor, ChangePage, Position, SessionChange};

/// Where the feed of all sessions is.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<ChangeCursor> {
    Ok(ChangeCursor {
        epoch: schema::read_epoch(connection)?.unwrap_or(Incarnation::new([0; 16])),
        number: schema::read_number(connection, "change")?,
    })
}

/// The changes after a cursor.
pub(super) fn changes_after(
    connection: &Connection,
    cursor: &ChangeCursor,
    limit: usize,
) -> rusqlite::Result<ChangePage> {
    // One transaction, so that the newest number and the changes are of one moment.
    let transaction = connection.unchecked_transaction()?;
    let now = newest(&transaction)?;
    let known = cursor.epoch == now.epoch && cursor.number <= now.number;
    let gap = !known || cursor.number < schema::read_number(&transaction, "forgotten")?;
    let after = if known { cursor.number } else { 0 };
    let limit = limit.max(1);
    let changes: Vec<SessionChange> = transaction
        .prepare_cached(
            "SELECT change, session_id, incarnation, seq, revision, 0 FROM sessions
                 WHERE change > ?1
             UNION ALL
             SELECT change, session_id, incarnation, seq, revision, 1 FROM gone WHERE change > ?1
             ORDER BY change LIMIT ?2",
        )?
        .query_map(params![after, limit_of(limit)], read_change)?
        .collect::<rusqlite::Result<_>>()?;
    let number = match changes.last() {
        Some(last) if changes.len() >= limit => last.number,
        _ => now.number,
    };
    Ok(ChangePage { changes, next: ChangeCursor { epoch: now.epoch, number }, gap })
}

fn read_change(row: &Row<'_>) -> rusqlite::Result<SessionChange> {
    Ok(SessionChange {
        number: row.get(0)?,
        session_id: SessionId::from_stored(row.get::<_, String>(1)?),
        incarnation: read_incarnation(row, 2)?,
        position: Position { seq: row.get(3)?, revision: row.get(4)? },
        deleted: row.get(5)?,
    })
}
