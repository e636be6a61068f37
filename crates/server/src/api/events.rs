//! Live events as server-sent events.
//!
//! Each event has a durable id: send it back as `Last-Event-ID` (browsers do) or `after=`, and the stream goes on behind it.
//! What an id adds to a cursor of the feed is the record at which its reader joined the session: messages that are older it
//! may never have seen whole.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bough_service::api::WatchRequest;
use bough_service::{
    EventFilter, EventKind, FeedCursor, FeedEvent, FeedItem, Request as CallRequest, ServiceError,
    StartAt, Subscription,
};
use bough_session::{Incarnation, SessionId};
use bough_store::Steps;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::event_text::{EventText, JOINED, SIGN_OF_LIFE};
use super::fields::{Field, FieldKind, fields, from_query};
use super::message_events::{Deltas, MessageEvents, NAMES, Names};
use super::problem::Problem;
use crate::app::{App, Place};
use crate::config::ends;
use crate::guard::Caller;
use crate::limits::{HEARTBEAT, STREAM_PIECE_BYTES, STREAM_PIECE_FEW_BYTES, STREAM_PIECE_ROOM};

/// The events of one session.
pub(crate) async fn of_session(
    State(app): State<App>,
    Path(session_id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let session = SessionId::from_stored(session_id);
    open(app, Some(session), request.into_parts().0).await
}

/// The events of all sessions.
pub(crate) async fn of_all(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    open(app, None, request.into_parts().0).await
}

/// The parameters of a stream, for the reader and for the document.
pub(crate) fn stream_fields() -> Vec<Field> {
    let mut known = bough_service::function("session::watch").map(fields).unwrap_or_default();
    known.retain(|field| matches!(field.name.as_str(), "after" | "types" | "roles" | "metadata"));
    for (name, kind) in [("snapshot", FieldKind::Boolean), ("deltas", FieldKind::Text)] {
        known.push(Field { name: name.to_owned(), kind, is_required: false });
    }
    known
}

async fn open(app: App, session: Option<SessionId>, parts: Parts) -> Result<Response, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(Problem::internal)?;
    let query = parts.uri.query().unwrap_or_default();
    let asked = from_query(query, &stream_fields()).map_err(|error| {
        Problem::bad_request(error.to_string(), "See /openapi.json for the parameters.")
    })?;
    let of_all = session.is_none();
    let Asked { filter, start, deltas, names, joined_at } =
        read_request(asked, session, &parts.headers)?;
    let limits = app.limits();
    let Some(place) = app.streams.take(limits.streams) else {
        app.metrics.limited.add(1);
        return Err(Problem::too_busy("streams"));
    };
    let subscription = app.service.subscribe(&caller.scope, filter, start).await?;
    let here = session_place(subscription.cursor().as_ref());
    let joined_at = joined_at.or(here.map(|(_, seq)| seq)).unwrap_or(0);
    let live = Live {
        heartbeat: ends(limits.heartbeat, HEARTBEAT),
        app,
        caller,
        subscription,
        messages: MessageEvents::new(deltas, names, (!of_all).then_some(joined_at)),
        incarnation: here.map(|(incarnation, _)| incarnation),
        sent: Sent::Nothing,
        _place: place,
    };
    Ok(live.into_response())
}

/// What a request for a stream asks for.
struct Asked {
    filter: EventFilter,
    start: StartAt,
    deltas: Deltas,
    names: Names,
    /// The record at which the reader joined the session, when it says so.
    joined_at: Option<u64>,
}

fn read_request(
    mut asked: Map<String, Value>,
    session: Option<SessionId>,
    headers: &HeaderMap,
) -> Result<Asked, Problem> {
    let wants_snapshot = asked.remove("snapshot") == Some(Value::Bool(true));
    let deltas = read_deltas(asked.remove("deltas").as_ref())?;
    let names = read_names(&mut asked);
    let asked: WatchRequest = CallRequest::from(Value::Object(asked)).parse()?;
    let kinds = asked.types.unwrap_or_else(|| EventKind::PUBLIC.to_vec());
    let mut filter = EventFilter::of(kinds).with_metadata(asked.metadata.unwrap_or_default());
    if let Some(session) = session {
        filter = filter.in_session(session);
    }
    if let Some(roles) = asked.roles {
        filter = filter.with_roles(roles);
    }
    let last_id =
        headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_owned());
    // A browser that reconnects repeats the address as it was, and says in the header how far it came.
    let after = last_id.filter(|id| !id.is_empty()).or(asked.after);
    let (start, joined_at) = match after.as_deref() {
        Some("start") => (StartAt::Start, Some(0)),
        Some(text) => read_id(text)?,
        None if wants_snapshot => (StartAt::Snapshot, None),
        None => (StartAt::Now, None),
    };
    Ok(Asked { filter, start, deltas, names, joined_at })
}

