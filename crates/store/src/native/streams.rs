//! Messages that stream, as they are with every accepted step. So the steps can be put together into one record at any
//! time, whether or not they are durable yet.

use std::collections::BTreeMap;
use std::time::Duration;

use bough_session::{Delta, Entry, EntryId, JsonMap, NewRecord, Record, settle};

use crate::StoreError;

/// The streaming messages of one session.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: BTreeMap<EntryId, Stream>,
}

#[derive(Debug)]
struct Stream {
    /// What the records say.
    base: Entry,
    /// What the steps make of it.
    current: Entry,
    origin: Option<JsonMap>,
    last_at_ms: i64,
    /// The number that the log gave the last step.
    last_number: u64,
    last_used: Duration,
    bytes: usize,
}

/// Steps of one stream are put together when they have this many bytes.
const STREAM_BYTES_MAX: usize = 1024 * 1024;

impl Streams {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn contains(&self, entry: &EntryId) -> bool {
        self.open.contains_key(entry)
    }

    /// Begins to track a message; `base` is what the records say, `steps` what came after, and the number of the last of
    /// them.
    pub(super) fn begin(
        &mut self,
        base: Entry,
        (steps, last_number): (&[Delta], u64),
    ) -> Result<(), StoreError> {
        let mut stream = Stream {
            current: base.clone(),
            base,
            origin: None,
            last_at_ms: 0,
            last_number,
            last_used: Duration::ZERO,
            bytes: 0,
        };
        for step in steps {
            stream.take(step)?;
        }
        self.open.insert(stream.base.id.clone(), stream);
        Ok(())
    }

    /// The revision that a message has with every accepted step.
    pub(super) fn revision(&self, entry: &EntryId) -> Option<u64> {
        self.open.get(entry).map(|stream| stream.current.revision)
    }

    /// Takes a step, if it fits what the message says now.
    pub(super) fn take(&mut self, delta: &Delta, now: Duration) -> Result<(), StoreError> {
        if let Some(stream) = self.open.get_mut(&delta.entry_id) {
            stream.take(delta)?;
            stream.last_used = now;
        }
        Ok(())
    }

    /// Notes a step that the log took: its number, and what it takes on the disk. Says whether it is time to put the steps
    /// together.
    pub(super) fn grew(&mut self, entry: &EntryId, number: u64, bytes: usize) -> bool {
        self.open.get_mut(entry).is_some_and(|stream| {
            stream.last_number = number;
            stream.bytes += bytes;
            stream.bytes > STREAM_BYTES_MAX
        })
    }

    /// Stops tracking a message: what it says is read again when it is needed.
    pub(super) fn forget(&mut self, entry: &EntryId) {
        self.open.remove(entry);
    }

    /// Whether there are steps to put together, and none came since `before`.
    pub(super) fn are_idle(&self, before: Duration) -> bool {
        let mut unsettled = self.open.values().filter(|stream| !stream.is_settled()).peekable();
        unsettled.peek().is_some() && unsettled.all(|stream| stream.last_used <= before)
    }

    /// Stops tracking the messages that had no step since `before` and have none that is not in a record.
    /// Only for a session whose records are all durable.
    pub(super) fn forget_settled(&mut self, before: Duration) {
        self.open.retain(|_, stream| stream.last_used > before || !stream.is_settled());
    }

    /// The number of the last step that is not part of a record; 0 when there is none.
    pub(super) fn last_step(&self) -> u64 {
        let unsettled = self.open.values().filter(|stream| !stream.is_settled());
        unsettled.map(|stream| stream.last_number).max().unwrap_or(0)
    }

    /// The records that put together all streams, in the order of their last steps.
    ///
    /// All of them, so that no step lies before a record and is put together after it. In that order, so that a reader that
    /// has the steps up to one of them has the first of the records, and not the rest.
    pub(super) fn joined(&self) -> Vec<NewRecord> {
        let mut streams: Vec<&Stream> = self.open.values().collect();
        streams.sort_by_key(|stream| stream.last_number);
        streams.into_iter().filter_map(Stream::joined).collect()
    }

    /// Notes that the log took these records. The streams stay tracked: until the records are durable, reading does not
    /// show where their messages are.
    pub(super) fn note_joined(&mut self) {
        self.open.values_mut().for_each(Stream::note_joined);
    }
}

impl Stream {
    fn take(&mut self, delta: &Delta) -> Result<(), StoreError> {
        delta.apply(&mut self.current).map_err(|error| StoreError::invalid(error.to_string()))?;
        self.origin.clone_from(&delta.origin);
        self.last_at_ms = delta.at_ms;
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.base.revision == self.current.revision
    }

    fn joined(&self) -> Option<NewRecord> {
        let revision = settle(&self.base, &self.current, self.origin.clone())?;
        Some(Record::Revision(revision).at(self.last_at_ms))
    }

    fn note_joined(&mut self) {
        if !self.is_settled() {
            self.base.clone_from(&self.current);
            (self.origin, self.bytes) = (None, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bough_session::{AgentMessage, ContentBlock, ContentChange, EntryBody, UserMessage};

    fn message(name: &str) -> Entry {
        let content = vec![ContentBlock::text("")];
        let message = AgentMessage::User(UserMessage::new(content, 0));
        let (id, body) = (EntryId::from_stored(name), EntryBody::Message(message.into()));
        Entry::new(id, None, 0, body)
    }

    fn step(name: &str) -> Delta {
        let text = "x".to_owned();
        let append = bough_session::TextAppend { block: 0, text };
        let change = ContentChange::Append(append);
        let entry_id = EntryId::from_stored(name);
        Delta { at_ms: 0, entry_id, revision: 1, change, details: None, origin: None }
    }

    /// Those that go on would be put together in the middle of their steps, or after a record that is not theirs.
    #[test]
    fn streams_are_idle_when_all_of_them_are() {
        let mut streams = Streams::default();
        let seconds = Duration::from_secs;
        assert!(!streams.are_idle(seconds(9)), "there is nothing to put together");
        for (name, at) in [("a", 1), ("b", 5)] {
            streams.begin(message(name), (&[], 0)).unwrap();
            streams.take(&step(name), seconds(at)).unwrap();
        }
        assert!(!streams.are_idle(seconds(4)));
        assert!(streams.are_idle(seconds(5)));
        assert_eq!(streams.joined().len(), 2);
        streams.note_joined();
        assert!(!streams.are_idle(seconds(9)));
    }
}
