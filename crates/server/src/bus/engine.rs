//! The engine's own functions: who is on the bus, and what there is.

use bough_service::functions;
use serde_json::{Value, json};

use super::Bus;
use super::line::Line;
use super::room::{Bound, Hosted, Room};
use super::triggers::OwnType;
use super::wire;

impl Bus {
    /// The answer of a function of the engine; `None` when it has no such function.
    pub(crate) fn call_engine(
        &self,
        line: &Line,
        function_id: &str,
        data: &Value,
    ) -> Option<Result<Value, Value>> {
        let name = function_id.strip_prefix("engine::")?;
        let asked =
            |field: &str| data.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(match name {
            "workers::register" => {
                line.note(data.clone());
                Ok(json!({ "success": true }))
            }
            "workers::list" => Ok(json!({ "workers": self.in_room(line, |room| workers(room)) })),
            "workers::info" => {
                let workers = self.in_room(line, |room| workers(room));
                find(workers, "id", &[asked("id"), asked("worker_id")])
            }
            "functions::list" => Ok(json!({ "functions": self.functions(line) })),
            "functions::info" => {
                find(self.functions(line), "function_id", &[asked("function_id"), asked("id")])
            }
            "triggers::list" => {
                let bound = self.in_room(line, |room| triggers(room));
                Ok(json!({ "triggers": bound, "trigger_types": self.types(line) }))
            }
            "triggers::info" => find(self.types(line), "id", &[asked("id"), asked("trigger_type")]),
            "registered-triggers::list" => {
                let bound = self.in_room(line, |room| triggers(room));
                Ok(json!({ "registered_triggers": bound, "triggers": bound }))
            }
            "registered-triggers::info" => {
                find(self.in_room(line, |room| triggers(room)), "id", &[asked("id")])
            }
            _ => return None,
        })
    }

    fn functions(&self, line: &Line) -> Vec<Value> {
        let scope = &line.caller.scope;
        let own = functions()
            .iter()
            .filter(|function| self.has_sessions() && Self::may_know(scope, function));
        let own = own.map(|function| {
            json!({
                "function_id": function.id,
                "description": function.description,
                "request_format": function.request_schema(),
                "response_format": function.response_schema(),
                "metadata": null,
            })
        });
        let hosted: Vec<Value> =
            self.in_room(line, |room| room.functions.iter().map(hosted_function).collect());
        own.chain(hosted).collect()
    }

    fn types(&self, line: &Line) -> Vec<Value> {
        let own = OwnType::all().filter(|_| self.has_sessions());
        let own = own.map(|(id, description)| json!({ "id": id, "description": description }));
        let hosted: Vec<Value> = self.in_room(line, |room| {
            let types = room.types.iter().map(|(id, hosted)| {
                let mut info = hosted.info.clone();
                info.insert("id".to_owned(), json!(id));
                Value::Object(info)
            });
            types.collect()
        });
        own.chain(hosted).collect()
    }
}

fn hosted_function((id, hosted): (&String, &Hosted)) -> Value {
    json!({
        "function_id": id,
        "description": hosted.info.description,
        "request_format": hosted.info.request_format,
        "response_format": hosted.info.response_format,
        "metadata": hosted.info.metadata,
    })
}

fn triggers(room: &Room) -> Vec<Value> {
    room.triggers.values().map(bound_trigger).collect()
}

fn bound_trigger(bound: &Bound) -> Value {
    let frame = &bound.frame;
    json!({
        "id": frame.id,
        "trigger_type": frame.trigger_type,
        "function_id": frame.function_id,
        "config": frame.config,
        "metadata": frame.metadata,
    })
}

fn workers(room: &Room) -> Vec<Value> {
    let mut lines: Vec<_> = room.lines.values().collect();
    lines.sort_by_key(|line| line.id);
    lines.into_iter().map(|line| worker(room, line)).collect()
}

fn worker(room: &Room, line: &Line) -> Value {
    let info = line.info();
    let functions: Vec<&String> = room
        .functions
        .iter()
        .filter(|(_, hosted)| hosted.line.id == line.id)
        .map(|(id, _)| id)
        .collect();
    let said = |name: &str| info.get(name).cloned().unwrap_or_default();
    json!({
        "id": line.id.to_string(),
        "name": said("name"),
        "runtime": said("runtime"),
        "version": said("version"),
        "os": said("os"),
        "pid": said("pid"),
        "description": said("description"),
        "isolation": said("isolation"),
        "ip_address": line.remote,
        "status": "connected",
        "connected_at_ms": line.connected_at_ms,
        "function_count": functions.len(),
        "functions": functions,
        "active_invocations": line.waiting(),
    })
}

fn find(items: Vec<Value>, field: &str, names: &[String]) -> Result<Value, Value> {
    let is_named = |item: &Value| {
        let id = item.get(field).and_then(Value::as_str).unwrap_or_default();
        names.iter().any(|name| !name.is_empty() && name == id)
    };
    let found = items.into_iter().find(is_named);
    found.ok_or_else(|| wire::error_body("NOT_FOUND", "there is nothing with that name"))
}