fn read_deltas(asked: Option<&Value>) -> Result<Deltas, Problem> {
    match asked.and_then(Value::as_str) {
        None | Some("on") => Ok(Deltas::On),
        Some("off") => Ok(Deltas::Off),
        Some(_) => Err(Problem::bad_request(
            "`deltas` must be `on` or `off`",
            "Leave it out to get each step of a message, or say `deltas=off` for whole messages.",
        )),
    }
}

/// The types that were asked for by name; what is left in the request are types of the feed.
fn read_names(asked: &mut Map<String, Value>) -> Names {
    let Some(Value::Array(types)) = asked.get_mut("types") else { return None };
    let names = types.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    for name in types {
        let made = NAMES.iter().find(|(made, _)| name.as_str() == Some(*made));
        if let Some((_, kind)) = made {
            *name = json!(kind.name());
        }
    }
    Some(names)
}

/// An id of an event, or a cursor of `/v1/watch`: where to go on, and where the reader joined the session.
fn read_id(text: &str) -> Result<(StartAt, Option<u64>), Problem> {
    let (cursor, joined_at) = match text.split_once(JOINED) {
        Some((cursor, joined)) => (cursor, joined.parse().ok()),
        None => (text, None),
    };
    Ok((StartAt::After(cursor.parse()?), joined_at))
}

/// The incarnation of a session that a cursor is in, and the last record that it knows.
const fn session_place(cursor: Option<&FeedCursor>) -> Option<(Incarnation, u64)> {
    match cursor {
        Some(FeedCursor::Session(cursor)) => Some((cursor.incarnation, cursor.position.seq)),
        _ => None,
    }
}

/// A stream that somebody reads.
struct Live {
    app: App,
    caller: Caller,
    subscription: Subscription,
    messages: MessageEvents,
    /// The incarnation of the session that the reader is in.
    incarnation: Option<Incarnation>,
    heartbeat: Duration,
    sent: Sent,
    _place: Place,
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
        let pieces = futures_util::stream::unfold(self, |mut live| async move {
            let piece = live.piece().await?;
            Some((Ok::<_, Infallible>(Bytes::from(piece)), live))
        });
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (http::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        (headers, Body::from_stream(pieces)).into_response()
    }

    /// The next piece of the body; `None` ends it. What is not taken is not read: a reader that stalls costs its
    /// cursor.
    async fn piece(&mut self) -> Option<String> {
        if self.sent == Sent::Nothing {
            self.sent = Sent::NoEvent;
            return Some(SIGN_OF_LIFE.to_owned());
        }
        loop {
            let shutdown = self.app.shutdown.clone();
            let waited = tokio::select! {
                biased;
                () = shutdown.begun() => return None,
                waited = tokio::time::timeout(self.heartbeat, self.subscription.next()) => waited,
            };
            // Before anything is handed out: a busy stream has no pause in which else to look.
            if !self.app.guard.may_stay(&self.caller) {
                return None;
            }
            match waited {
                Ok(Ok(item)) => {
                    let piece = self.gather(&item);
                    // What the reader did not ask for leaves nothing to send.
                    if !piece.is_empty() {
                        self.sent = Sent::Events;
                        return Some(piece);
                    }
                }
                Ok(Err(error)) => return self.after_error(&error).await,
                Err(_) => return Some(SIGN_OF_LIFE.to_owned()),
            }
        }
    }

    /// An item, and the ones that are there already.
    fn gather(&mut self, first: &FeedItem) -> String {
        let mut text = EventText::new(self.messages.joined_at(), self.sent != Sent::Events);
        self.write(&mut text, first);
        while text.len() < STREAM_PIECE_BYTES {
            let Some(item) = self.subscription.next_at_hand() else { break };
            if text.len() >= STREAM_PIECE_FEW_BYTES {
                // Many are waiting: it need not grow step by step.
                text.reserve(STREAM_PIECE_ROOM);
            }
            self.write(&mut text, &item);
        }
        self.messages.flush(&mut text);
        text.into_string()
    }

    async fn after_error(&self, error: &ServiceError) -> Option<String> {
        /// How long to wait before the store is asked again.
        const PAUSE: Duration = Duration::from_secs(1);
        tracing::warn!(code = error.code(), "a stream could not be read; it is tried again");
        if !error.is_transient() {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
        Some(": waiting for the store\n".to_owned())
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

    /// In a session that begins, or begins anew, or comes to be visible, the reader joins with the first event that it gets.
    fn follow(&mut self, text: &mut EventText, event: &FeedEvent) {
        if self.incarnation.replace(event.incarnation) != Some(event.incarnation) {
            self.messages.flush(text);
            let is_record = event.steps == Steps::None;
            self.rejoin(text, event.seq.saturating_sub(u64::from(is_record)));
        }
    }

    /// From here on the reader has only what comes after a record.
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
