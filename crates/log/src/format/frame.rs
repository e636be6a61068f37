//! A frame: one record as one line of JSON.
//!
//! ```text
//! {"c":"1a2b3c4d","l":17,"h":"<43 characters>","q":12,"g":1,"f":12,"b":[0,2],"w":9,"k":"entry",
//!  "i":"e_1","p":"e_0","t":1733234401000,"n":"<22 characters>","x":{"the":"payload"}}
//!  ^               ^      ^                    \_____ the header: what the chain covers _____/
//!  |               |      the chain up to and with this frame
//!  |               bytes of payload
//!  CRC-32C of every byte after `{"c":"1a2b3c4d",` up to and with the last brace
//! ```
//!
//! Keys are always in this order; `b`, `w`, `i`, `p`, `e`, `u`, `m`, `s` are left out when there is nothing to say.
//! The payload stands last and is stored byte for byte as it was given. The chain covers the header's
//! text and a digest of nonce and payload; `c`, `l` and `h` are outside the header, so that a payload
//! can be redacted later and the chain still verifies.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::hex;
use bough_record::{BorrowedText, ChainHash, Envelope, StoredEnvelope, payload_digest};

const CRC_START: usize = 6;
const CRC_END: usize = 14;
const BODY_START: usize = 16;
/// Bytes before the header's text, at the most: checksum, length, chain.
const LEAD_BYTES_MAX: usize = 96;
/// Bytes of a header with ids of the usual length, and of what stands around the payload.
const HEADER_BYTES_MEANT: usize = 256;
/// Characters of the chain.
const CHAIN_CHARS: usize = 43;

/// A frame's place in its batch; readers show whole batches only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlace {
    /// From 0.
    pub index: u32,
    /// Frames in the batch.
    pub count: u32,
}

impl BatchPlace {
    /// A batch of one.
    pub const ALONE: Self = Self { index: 0, count: 1 };

    /// Whether the batch is whole with this frame.
    #[must_use]
    pub fn is_last(self) -> bool {
        self.index + 1 == self.count
    }
}

/// What the chain covers of a frame, apart from its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameHeader<'a> {
    /// The record's number in its log, from 1 (`entry_seq`).
    pub seq: u64,
    /// The segment's number, from 1.
    pub segment: u64,
    /// The frame's number in its segment, from 1.
    pub frame: u64,
    /// Its place in its batch.
    pub batch: BatchPlace,
    /// The first record of the write that this frame was part of. Frames of one write may reach the disk
    /// in any order; a frame vouches only for frames of earlier writes.
    pub write_start: u64,
    /// What kind of record; lower-case letters and `_`.
    pub kind: Cow<'a, str>,
    /// The id of the entry that this record adds.
    pub id: Option<Cow<'a, str>>,
    /// The parent of that entry.
    pub parent: Option<Cow<'a, str>>,
    /// The entry that this record speaks of without adding it.
    pub target: Option<Cow<'a, str>>,
    /// The revision up to which this record settles its target.
    pub revision: Option<u64>,
    /// The newest step that this record took the place of. Format 1 numbered steps anew after each opening.
    pub settles_v1: Option<u64>,
    /// The newest step that this record took the place of; steps are numbered through the incarnation.
    pub last_step: Option<u64>,
    /// Digests of the blobs that the payload refers to, so that they can be kept without reading payloads.
    pub blobs: Vec<Cow<'a, str>>,
    /// When it was appended, milliseconds since the epoch. For showing, never for order.
    pub at_ms: i64,
    /// 16 random bytes in base64url: the payload's digest cannot be guessed from likely payloads.
    pub nonce: Cow<'a, str>,
}

impl<'a> FrameHeader<'a> {
    /// The header of a record before it has its number: as if it were the first of its log, alone in its batch.
    #[must_use]
    pub fn of(record: &'a Envelope<'_>, nonce: Cow<'a, str>) -> Self {
        Self {
            seq: 1,
            segment: 1,
            frame: 1,
            batch: BatchPlace::ALONE,
            write_start: 1,
            kind: Cow::Borrowed(&record.kind),
            id: record.id.as_deref().map(Cow::Borrowed),
            parent: record.parent.as_deref().map(Cow::Borrowed),
            target: record.target.as_deref().map(Cow::Borrowed),
            revision: record.revision,
            settles_v1: None,
            last_step: None,
            blobs: Vec::new(),
            at_ms: record.at_ms,
            nonce,
        }
    }
}

