//! Live events as server-sent events.
//!
//! Each event has a durable id: send it back as `Last-Event-ID` (browsers do) or `after=`, and the stream resumes after
//! it. An id is a cursor of the feed and the record at which its reader joined the session: the reader may not have
//! older messages whole.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bough_service::{
    ChangeKind, FeedCursor, FeedEvent, FeedItem, ServiceError, StartAt, Subscription,
};
use bough_session::{Incarnation, SessionId};
use bough_store::Steps;
use http::request::Parts;
use serde_json::json;
use tokio::time::Sleep;

use super::calls::{check_in_path, take_stream};
use super::event_text::{EventText, SIGN_OF_LIFE};
use super::message_events::MessageEvents;
use super::problem::Problem;
use super::stream_bytes::{HeldBytes, StreamReader};
use super::stream_request::StreamRequest;
use super::streamed::streamed;
use crate::app::{App, Permit};
use crate::config::ends;
use crate::guard::Caller;
use crate::limits::{
    HEARTBEAT, STREAM_BEAT, STREAM_LARGE_EVENT_BYTES, STREAM_PIECE_BYTES, STREAM_PIECE_FEW_BYTES,
    STREAM_PIECE_ROOM, STREAM_READ_BYTES,
};
use crate::net::Activity;

/// The events of one session.
pub(crate) async fn of_session(
    State(app): State<App>,
    Path(session_id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    check_in_path("session_id", &session_id)?;
    let session = SessionId::from_stored(session_id);
    open(app, Some(session), request.into_parts().0).await
}

/// The events of all sessions, or of the one that the query names.
pub(crate) async fn of_all(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    open(app, None, request.into_parts().0).await
}

async fn open(app: App, session: Option<SessionId>, parts: Parts) -> Result<Response, Problem> {
    let caller = Caller::of(&parts)?;
    let query = parts.uri.query().unwrap_or_default();
    let asked = StreamRequest::read(query, session, &parts.headers)?;
    let StreamRequest { filter, start, deltas, names, joined_at, waits_for_session } = asked;
    let session = filter.session_id.clone();
    let limits = app.limits();
    let permit = take_stream(&app)?;
    let connection = parts.extensions.get::<Arc<Activity>>().cloned();
    let reader = app.stream_bytes.reader(caller.id.clone(), connection, app.clock.clone());
    // A snapshot is read at once; everything else is read when the reader takes it.
    let reserved = match start {
        StartAt::Snapshot => {
            Some(reader.reserve(STREAM_READ_BYTES, limits.stream_bytes_per_token).await)
        }
        _ => None,
    };
    let must_exist = !waits_for_session && !matches!(start, StartAt::After(_));
    let subscription = app.service.subscribe(&caller.scope, filter, start).await?;
    if let Some(session) = &session
        && must_exist
        && subscription.cursor().is_none()
    {
        return Err(ServiceError::NotFound { session: session.to_string() }.into());
    }
    let here = session_place(subscription.cursor().as_ref());
    let joined_at = joined_at.or(here.map(|(_, seq)| seq)).unwrap_or(0);
    let live = Live {
        heartbeat: ends(limits.heartbeat, HEARTBEAT),
        app,
        caller,
        subscription,
        messages: MessageEvents::new(deltas, names, session.map(|_| joined_at)),
        incarnation: here.map(|(incarnation, _)| incarnation),
        sent: Sent::Nothing,
        ready: VecDeque::new(),
        reader,
        reserved,
        needs: 0,
        must_send: false,
        beat: None,
        _permit: permit,
    };
    Ok(live.into_response())
}

/// The incarnation of a session that a cursor is in, and the last record that it knows.
const fn session_place(cursor: Option<&FeedCursor>) -> Option<(Incarnation, u64)> {
    match cursor {
        Some(FeedCursor::Session(cursor)) => Some((cursor.incarnation, cursor.position.seq)),
        _ => None,
    }
}

/// Whether an item adds text to a message.
fn is_delta(item: &FeedItem) -> bool {
    let FeedItem::Event(delivery) = item else { return false };
    let change = delivery.event.change.as_ref();
    change.is_some_and(|change| matches!(change.kind, ChangeKind::Text(_)))
}

/// An open stream of events.
struct Live {
    app: App,
    caller: Caller,
    subscription: Subscription,
    messages: MessageEvents,
    /// The incarnation of the session that the reader follows.
    incarnation: Option<Incarnation>,
    heartbeat: Duration,
    sent: Sent,
    /// What was written for the reader and not taken yet: many small events, and at most one large one.
    ready: VecDeque<Bytes>,
    reader: Arc<StreamReader>,
    /// Bytes held for what was read from the store for this reader alone.
    reserved: Option<HeldBytes>,
    /// The bytes of the next event, if they could not be held.
    needs: usize,
    /// Whether the next event is sent in any case, because it cannot be read again.
    must_send: bool,
    /// Runs after deltas were sent; the next ones wait for its end, so that they are joined.
    beat: Option<Pin<Box<Sleep>>>,
    _permit: Permit,
}

/// What a stream has sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    NoEvent,
    Events,
}

