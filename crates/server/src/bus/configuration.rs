//! `configuration::*`: settings of workers, stored for them and answered as the engine's configuration worker does.
//!
//! Our own settings are among them, under the name of session-manager, and are read-only: they come from the
//! configuration file. If a worker hosts these functions itself, it is called instead.

use std::sync::Arc;

use bough_service::{Right, WORKER_NAME};
use bough_session::{RawJson, hex};
use bough_store::shared_state::{
    Change, Document, Expected, Persistence, SharedState, SharedStateError,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::connection::Connection;
use super::wire;
use super::{Bus, namespace_key};
use crate::config::hide_secrets;
use crate::limits::{BUS_CONFIGURATION_ATTEMPTS, BUS_CONFIGURATION_ID_BYTES, BUS_CONFIGURATIONS};

/// The name of the host in lists.
pub(super) const HOST: &str = "configuration";
/// The type of trigger for a changed value.
pub(super) const TYPE: &str = "configuration";
pub(super) const TYPE_DESCRIPTION: &str =
    "Tells of a changed value; filter by configuration_id and event_types.";
const UPDATED: &str = "configuration:updated";

/// The functions, with what each does.
pub(super) const FUNCTIONS: [(&str, &str); 5] = [
    (
        "configuration::register",
        "Register the settings of a worker: their schema and a first value.",
    ),
    ("configuration::get", "Read the value under an id."),
    ("configuration::set", "Replace the value under an id."),
    ("configuration::list", "List the settings that are registered."),
    ("configuration::schema", "Read the schema under an id."),
];

type Answer = Result<Value, Value>;

impl Bus {
    /// The answer of a configuration function; `None` if it is not one of ours.
    pub(super) async fn call_configuration(
        &self,
        connection: &Connection,
        function_id: &str,
        data: &RawJson,
    ) -> Option<Answer> {
        let is_one = FUNCTIONS.iter().any(|(id, _)| *id == function_id);
        let is_hosted =
            || self.in_namespace(connection, |namespace| namespace.host(function_id)).is_some();
        if !is_one || !self.has_sessions() || is_hosted() {
            return None;
        }
        let settings = Settings { bus: self, connection, shared: self.shared() };
        Some(settings.answer(function_id, &data.value()).await)
    }

    /// Calls the functions that are bound to a changed value. Like the engine, this waits for no answer.
    fn notify_configuration(&self, connection: &Connection, id: &str, payload: Value) {
        let bound: Vec<String> = self.in_namespace(connection, |namespace| {
            let bound = namespace.triggers.values().map(|bound| &bound.frame);
            let wants =
                bound.filter(|frame| frame.trigger_type == TYPE && wants(&frame.config, id));
            wants.map(|frame| frame.function_id.clone()).collect()
        });
        let (namespace, payload) =
            (namespace_key(&connection.caller.scope), RawJson::from(payload));
        for function_id in bound {
            let Some(host) = self.host(&namespace, &function_id) else { continue };
            let (call, name) = (self.fresh_id(), self.name());
            host.notify(wire::invoke(call, &function_id, &payload, &name, &Map::new()));
        }
    }
}

/// Whether a binding asks for changes of an id.
fn wants(filter: &Value, id: &str) -> bool {
    let of_id = filter.get("configuration_id").and_then(Value::as_str);
    let events = filter.get("event_types").and_then(Value::as_array);
    of_id.is_none_or(|of| of == id)
        && events.is_none_or(|events| events.iter().any(|event| event == UPDATED))
}

/// The settings of one caller's namespace.
struct Settings<'a> {
    bus: &'a Bus,
    connection: &'a Connection,
    shared: &'a Arc<dyn SharedState>,
}

