//! Sessions and entries as resources: `bough://sessions/ID` and `bough://sessions/ID/entries/ID`.

use std::collections::BTreeSet;

use bough_service::{percent_decode, percent_encode};
use serde_json::{Value, json};

use super::{CallRefused, Functions, SessionHost};
use crate::host::Changes;
use crate::limits::{CHANGES_PAGE, CHANGES_WAIT, RESOURCE_MESSAGES, RESOURCES_PAGE};

const BEGIN: &str = "bough://sessions/";
const ENTRIES: &str = "entries";
const JSON: &str = "application/json";

/// What an address is of.
#[derive(Debug, PartialEq, Eq)]
enum ResourceUri {
    Session(String),
    Entry(String, String),
}

impl ResourceUri {
    fn parse(uri: &str) -> Option<Self> {
        let parts: Vec<String> =
            uri.strip_prefix(BEGIN)?.split('/').map(percent_decode).collect::<Option<_>>()?;
        match parts.as_slice() {
            [session] if !session.is_empty() => Some(Self::Session(session.clone())),
            [session, entries, entry]
                if entries == ENTRIES && !session.is_empty() && !entry.is_empty() =>
            {
                Some(Self::Entry(session.clone(), entry.clone()))
            }
            _ => None,
        }
    }
}

/// The address of a session.
fn uri_of(session: &str) -> String {
    format!("{BEGIN}{}", percent_encode(session))
}

pub(super) fn templates() -> Vec<Value> {
    vec![
        json!({
            "uriTemplate": format!("{BEGIN}{{session_id}}"),
            "name": "session",
            "title": "Session",
            "description": "A session with its newest messages, the oldest of them first.",
            "mimeType": JSON,
        }),
        json!({
            "uriTemplate": format!("{BEGIN}{{session_id}}/{ENTRIES}/{{entry_id}}"),
            "name": "entry",
            "title": "Entry",
            "description": "One entry of a session, whatever branch it is on.",
            "mimeType": JSON,
        }),
    ]
}

impl<F: Functions> SessionHost<F> {
    pub(super) async fn list_resources(&self, cursor: Option<&str>) -> Result<Value, CallRefused> {
        let request = json!({ "limit": RESOURCES_PAGE, "cursor": cursor });
        let page = self.call("session::sessions", request).await?;
        let sessions = page.get("sessions").and_then(Value::as_array);
        let resources: Vec<Value> = sessions.into_iter().flatten().map(resource).collect();
        let mut answer = json!({ "resources": resources });
        if let (Some(next), Some(fields)) = (page.get("next_cursor"), answer.as_object_mut()) {
            fields.insert("nextCursor".to_owned(), next.clone());
        }
        Ok(answer)
    }

    pub(super) async fn read_resource(&self, uri: &str) -> Result<Option<Value>, CallRefused> {
        let content = match ResourceUri::parse(uri) {
            None => return Ok(None),
            Some(ResourceUri::Session(session)) => self.read_session(&session).await?,
            Some(ResourceUri::Entry(session, entry)) => {
                let request = json!({ "session_id": session, "entry_id": entry });
                self.call("session::entry", request).await?
            }
        };
        if content.is_null() {
            return Ok(None);
        }
        Ok(Some(json!({ "uri": uri, "mimeType": JSON, "text": content.to_string() })))
    }

    async fn read_session(&self, session: &str) -> Result<Value, CallRefused> {
        let described = self.call("session::describe", json!({ "session_id": session })).await?;
        if described.is_null() {
            return Ok(Value::Null);
        }
        let request = json!({ "session_id": session, "limit": RESOURCE_MESSAGES });
        let mut page = self.bounded_page("session::path-tail", request).await?;
        let messages = page.get_mut("messages").map(Value::take);
        let Some(Value::Array(mut messages)) = messages else { return Ok(described) };
        messages.reverse();
        // Where `read_latest_messages` goes on to what came before.
        let earlier = page.get("next_cursor").cloned();
        Ok(json!({ "session": described, "messages": messages, "earlier_cursor": earlier }))
    }

    pub(super) async fn has_resource(&self, uri: &str) -> Result<Option<()>, CallRefused> {
        let found = match ResourceUri::parse(uri) {
            None => return Ok(None),
            Some(ResourceUri::Session(session)) => {
                self.call("session::describe", json!({ "session_id": session })).await?
            }
            // An entry changes only while it streams; its session says so.
            Some(ResourceUri::Entry(..)) => return Ok(None),
        };
        Ok((!found.is_null()).then_some(()))
    }

    pub(super) async fn look_for_changes(
        &self,
        after: Option<&str>,
    ) -> Result<Changes, CallRefused> {
        let wait = if after.is_some() { CHANGES_WAIT.as_millis() } else { 0 };
        let wait = u64::try_from(wait).unwrap_or_default();
        let request = json!({ "after": after, "wait_ms": wait, "limit": CHANGES_PAGE });
        let page = self.call("session::watch", request).await?;
        let events = page.get("events").and_then(Value::as_array);
        let mut changes = Changes {
            next: page.get("next").and_then(Value::as_str).unwrap_or_default().to_owned(),
            list_changed: false,
            updated: BTreeSet::new(),
            gap: page.get("gap") == Some(&Value::Bool(true)),
        };
        for event in events.into_iter().flatten() {
            let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
            changes.list_changed |= matches!(kind, "session::created" | "session::deleted");
            let session = event.pointer("/payload/session_id").and_then(Value::as_str);
            changes.updated.extend(session.map(uri_of));
        }
        Ok(changes)
    }
}

/// A session as clients list it.
fn resource(session: &Value) -> Value {
    let text = |name: &str| session.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, title) = (text("session_id"), text("title"));
    let mut resource = json!({
        "uri": uri_of(id),
        "name": id,
        "title": if title.is_empty() { id } else { title },
        "mimeType": JSON,
    });
    let description = text("description");
    if let (false, Some(fields)) = (description.is_empty(), resource.as_object_mut()) {
        fields.insert("description".to_owned(), description.into());
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for id in ["a", "a/b ü", "100%", "..", "entries"] {
            assert_eq!(
                ResourceUri::parse(&uri_of(id)),
                Some(ResourceUri::Session(id.to_owned())),
                "{id}"
            );
        }
        let entry = ResourceUri::Entry("s".to_owned(), "e/1".to_owned());
        assert_eq!(ResourceUri::parse("bough://sessions/s/entries/e%2F1"), Some(entry));
    }

    #[test]
    fn other_addresses_are_of_nothing() {
        for uri in [
            "",
            "bough://sessions/",
            "bough://sessions/a/b",
            "file:///etc/passwd",
            "bough://sessions/a/entries/",
            "bough://sessions/%G0",
            "bough://sessions/%F",
            "bough://sessions/%FF",
        ] {
            assert_eq!(ResourceUri::parse(uri), None, "{uri}");
        }
    }
}