impl Live {
    fn into_response(self) -> Response {
        streamed("text/event-stream", self, |mut live| async {
            let piece = live.piece().await?;
            Some((piece, live))
        })
    }

    /// The next piece of the body; `None` ends it. Nothing is read before it is taken: a stalled reader costs its
    /// cursor, and the large event that it is receiving.
    async fn piece(&mut self) -> Option<Bytes> {
        self.reader.note_taken();
        if self.sent == Sent::Nothing {
            self.sent = Sent::NoEvent;
            return Some(SIGN_OF_LIFE.into());
        }
        loop {
            if let Some(piece) = self.next_piece() {
                return Some(piece);
            }
            let shutdown = self.app.shutdown.clone();
            let waited = tokio::select! {
                biased;
                () = shutdown.begun() => return None,
                waited = tokio::time::timeout(self.heartbeat, self.wait_for_beat()) => waited,
            };
            // Check before anything is sent: a busy stream has no pause in which to check.
            if !self.app.guard.may_stay(&self.caller) {
                return None;
            }
            match waited {
                Ok(Ok(())) => self.gather(),
                Ok(Err(error)) => return self.after_error(&error).await,
                Err(_) => return Some(SIGN_OF_LIFE.into()),
            }
        }
    }

    /// The next bytes that are ready.
    fn next_piece(&mut self) -> Option<Bytes> {
        let text = self.ready.front_mut()?;
        if text.len() > STREAM_PIECE_ROOM {
            return Some(text.split_to(STREAM_PIECE_BYTES));
        }
        self.ready.pop_front()
    }

    /// Waits until there is an item, and, if it is a delta that follows others closely, until the beat ends. Cancel safe.
    async fn wait_for_beat(&mut self) -> Result<(), ServiceError> {
        self.wait().await?;
        let is_delta = self.subscription.peek_available().is_some_and(is_delta);
        if let Some(beat) = self.beat.as_mut().filter(|_| is_delta) {
            beat.await;
            self.beat = None;
        }
        Ok(())
    }

    /// Waits until there is an item. An item that must be read from the store for this reader alone is read once its
    /// bytes can be held; until then the reader costs its cursor. Cancel safe.
    async fn wait(&mut self) -> Result<(), ServiceError> {
        if self.needs > 0 && !self.subscription.drop_page().await? {
            (self.must_send, self.needs) = (true, 0);
            return Ok(());
        }
        if self.needs > 0 || self.subscription.is_behind() {
            let most = self.app.limits().stream_bytes_per_token;
            let reserved = self.reader.reserve(self.needs.max(STREAM_READ_BYTES), most).await;
            if self.subscription.is_ready().await? {
                (self.reserved, self.needs) = (Some(reserved), 0);
                return Ok(());
            }
            self.needs = 0;
        }
        self.subscription.wait().await
    }

