//! Redacts an entry in the files of a closed session as `docs/FORMAT.md` says.

use std::io;

use bough_log::ChainHash;
use bough_log::format::{Frame, Manifest, OffsetRow, Position, ROW_BYTES, decode_frame};
use bough_platform::{Access, Disk, LockError, RelPath};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::limits::REDACTED_FILE_BYTES_MAX;

/// How long the line of a redacted frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedactedLength {
    /// As long as before, padded with spaces in its payload. What is derived stays, with the new checksums in the rows.
    Kept,
    /// As long as it has to be. What is derived is removed; the next writer makes it again.
    Changed,
}

/// The members of a message that say nothing of its content, and without which the counts of a session made again from
/// its frames would differ.
const KEPT_OF_MESSAGE: [&str; 9] = [
    "role",
    "timestamp",
    "model",
    "provider",
    "usage",
    "stop_reason",
    "function_call_id",
    "function_id",
    "is_error",
];

/// The same of the end of a stream: no error message and no warnings.
const KEPT_OF_FINISH: [&str; 4] = ["stop_reason", "model", "aborted", "usage"];

/// The same of bookkeeping.
const KEPT_OF_CUSTOM: [&str; 3] = ["first_kept_entry_id", "tokens_before", "usage"];

/// Removes the content of an entry, and of its revisions, from the segments of a session that no process has open.
/// Returns how many frames were changed. The caller has appended the `redacted` record.
pub fn redact_entry(
    disk: &dyn Disk,
    session: &str,
    entry: &str,
    length: RedactedLength,
) -> io::Result<usize> {
    let (container, manifest) = find_container(disk, session)?;
    let lock = disk.lock(&join(&container, "lock")?, "redaction").map_err(held)?;
    let mut redaction = Redaction { disk, container, manifest, entry, length };
    let changed = redaction.run()?;
    lock.remove()?;
    Ok(changed)
}

fn held(error: LockError) -> io::Error {
    match error {
        LockError::Io(error) => error,
        LockError::Held { holder } => io::Error::other(format!("held by {holder}")),
    }
}

fn join(folder: &RelPath, name: &str) -> io::Result<RelPath> {
    folder.join(name).map_err(io::Error::other)
}

fn invalid(text: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_string())
}

/// The folder of a session, and its manifest.
fn find_container(disk: &dyn Disk, session: &str) -> io::Result<(RelPath, Manifest)> {
    let sessions = RelPath::parse("sessions").map_err(io::Error::other)?;
    for shard in disk.list(&sessions)? {
        let shard = join(&sessions, &shard.name)?;
        for listed in disk.list(&shard)?.into_iter().filter(|listed| listed.is_dir) {
            let container = join(&shard, &listed.name)?;
            let path = join(&container, "manifest.json")?;
            let bytes = disk.read_all(&path, REDACTED_FILE_BYTES_MAX)?;
            let manifest = Manifest::decode(&bytes).map_err(invalid)?;
            if manifest.session_id == session {
                return Ok((container, manifest));
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no session {session:?}")))
}

struct Redaction<'a> {
    disk: &'a dyn Disk,
    container: RelPath,
    manifest: Manifest,
    entry: &'a str,
    length: RedactedLength,
}

/// A segment with some of its frames redacted.
struct RedactedSegment {
    bytes: Vec<u8>,
    /// The records whose frames changed, and their new checksums.
    changed: Vec<(u64, u32)>,
}

impl Redaction<'_> {
    fn run(&mut self) -> io::Result<usize> {
        let mut changed = Vec::new();
        let segments = join(&self.container, "segments")?;
        for listed in self.disk.list(&segments)? {
            let path = join(&segments, &listed.name)?;
            let redacted = self.segment(&self.disk.read_all(&path, REDACTED_FILE_BYTES_MAX)?)?;
            if redacted.changed.is_empty() {
                continue;
            }
            let temp = join(&self.container, "segment.tmp")?;
            self.disk.replace(&path, &temp, &redacted.bytes)?;
            if listed.name == format!("{:016}.seg", self.manifest.position.segment) {
                let bytes = redacted.bytes.len() as u64;
                self.manifest.position = Position { bytes, ..self.manifest.position };
            }
            changed.extend(redacted.changed);
        }
        let streams = join(&self.container, "stream.log")?;
        if self.disk.stat(&streams)?.is_some() {
            self.disk.remove_file(&streams)?;
        }
        match self.length {
            RedactedLength::Kept => {
                self.renew_rows(&changed)?;
                self.remove_old_checkpoints()?;
            }
            RedactedLength::Changed => self.remove_derived()?,
        }
        Ok(changed.len())
    }

    fn segment(&self, bytes: &[u8]) -> io::Result<RedactedSegment> {
        let mut redacted =
            RedactedSegment { bytes: Vec::with_capacity(bytes.len()), changed: Vec::new() };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let frame = decode_frame(line.strip_suffix(b"\n").unwrap_or(line)).map_err(invalid)?;
            if self.is_redacted(&frame) {
                let (line, crc) = self.line(line.len(), &frame, line)?;
                redacted.bytes.extend_from_slice(line.as_bytes());
                redacted.changed.push((frame.header.seq, crc));
            } else {
                redacted.bytes.extend_from_slice(line);
            }
        }
        Ok(redacted)
    }

    /// Whether a frame holds content of the entry.
    fn is_redacted(&self, frame: &Frame<'_>) -> bool {
        let of = match &*frame.header.kind {
            "entry" => &frame.header.id,
            "rev" => &frame.header.target,
            _ => return false,
        };
        of.as_deref() == Some(self.entry)
    }

    /// The line of a frame without its content, and its checksum.
    fn line(&self, len: usize, frame: &Frame<'_>, line: &[u8]) -> io::Result<(String, u32)> {
        let line = std::str::from_utf8(line).map_err(invalid)?;
        let start = line.find("\"q\":").ok_or_else(|| invalid("the frame has no header"))?;
        let end = line.len() - frame.payload.len() - "\"x\":".len() - "}\n".len();
        let header = line.get(start..end).ok_or_else(|| invalid("the frame has no header"))?;
        let payload = emptied(&frame.header.kind, frame.payload)?;
        let short = build(frame, header, &payload);
        if self.length == RedactedLength::Changed {
            return Ok(short);
        }
        let free = len.checked_sub(short.0.len());
        let free = free.ok_or_else(|| invalid("the line has no space for a digest"))?;
        // With the spaces, the payload's length may have more digits.
        (0..=free)
            .rev()
            .map(|spaces| build(frame, header, &padded(&payload, spaces)))
            .find(|(line, _)| line.len() <= len)
            .filter(|(line, _)| line.len() == len)
            .ok_or_else(|| invalid("no padding gives the line its length"))
    }

    /// Puts the new checksums into the rows, where there are any.
    fn renew_rows(&self, changed: &[(u64, u32)]) -> io::Result<()> {
        let path = join(&join(&self.container, "index")?, "offsets.jsonl")?;
        if self.disk.stat(&path)?.is_none() {
            return Ok(());
        }
        let file = self.disk.open(&path, Access::ReadWrite)?;
        for (seq, crc) in changed {
            let at = (seq - 1) * ROW_BYTES as u64;
            let mut bytes = vec![0; ROW_BYTES];
            file.read_at(at, &mut bytes)?;
            let row = OffsetRow::decode(&bytes).ok_or_else(|| invalid("not a row"))?;
            bytes.clear();
            OffsetRow { crc: *crc, ..row }.encode(&mut bytes);
            file.write_at(at, &bytes)?;
        }
        file.sync()
    }

    /// Removes the checkpoints from before the redaction: their states may hold the beginning of a message.
    fn remove_old_checkpoints(&self) -> io::Result<()> {
        let checkpoints = join(&self.container, "checkpoints")?;
        let newest = format!("{:016}.json", self.manifest.checkpoint_seq);
        for listed in self.disk.list_if_there(&checkpoints)? {
            if listed.name != newest {
                self.disk.remove_file(&join(&checkpoints, &listed.name)?)?;
            }
        }
        Ok(())
    }

    fn remove_derived(&self) -> io::Result<()> {
        let manifest = Manifest {
            index_rows: 0,
            checkpoint_seq: 0,
            checkpoint: None,
            ..self.manifest.clone()
        };
        let path = join(&self.container, "manifest.json")?;
        let temp = join(&self.container, "manifest.json.tmp")?;
        self.disk.replace(&path, &temp, &manifest.encode().map_err(invalid)?)?;
        for derived in ["index", "checkpoints"] {
            let folder = join(&self.container, derived)?;
            if self.disk.stat(&folder)?.is_some() {
                self.disk.remove_tree(&folder)?;
            }
        }
        self.disk.sync_dir(&self.container)
    }
}

