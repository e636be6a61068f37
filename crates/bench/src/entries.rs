//! The entries that every peer stores: messages of about 400 bytes, as one line of a V1 file each.

use std::ops::Range;

/// Words to write messages from; the text must not compress or repeat like a filler would.
const WORDS: [&str; 32] = [
    "the", "parser", "reads", "a", "line", "and", "keeps", "its", "offset", "so", "that", "test",
    "fails", "when", "branch", "is", "moved", "before", "index", "knows", "it", "try", "again",
    "with", "smaller", "batch", "of", "records", "see", "output", "below", "then",
];

/// Length of the text of a message; with the rest of the line it makes about 400 bytes.
const TEXT_BYTES: usize = 200;

/// How many different texts there are. Making one costs more than some peers need to store it, so they
/// are made before the clock starts and used in turn.
const TEXTS: usize = 64;

/// One entry of a session.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// The entry as a line of a V1 file, without the line break.
    pub(crate) line: String,
    /// Where the message itself is in the line.
    message: Range<usize>,
}

impl Entry {
    /// What a store that knows id and parent by itself has to keep.
    pub(crate) fn message(&self) -> &str {
        self.line.get(self.message.clone()).unwrap_or_default()
    }
}

/// Makes the entries of one writer of one session, each the child of the one before.
pub(crate) struct Entries {
    prefix: String,
    made: usize,
    parent: Option<String>,
    messages: Vec<String>,
}

impl Entries {
    /// The entries that begin a session.
    pub(crate) fn of_session(session: usize) -> Self {
        Self {
            prefix: format!("e{session:04x}"),
            made: 0,
            parent: None,
            messages: (0..TEXTS).map(|n| message(session, n)).collect(),
        }
    }

    /// The entries that one of several writers adds below what is there now.
    pub(crate) fn of_writer(&self, writer: usize) -> Self {
        Self {
            prefix: format!("{}w{writer:02x}", self.prefix),
            made: 0,
            parent: self.parent.clone(),
            messages: self.messages.clone(),
        }
    }

    /// The next `count` entries.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Entry> {
        (0..count).map(|_| self.one()).collect()
    }

    pub(crate) fn one(&mut self) -> Entry {
        let id = format!("{}{:08x}", self.prefix, self.made);
        let message = self.messages.get(self.made % TEXTS).map_or("", String::as_str);
        let parent = self.parent.replace(id.clone());
        let mut line = String::with_capacity(480);
        line.push_str(r#"{"type":"message","id":""#);
        line.push_str(&id);
        line.push_str(r#"","parentId":"#);
        match &parent {
            Some(parent) => line.extend(["\"", parent, "\""]),
            None => line.push_str("null"),
        }
        line.push_str(r#","timestamp":"2026-11-15T09:22:41.532Z","message":"#);
        let from = line.len();
        line.push_str(message);
        let to = line.len();
        line.push('}');
        self.made += 1;
        Entry { id, parent, line, message: from..to }
    }
}

/// The name of a session.
pub(crate) fn session_name(session: usize) -> String {
    format!("bench-{session:06}")
}

fn message(session: usize, n: usize) -> String {
    let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
    let text = text(session, n);
    format!(
        r#"{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}],"timestamp":1795000000000}}"#
    )
}

fn text(session: usize, n: usize) -> String {
    let mut state = (session as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n as u64);
    let mut text = String::with_capacity(TEXT_BYTES + 16);
    while text.len() < TEXT_BYTES {
        state = step(state);
        let place = usize::try_from(state >> 59).unwrap_or(0);
        text.push_str(WORDS.get(place).copied().unwrap_or("and"));
        text.push(' ');
    }
    text
}

/// One step of a multiplicative generator; good enough to choose words.
fn step(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_about_400_bytes_and_linked() {
        let all = Entries::of_session(3).take(100);
        let bytes: usize = all.iter().map(|entry| entry.line.len()).sum();
        let average = bytes / all.len();
        assert!((380..=420).contains(&average), "{average}");
        for pair in all.windows(2) {
            assert_eq!(pair[1].parent.as_deref(), Some(pair[0].id.as_str()));
        }
    }

    #[test]
    fn a_line_is_json_and_holds_its_message() {
        let entry = Entries::of_session(0).one();
        let line: serde_json::Value = serde_json::from_str(&entry.line).unwrap();
        let message: serde_json::Value = serde_json::from_str(entry.message()).unwrap();
        assert_eq!(line["message"], message);
        assert_eq!(line["id"], entry.id);
    }

    #[test]
    fn writers_of_one_session_have_their_own_branches() {
        let mut session = Entries::of_session(0);
        let last = session.take(3).pop().unwrap();
        let (mut a, mut b) = (session.of_writer(0), session.of_writer(1));
        let (first_a, first_b) = (a.one(), b.one());
        assert_ne!(first_a.id, first_b.id);
        assert_eq!(first_a.parent, Some(last.id.clone()));
        assert_eq!(first_b.parent, Some(last.id));
        assert_eq!(a.one().parent, Some(first_a.id));
    }
}
