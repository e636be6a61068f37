//! The text of server-sent events.

use std::collections::VecDeque;
use std::fmt::{Arguments, Write as _};
use std::ops::Range;
use std::sync::Arc;

use axum::body::Bytes;
use bough_service::{Delivery, FeedCursor, FeedEvent};
use bough_store::Position;
use serde::Serialize;

use super::stream_bytes::HeldBytes;
use crate::limits::{STREAM_LARGE_EVENT_BYTES, STREAM_RETRY};

/// A part of a stream's body that is being written.
///
/// An event's name is one of our constants and its id one of our cursors. Everything that callers wrote is inside the
/// JSON of its data, which has no line break.
#[derive(Debug, Default)]
pub(crate) struct EventText {
    /// The pieces before `text`.
    pieces: VecDeque<Bytes>,
    text: String,
    /// Held until the reader has taken the next large text.
    held: Option<HeldBytes>,
    /// The record at which the reader joined the session; a part of the ids.
    joined_at: Option<u64>,
    /// Whether the next event is the first, which sets the reconnection time.
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

    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.text.reserve(bytes.saturating_sub(self.text.len()));
    }

    /// From here on, ids say that the reader joined at this record.
    pub(crate) const fn set_joined_at(&mut self, joined_at: Option<u64>) {
        self.joined_at = joined_at;
    }

    pub(crate) fn into_pieces(mut self) -> VecDeque<Bytes> {
        self.end_piece();
        self.pieces
    }

    /// An event with the id from which its reader resumes.
    pub(crate) fn event<T: Serialize>(&mut self, name: &str, delivery: &Delivery, data: &T) {
        self.id(Some(&delivery.cursor));
        self.event_without_id(name, data);
    }

    /// An event that is not part of the feed.
    pub(crate) fn notice<T: Serialize>(
        &mut self,
        name: &str,
        cursor: Option<&FeedCursor>,
        data: &T,
    ) {
        self.id(cursor);
        self.event_without_id(name, data);
    }

    /// An event without an id: a reader that resumes here gets it again.
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

    /// An event whose data is `head` and the message of a feed's event. A message that still streams has no stop reason.
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
            self.text.push_str(&delivery.event.message_text());
        } else {
            self.push_shared(&delivery.event, FeedEvent::message_json);
        }
        self.text.push_str("}\n\n");
    }

    /// An event in the shape of `session::watch`, with the payload that all subscribers share.
    pub(crate) fn feed_event(&mut self, delivery: &Delivery) {
        let event = &delivery.event;
        let (name, Position { seq, step }) = (event.kind().name(), event.position());
        let id = self.id(Some(&delivery.cursor));
        self.push(format_args!("event: {name}\ndata: {{\"type\":\"{name}\",\"cursor\":\""));
        // Copy the text: encrypting the same cursor again would give another text.
        self.text.extend_from_within(id);
        self.push(format_args!("\",\"seq\":{seq},\"step\":{step},\"payload\":"));
        self.push_shared(event, FeedEvent::json);
        self.text.push_str("}\n\n");
    }

    /// Writes a text that all readers of an event share. A large one is not copied.
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

    /// Ends the current piece, so that it comes before what is written next.
    fn end_piece(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push_back(Bytes::from(std::mem::take(&mut self.text)));
        }
    }

    /// Writes the id, and returns where it is in the text.
    fn id(&mut self, cursor: Option<&FeedCursor>) -> Range<usize> {
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
        // Writing to a string cannot fail.
        let _always = self.text.write_fmt(text);
    }
}

/// A large text, with the bytes that are counted as held while it exists.
struct LargeText<T> {
    text: T,
    _held: Option<HeldBytes>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for LargeText<T> {
    fn as_ref(&self) -> &[u8] {
        self.text.as_ref()
    }
}

/// A text that all readers of an event share.
struct EventPart {
    event: Arc<FeedEvent>,
    read: fn(&FeedEvent) -> &str,
}

impl AsRef<[u8]> for EventPart {
    fn as_ref(&self) -> &[u8] {
        (self.read)(&self.event).as_bytes()
    }
}

/// Our types hold nothing that JSON cannot represent.
fn json_of<T: Serialize>(data: &T) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned())
}

/// Separates, in an id, the cursor from the record at which its reader joined the session.
pub(crate) const JOINED: char = '~';

/// A heartbeat comment. It is a line and not a block, because some clients take an empty block for an event.
pub(crate) const SIGN_OF_LIFE: &str = ": ok\n";
