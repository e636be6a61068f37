//! What the log asks of a record before it takes it.

use std::collections::HashSet;

use bough_record::{Envelope, kind};

use crate::error::{LogError, Result};
use crate::limits;

/// The entries that must be there for a record to make sense. What a record of a kind that the log does
/// not know is about is its owner's business.
pub(crate) fn links<'a>(record: &'a Envelope<'_>) -> impl Iterator<Item = &'a str> {
    let is_known = kind::hides_target(&record.kind)
        || matches!(&*record.kind, kind::REVISION | kind::LEAF | kind::STREAM);
    let target = record.target.iter().filter(move |_| is_known);
    record.parent.iter().chain(target).map(|id| &**id)
}

/// Parents and targets must be in the log or earlier in the batch; new ids must not be. `locate` looks an id up in the log.
pub(crate) fn check_links(
    records: &[Envelope<'_>],
    locate: impl Fn(&str) -> Result<Option<u64>>,
) -> Result<()> {
    let mut fresh = HashSet::new();
    for record in records {
        for linked in links(record) {
            if !fresh.contains(linked) && locate(linked)?.is_none() {
                return Err(LogError::UnknownEntry { entry: linked.to_owned() });
            }
        }
        let Some(id) = record.id.as_deref() else { continue };
        if let Some(seq) = locate(id)? {
            return Err(LogError::Duplicate { entry: id.to_owned(), seq });
        }
        // Nothing follows a record that is alone, so a batch of one needs no set.
        if records.len() > 1 && !fresh.insert(id) {
            return Err(LogError::Duplicate { entry: id.to_owned(), seq: 0 });
        }
    }
    Ok(())
}

/// Refuses what could not be read back.
pub(crate) fn check(record: &Envelope<'_>) -> Result<()> {
    check_size("a record's payload", record.payload.len(), limits::RECORD_BYTES_MAX)?;
    let is_plain = (1..=limits::KIND_BYTES_MAX).contains(&record.kind.len())
        && record.kind.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if !is_plain {
        return Err(invalid(format!("{:?} is not a kind of record", record.kind)));
    }
    if record.id.is_some() != (record.kind == kind::ENTRY) {
        return Err(invalid(format!("a record of kind {} and its id do not fit", record.kind)));
    }
    if record.parent.is_some() && record.id.is_none() {
        return Err(invalid("only an entry has a parent".to_owned()));
    }
    for id in [&record.id, &record.parent, &record.target].into_iter().flatten() {
        check_entry_id(id)?;
    }
    if record.kind == kind::REVISION && (record.target.is_none() || record.revision.is_none()) {
        return Err(invalid("a revision names its entry and its number".to_owned()));
    }
    check_payload(&record.payload)
}

fn check_payload(payload: &str) -> Result<()> {
    let json = payload.trim_ascii();
    if json.len() != payload.len() || memchr::memchr2(b'\n', b'\r', payload.as_bytes()).is_some() {
        return Err(invalid("a payload is one line without space around it".to_owned()));
    }
    serde_json::from_str::<&serde_json::value::RawValue>(json)
        .map(drop)
        .map_err(|error| invalid(format!("the payload is not JSON: {error}")))
}

pub(crate) fn check_entry_id(id: &str) -> Result<()> {
    check_size("an entry id", id.len(), limits::ENTRY_ID_BYTES_MAX)?;
    if id.is_empty() {
        return Err(invalid("an entry id is empty".to_owned()));
    }
    Ok(())
}

pub(crate) fn check_size(what: &'static str, size: usize, limit: usize) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(LogError::TooLarge { what, size: size as u64, limit: limit as u64 })
}

pub(crate) fn invalid(reason: String) -> LogError {
    LogError::Invalid { reason }
}