/// A frame as it was read.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The header.
    pub header: FrameHeader<'a>,
    /// The chain with this frame, as the frame says.
    pub chain: ChainHash,
    /// The line's checksum: what its offset row repeats.
    pub crc: u32,
    /// The payload's bytes as they were given, or what stands in their place.
    pub payload: &'a str,
    /// For a redacted frame: the digest that the payload had, which the chain covers.
    pub redacted: Option<[u8; 32]>,
    header_text: &'a [u8],
}

impl Frame<'_> {
    /// The record that the frame holds, lent.
    #[must_use]
    pub fn stored(&self) -> StoredEnvelope<'_> {
        fn lend<'b>(text: &'b Option<Cow<'_, str>>) -> Option<Cow<'b, str>> {
            text.as_deref().map(Cow::Borrowed)
        }
        let header = &self.header;
        StoredEnvelope {
            seq: header.seq,
            last_step: header.last_step,
            envelope: Envelope {
                kind: Cow::Borrowed(&header.kind),
                id: lend(&header.id),
                parent: lend(&header.parent),
                target: lend(&header.target),
                revision: header.revision,
                at_ms: header.at_ms,
                payload: Cow::Borrowed(self.payload),
            },
        }
    }

    /// Whether this frame is the one that follows `previous` in the chain.
    #[must_use]
    pub fn follows(&self, previous: ChainHash) -> bool {
        let digest = self
            .redacted
            .unwrap_or_else(|| payload_digest(&self.header.nonce, self.payload.as_bytes()));
        previous.next(self.header_text, &digest) == self.chain
    }
}

/// Why a line is not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not laid out as a frame is.
    #[error("not a frame")]
    Shape,
    /// Laid out as a frame, with another checksum.
    #[error("the checksum does not fit")]
    Checksum,
    /// The checksum fits, but the members are not a frame's.
    #[error("the members are not a frame's")]
    Members,
}

/// Appends a frame's line (with its line break) to `out`; returns the chain with it and the line's
/// checksum.
pub fn encode_frame(
    header: &FrameHeader<'_>,
    payload: &str,
    previous: ChainHash,
    out: &mut Vec<u8>,
) -> (ChainHash, u32) {
    let start = out.len();
    out.reserve(LEAD_BYTES_MAX + HEADER_BYTES_MEANT + payload.len());
    out.extend_from_slice(b"{\"c\":\"00000000\",\"l\":");
    out.extend_from_slice(itoa::Buffer::new().format(payload.len()).as_bytes());
    out.extend_from_slice(b",\"h\":\"");
    let chain_start = out.len();
    out.extend_from_slice(&[b'A'; CHAIN_CHARS]);
    out.extend_from_slice(b"\",");
    let header_start = out.len();
    put_header(header, out);
    let digest = payload_digest(&header.nonce, payload.as_bytes());
    let chain = previous.next(out.get(header_start..).unwrap_or_default(), &digest);
    if let Some(place) = out.get_mut(chain_start..chain_start + CHAIN_CHARS) {
        place.copy_from_slice(&chain.text());
    }
    out.extend_from_slice(b"\"x\":");
    out.extend_from_slice(payload.as_bytes());
    out.push(b'}');
    let crc = crc32c::crc32c(out.get(start + BODY_START..).unwrap_or_default());
    if let Some(place) = out.get_mut(start + CRC_START..start + CRC_END) {
        place.copy_from_slice(&hex(crc));
    }
    out.push(b'\n');
    (chain, crc)
}

/// Appends the header's text: what the chain covers.
fn put_header(header: &FrameHeader<'_>, out: &mut Vec<u8>) {
    put_number(out, "\"q\":", header.seq);
    put_number(out, ",\"g\":", header.segment);
    put_number(out, ",\"f\":", header.frame);
    if header.batch != BatchPlace::ALONE {
        put_number(out, ",\"b\":[", header.batch.index);
        put_number(out, ",", header.batch.count);
        out.push(b']');
    }
    if header.write_start != header.seq {
        put_number(out, ",\"w\":", header.write_start);
    }
    put_plain(out, ",\"k\":", &header.kind);
    for (key, value) in
        [(",\"i\":", &header.id), (",\"p\":", &header.parent), (",\"e\":", &header.target)]
    {
        if let Some(value) = value {
            put_string(out, key, value);
        }
    }
    if let Some(revision) = header.revision {
        put_number(out, ",\"u\":", revision);
    }
    if let Some(settles) = header.settles_v1 {
        put_number(out, ",\"m\":", settles);
    }
    if let Some(step) = header.last_step {
        put_number(out, ",\"s\":", step);
    }
    if !header.blobs.is_empty() {
        put_blobs(out, &header.blobs);
    }
    put_number(out, ",\"t\":", header.at_ms);
    put_plain(out, ",\"n\":", &header.nonce);
    out.push(b',');
}

