//! Batches of lines.
//!
//! session-manager's lines are independent. A batch of ours may have several lines, and a power cut may leave any part
//! of them. So white space before the JSON, which JSON readers ignore, marks the lines of a batch:
//! - every line but the last begins with a space;
//! - the last begins with a tab and 32 spaces or tabs, the bits of a checksum over all of its lines.
//!
//! A batch of one line has neither: it is whole or it is not JSON.

use sha2::{Digest, Sha256};

use super::line::{self, Item};

const BITS: usize = 32;

/// The meaning of the white space before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The line stands alone.
    Alone,
    /// The batch goes on.
    GoesOn,
    /// The batch ends; the checksum, if it is complete.
    Ends(Option<u32>),
}

/// The bytes of one batch.
pub(super) fn write(lines: &[String]) -> Vec<u8> {
    let Some((last, others)) = lines.split_last() else {
        return Vec::new();
    };
    let mut bytes = Vec::new();
    let mut checksum = Checksum::default();
    for line in others {
        bytes.push(b' ');
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        checksum.add(line.as_bytes());
    }
    if !others.is_empty() {
        checksum.add(last.as_bytes());
        bytes.push(b'\t');
        let sum = checksum.sum();
        bytes.extend((0..BITS).map(|bit| if sum >> bit & 1 == 0 { b' ' } else { b'\t' }));
    }
    bytes.extend_from_slice(last.as_bytes());
    bytes.push(b'\n');
    bytes
}

/// The lines of a batch that is being read.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    items: Vec<Item>,
    first_line: Vec<u8>,
    checksum: Checksum,
    is_open: bool,
}

/// A whole batch: its items, and the JSON of its first line.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) items: Vec<Item>,
    pub(super) first_line: Vec<u8>,
}

/// The effect of a line on its batch.
#[derive(Debug)]
pub(super) enum Gathered {
    /// The batch goes on.
    Open,
    /// The batch is whole.
    Whole(Batch),
    /// The batch is not what was written.
    Torn,
}

impl Gathering {
    /// Whether a batch has begun and not ended.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes a line, without its line break.
    pub(super) fn add(&mut self, line: &[u8]) -> Gathered {
        let (mark, json) = split(line);
        match mark {
            Mark::Alone => {
                // A line of another program; the lines of ours before it were cut off.
                *self = Self::default();
                self.take(json);
                Gathered::Whole(self.close())
            }
            Mark::GoesOn => {
                self.is_open = true;
                self.take(json);
                Gathered::Open
            }
            Mark::Ends(sum) => {
                self.take(json);
                let whole = self.is_open && sum == Some(self.checksum.sum());
                let batch = self.close();
                if whole { Gathered::Whole(batch) } else { Gathered::Torn }
            }
        }
    }

    fn take(&mut self, json: &[u8]) {
        self.checksum.add(json);
        let items = line::parse(json);
        if self.items.is_empty() && !items.is_empty() {
            self.first_line = json.to_vec();
        }
        self.items.extend(items);
    }

    fn close(&mut self) -> Batch {
        let Self { items, first_line, .. } = std::mem::take(self);
        Batch { items, first_line }
    }
}

/// The mark of a line, and its JSON.
pub(super) fn split(line: &[u8]) -> (Mark, &[u8]) {
    let json = line.trim_ascii();
    match line.first() {
        Some(b' ') => (Mark::GoesOn, json),
        Some(b'\t') => (Mark::Ends(read_sum(line)), json),
        _ => (Mark::Alone, json),
    }
}

fn read_sum(line: &[u8]) -> Option<u32> {
    let bits = line.get(1..=BITS)?;
    let mut sum = 0;
    for (bit, byte) in bits.iter().enumerate() {
        match byte {
            b' ' => {}
            b'\t' => sum |= 1 << bit,
            _ => return None,
        }
    }
    Some(sum)
}

/// A checksum over the JSON of lines.
#[derive(Clone, Debug, Default)]
struct Checksum(Sha256);

impl Checksum {
    fn add(&mut self, json: &[u8]) {
        self.0.update((json.len() as u64).to_le_bytes());
        self.0.update(json);
    }

    fn sum(&self) -> u32 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        let mut first = [0; 4];
        first.copy_from_slice(digest.split_at(4).0);
        u32::from_le_bytes(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<String> {
        (0..count).map(|n| format!(r#"{{"type":"leaf","entry_id":"e{n}"}}"#)).collect()
    }

    /// How many whole batches, and items in them, the bytes hold.
    fn read(bytes: &[u8]) -> (usize, usize) {
        let mut gathering = Gathering::default();
        let mut found = (0, 0);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else { continue };
            if let Gathered::Whole(batch) = gathering.add(line) {
                found = (found.0 + 1, found.1 + batch.items.len());
            }
        }
        found
    }

    #[test]
    fn a_batch_is_whole_or_not_there() {
        for count in 1..4 {
            let bytes = write(&lines(count));
            assert_eq!(read(&bytes), (1, count));
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), (0, 0), "{count} lines cut at {cut}");
            }
        }
    }

    #[test]
    fn a_batch_of_which_a_part_is_missing_says_nothing() {
        let bytes = write(&lines(3));
        for start in 0..bytes.len() {
            for end in start + 1..bytes.len() {
                let mut holed = bytes.clone();
                holed[start..end].fill(0);
                assert_eq!(read(&holed).1, 0, "a hole from {start} to {end}");
            }
        }
    }

    #[test]
    fn the_lines_are_json_to_everybody() {
        let bytes = write(&lines(3));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>(), lines(3));
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }

    #[test]
    fn a_line_of_somebody_else_ends_what_was_torn() {
        let ours = write(&lines(3));
        let torn = &ours[..ours.len() / 2];
        let end = torn.iter().rposition(|byte| *byte == b'\n').unwrap();
        let theirs = "{\"type\":\"leaf\",\"entry_id\":\"x\"}\n";
        assert_eq!(read(&[&torn[..=end], theirs.as_bytes()].concat()), (1, 1));
    }
}
