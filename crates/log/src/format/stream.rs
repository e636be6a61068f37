//! `stream.log`: deltas of messages that are still streaming.
//!
//! The first line is a header of fixed width that is rewritten in place after each sync: it is the
//! witness of how many deltas are durable. Lines follow, each sealed with its own checksum and numbered.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::sealed::seal_line;
use super::{seal, unseal};
use crate::error::Result;
use bough_record::Incarnation;

/// Bytes of the header line, with its line break. Within one sector, so that it is never torn.
pub const STREAM_HEADER_BYTES: usize = 160;

/// What was durable when the header was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamHeader {
    /// Which incarnation of the log.
    pub incarnation: Incarnation,
    /// The number of the newest delta that is durable.
    pub acked: u64,
    /// The byte where it ends.
    pub end: u64,
}

impl StreamHeader {
    /// The header line, padded to its width.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut line = seal(self)?;
        line.resize(STREAM_HEADER_BYTES - 1, b' ');
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a header line; `None` when it cannot be believed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let line = bytes.get(..STREAM_HEADER_BYTES)?.strip_suffix(b"\n")?;
        let header: Self = unseal(line.trim_ascii_end()).ok()?;
        (header.encode().ok()? == bytes.get(..STREAM_HEADER_BYTES)?).then_some(header)
    }
}

/// One delta.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLine {
    /// Its number in this incarnation of the log, from 1, rising by one.
    #[serde(rename = "m")]
    pub number: u64,
    /// The record that it follows.
    #[serde(rename = "q")]
    pub after: u64,
    /// The entry that streams.
    #[serde(rename = "e")]
    pub target: String,
    /// The revision that this delta makes.
    #[serde(rename = "u")]
    pub revision: u64,
    /// When, milliseconds since the epoch.
    #[serde(rename = "t")]
    pub at_ms: i64,
    /// What changed.
    #[serde(rename = "x")]
    pub payload: Box<RawValue>,
}

impl StreamLine {
    /// Appends the line, with its line break, to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        seal_line(self, out)
    }

    /// Reads a line without its line break; `None` when it cannot be believed.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        unseal(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_header_fits() {
        let header = StreamHeader {
            incarnation: Incarnation::new([255; 16]),
            acked: u64::MAX,
            end: u64::MAX,
        };
        let bytes = header.encode().unwrap();
        assert_eq!(bytes.len(), STREAM_HEADER_BYTES);
        assert_eq!(StreamHeader::decode(&bytes), Some(header));
    }

    #[test]
    fn a_line_comes_back_with_its_payload_as_it_was() {
        let line = StreamLine {
            number: 1,
            after: 3,
            target: "e".into(),
            revision: 7,
            at_ms: 5,
            payload: RawValue::from_string("{ \"a\" :1}".into()).unwrap(),
        };
        let mut bytes = Vec::new();
        line.encode(&mut bytes).unwrap();
        let back = StreamLine::decode(bytes.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(back.payload.get(), "{ \"a\" :1}");
        assert_eq!((back.number, back.revision), (1, 7));
    }
}
