//! The order of the matches.
//!
//! The score of a document is FTS5's `bm25` over the rare words of the query. That function reads every document of a
//! word before it scores the first, so a common word would cost most and say least; common words are left out.

use std::collections::{HashMap, HashSet};

use rusqlite::{Transaction, params};

use super::phrase;
use super::read::{Ask, limit_of};
use crate::limits::RANKED_WORD_MAX;

/// A match whose session is not looked up yet.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) doc: i64,
    pub(super) session: i64,
    pub(super) seq: u64,
    pub(super) old: Option<u64>,
    pub(super) at_ms: i64,
    pub(super) weight: i64,
    pub(super) score: f64,
}

/// The factor for a document in which the words stand together, in the order in which they were typed.
const TOGETHER: f64 = 1.5;

/// Sets the scores, and sorts the best match to the front.
pub(super) fn rank(
    transaction: &Transaction<'_>,
    ask: &Ask,
    matches: &mut [Match],
) -> rusqlite::Result<()> {
    let (Some(newest), Some(oldest)) = (matches.first(), matches.last()) else { return Ok(()) };
    let between = (oldest.doc, newest.doc);
    let fits = fitting(transaction, ask, between)?;
    let together = together(transaction, ask, between)?;
    for found in matches.iter_mut() {
        let fit = fits.get(&found.doc).copied().unwrap_or(1.0);
        let bonus = if together.contains(&found.doc) { TOGETHER } else { 1.0 };
        let age_ms = ask.now_ms.saturating_sub(found.at_ms);
        found.score = fit * bonus * as_f64(found.weight) / 100.0 * freshness(age_ms);
    }
    matches.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.doc.cmp(&a.doc)));
    Ok(())
}

/// The `bm25` score of documents for the rare words of a query; empty if it has no rare word.
fn fitting(
    transaction: &Transaction<'_>,
    ask: &Ask,
    (oldest, newest): (i64, i64),
) -> rusqlite::Result<HashMap<i64, f64>> {
    let mut telling = Vec::new();
    for wanted in &ask.query.wanted {
        let expression = phrase::ranked(wanted);
        if !wanted.is_prefix && is_rare(transaction, &expression)? {
            telling.push(expression);
        }
    }
    if telling.is_empty() {
        return Ok(HashMap::new());
    }
    transaction
        .prepare_cached(
            "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?",
        )?
        .query_map(params![telling.join(" AND "), oldest, newest], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect()
}

fn is_rare(transaction: &Transaction<'_>, expression: &str) -> rusqlite::Result<bool> {
    let most = limit_of(RANKED_WORD_MAX);
    let count: i64 = transaction
        .prepare_cached(
            "SELECT count(*) FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)",
        )?
        .query_row(params![expression, most + 1], |row| row.get(0))?;
    Ok(count <= most)
}

/// The documents in which the words stand together, as they were typed.
fn together(
    transaction: &Transaction<'_>,
    ask: &Ask,
    (oldest, newest): (i64, i64),
) -> rusqlite::Result<HashSet<i64>> {
    let wanted = &ask.query.wanted;
    if wanted.len() < 2 || wanted.iter().any(|phrase| phrase.is_prefix) {
        return Ok(HashSet::new());
    }
    let words = wanted.iter().flat_map(|phrase| &phrase.words);
    let expression = phrase::together("", words, false);
    transaction
        .prepare_cached("SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?")?
        .query_map(params![expression, oldest, newest], |row| row.get(0))?
        .collect()
}

/// From 1 for an old document to 1.5 for a new one: of two equal matches, the newer is more likely the one that is
/// looked for.
fn freshness(age_ms: i64) -> f64 {
    const WEEK_MS: f64 = 7.0 * 24.0 * 60.0 * 60.0 * 1000.0;
    1.0 + 0.5 / (1.0 + as_f64(age_ms.max(0)) / WEEK_MS)
}

#[expect(clippy::cast_precision_loss, reason = "times and weights stay far below 2^53")]
const fn as_f64(number: i64) -> f64 {
    number as f64
}
