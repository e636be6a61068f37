//! The feed of all sessions: every change in order, each beginning where the one before it of the same incarnation ended.

use std::ops::Range;

use bough_session::{Incarnation, SessionId};
use rusqlite::{CachedStatement, Connection, Row, Transaction, TransactionBehavior, params};

use super::rows::{limit_of, read_incarnation};
use super::schema;
use crate::changes::CHANGES_KEPT;
use crate::types::{ChangeCursor, ChangePage, SessionChange};
use bough_record::Position;

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
            "SELECT number, session_id, incarnation, after_seq, after_step, seq, step, deleted
             FROM changes WHERE number > ? ORDER BY number LIMIT ?",
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
        after: Position { seq: row.get(3)?, step: row.get(4)? },
        position: Position { seq: row.get(5)?, step: row.get(6)? },
        deleted: row.get(7)?,
    })
}

/// The changes of one transaction, as they are numbered and written.
pub(super) struct Log<'a> {
    transaction: &'a Transaction<'a>,
    insert: CachedStatement<'a>,
    written: Written,
}

/// What one transaction wrote.
pub(super) struct Written {
    /// Where the count was before, and is now.
    before: ChangeCursor,
    number: u64,
    /// The changes, unless they are too many to be read at once.
    changes: Vec<SessionChange>,
}

/// Changes of one transaction that are kept for readers that continue.
const WRITTEN_KEPT_MAX: u64 = 1024;

impl Written {
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.number - self.before.number).unwrap_or(usize::MAX)
    }

    /// The changes after a cursor, if that is where this transaction began and they are one page.
    pub(super) fn page_after(self, cursor: &ChangeCursor, limit: usize) -> Option<ChangePage> {
        let fits = self.changes.len() == self.count() && self.count() < limit;
        let next = ChangeCursor { epoch: self.before.epoch, number: self.number };
        let goes_on = *cursor == self.before;
        (fits && goes_on).then_some(ChangePage { changes: self.changes, next, gap: false })
    }
}

impl<'a> Log<'a> {
    pub(super) fn go_on(transaction: &'a Transaction<'a>) -> rusqlite::Result<Self> {
        let before = newest(transaction)?;
        let written = Written { number: before.number, before, changes: Vec::new() };
        let insert =
            transaction.prepare_cached("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?;
        Ok(Self { transaction, insert, written })
    }

    /// Writes a change, and says its number.
    pub(super) fn add(
        &mut self,
        session: &SessionId,
        incarnation: Incarnation,
        range: Range<Position>,
        deleted: bool,
    ) -> rusqlite::Result<u64> {
        let written = &mut self.written;
        written.number += 1;
        let number = written.number;
        if number - written.before.number <= WRITTEN_KEPT_MAX {
            written.changes.push(SessionChange {
                number,
                session_id: session.clone(),
                incarnation,
                after: range.start,
                position: range.end,
                deleted,
            });
        }
        self.insert.execute(params![
            number,
            session.as_str(),
            incarnation.to_string(),
            range.start.seq,
            range.start.step,
            range.end.seq,
            range.end.step,
            deleted,
        ])?;
        Ok(number)
    }

    /// Notes how far the count has come, and forgets the oldest changes beyond those that are kept.
    pub(super) fn finish(self) -> rusqlite::Result<Written> {
        let number = self.written.number;
        schema::put_fact(self.transaction, "change", number)?;
        let kept = u64::try_from(CHANGES_KEPT).unwrap_or(u64::MAX);
        forget_up_to(self.transaction, number.saturating_sub(kept))?;
        Ok(self.written)
    }
}

/// Forgets the changes up to a number. A reader that comes from before it gets a gap.
pub(super) fn forget_up_to(transaction: &Transaction<'_>, number: u64) -> rusqlite::Result<()> {
    if number <= schema::read_number(transaction, "forgotten")? {
        return Ok(());
    }
    transaction.prepare_cached("DELETE FROM changes WHERE number <= ?")?.execute([number])?;
    schema::put_fact(transaction, "forgotten", number)
}

/// Forgets all changes so far.
pub(super) fn forget_all(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    forget_up_to(&transaction, schema::read_number(&transaction, "change")?)?;
    transaction.commit()
}

/// Begins a new epoch. It continues the old numbers, because the rows have them.
pub(super) fn begin_epoch(connection: &mut Connection, epoch: Incarnation) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    forget_up_to(&transaction, schema::read_number(&transaction, "change")?)?;
    schema::put_fact(&transaction, "epoch", epoch.to_string())?;
    transaction.commit()
}