fn put_number(out: &mut Vec<u8>, key: &str, number: impl itoa::Integer) {
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn put_blobs(out: &mut Vec<u8>, blobs: &[Cow<'_, str>]) {
    for (index, blob) in blobs.iter().enumerate() {
        put_string(out, if index == 0 { ",\"d\":[" } else { "," }, blob);
    }
    out.push(b']');
}

/// A string that needs no escape.
fn put_plain(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Any string. Ids are nearly always plain, so the common case is a copy.
fn put_string(out: &mut Vec<u8>, key: &str, value: &str) {
    if value.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\') {
        return put_plain(out, key, value);
    }
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(serde_json::Value::from(value).to_string().as_bytes());
}

/// The members of a frame line, for serde.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members<'a> {
    #[serde(rename = "c")]
    _crc: &'a str,
    #[serde(rename = "l")]
    payload_len: u64,
    #[serde(rename = "h")]
    chain: ChainHash,
    #[serde(rename = "z", default)]
    redacted: Option<ChainHash>,
    #[serde(rename = "q")]
    seq: u64,
    #[serde(rename = "g")]
    segment: u64,
    #[serde(rename = "f")]
    frame: u64,
    #[serde(rename = "b", default)]
    batch: Option<(u32, u32)>,
    #[serde(rename = "w", default)]
    write_start: Option<u64>,
    #[serde(rename = "k")]
    kind: &'a str,
    #[serde(rename = "i", borrow, default)]
    id: Option<BorrowedText<'a>>,
    #[serde(rename = "p", borrow, default)]
    parent: Option<BorrowedText<'a>>,
    #[serde(rename = "e", borrow, default)]
    target: Option<BorrowedText<'a>>,
    #[serde(rename = "u", default)]
    revision: Option<u64>,
    #[serde(rename = "m", default)]
    settles_v1: Option<u64>,
    #[serde(rename = "s", default)]
    last_step: Option<u64>,
    #[serde(rename = "d", borrow, default)]
    blobs: Vec<BorrowedText<'a>>,
    #[serde(rename = "t")]
    at_ms: i64,
    #[serde(rename = "n")]
    nonce: &'a str,
    #[serde(rename = "x", borrow)]
    payload: &'a RawValue,
}

/// Decodes one line, without its line break. The checksum is looked at before anything else is believed.
pub fn decode_frame(line: &[u8]) -> Result<Frame<'_>, FrameError> {
    let crc = line_crc(line)?;
    let body = line.get(BODY_START..).ok_or(FrameError::Shape)?;
    if crc32c::crc32c(body) != crc && !crate::canary::on(crate::canary::NO_CHECKSUM) {
        return Err(FrameError::Checksum);
    }
    let members: Members<'_> = serde_json::from_slice(line).map_err(|_| FrameError::Members)?;
    let payload = members.payload.get();
    if payload.len() as u64 != members.payload_len {
        return Err(FrameError::Members);
    }
    let header = FrameHeader {
        seq: members.seq,
        segment: members.segment,
        frame: members.frame,
        batch: members
            .batch
            .map_or(BatchPlace::ALONE, |(index, count)| BatchPlace { index, count }),
        write_start: members.write_start.unwrap_or(members.seq),
        kind: Cow::Borrowed(members.kind),
        id: members.id.map(|text| text.0),
        parent: members.parent.map(|text| text.0),
        target: members.target.map(|text| text.0),
        revision: members.revision,
        settles_v1: members.settles_v1,
        last_step: members.last_step,
        blobs: members.blobs.into_iter().map(|text| text.0).collect(),
        at_ms: members.at_ms,
        nonce: Cow::Borrowed(members.nonce),
    };
    if header.batch.index >= header.batch.count {
        return Err(FrameError::Members);
    }
    let is_redacted = members.redacted.is_some();
    let header_text = header_slice(line, payload.len(), is_redacted).ok_or(FrameError::Shape)?;
    // One frame has one spelling: what decodes encodes to the same bytes again.
    let mut again = Vec::with_capacity(header_text.len());
    put_header(&header, &mut again);
    if again != header_text {
        return Err(FrameError::Members);
    }
    let redacted = members.redacted.map(ChainHash::bytes);
    Ok(Frame { header, chain: members.chain, crc, payload, redacted, header_text })
}

