//! The text of server-sent events.

use std::collections::VecDeque;
use std::fmt::{Arguments, Write as _};
use std::sync::Arc;

use axum::body::Bytes;
use bough_service::{Delivery, FeedCursor, FeedEvent};
use bough_store::Position;
use serde::Serialize;

use super::stream_bytes::HeldBytes;
use crate::limits::{STREAM_LARGE_EVENT_BYTES, STREAM_RETRY};

/// A part of a stream's body that is being written.
///
/// An event's name is one of our constants and its id one of our cursors; everything that callers wrote is inside the JSON
/// of its data, which has no line break.
#[derive(Debug, Default)]
pub(crate) struct EventText {
    /// What comes before `text`.
    pieces: VecDeque<Bytes>,
    text: String,
    /// Held for the next large text, until its reader has taken it.
    held: Option<HeldBytes>,
    /// The record at which the reader joined the session; a part of the ids.
    joined_at: Option<u64>,
    /// Whether the next event is the first, and says how soon to connect again.
    is_first: bool,
}

impl EventText {
    pub(crate) fn new(joined_at: Option<u64>, is_first: bool) -> Self {
        Self { joined_at, is_first, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len() + self.pieces.iter().map(Bytes::len).sum::<usize>()
    }

    /// Holds bytes until the reader has taken the next large text.
    pub(crate) fn hold(&mut self, held: Option<HeldBytes>) {
        self.held = held;
    }

    pub(crate) fn reserve(&mut self, room: usize) {
        self.text.reserve(room.saturating_sub(self.text.len()));
    }

    /// Ids that are written from here on say that the reader joined here.
    pub(crate) const fn set_joined_at(&mut self, joined_at: Option<u64>) {
        self.joined_at = joined_at;
    }

    pub(crate) fn into_pieces(mut self) -> VecDeque<Bytes> {
        self.end_piece();
        self.pieces
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
        let data = json_of(data);
        if data.len() < STREAM_LARGE_EVENT_BYTES {
            self.text.push_str(&data);
        } else {
            let held = self.held.take();
            self.push_large(LargeText { text: data, _held: held });
        }
        self.text.push_str("\n\n");
    }

    /// An event whose data is what `head` says and the message that a feed's event tells of.
    pub(crate) fn event_with_message<T: Serialize>(
        &mut self,
        name: &str,
        (delivery, has_id): (&Delivery, bool),
        head: &T,
    ) {
        if has_id {
            self.id(Some(&delivery.cursor));
        }
        self.push(format_args!("event: {name}\ndata: "));
        let head = json_of(head);
        self.text.push_str(head.strip_suffix('}').unwrap_or(&head));
        self.text.push_str(",\"message\":");
        if delivery.event.weight() < STREAM_LARGE_EVENT_BYTES {
            self.text.push_str(&json_of(&delivery.event.message()));
        } else {
            self.push_shared(&delivery.event, FeedEvent::message_json);
        }
        self.text.push_str("}\n\n");
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
        self.push_shared(event, FeedEvent::json);
        self.text.push_str("}\n\n");
    }

    /// Writes a text that an event has for all readers. A large one is not copied.
    fn push_shared(&mut self, event: &Arc<FeedEvent>, read: fn(&FeedEvent) -> &str) {
        if read(event).len() < STREAM_LARGE_EVENT_BYTES {
            self.text.push_str(read(event));
        } else {
            let text = EventPart { event: event.clone(), read };
            let held = self.held.take();
            self.push_large(LargeText { text, _held: held });
        }
    }

    fn push_large<T: AsRef<[u8]> + Send + 'static>(&mut self, text: LargeText<T>) {
        self.end_piece();
        self.pieces.push_back(Bytes::from_owner(text));
    }

    /// What was written so far comes before what is written next.
    fn end_piece(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push_back(Bytes::from(std::mem::take(&mut self.text)));
        }
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

/// A large text, with the bytes that are held while it is there.
struct LargeText<T> {
    text: T,
    _held: Option<HeldBytes>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for LargeText<T> {
    fn as_ref(&self) -> &[u8] {
        self.text.as_ref()
    }
}

/// A text that an event has for all readers.
struct EventPart {
    event: Arc<FeedEvent>,
    read: fn(&FeedEvent) -> &str,
}

impl AsRef<[u8]> for EventPart {
    fn as_ref(&self) -> &[u8] {
        (self.read)(&self.event).as_bytes()
    }
}

/// Our types hold nothing that JSON cannot say.
fn json_of<T: Serialize>(data: &T) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned())
}

/// Stands in an id between the cursor and the record at which its reader joined the session.
pub(crate) const JOINED: char = '~';

/// A comment that shows that a stream lives. A line, and no block: some clients take an empty block for an event.
pub(crate) const SIGN_OF_LIFE: &str = ": ok\n";
