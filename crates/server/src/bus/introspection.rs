//! The engine's own functions: who is on the bus, and what is registered. Answers have the shapes of the engine's.

use bough_service::{
    Function, TriggerType, WORKER_DESCRIPTION, WORKER_NAME, WORKER_VERSION, functions,
};
use bough_session::RawJson;
use serde_json::{Map, Value, json};

use super::Bus;
use super::configuration;
use super::connection::Connection;
use super::namespace::{Bound, Namespace};
use super::wire;
use crate::limits::BUS_INFO_IDS_MAX;

/// The namespace of the engine that everything here is in. Our own namespaces keep tenants apart and have no name.
const DEFAULT_NAMESPACE: &str = "default";
/// Characters of a configuration that a list shows.
const SUMMARY_CHARS: usize = 80;

impl Bus {
    /// The answer of a function of the engine; `None` when it has no such function.
    pub(crate) fn call_engine(
        &self,
        connection: &Connection,
        function_id: &str,
        data: &RawJson,
    ) -> Option<Result<Value, Value>> {
        let name = function_id.strip_prefix("engine::")?;
        let data = data.value();
        if name == "workers::register" {
            connection.note(data);
            return Some(Ok(json!({ "success": true })));
        }
        self.in_namespace(connection, |namespace| {
            Catalogue { bus: self, connection, namespace }.answer(name, &Asked(&data))
        })
    }
}

/// The request of a caller.
struct Asked<'a>(&'a Value);

impl Asked<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn texts(&self, field: &str) -> Option<Vec<&str>> {
        let list = self.0.get(field).and_then(Value::as_array)?;
        Some(list.iter().filter_map(Value::as_str).collect())
    }

    /// Whether a row passes the filters that a list has: `search` over some fields, and others by equality.
    fn wants(&self, row: &Value, searched: &[&str], equal: &[(&str, &str)]) -> bool {
        let field = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let search = self.text("search").map(str::to_lowercase);
        let is_found = |search: &String| {
            searched.iter().any(|name| field(name).to_lowercase().contains(search.as_str()))
        };
        let is_equal =
            |(asked, name): &(&str, &str)| self.text(asked).is_none_or(|text| text == field(name));
        search.as_ref().is_none_or(is_found) && equal.iter().all(is_equal)
    }
}

/// What is registered in one namespace, for one caller.
struct Catalogue<'a> {
    bus: &'a Bus,
    connection: &'a Connection,
    namespace: &'a Namespace,
}

