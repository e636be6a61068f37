//! A row of `index/offsets.jsonl`: where a frame is, and what the tree around it looks like.
//!
//! Rows are lines of JSON of one fixed width, each member at a fixed column, padded with spaces, so that
//! the row of record `n` is at byte `(n - 1) * ROW_BYTES` and the newest revision of an entry can be
//! noted in its row in place.
//!
//! ```text
//! {"q":12       ,"g":1    ,"f":12     ,"o":5120      ,"l":431     ,"c":"1a2b3c4d","p":11       ,
//!  "r":1        ,"d":12       ,"v":0        ,"s":"5e6f7a8b","i":"e_0123456789abcdef0123456789abcdef"}
//! ```
//!
//! `s` is the CRC-32C of the row itself, with `s` as zeros.
//!
//! A row is written only after its frame is on the disk: it is the witness that the frame was durable.

use serde::Deserialize;

use super::{RowId, hex};

/// Bytes of a row, with its line break.
pub const ROW_BYTES: usize = 193;
/// The column where the newest revision stands, and after it the row's checksum.
const REVISION_AT: usize = 126;
/// Bytes of both.
const REVISION_BYTES: usize = 24;
/// The column where the digits of the row's checksum stand.
const CHECKSUM_AT: usize = 141;
/// The column where the id stands.
const ID_AT: usize = 156;

/// Where one frame is, and its place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRow {
    /// The record's number (`entry_seq`).
    pub seq: u64,
    /// The segment that holds it.
    pub segment: u64,
    /// Its number in that segment.
    pub frame: u64,
    /// The byte where its line begins.
    pub offset: u64,
    /// Bytes of the line, with its line break.
    pub len: u64,
    /// The line's checksum.
    pub crc: u32,
    /// For an entry, the record of its parent; for a revision, the revision that it builds on. 0: none.
    pub parent: u64,
    /// The first record of the run that this entry is in: all entries from there to here are each
    /// other's parents, so that a path is walked run by run. 0 for records that add no entry.
    pub run: u64,
    /// For an entry, how many entries the path from the root to it has; for a revision, how many
    /// revisions have to be read together. 0 for other records.
    pub depth: u64,
    /// The newest record that revises this entry; 0 if none does.
    pub revised: u64,
    /// The entry's id, or its digest when it is long; empty for records that add no entry.
    pub id: RowId,
}

impl OffsetRow {
    /// Appends the row to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut line = *TEMPLATE;
        let numbers = [
            (5, 9, self.seq),
            (19, 5, self.segment),
            (29, 7, self.frame),
            (41, 10, self.offset),
            (56, 8, self.len),
            (84, 9, self.parent),
            (98, 9, self.run),
            (112, 9, self.depth),
            (REVISION_AT, 9, self.revised),
        ];
        for (column, width, number) in numbers {
            put_number(&mut line, column, width, number);
        }
        put_text(&mut line, 70, &hex(self.crc));
        put_text(&mut line, ID_AT, self.id.as_bytes());
        put_text(&mut line, ID_AT + self.id.len(), b"\"");
        let checksum = crc32c::crc32c(&line);
        put_text(&mut line, CHECKSUM_AT, &hex(checksum));
        out.extend_from_slice(&line);
    }

    /// The part of the row that changes when an entry is revised, and the column where it stands.
    #[must_use]
    pub fn revision_part(&self) -> (u64, Vec<u8>) {
        let mut row = Vec::with_capacity(ROW_BYTES);
        self.encode(&mut row);
        let part = row.get(REVISION_AT..REVISION_AT + REVISION_BYTES);
        (REVISION_AT as u64, part.unwrap_or_default().to_vec())
    }

    /// Reads a row; `None` when it is not one, whatever the reason. Only what [`OffsetRow::encode`] would
    /// write is a row.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let members: Members<'_> = serde_json::from_slice(bytes.strip_suffix(b"\n")?).ok()?;
        let row = Self {
            seq: members.q,
            segment: members.g,
            frame: members.f,
            offset: members.o,
            len: members.l,
            crc: u32::from_str_radix(members.c, 16).ok()?,
            parent: members.p,
            run: members.r,
            depth: members.d,
            revised: members.v,
            id: RowId::kept(members.i)?,
        };
        let mut again = Vec::with_capacity(ROW_BYTES);
        row.encode(&mut again);
        (again == bytes).then_some(row)
    }
}

