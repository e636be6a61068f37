//! The parameters of a request for a stream of events.

use bough_service::api::WatchRequest;
use bough_service::{EventFilter, EventKind, Request as CallRequest, StartAt};
use bough_session::SessionId;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::event_text::JOINED;
use super::fields::{Field, FieldKind, fields, from_query};
use super::message_events::{Deltas, NAMES, Names};
use super::problem::Problem;

/// The parameters of a request for a stream.
pub(crate) struct StreamRequest {
    pub(crate) filter: EventFilter,
    pub(crate) start: StartAt,
    pub(crate) deltas: Deltas,
    pub(crate) names: Names,
    /// The record at which the reader joined the session, if the request has it.
    pub(crate) joined_at: Option<u64>,
    /// Whether the session may be created later.
    pub(crate) waits_for_session: bool,
}

impl StreamRequest {
    /// Reads a query and headers. `session` is the id in the path.
    pub(crate) fn read(
        query: &str,
        session: Option<SessionId>,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let mut known = stream_fields();
        known.retain(|field| session.is_none() || field.name != "session_id");
        let mut asked = from_query(query, &known)?;
        let in_query = asked.remove("session_id");
        let in_query = in_query.as_ref().and_then(Value::as_str).map(SessionId::from_stored);
        let session = session.or(in_query);
        let waits_for_session = read_create(asked.remove("create").as_ref(), session.as_ref())?;
        let wants_snapshot = asked.remove("snapshot") == Some(Value::Bool(true));
        let deltas = read_deltas(asked.remove("deltas").as_ref())?;
        let names = read_names(&mut asked);
        let asked: WatchRequest = CallRequest::from(Value::Object(asked)).parse()?;
        let (start, joined_at) = read_start(headers, asked.after, wants_snapshot)?;
        let kinds = asked.types.unwrap_or_else(usual_types);
        let mut filter = EventFilter::of(kinds).with_metadata(asked.metadata.unwrap_or_default());
        if let Some(session) = session {
            filter = filter.in_session(session);
        }
        if let Some(roles) = asked.roles {
            filter = filter.with_roles(roles);
        }
        Ok(Self { filter, start, deltas, names, joined_at, waits_for_session })
    }
}

/// The types of a reader that names none: those of session-manager, and what takes a message away. Without that a reader
/// would go on showing what was hidden.
fn usual_types() -> Vec<EventKind> {
    EventKind::PUBLIC.into_iter().chain([EventKind::MessageRemoved]).collect()
}

/// Where a stream begins, and where its reader joined the session, if the request has it.
fn read_start(
    headers: &HeaderMap,
    after: Option<String>,
    wants_snapshot: bool,
) -> Result<(StartAt, Option<u64>), Problem> {
    let last_id =
        headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_owned());
    // A browser that reconnects repeats the original address, and sends its progress in the header.
    let after = last_id.filter(|id| !id.is_empty()).or(after);
    match after.as_deref() {
        Some("start") => Ok((StartAt::Start, Some(0))),
        Some(text) => read_id(text),
        None if wants_snapshot => Ok((StartAt::Snapshot, None)),
        None => Ok((StartAt::Now, None)),
    }
}

/// Whether the reader waits for a session that does not exist yet.
fn read_create(asked: Option<&Value>, session: Option<&SessionId>) -> Result<bool, Problem> {
    match (asked.and_then(Value::as_str), session) {
        (None, _) => Ok(false),
        (Some("wait"), Some(_)) => Ok(true),
        _ => Err(Problem::bad_request(
            "`create` must be `wait`, beside the id of a session",
            "Say `create=wait` to follow a session that is made later; leave it out otherwise.",
        )),
    }
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

/// The event names of messages that were asked for; the types of the feed stay in the request.
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

/// An id of an event, or a cursor of `/v1/watch`: where to resume, and where the reader joined the session.
fn read_id(text: &str) -> Result<(StartAt, Option<u64>), Problem> {
    let (cursor, joined_at) = match text.split_once(JOINED) {
        Some((cursor, joined)) => (cursor, joined.parse().ok()),
        None => (text, None),
    };
    Ok((StartAt::After(cursor.parse()?), joined_at))
}

/// The parameters of a stream, for the reader and for the document.
pub(crate) fn stream_fields() -> Vec<Field> {
    let mut known = bough_service::function("session::watch").map(fields).unwrap_or_default();
    known.retain(|field| matches!(field.name.as_str(), "after" | "types" | "roles" | "metadata"));
    let more = [
        ("session_id", FieldKind::Text),
        ("create", FieldKind::Text),
        ("snapshot", FieldKind::Boolean),
        ("deltas", FieldKind::Text),
    ];
    for (name, kind) in more {
        known.push(Field { name: name.to_owned(), kind, is_required: false });
    }
    known
}
