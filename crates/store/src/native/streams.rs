//! Messages that stream: what they say with every accepted step, so that the steps can be put together
//! into one record at any time, whether or not they are durable yet.

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
    touched: Duration,
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

    /// Begins to follow a message; `base` is what the records say, `steps` what came after.
    pub(super) fn begin(&mut self, base: Entry, steps: &[Delta]) -> Result<(), StoreError> {
        let mut stream = Stream {
            current: base.clone(),
            base,
            origin: None,
            last_at_ms: 0,
            touched: Duration::ZERO,
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
            stream.touched = now;
        }
        Ok(())
    }

    /// Counts what the steps of a message take on the disk; says whether it is time to put them together.
    pub(super) fn grew(&mut self, entry: &EntryId, bytes: usize) -> bool {
        self.open.get_mut(entry).is_some_and(|stream| {
            stream.bytes += bytes;
            stream.bytes > STREAM_BYTES_MAX
        })
    }

    /// Stops following a message: what it says is read again when it is needed.
    pub(super) fn forget(&mut self, entry: &EntryId) {
        self.open.remove(entry);
    }

    /// The records that put together every stream for which `due` holds. The streams are followed on: until
    /// the records are durable, reading does not show where their messages are.
    fn settle_if(&mut self, due: impl Fn(&Stream) -> bool) -> Vec<NewRecord> {
        self.open.values_mut().filter(|stream| due(stream)).filter_map(Stream::settle).collect()
    }

    /// Stops following the messages that rested since `before` and have no step that is not in a record.
    /// Only for a session whose records are all durable.
    pub(super) fn forget_settled(&mut self, before: Duration) {
        self.open.retain(|_, stream| stream.touched > before || !stream.is_settled());
    }

    /// The records that put together all streams.
    pub(super) fn settle_all(&mut self) -> Vec<NewRecord> {
        self.settle_if(|_| true)
    }

    /// The records that put together streams that are too long, or rested since `before`.
    pub(super) fn settle_due(&mut self, before: Option<Duration>) -> Vec<NewRecord> {
        self.settle_if(|stream| {
            before.is_some_and(|before| stream.touched <= before) || stream.bytes > STREAM_BYTES_MAX
        })
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

    fn settle(&mut self) -> Option<NewRecord> {
        let revision = settle(&self.base, &self.current, self.origin.take())?;
        self.base.clone_from(&self.current);
        self.bytes = 0;
        Some(Record::Revision(revision).at(self.last_at_ms))
    }
}