    /// Writes the available items, up to a few, or up to one that is large.
    fn gather(&mut self) {
        let mut text = EventText::new(self.messages.joined_at(), self.sent != Sent::Events);
        while text.len() < STREAM_PIECE_BYTES && self.hold_next(&mut text) {
            let Some(item) = self.subscription.next_available() else { break };
            if text.len() >= STREAM_PIECE_FEW_BYTES {
                // Many are waiting, so reserve the memory at once.
                text.reserve(STREAM_PIECE_ROOM);
            }
            self.write(&mut text, &item);
        }
        if self.messages.flush(&mut text) {
            self.beat = Some(Box::pin(tokio::time::sleep(STREAM_BEAT)));
        }
        self.ready = text.into_pieces();
        // Items that the reader did not ask for leave nothing to send.
        if !self.ready.is_empty() {
            self.sent = Sent::Events;
        }
        let left = if self.needs > 0 { 0 } else { self.subscription.page_bytes() };
        self.reserved =
            if left < STREAM_LARGE_EVENT_BYTES { None } else { self.reader.hold_own(left) };
    }

    /// Holds the bytes of the next item, if it is large; `false` if they exceed the bound.
    fn hold_next(&mut self, text: &mut EventText) -> bool {
        let Some(item) = self.subscription.peek_available() else { return false };
        let bytes = item.weight();
        if bytes < STREAM_LARGE_EVENT_BYTES {
            return true;
        }
        let reserved = self.reserved.take();
        let FeedItem::Event(delivery) = item else {
            text.hold(reserved);
            return true;
        };
        if std::mem::take(&mut self.must_send) {
            text.hold(self.reader.hold_own(bytes));
            return true;
        }
        let most = self.app.limits().stream_bytes_per_token;
        let event = &delivery.event;
        let held = match reserved {
            Some(reserved) => reserved.into_event(event, most),
            None => self.reader.hold_event(event, most),
        };
        if held.is_none() {
            self.needs = bytes;
            return false;
        }
        text.hold(held);
        true
    }

    async fn after_error(&self, error: &ServiceError) -> Option<Bytes> {
        /// The pause before the store is asked again.
        const PAUSE: Duration = Duration::from_secs(1);
        tracing::warn!(code = error.code(), "a stream could not be read; it is tried again");
        if !error.is_transient() {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
        Some(": waiting for the store\n".into())
    }

    fn write(&mut self, text: &mut EventText, item: &FeedItem) {
        let FeedItem::Event(delivery) = item else {
            return self.write_notice(text, item);
        };
        self.app.metrics.events_streamed.add(1);
        self.follow(text, &delivery.event);
        if !self.messages.write(text, delivery) {
            text.feed_event(delivery);
        }
    }

    /// If a session begins, begins anew, or becomes visible, the reader joins it with the first event that it receives.
    fn follow(&mut self, text: &mut EventText, event: &FeedEvent) {
        if self.incarnation.replace(event.incarnation) != Some(event.incarnation) {
            self.messages.flush(text);
            let is_record = event.steps == Steps::None;
            self.rejoin(text, event.seq.saturating_sub(u64::from(is_record)));
        }
    }

    /// From here on the reader has only messages after a record.
    fn rejoin(&mut self, text: &mut EventText, seq: u64) {
        self.messages.join_at(seq);
        text.set_joined_at(self.messages.joined_at());
    }

    fn write_notice(&mut self, text: &mut EventText, item: &FeedItem) {
        self.messages.flush(text);
        let cursor = self.subscription.cursor();
        let seq = session_place(cursor.as_ref()).map_or(0, |(_, seq)| seq);
        let cursor = cursor.as_ref();
        match item {
            FeedItem::Event(_) => {}
            FeedItem::Gap(reason) => {
                self.app.metrics.gaps.add(1);
                self.rejoin(text, seq);
                text.notice("gap", cursor, &json!({ "reason": reason.name() }));
            }
            FeedItem::Session(snapshot) => {
                self.rejoin(text, seq);
                text.notice("snapshot", cursor, snapshot);
            }
            FeedItem::Sessions(metas) => {
                text.notice("sessions", cursor, &json!({ "sessions": metas }));
            }
            FeedItem::Live => text.notice("live", cursor, &json!({})),
        }
    }
}
