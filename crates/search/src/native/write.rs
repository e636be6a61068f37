use bough_record::Position;
use bough_session::{Incarnation, JsonMap, SessionId};
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, TransactionBehavior, params};

use super::expression;
use crate::SearchError;
use crate::document::Document;
use crate::index::{IndexBatch, SessionFacts, SessionPut, SessionUpdate};
use crate::limits::METADATA_VALUE_BYTES;

/// Applies a batch in one transaction.
pub(super) fn apply(connection: &mut Connection, batch: &IndexBatch) -> Result<(), SearchError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if super::read::cursor(&transaction)? != batch.expected_cursor {
        return Err(SearchError::Conflict);
    }
    for update in &batch.updates {
        match update {
            SessionUpdate::Put(put) => put_session(&transaction, put)?,
            SessionUpdate::Stale { session_id } => mark_stale(&transaction, session_id)?,
            SessionUpdate::Remove { session_id, incarnation } => {
                remove(&transaction, session_id, *incarnation)?;
            }
        }
    }
    transaction
        .prepare_cached("INSERT OR REPLACE INTO facts (name, value) VALUES ('cursor', ?)")?
        .execute([&batch.cursor])?;
    transaction.commit()?;
    Ok(())
}

/// A session as its row has it.
struct Row {
    no: i64,
    incarnation: String,
    place: Position,
}

fn find(transaction: &Transaction<'_>, session: &SessionId) -> rusqlite::Result<Option<Row>> {
    transaction
        .prepare_cached("SELECT no, incarnation, seq, step FROM sessions WHERE session_id = ?")?
        .query_row([session.as_str()], |row| {
            Ok(Row {
                no: row.get(0)?,
                incarnation: row.get(1)?,
                place: Position { seq: row.get(2)?, step: row.get(3)? },
            })
        })
        .optional()
}

fn put_session(transaction: &Transaction<'_>, put: &SessionPut) -> Result<(), SearchError> {
    let incarnation = put.incarnation.to_string();
    let mut row = find(transaction, &put.session_id)?;
    if let Some(known) = &row
        && (known.incarnation != incarnation || put.from == Position::default())
    {
        remove_row(transaction, known.no)?;
        row = None;
    }
    let (no, known) = match row {
        Some(known) if known.place == put.from => (known.no, known.place),
        None if put.from == Position::default() => {
            (insert(transaction, &put.session_id, &incarnation)?, Position::default())
        }
        _ => return Err(SearchError::Conflict),
    };
    transaction
        .prepare_cached("UPDATE sessions SET seq = ?, step = ?, stale = ? WHERE no = ?")?
        .execute(params![put.to.seq, put.to.step, put.is_stale, no])?;
    if let Some(facts) = &put.facts {
        put_facts(transaction, no, facts)?;
    }
    for document in &put.documents {
        put_document(transaction, no, known, document)?;
    }
    for seq in &put.hidden {
        let all = "SELECT doc FROM docs WHERE session = ? AND seq = ?";
        remove_documents(transaction, all, params![no, seq])?;
    }
    Ok(())
}

fn insert(
    transaction: &Transaction<'_>,
    session: &SessionId,
    incarnation: &str,
) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO sessions (session_id, incarnation, seq, step, stale) VALUES (?, ?, 0, 0, 0)",
        )?
        .insert(params![session.as_str(), incarnation])
}

fn put_facts(transaction: &Transaction<'_>, no: i64, facts: &SessionFacts) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE sessions SET project = ?, agent = ? WHERE no = ?")?
        .execute(params![facts.project, facts.agent, no])?;
    transaction.prepare_cached("DELETE FROM metadata WHERE session = ?")?.execute([no])?;
    put_metadata(transaction, no, &facts.metadata)
}

fn put_metadata(
    transaction: &Transaction<'_>,
    no: i64,
    metadata: &JsonMap,
) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached("INSERT INTO metadata VALUES (?, ?, ?)")?;
    for (key, value) in metadata {
        put.execute(params![key, comparable(value), no])?;
    }
    Ok(())
}

/// A metadata value as the index compares it. A longer value is cut on both sides, and the caller compares the rest.
pub(super) fn comparable(value: &serde_json::Value) -> String {
    let text = value.to_string();
    bough_session::text::cut_bytes(&text, METADATA_VALUE_BYTES).to_owned()
}

fn put_document(
    transaction: &Transaction<'_>,
    no: i64,
    known: Position,
    document: &Document,
) -> rusqlite::Result<()> {
    if document.seq <= known.seq {
        let same = "SELECT doc FROM docs WHERE session = ? AND seq = ? AND old IS ?";
        let values = params![no, document.seq, document.old_revision];
        remove_documents(transaction, same, values)?;
    }
    if document.fields.is_empty() {
        return Ok(());
    }
    let doc: i64 = transaction
        .prepare_cached(
            "UPDATE facts SET value = value + 1 WHERE name = 'next_doc' RETURNING value",
        )?
        .query_row([], |row| row.get(0))?;
    transaction.prepare_cached("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?)")?.execute(params![
        doc,
        no,
        document.seq,
        document.old_revision,
        document.at_ms,
        expression::weight(document),
    ])?;
    transaction
        .prepare_cached("INSERT OR IGNORE INTO months VALUES (?)")?
        .execute([expression::month(document)])?;
    let [words, thinking, call] = expression::terms(document, no);
    transaction
        .prepare_cached("INSERT INTO words (rowid, w, thinking, call) VALUES (?, ?, ?, ?)")?
        .execute(params![doc, words, thinking, call])?;
    Ok(())
}

/// Removes the documents whose numbers a query returns.
fn remove_documents(
    transaction: &Transaction<'_>,
    question: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<()> {
    let docs: Vec<i64> = transaction
        .prepare_cached(question)?
        .query_map(values, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for doc in docs {
        transaction.prepare_cached("DELETE FROM words WHERE rowid = ?")?.execute([doc])?;
        transaction.prepare_cached("DELETE FROM docs WHERE doc = ?")?.execute([doc])?;
    }
    Ok(())
}

fn mark_stale(transaction: &Transaction<'_>, session: &SessionId) -> rusqlite::Result<()> {
    if find(transaction, session)?.is_none() {
        // No session has this incarnation, so the session is indexed from its beginning.
        insert(transaction, session, &Incarnation::new([0; 16]).to_string())?;
    }
    transaction
        .prepare_cached("UPDATE sessions SET stale = 1 WHERE session_id = ?")?
        .execute([session.as_str()])?;
    Ok(())
}

fn remove(
    transaction: &Transaction<'_>,
    session: &SessionId,
    incarnation: Option<Incarnation>,
) -> rusqlite::Result<()> {
    let fits = |row: &Row| incarnation.is_none_or(|given| given.to_string() == row.incarnation);
    match find(transaction, session)?.filter(fits) {
        Some(row) => remove_row(transaction, row.no),
        None => Ok(()),
    }
}

fn remove_row(transaction: &Transaction<'_>, no: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM words WHERE rowid IN (SELECT doc FROM docs WHERE session = ?)",
        "DELETE FROM docs WHERE session = ?",
        "DELETE FROM metadata WHERE session = ?",
        "DELETE FROM sessions WHERE no = ?",
    ] {
        transaction.prepare_cached(sql)?.execute([no])?;
    }
    Ok(())
}