impl Settings<'_> {
    async fn answer(&self, function_id: &str, data: &Value) -> Answer {
        let is_write = matches!(function_id, "configuration::register" | "configuration::set");
        let right = if is_write { Right::Write } else { Right::Read };
        if !self.connection.caller.scope.has(right) {
            let message = format!("{function_id} needs the right {}", right.name());
            return Err(wire::error_body("FORBIDDEN", &message));
        }
        if function_id == "configuration::list" {
            return self.list().await;
        }
        let id = data.get("id").and_then(Value::as_str).unwrap_or_default();
        let is_long = id.len() > BUS_CONFIGURATION_ID_BYTES;
        if id.is_empty() || is_long || id.chars().any(char::is_control) {
            let message = format!(
                "`id` must be a text of 1 to {BUS_CONFIGURATION_ID_BYTES} bytes without control characters"
            );
            return Err(error("INVALID_ID", &message));
        }
        match function_id {
            "configuration::register" => self.register(id, data).await,
            "configuration::set" => self.set(id, data).await,
            "configuration::schema" => {
                let entry = self.entry(id).await?;
                Ok(json!({ "id": id, "schema": entry.get("schema") }))
            }
            _ => {
                let entry = self.entry(id).await?;
                Ok(json!({ "id": id, "value": entry.get("value") }))
            }
        }
    }

    async fn register(&self, id: &str, data: &Value) -> Answer {
        refuse_own(id)?;
        let Some(schema) = data.get("schema").filter(|schema| schema.is_object()) else {
            return Err(error("SCHEMA_INVALID", "`schema` must be a JSON Schema: an object"));
        };
        let changed = self.change(id, |stored| {
            let mut entry = Map::new();
            for name in ["name", "description"] {
                let given = data.get(name).filter(|given| given.is_string());
                entry.insert(name.to_owned(), given.cloned().unwrap_or_else(|| json!("")));
            }
            entry.insert("schema".to_owned(), schema.clone());
            // An initial value never replaces a stored one.
            let value = stored.and_then(|stored| stored.get("value")).filter(|v| !v.is_null());
            let value = value.or_else(|| data.get("initial_value"));
            entry.insert("value".to_owned(), value.cloned().unwrap_or_default());
            if let Some(metadata) = data.get("metadata") {
                entry.insert("metadata".to_owned(), metadata.clone());
            }
            Ok(Value::Object(entry))
        });
        let (_, entry) = changed.await?;
        Ok(entry)
    }

    async fn set(&self, id: &str, data: &Value) -> Answer {
        refuse_own(id)?;
        let value = data.get("value").cloned().unwrap_or_default();
        let changed = self.change(id, |stored| {
            let mut entry = stored.cloned().ok_or_else(|| not_registered(id))?;
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("value".to_owned(), value.clone());
            }
            Ok(entry)
        });
        let (old, mut event) = changed.await?;
        let old_value = old.and_then(|old| old.get("value").cloned()).unwrap_or_default();
        if let Some(event) = event.as_object_mut() {
            event.remove("value");
            event.insert("type".to_owned(), json!("configuration"));
            event.insert("event_type".to_owned(), json!(UPDATED));
            event.insert("old_value".to_owned(), old_value.clone());
            event.insert("new_value".to_owned(), value.clone());
        }
        self.bus.notify_configuration(self.connection, id, event);
        Ok(json!({ "old_value": old_value, "new_value": value }))
    }

    async fn list(&self) -> Answer {
        let stored = self.shared.list(&self.key(""), None, BUS_CONFIGURATIONS).await;
        let stored = stored.map_err(|error| unavailable(&error))?;
        let stored = stored.into_iter().filter_map(|(_, document)| {
            let id = document.value.get("id")?.as_str()?.to_owned();
            Some(summary(&id, &document.value))
        });
        let own = std::iter::once(summary(WORKER_NAME, &self.own()));
        let all: Vec<Value> = own.chain(stored).collect();
        Ok(json!({ "configurations": all }))
    }

    async fn entry(&self, id: &str) -> Answer {
        if id == WORKER_NAME {
            return Ok(self.own());
        }
        let stored = self.shared.get(&self.key(id)).await.map_err(|error| unavailable(&error))?;
        stored.map(|stored| stored.value).ok_or_else(|| not_registered(id))
    }

    /// Our own settings, without secrets.
    fn own(&self) -> Value {
        let offer = self.bus.app().own_settings();
        let mut value = offer.initial_value;
        hide_secrets(&mut value);
        json!({
            "name": "Session manager",
            "description": "Where sessions are stored, and how lists are paged.",
            "schema": offer.schema,
            "value": value,
        })
    }

    /// The key of an entry in the shared documents, which allows plain characters only.
    fn key(&self, id: &str) -> String {
        let namespace = Sha256::digest(namespace_key(&self.connection.caller.scope));
        format!("configuration/{}/{}", hex(&namespace), hex(id.as_bytes()))
    }

    /// Applies `make` to the stored value and writes the result, retrying when another process writes at the same time.
    /// Returns the entry before and after.
    async fn change(
        &self,
        id: &str,
        make: impl Fn(Option<&Value>) -> Answer,
    ) -> Result<(Option<Value>, Value), Value> {
        let key = self.key(id);
        for _ in 0..BUS_CONFIGURATION_ATTEMPTS {
            let stored = self.shared.get(&key).await.map_err(|error| unavailable(&error))?;
            let new = with_id(id, make(stored.as_ref().map(|stored| &stored.value))?);
            if stored.is_none() {
                self.refuse_one_too_many().await?;
            }
            let expected = stored
                .as_ref()
                .map_or(Expected::Absent, |stored| Expected::Version(stored.version));
            let change = Change { key: key.clone(), expected, value: Some(new.clone()) };
            match self.shared.apply(vec![change], Persistence::Synced).await {
                Ok(_) => return Ok((stored.map(|Document { value, .. }| value), new)),
                Err(SharedStateError::Conflict { .. }) => {}
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Err(error("ADAPTER_ERROR", "others change this entry at the same time; try again"))
    }

    async fn refuse_one_too_many(&self) -> Result<(), Value> {
        let stored = self.shared.list(&self.key(""), None, BUS_CONFIGURATIONS).await;
        if stored.map_err(|error| unavailable(&error))?.len() < BUS_CONFIGURATIONS {
            return Ok(());
        }
        let message = format!("at most {BUS_CONFIGURATIONS} configurations can be registered");
        Err(error("ADAPTER_ERROR", &message))
    }
}

fn refuse_own(id: &str) -> Result<(), Value> {
    if id != WORKER_NAME {
        return Ok(());
    }
    Err(error(
        "ADAPTER_ERROR",
        "the settings of this server are in its configuration file; change them there, it is read again by itself",
    ))
}

fn summary(id: &str, entry: &Value) -> Value {
    let mut row = with_id(id, entry.clone());
    if let Some(row) = row.as_object_mut() {
        row.remove("schema");
        row.remove("value");
    }
    row
}

fn with_id(id: &str, mut entry: Value) -> Value {
    if let Some(entry) = entry.as_object_mut() {
        entry.insert("id".to_owned(), json!(id));
    }
    entry
}

/// An error with its code in the message too, where clients look for it.
fn error(code: &str, message: &str) -> Value {
    wire::error_body(code, &format!("{code}: {message}"))
}

fn not_registered(id: &str) -> Value {
    let message = format!("nothing is registered as {id:?}; call configuration::register first");
    error("NOT_REGISTERED", &message)
}

fn unavailable(reason: &SharedStateError) -> Value {
    error("ADAPTER_ERROR", &reason.to_string())
}
