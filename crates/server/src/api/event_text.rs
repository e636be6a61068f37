//! The text of server-sent events.

use std::fmt::{Arguments, Write as _};

use bough_service::{Delivery, FeedCursor};
use bough_store::Position;
use serde::Serialize;

use crate::limits::STREAM_RETRY;

/// A piece of a stream's body that is being written.
///
/// An event's name is one of our constants and its id one of our cursors; everything that callers wrote is inside the JSON
/// of its data, which has no line break.
#[derive(Debug, Default)]
pub(crate) struct EventText {
    text: String,
    /// The record at which the reader joined the session; a part of the ids.
    joined_at: Option<u64>,
    /// Whether the next event is the first, and says how soon to connect again.
    is_first: bool,
}

impl EventText {
    pub(crate) fn new(joined_at: Option<u64>, is_first: bool) -> Self {
        Self { text: String::new(), joined_at, is_first }
    }

    pub(crate) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn reserve(&mut self, room: usize) {
        self.text.reserve(room.saturating_sub(self.text.len()));
    }

    /// Ids that are written from here on say that the reader joined here.
    pub(crate) const fn set_joined_at(&mut self, joined_at: Option<u64>) {
        self.joined_at = joined_at;
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// An event with the id that its reader goes on from.
    pub(crate) fn event<T: Serialize>(&mut self, name: &str, delivery: &Delivery, data: &T) {
        self.id(Some(&delivery.cursor));
        self.event_without_id(name, data);
    }

    /// An event that tells nothing of the feed.
    pub(crate) fn notice<T: Serialize>(
        &mut self,
        name: &str,
        cursor: Option<&FeedCursor>,
        data: &T,
    ) {
        self.id(cursor);
        self.event_without_id(name, data);
    }

    /// An event that a reader gets again that gets no further.
    pub(crate) fn event_without_id<T: Serialize>(&mut self, name: &str, data: &T) {
        self.push(format_args!("event: {name}\ndata: "));
        // Our types hold nothing that JSON cannot say.
        let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
        self.text.push_str(&data);
        self.text.push_str("\n\n");
    }

    /// An event in the shape of `session::watch`, with its payload as it was made once for all subscribers.
    pub(crate) fn feed_event(&mut self, delivery: &Delivery) {
        let event = &delivery.event;
        let (name, Position { seq, step }) = (event.kind().name(), event.position());
        let id = self.id(Some(&delivery.cursor));
        self.push(format_args!("event: {name}\ndata: {{\"type\":\"{name}\",\"cursor\":\""));
        // The same text again: a sealed place does not look the same twice.
        self.text.extend_from_within(id);
        self.push(format_args!("\",\"seq\":{seq},\"step\":{step},\"payload\":"));
        self.text.push_str(event.json());
        self.text.push_str("}\n\n");
    }

    /// Writes the id; says where it is in the text.
    fn id(&mut self, cursor: Option<&FeedCursor>) -> std::ops::Range<usize> {
        if std::mem::take(&mut self.is_first) {
            self.push(format_args!("retry: {}\n", STREAM_RETRY.as_millis()));
        }
        let Some(cursor) = cursor else { return 0..0 };
        self.text.push_str("id: ");
        let start = self.text.len();
        self.push(format_args!("{cursor}"));
        if let (FeedCursor::Session(_), Some(joined)) = (cursor, self.joined_at) {
            self.push(format_args!("{JOINED}{joined}"));
        }
        let end = self.text.len();
        self.text.push('\n');
        start..end
    }

    fn push(&mut self, text: Arguments<'_>) {
        // A string takes whatever is written to it.
        let _always = self.text.write_fmt(text);
    }
}

/// Stands in an id between the cursor and the record at which its reader joined the session.
pub(crate) const JOINED: char = '~';

/// A comment that shows that a stream lives. A line, and no block: some clients take an empty block for an event.
pub(crate) const SIGN_OF_LIFE: &str = ": ok\n";