/// The checksum that a line says it has; also proves that the line begins and ends as a frame does.
fn line_crc(line: &[u8]) -> Result<u32, FrameError> {
    let shaped = line.starts_with(b"{\"c\":\"")
        && line.get(CRC_END..BODY_START) == Some(b"\",".as_slice())
        && line.ends_with(b"}");
    let digits = line.get(CRC_START..CRC_END).filter(|_| shaped).ok_or(FrameError::Shape)?;
    if !digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(FrameError::Shape);
    }
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or(FrameError::Shape)
}

/// The header's text: from `"q":` up to `"x":`, found by position so that no text inside an id or a
/// payload can be taken for a key.
fn header_slice(line: &[u8], payload_len: usize, is_redacted: bool) -> Option<&[u8]> {
    const HASH_MEMBER: usize = "\"h\":\"\",".len() + CHAIN_CHARS;
    let hashes = if is_redacted { 2 * HASH_MEMBER } else { HASH_MEMBER };
    let after_crc = line.get(BODY_START..)?;
    let comma = after_crc.iter().position(|byte| *byte == b',')?;
    let start = BODY_START + comma + 1 + hashes;
    let end = line.len().checked_sub(payload_len + 1 + "\"x\":".len())?;
    line.get(start..end).filter(|text| text.starts_with(b"\"q\":") && text.ends_with(b","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bough_record::Incarnation;

    fn genesis() -> ChainHash {
        ChainHash::genesis("s", Incarnation::new([1; 16]))
    }

    fn header<'a>() -> FrameHeader<'a> {
        FrameHeader {
            seq: 12,
            segment: 1,
            frame: 12,
            batch: BatchPlace { index: 0, count: 2 },
            write_start: 9,
            kind: "entry".into(),
            id: Some("e_1".into()),
            parent: Some("quote \" and \\ and \u{e9}".into()),
            target: None,
            revision: Some(3),
            settles_v1: None,
            last_step: Some(8),
            blobs: vec!["sha256-AAAA".into(), "sha256-BBBB".into()],
            at_ms: 1_733_234_401_000,
            nonce: "AAAAAAAAAAAAAAAAAAAAAA".into(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut out = Vec::new();
        let payload = r#"{"text":"}\",\"x\":{"}"#;
        let (chain, crc) = encode_frame(&header(), payload, genesis(), &mut out);
        let line = out.strip_suffix(b"\n").unwrap();
        let frame = decode_frame(line).unwrap();
        assert_eq!(frame.header, header());
        assert_eq!((frame.chain, frame.crc, frame.payload), (chain, crc, payload));
        assert!(frame.follows(genesis()));
        assert!(!frame.follows(chain));
    }

    #[test]
    fn a_line_is_json_that_any_tool_reads() {
        let mut out = Vec::new();
        encode_frame(&header(), r#"{"a":1}"#, genesis(), &mut out);
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["q"], 12);
        assert_eq!(value["x"]["a"], 1);
    }

    /// What redaction will write: another payload, and the digest of the old one beside the chain.
    #[test]
    fn a_redacted_frame_keeps_its_place_in_the_chain() {
        let mut out = Vec::new();
        let (chain, _) = encode_frame(&header(), r#"{"secret":1}"#, genesis(), &mut out);
        let line = String::from_utf8(out).unwrap();
        let digest = payload_digest(&header().nonce, br#"{"secret":1}"#);
        let kept = format!("\"h\":\"{chain}\",\"z\":\"{}\",", ChainHash::from_bytes(digest));
        let body = line
            .trim_end()
            .get(BODY_START..)
            .unwrap()
            .replace("\"l\":12,", "\"l\":4,")
            .replace(&format!("\"h\":\"{chain}\","), &kept)
            .replace(r#"{"secret":1}"#, "null");
        let crc = crc32c::crc32c(body.as_bytes());
        let redacted = format!("{{\"c\":\"{crc:08x}\",{body}");
        let frame = decode_frame(redacted.as_bytes()).unwrap();
        assert_eq!((frame.payload, frame.chain), ("null", chain));
        assert!(frame.follows(genesis()));
        assert!(!frame.follows(chain));
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let mut out = Vec::new();
        encode_frame(&header(), r#"{"a":1}"#, genesis(), &mut out);
        let line = out.strip_suffix(b"\n").unwrap();
        for bit in 0..line.len() * 8 {
            let mut changed = line.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_frame(&changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_shortened_line_is_refused() {
        let mut out = Vec::new();
        encode_frame(&header(), r#"{"a":1}"#, genesis(), &mut out);
        let line = out.strip_suffix(b"\n").unwrap();
        for len in 0..line.len() {
            assert!(decode_frame(&line[..len]).is_err(), "{len}");
        }
    }
}