impl Catalogue<'_> {
    fn answer(&self, name: &str, asked: &Asked<'_>) -> Option<Result<Value, Value>> {
        Some(match name {
            "workers::list" => Ok(json!({ "workers": self.list_workers(asked) })),
            "workers::info" => self.worker_info(asked),
            "functions::list" => Ok(json!({ "functions": self.list_functions(asked) })),
            "functions::info" => self.function_info(asked),
            "triggers::list" => Ok(json!({ "triggers": self.list_types(asked) })),
            "triggers::info" => self.type_info(asked),
            "registered-triggers::list" => {
                Ok(json!({ "registered_triggers": self.list_triggers(asked) }))
            }
            "registered-triggers::info" => self.trigger_info(asked),
            _ => return None,
        })
    }

    fn own_functions(&self) -> impl Iterator<Item = &'static Function> {
        let (has_sessions, scope) = (self.bus.has_sessions(), &self.connection.caller.scope);
        functions().iter().filter(move |function| has_sessions && Bus::may_know(scope, function))
    }

    /// The functions of the configuration worker, if no worker hosts them.
    fn configuration_functions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let has_sessions = self.bus.has_sessions();
        let is_ours = move |id: &str| has_sessions && !self.namespace.functions.contains_key(id);
        configuration::FUNCTIONS.into_iter().filter(move |(id, _)| is_ours(id))
    }

    fn has_configuration_type(&self) -> bool {
        self.bus.has_sessions() && !self.namespace.types.contains_key(configuration::TYPE)
    }

    fn list_functions(&self, asked: &Asked<'_>) -> Vec<Value> {
        let row = |id: &str, worker: &str, description: &str| {
            json!({
                "function_id": id,
                "namespace": DEFAULT_NAMESPACE,
                "worker_name": worker,
                "description": description,
            })
        };
        let own = self.own_functions().map(|own| row(own.id, WORKER_NAME, own.description));
        let settings = self.configuration_functions();
        let own = own.chain(settings.map(|(id, about)| row(id, configuration::HOST, about)));
        let hosted = self.namespace.functions.iter().map(|(id, hosted)| {
            let mut row = Map::new();
            row.insert("function_id".to_owned(), json!(id));
            row.insert("namespace".to_owned(), json!(DEFAULT_NAMESPACE));
            row.insert("worker_name".to_owned(), json!(worker_name(&hosted.connection)));
            put(&mut row, "description", hosted.info.description.clone());
            put(&mut row, "metadata", hosted.info.metadata.clone());
            Value::Object(row)
        });
        let workers = asked.texts("workers");
        let wanted = |row: &Value| {
            let is_of = |workers: &Vec<&str>| {
                row.get("worker_name")
                    .and_then(Value::as_str)
                    .is_some_and(|name| workers.contains(&name))
            };
            has_prefix(row, "function_id", asked)
                && asked.wants(row, &["function_id", "description"], &[("worker", "worker_name")])
                && workers.as_ref().is_none_or(is_of)
        };
        own.chain(hosted).filter(wanted).collect()
    }

    fn function_info(&self, asked: &Asked<'_>) -> Result<Value, Value> {
        if let Some(ids) = asked.texts("function_ids") {
            let details = ids.into_iter().take(BUS_INFO_IDS_MAX).map(|id| {
                let missing = || json!({ "function_id": id, "error": "not_found" });
                self.function(id).unwrap_or_else(missing)
            });
            return Ok(json!({ "functions": details.collect::<Vec<_>>() }));
        }
        let id = asked.text("function_id").or_else(|| asked.text("id"));
        id.and_then(|id| self.function(id)).ok_or_else(|| not_found("function"))
    }

    fn function(&self, id: &str) -> Option<Value> {
        let mut row = Map::new();
        row.insert("function_id".to_owned(), json!(id));
        row.insert("namespace".to_owned(), json!(DEFAULT_NAMESPACE));
        if let Some(function) = self.own_functions().find(|function| function.id == id) {
            row.insert("worker_name".to_owned(), json!(WORKER_NAME));
            row.insert("description".to_owned(), json!(function.description));
            row.insert("request_schema".to_owned(), json!(function.request_schema()));
            row.insert("response_schema".to_owned(), json!(function.response_schema()));
        } else if let Some((_, about)) = self.configuration_functions().find(|(own, _)| *own == id)
        {
            row.insert("worker_name".to_owned(), json!(configuration::HOST));
            row.insert("description".to_owned(), json!(about));
        } else {
            let hosted = self.namespace.functions.get(id)?;
            row.insert("worker_name".to_owned(), json!(worker_name(&hosted.connection)));
            put(&mut row, "description", hosted.info.description.clone());
            put(&mut row, "request_schema", hosted.info.request_format.clone());
            put(&mut row, "response_schema", hosted.info.response_format.clone());
            put(&mut row, "metadata", hosted.info.metadata.clone());
        }
        let bound = self.namespace.triggers.values().filter(|bound| bound.frame.function_id == id);
        let bound = bound.map(|bound| {
            let frame = &bound.frame;
            json!({ "id": frame.id, "trigger_type": frame.trigger_type, "config": frame.config })
        });
        row.insert("registered_triggers".to_owned(), bound.collect());
        Some(Value::Object(row))
    }

    fn own_types(&self) -> impl Iterator<Item = TriggerType> {
        let has_sessions = self.bus.has_sessions();
        TriggerType::all().filter(move |_| has_sessions)
    }

    fn list_types(&self, asked: &Asked<'_>) -> Vec<Value> {
        let row = |id: &str, worker: &str, description: &Value| {
            json!({
                "id": id,
                "namespace": DEFAULT_NAMESPACE,
                "worker_name": worker,
                "description": description,
            })
        };
        let own =
            self.own_types().map(|kind| row(kind.name(), WORKER_NAME, &json!(kind.description())));
        let settings = self.has_configuration_type().then(|| {
            let about = json!(configuration::TYPE_DESCRIPTION);
            row(configuration::TYPE, configuration::HOST, &about)
        });
        let hosted = self.namespace.types.iter().map(|(id, hosted)| {
            let description = hosted.info.get("description").cloned().unwrap_or_else(|| json!(""));
            row(id, &worker_name(&hosted.connection), &description)
        });
        let wanted = |row: &Value| {
            has_prefix(row, "id", asked)
                && asked.wants(row, &["id", "description"], &[("worker", "worker_name")])
        };
        own.chain(settings).chain(hosted).filter(wanted).collect()
    }

    fn type_info(&self, asked: &Asked<'_>) -> Result<Value, Value> {
        let id = asked.text("id").or_else(|| asked.text("trigger_type"));
        id.and_then(|id| self.trigger_type(id)).ok_or_else(|| not_found("trigger type"))
    }

    fn trigger_type(&self, id: &str) -> Option<Value> {
        let mut row = Map::new();
        row.insert("id".to_owned(), json!(id));
        row.insert("namespace".to_owned(), json!(DEFAULT_NAMESPACE));
        if let Some(kind) = self.own_types().find(|kind| kind.name() == id) {
            row.insert("worker_name".to_owned(), json!(WORKER_NAME));
            row.insert("description".to_owned(), json!(kind.description()));
            row.insert("configuration_schema".to_owned(), kind.configuration_schema());
        } else if id == configuration::TYPE && self.has_configuration_type() {
            row.insert("worker_name".to_owned(), json!(configuration::HOST));
            row.insert("description".to_owned(), json!(configuration::TYPE_DESCRIPTION));
        } else {
            let hosted = self.namespace.types.get(id)?;
            let field =
                |name: &str| hosted.info.get(name).filter(|value| !value.is_null()).cloned();
            row.insert("worker_name".to_owned(), json!(worker_name(&hosted.connection)));
            let description = field("description").unwrap_or_else(|| json!(""));
            row.insert("description".to_owned(), description);
            put(&mut row, "configuration_schema", field("trigger_request_format"));
            put(&mut row, "request_schema", field("call_request_format"));
        }
        let bound = self.namespace.triggers.values();
        let count = bound.filter(|bound| bound.frame.trigger_type == id).count();
        row.insert("instance_count".to_owned(), json!(count));
        Some(Value::Object(row))
    }

    fn function_worker(&self, function_id: &str) -> String {
        match self.namespace.functions.get(function_id) {
            Some(hosted) => worker_name(&hosted.connection),
            None if self.own_functions().any(|own| own.id == function_id) => WORKER_NAME.to_owned(),
            None if self.configuration_functions().any(|(own, _)| own == function_id) => {
                configuration::HOST.to_owned()
            }
            None => String::new(),
        }
    }

    fn list_triggers(&self, asked: &Asked<'_>) -> Vec<Value> {
        let rows = self.namespace.triggers.values().map(|Bound { frame, .. }| {
            json!({
                "id": frame.id,
                "trigger_type": frame.trigger_type,
                "function_id": frame.function_id,
                "worker_name": self.function_worker(&frame.function_id),
                "config": frame.config,
                "config_summary": frame.config.to_string().chars().take(SUMMARY_CHARS).collect::<String>(),
            })
        });
        let equal = [
            ("trigger_type", "trigger_type"),
            ("function_id", "function_id"),
            ("worker", "worker_name"),
        ];
        let searched = ["id", "trigger_type", "function_id"];
        rows.filter(|row| asked.wants(row, &searched, &equal)).collect()
    }

    fn trigger_info(&self, asked: &Asked<'_>) -> Result<Value, Value> {
        let bound = asked.text("id").and_then(|id| self.namespace.triggers.get(id));
        let frame = &bound.ok_or_else(|| not_found("registered trigger"))?.frame;
        let mut row = Map::new();
        row.insert("id".to_owned(), json!(frame.id));
        row.insert("trigger_type".to_owned(), json!(frame.trigger_type));
        row.insert("function_id".to_owned(), json!(frame.function_id));
        row.insert("worker_name".to_owned(), json!(self.function_worker(&frame.function_id)));
        row.insert("config".to_owned(), frame.config.clone());
        put(&mut row, "metadata", frame.metadata.clone());
        row.insert("trigger".to_owned(), json!(self.trigger_type(&frame.trigger_type)));
        row.insert("function".to_owned(), json!(self.function(&frame.function_id)));
        Ok(Value::Object(row))
    }

    /// Every worker: this server, and those that are connected.
    fn workers(&self) -> Vec<Value> {
        let own = self.bus.has_sessions().then(|| {
            json!({
                "id": self.bus.name(),
                "name": WORKER_NAME,
                "description": WORKER_DESCRIPTION,
                "version": WORKER_VERSION,
                "namespace": DEFAULT_NAMESPACE,
                "runtime": "rust",
                "os": std::env::consts::OS,
                "status": "connected",
                "function_count": self.own_functions().count(),
                "connected_at_ms": self.bus.0.since_ms,
                "active_invocations": 0,
                "isolation": null,
                "ip_address": null,
            })
        });
        let mut connections: Vec<_> = self.namespace.connections.values().collect();
        connections.sort_by_key(|connection| connection.id);
        own.into_iter().chain(connections.into_iter().map(|other| self.worker(other))).collect()
    }

    fn worker(&self, connection: &Connection) -> Value {
        let info = connection.info();
        let field = |name: &str| info.get(name).cloned().unwrap_or_default();
        let hosted = self.namespace.functions.values();
        let count = hosted.filter(|hosted| hosted.connection.id == connection.id).count();
        json!({
            "id": connection.id.to_string(),
            "name": field("name"),
            "description": field("description"),
            "version": field("version"),
            "namespace": DEFAULT_NAMESPACE,
            "runtime": field("runtime"),
            "os": field("os"),
            "status": "connected",
            "function_count": count,
            "connected_at_ms": connection.connected_at_ms,
            "active_invocations": connection.waiting(),
            "isolation": field("isolation"),
            "ip_address": connection.remote,
        })
    }

    fn list_workers(&self, asked: &Asked<'_>) -> Vec<Value> {
        let equal = [("runtime", "runtime"), ("status", "status")];
        self.workers().into_iter().filter(|row| asked.wants(row, &["name"], &equal)).collect()
    }

    fn worker_info(&self, asked: &Asked<'_>) -> Result<Value, Value> {
        let is_named = |row: &Value, field: &str, name: Option<&str>| {
            name.is_some_and(|name| row.get(field).and_then(Value::as_str) == Some(name))
        };
        let found = self.workers().into_iter().find(|row| {
            is_named(row, "name", asked.text("name"))
                || is_named(row, "id", asked.text("id").or_else(|| asked.text("worker_id")))
        });
        let mut worker = found.ok_or_else(|| not_found("worker"))?;
        let name = worker.get("name").cloned().unwrap_or_default();
        if let Some(map) = worker.as_object_mut() {
            map.insert("internal".to_owned(), json!(name == WORKER_NAME));
        }
        let of = json!({ "worker": name });
        let asked = Asked(&of);
        Ok(json!({
            "worker": worker,
            "functions": self.list_functions(&asked),
            "trigger_types": self.list_types(&asked),
            "registered_triggers": self.list_triggers(&asked),
        }))
    }
}

fn worker_name(connection: &Connection) -> String {
    let info = connection.info();
    let name = info.get("name").and_then(Value::as_str).map(str::to_owned);
    name.unwrap_or_else(|| connection.id.to_string())
}

fn has_prefix(row: &Value, field: &str, asked: &Asked<'_>) -> bool {
    let text = row.get(field).and_then(Value::as_str).unwrap_or_default();
    asked.text("prefix").is_none_or(|prefix| text.starts_with(prefix))
}

fn put(row: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        row.insert(name.to_owned(), value);
    }
}

fn not_found(what: &str) -> Value {
    wire::error_body("NOT_FOUND", &format!("there is no {what} with that name"))
}
