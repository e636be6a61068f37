//! Live events as server-sent events.
//!
//! Each event has a durable id: send it back as `Last-Event-ID` (browsers do) or `after=`, and the stream goes on behind it. The
//! event's name is one of our constants and its id one of our cursors; everything that callers wrote is inside the
//! JSON of its data.

use std::convert::Infallible;
use std::fmt::{Arguments, Write as _};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bough_service::api::WatchRequest;
use bough_service::{
    Delivery, EventFilter, EventKind, FeedItem, Request as CallRequest, ServiceError, StartAt,
    Subscription,
};
use bough_session::SessionId;
use bough_store::Position;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldKind, fields, from_query};
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
    known.push(Field { name: "snapshot".to_owned(), kind: FieldKind::Boolean, is_required: false });
    known
}

async fn open(app: App, session: Option<SessionId>, parts: Parts) -> Result<Response, Problem> {
    let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(Problem::internal)?;
    let query = parts.uri.query().unwrap_or_default();
    let asked = from_query(query, &stream_fields()).map_err(|error| {
        Problem::bad_request(error.to_string(), "See /openapi.json for the parameters.")
    })?;
    let (filter, start) = read_request(asked, session, &parts.headers)?;
    let limits = app.limits();
    let Some(place) = app.streams.take(limits.streams) else {
        app.metrics.limited.add(1);
        return Err(Problem::too_busy("streams"));
    };
    let subscription = app.service.subscribe(&caller.scope, filter, start).await?;
    let live = Live {
        heartbeat: ends(limits.heartbeat, HEARTBEAT),
        app,
        caller,
        subscription,
        is_first: true,
        _place: place,
    };
    Ok(live.into_response())
}

fn read_request(
    mut asked: Map<String, Value>,
    session: Option<SessionId>,
    headers: &HeaderMap,
) -> Result<(EventFilter, StartAt), Problem> {
    let wants_snapshot = asked.remove("snapshot") == Some(Value::Bool(true));
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
    let start = match after.as_deref() {
        Some("start") => StartAt::Start,
        Some(text) => StartAt::After(text.parse()?),
        None if wants_snapshot => StartAt::Snapshot,
        None => StartAt::Now,
    };
    Ok((filter, start))
}

/// A stream that somebody reads.
struct Live {
    app: App,
    caller: Caller,
    subscription: Subscription,
    heartbeat: Duration,
    is_first: bool,
    _place: Place,
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
        if self.is_first {
            self.is_first = false;
            return Some(format!("retry: 1000\n{}", self.place()));
        }
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
            Ok(Ok(item)) => Some(self.gather(&item)),
            Ok(Err(error)) => self.after_error(&error).await,
            Err(_) => Some(self.place()),
        }
    }

    /// An item, and the ones that are there already.
    fn gather(&mut self, first: &FeedItem) -> String {
        let mut piece = String::new();
        self.write(&mut piece, first);
        while piece.len() < STREAM_PIECE_BYTES {
            let Some(item) = self.subscription.next_at_hand() else { break };
            if piece.len() >= STREAM_PIECE_FEW_BYTES {
                // Many are waiting: it need not grow step by step.
                piece.reserve(STREAM_PIECE_ROOM.saturating_sub(piece.len()));
            }
            self.write(&mut piece, &item);
        }
        piece
    }

    /// Shows that the stream lives, and where it is: a filtered stream moves on without events.
    fn place(&self) -> String {
        match self.subscription.cursor() {
            Some(cursor) => format!(": ok\nid: {cursor}\n\n"),
            None => ": ok\n\n".to_owned(),
        }
    }

    async fn after_error(&self, error: &ServiceError) -> Option<String> {
        /// How long to wait before the store is asked again.
        const PAUSE: Duration = Duration::from_secs(1);
        tracing::warn!(code = error.code(), "a stream could not be read; it is tried again");
        if !error.is_transient() {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
        Some(": waiting for the store\n\n".to_owned())
    }

    fn write(&self, piece: &mut String, item: &FeedItem) {
        match item {
            FeedItem::Event(delivery) => {
                self.app.metrics.events_streamed.add(1);
                write_event(piece, delivery);
            }
            FeedItem::Gap(reason) => {
                self.app.metrics.gaps.add(1);
                self.write_notice(piece, "gap", &json!({ "reason": reason.name() }));
            }
            FeedItem::Session(snapshot) => {
                let data = serde_json::to_value(snapshot).unwrap_or_default();
                self.write_notice(piece, "snapshot", &data);
            }
            FeedItem::Sessions(metas) => {
                self.write_notice(piece, "sessions", &json!({ "sessions": metas }));
            }
            FeedItem::Live => self.write_notice(piece, "live", &json!({})),
        }
    }

    fn write_notice(&self, piece: &mut String, name: &'static str, data: &Value) {
        if let Some(cursor) = self.subscription.cursor() {
            write_text(piece, format_args!("id: {cursor}\n"));
        }
        write_text(piece, format_args!("event: {name}\ndata: {data}\n\n"));
    }
}

/// The event in the shape of `session::watch`, with its payload as it was made once for all subscribers.
fn write_event(piece: &mut String, delivery: &Delivery) {
    let (event, cursor) = (&delivery.event, &delivery.cursor);
    let (name, Position { seq, step }) = (event.kind().name(), event.position());
    piece.push_str("id: ");
    let start = piece.len();
    write_text(piece, format_args!("{cursor}"));
    let end = piece.len();
    write_text(piece, format_args!("\nevent: {name}\ndata: {{\"type\":\"{name}\",\"cursor\":\""));
    // The same text again: a sealed place does not look the same twice.
    piece.extend_from_within(start..end);
    write_text(piece, format_args!("\",\"seq\":{seq},\"step\":{step},\"payload\":"));
    piece.push_str(event.json());
    piece.push_str("}\n\n");
}

fn write_text(piece: &mut String, text: Arguments<'_>) {
    // A string takes whatever is written to it.
    let _always = piece.write_fmt(text);
}
