//! A request that listens: its response is a stream of notifications, until either side ends it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use bough_mcp::{Host, Request, Subscriptions};
use http::StatusCode;
use http::request::Parts;

use super::refused;
use crate::api::{Problem, streamed, take_stream};
use crate::app::{App, Permit};
use crate::config::ends;
use crate::guard::Caller;
use crate::limits::HEARTBEAT;
use crate::net::Activity;

/// A comment: readers pass over it.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b":\n\n");

pub(super) async fn open(
    app: &App,
    caller: Caller,
    host: Arc<dyn Host>,
    parts: &Parts,
    request: &Request,
) -> Result<Response, Problem> {
    let limits = app.limits();
    let permit = take_stream(app)?;
    let (wanted, acknowledged) = match Subscriptions::listen(&*host, request).await {
        Ok(begun) => begun,
        Err(error) => return Ok(refused(StatusCode::OK, &request.id, &error)),
    };
    let listening = Listening {
        app: app.clone(),
        caller,
        host,
        wanted,
        ready: VecDeque::from([event(&acknowledged)]),
        heartbeat: ends(limits.heartbeat, HEARTBEAT),
        has_ended: false,
        _connection: parts.extensions.get::<Arc<Activity>>().cloned(),
        _permit: permit,
    };
    Ok(listening.into_response())
}

/// A message as an event. JSON on one line has no line break, so it is one field.
fn event(text: &str) -> Bytes {
    format!("event: message\ndata: {text}\n\n").into()
}

struct Listening {
    app: App,
    caller: Caller,
    host: Arc<dyn Host>,
    wanted: Subscriptions,
    ready: VecDeque<Bytes>,
    heartbeat: Duration,
    has_ended: bool,
    _connection: Option<Arc<Activity>>,
    _permit: Permit,
}

impl Listening {
    fn into_response(self) -> Response {
        streamed("text/event-stream", self, |mut listening| async {
            let piece = listening.piece().await?;
            Some((piece, listening))
        })
    }

    /// The next piece of the body; `None` ends it.
    async fn piece(&mut self) -> Option<Bytes> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        if self.has_ended {
            return None;
        }
        let shutdown = self.app.shutdown.clone();
        let notifications = tokio::select! {
            biased;
            () = shutdown.begun() => {
                self.has_ended = true;
                return Some(event(&self.wanted.end_text()));
            }
            notifications = tokio::time::timeout(self.heartbeat, self.wanted.next(&*self.host)) => notifications,
        };
        // A caller whose token has ended receives nothing more.
        if !self.app.guard.may_stay(&self.caller) {
            return None;
        }
        let Ok(notifications) = notifications else { return Some(SIGN_OF_LIFE) };
        self.ready.extend(notifications.iter().map(|text| event(text)));
        self.ready.pop_front()
    }
}
