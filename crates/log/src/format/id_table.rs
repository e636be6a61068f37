//! An id table: which record added which entry, for a part of the log that does not change any more.
//!
//! A table is a hash table of fixed pages. An id's hash says which page it is on, so a look-up reads one
//! page whatever the size of the table. Tables are derived: a damaged one is built again from the index.
//!
//! ```text
//! page (4096 bytes): crc u32 | rows u32 | rows x (hash u64, seq u64), sorted by hash | zeros
//! ```
//! All numbers little-endian. A page that is full spills into the next one (the last into the first).

use sha2::{Digest as _, Sha256};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
const PAGE_HEADER_BYTES: usize = 8;
const ROW_BYTES: usize = 16;
/// Rows that a page can hold.
const PAGE_ROWS: usize = (PAGE_BYTES - PAGE_HEADER_BYTES) / ROW_BYTES;
/// Rows that a page is meant to hold: a third stays free, so that pages spill rarely.
const PAGE_ROWS_MEANT: u64 = 170;

/// A built table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdTable {
    /// Its pages, one after the other.
    pub bytes: Vec<u8>,
    /// How many pages.
    pub pages: u64,
    /// How many rows.
    pub rows: u64,
}

/// The hash under which an entry's id is filed. Long ids are filed by the text of their offset row, so
/// that a table can be built from the index alone.
#[must_use]
pub fn hash_id(row_id: &str) -> u64 {
    let digest = Sha256::digest(row_id.as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

/// The page where a hash is looked for first.
fn home_page(hash: u64, pages: u64) -> u64 {
    let wide = u128::from(hash) * u128::from(pages);
    u64::try_from(wide >> 64).unwrap_or(0)
}

/// Builds a table from (hash, seq) pairs, in any order.
#[must_use]
pub fn build_table(mut rows: Vec<(u64, u64)>) -> IdTable {
    rows.sort_unstable();
    let count = rows.len() as u64;
    let pages = count.div_ceil(PAGE_ROWS_MEANT).max(1);
    let mut filled: Vec<Vec<(u64, u64)>> = vec![Vec::new(); usize::try_from(pages).unwrap_or(1)];
    for (hash, seq) in rows {
        let mut page = usize::try_from(home_page(hash, pages)).unwrap_or(0);
        while filled.get(page).is_some_and(|rows| rows.len() == PAGE_ROWS) {
            page = (page + 1) % filled.len();
        }
        if let Some(rows) = filled.get_mut(page) {
            rows.push((hash, seq));
        }
    }
    let mut bytes = Vec::with_capacity(filled.len() * PAGE_BYTES);
    for mut rows in filled {
        rows.sort_unstable();
        encode_page(&rows, &mut bytes);
    }
    IdTable { bytes, pages, rows: count }
}

fn encode_page(rows: &[(u64, u64)], out: &mut Vec<u8>) {
    let mut body = Vec::with_capacity(PAGE_BYTES - 4);
    body.extend_from_slice(&u32::try_from(rows.len()).unwrap_or(0).to_le_bytes());
    for (hash, seq) in rows {
        body.extend_from_slice(&hash.to_le_bytes());
        body.extend_from_slice(&seq.to_le_bytes());
    }
    body.resize(PAGE_BYTES - 4, 0);
    out.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
    out.extend_from_slice(&body);
}

/// Looks a hash up. `read_page` fills a page's bytes and says whether it could; a page that it cannot read, or
/// whose checksum does not fit, ends the search with `None`: the table cannot be believed. Otherwise the records
/// filed under that hash, newest first.
pub fn search_page(
    hash: u64,
    pages: u64,
    mut read_page: impl FnMut(u64, &mut [u8; PAGE_BYTES]) -> bool,
) -> Option<Vec<u64>> {
    let home = home_page(hash, pages);
    let mut page = [0; PAGE_BYTES];
    let mut found = Vec::new();
    for step in 0..pages {
        if !read_page((home + step) % pages, &mut page) {
            return None;
        }
        let rows = page_rows(&page)?;
        let first = rows.partition_point(|row| decode_row(row).0 < hash);
        let filed = rows.iter().skip(first).map(decode_row).take_while(|(h, _)| *h == hash);
        found.extend(filed.map(|(_, seq)| seq));
        if rows.len() < PAGE_ROWS {
            break;
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Some(found)
}

/// The rows of a page as bytes; `None` when the page cannot be believed.
fn page_rows(page: &[u8]) -> Option<&[[u8; ROW_BYTES]]> {
    let (crc, body) = page.split_first_chunk::<4>()?;
    if page.len() != PAGE_BYTES || crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let (count, rows) = body.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    rows.as_chunks::<ROW_BYTES>().0.get(..count)
}

/// The rows of a page; `None` when the page cannot be believed.
pub(crate) fn decode_page(page: &[u8]) -> Option<Vec<(u64, u64)>> {
    Some(page_rows(page)?.iter().map(decode_row).collect())
}

fn decode_row(row: &[u8; ROW_BYTES]) -> (u64, u64) {
    let (hash, seq) = row.split_at(8);
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte));
    (number(hash), number(seq))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(table: &IdTable, page: u64, out: &mut [u8; PAGE_BYTES]) -> bool {
        let at = usize::try_from(page).unwrap() * PAGE_BYTES;
        out.copy_from_slice(&table.bytes[at..at + PAGE_BYTES]);
        true
    }

    fn look_up(table: &IdTable, id: &str) -> Option<Vec<u64>> {
        search_page(hash_id(id), table.pages, |page, out| copy(table, page, out))
    }

    #[test]
    fn every_id_is_found_and_no_other() {
        for count in [0, 1, 169, 5_000] {
            let table =
                build_table((0..count).map(|n| (hash_id(&format!("e{n}")), n + 1)).collect());
            for n in 0..count {
                assert_eq!(look_up(&table, &format!("e{n}")), Some(vec![n + 1]));
            }
            assert_eq!(look_up(&table, "absent"), Some(vec![]));
        }
    }

    #[test]
    fn pages_that_overflow_spill_and_are_still_found() {
        let rows: Vec<_> = (0..600).map(|n| (u64::MAX - n, n + 1)).collect();
        let table = build_table(rows);
        for n in 0..600 {
            let found = search_page(u64::MAX - n, table.pages, |page, out| copy(&table, page, out));
            assert_eq!(found, Some(vec![n + 1]));
        }
    }

    #[test]
    fn a_damaged_page_is_not_believed() {
        let mut table = build_table(vec![(hash_id("e"), 1)]);
        table.bytes[100] ^= 1;
        assert_eq!(look_up(&table, "e"), None);
    }
}