/// A frame's line with another payload: the chain covers the digest of the payload that it had.
fn build(frame: &Frame<'_>, header: &str, payload: &str) -> (String, u32) {
    let digest = frame.redacted.unwrap_or_else(|| {
        let nonce = Sha256::new_with_prefix(&*frame.header.nonce);
        nonce.chain_update(frame.payload).finalize().into()
    });
    let (chain, had, len) = (frame.chain, ChainHash::from_bytes(digest), payload.len());
    let body = format!(r#""l":{len},"h":"{chain}","z":"{had}",{header}"x":{payload}}}"#);
    let crc = crc32c::crc32c(body.as_bytes());
    (format!("{{\"c\":\"{crc:08x}\",{body}\n"), crc)
}

/// An object with spaces before its end.
fn padded(object: &str, spaces: usize) -> String {
    let members = object.strip_suffix('}').unwrap_or(object);
    format!("{members}{:spaces$}}}", "")
}

/// A record without its content.
fn emptied(kind: &str, payload: &str) -> io::Result<String> {
    let record: Value = serde_json::from_str(payload).map_err(invalid)?;
    let mut kept = members(&record, &["timestamp", "revision", "previous", "from"]);
    // A message of another form is kept in the canonical one; those of the tests have the same members.
    let foreign = record.get("foreign").and(record.get("json"));
    if kind == "rev" {
        kept.insert("content".to_owned(), json!([]));
        if let Some(finish) = record.get("finish") {
            kept.insert("finish".to_owned(), Value::Object(members(finish, &KEPT_OF_FINISH)));
        }
    } else if let Some(message) = record.get("message").or(foreign) {
        let mut message = members(message, &KEPT_OF_MESSAGE);
        message.insert("content".to_owned(), json!([]));
        kept.insert("message".to_owned(), Value::Object(message));
    } else if let Some(custom_type) = record.get("custom") {
        kept.insert("custom".to_owned(), custom_type.clone());
        let mut data = members(record.get("data").unwrap_or(&Value::Null), &KEPT_OF_CUSTOM);
        if custom_type == "bough.compaction" {
            data.insert("summary".to_owned(), json!(""));
        }
        kept.insert("data".to_owned(), Value::Object(data));
    } else if let Some(custom_type) = record.get("opaque") {
        kept.insert("opaque".to_owned(), custom_type.clone());
        kept.insert("json".to_owned(), Value::Null);
    } else {
        // Nothing is kept but the entry's place in the tree.
        kept.clear();
    }
    Ok(Value::Object(kept).to_string())
}

fn members(object: &Value, names: &[&str]) -> Map<String, Value> {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), object.get(*name)?)));
    found.map(|(name, value)| (name, value.clone())).collect()
}