impl OffsetRow {
    /// Whether the bytes are a row that was written and not changed since, by its checksum alone.
    #[must_use]
    pub fn is_whole(bytes: &[u8; ROW_BYTES]) -> bool {
        const DIGITS: usize = 8;
        let mut blank = *bytes;
        put_text(&mut blank, CHECKSUM_AT, &[b'0'; DIGITS]);
        let written = bytes.get(CHECKSUM_AT..CHECKSUM_AT + DIGITS);
        written == Some(hex(crc32c::crc32c(&blank)).as_slice())
    }
}

/// A row with nothing in it. Members are filled in at their columns.
const TEMPLATE: &[u8; ROW_BYTES] = b"{\"q\":         ,\"g\":     ,\"f\":       ,\"o\":          ,\
    \"l\":        ,\"c\":\"00000000\",\"p\":         ,\"r\":         ,\"d\":         ,\"v\":         ,\
    \"s\":\"00000000\",\"i\":\"                                   }\n";

fn put_text(line: &mut [u8; ROW_BYTES], column: usize, text: &[u8]) {
    if let Some(place) = line.get_mut(column..column + text.len()) {
        place.copy_from_slice(text);
    }
}

fn put_number(line: &mut [u8; ROW_BYTES], column: usize, width: usize, number: u64) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    debug_assert!(digits.len() <= width, "{number} does not fit into {width} columns");
    put_text(line, column, digits);
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members<'a> {
    q: u64,
    g: u64,
    f: u64,
    o: u64,
    l: u64,
    c: &'a str,
    p: u64,
    r: u64,
    d: u64,
    v: u64,
    #[serde(rename = "s")]
    _checksum: &'a str,
    i: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn row() -> OffsetRow {
        OffsetRow {
            seq: limits::RECORDS_MAX,
            segment: limits::SEGMENTS_MAX,
            frame: 9_999_999,
            offset: limits::SEGMENT_OFFSET_MAX,
            len: limits::FRAME_BYTES_MAX as u64,
            crc: 0xfeed_beef,
            parent: limits::RECORDS_MAX,
            run: limits::RECORDS_MAX,
            depth: limits::RECORDS_MAX,
            revised: limits::RECORDS_MAX,
            id: RowId::of(&"e".repeat(34)),
        }
    }

    #[test]
    fn the_widest_row_and_the_narrowest_have_the_same_width() {
        let narrow = OffsetRow {
            seq: 1,
            segment: 1,
            frame: 1,
            offset: 0,
            len: 1,
            crc: 0,
            parent: 0,
            run: 0,
            depth: 0,
            revised: 0,
            id: RowId::NONE,
        };
        for row in [row(), narrow] {
            let mut bytes = Vec::new();
            row.encode(&mut bytes);
            assert_eq!(bytes.len(), ROW_BYTES);
            assert_eq!(OffsetRow::decode(&bytes), Some(row));
            assert!(OffsetRow::is_whole(bytes.as_slice().try_into().unwrap()));
        }
    }

    #[test]
    fn a_revision_is_noted_in_place() {
        let mut bytes = Vec::new();
        row().encode(&mut bytes);
        let revised = OffsetRow { revised: 42, ..row() };
        let (at, part) = revised.revision_part();
        let at = usize::try_from(at).unwrap();
        bytes[at..at + part.len()].copy_from_slice(&part);
        assert_eq!(OffsetRow::decode(&bytes), Some(revised));
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let mut bytes = Vec::new();
        row().encode(&mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(OffsetRow::decode(&changed), None, "bit {bit}");
            assert!(!OffsetRow::is_whole(changed.as_slice().try_into().unwrap()), "bit {bit}");
        }
    }
}
