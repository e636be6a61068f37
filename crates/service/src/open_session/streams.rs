use bough_session::{ContentChange, Delta, Entry, EntryId, RevisionError, json_bytes};

use crate::limits::STREAMS_PER_SESSION_MAX;
use crate::recent_map::RecentMap;

/// The messages of a session that changed last, after the last accepted step, so that a stream of a thousand steps
/// reads its message once.
pub(crate) type StreamingMessages = RecentMap<EntryId, StreamingMessage, STREAMS_PER_SESSION_MAX>;

/// A message that is being written.
pub(crate) struct StreamingMessage {
    /// The message as of the last accepted step.
    pub(crate) entry: Entry,
    /// The size of the message's JSON in bytes, if it is known; added text is counted, so that a long stream does not
    /// measure its whole message each time.
    bytes: Option<usize>,
}

impl StreamingMessage {
    pub(crate) fn of(entry: Entry) -> Self {
        let bytes = Some(measure(&entry));
        Self { entry, bytes }
    }

    /// How many bytes of JSON the message is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.unwrap_or_else(|| measure(&self.entry))
    }

    /// Takes one more step.
    pub(crate) fn apply(&mut self, delta: &Delta) -> Result<(), RevisionError> {
        let known = self.bytes;
        delta.apply(&mut self.entry)?;
        self.bytes = match &delta.change {
            ContentChange::Append(more) => {
                let counted = known.map(|bytes| bytes.saturating_add(text_bytes(&more.text)));
                Some(counted.unwrap_or_else(|| measure(&self.entry)))
            }
            _ => None,
        };
        Ok(())
    }
}

/// How many bytes a text adds to a JSON string.
pub(crate) fn text_bytes(text: &str) -> usize {
    json_bytes(text).saturating_sub(r#""""#.len())
}

fn measure(entry: &Entry) -> usize {
    entry.message().map_or(0, |message| json_bytes(&message))
}
