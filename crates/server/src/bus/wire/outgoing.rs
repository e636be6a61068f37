//! Frames for a worker.

use serde_json::{Value, json};

use super::*;

/// An error on the wire. Never with a stack trace: that is for the log.
pub(crate) fn error_body(code: &str, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// The answer to a call.
pub(crate) fn result(
    invocation_id: &Value,
    function_id: &str,
    answer: &Result<RawJson, Value>,
) -> String {
    let function_id = json!(function_id);
    let answer = match answer {
        Ok(result) => format!("\"result\":{result}"),
        Err(error) => format!("\"error\":{error}"),
    };
    format!(
        "{{\"type\":\"invocationresult\",\"invocation_id\":{invocation_id},\"function_id\":{function_id},{answer}}}"
    )
}

/// A call of a function that a worker hosts.
pub(crate) fn invoke(
    invocation_id: BusId,
    function_id: &str,
    data: &RawJson,
    caller: &str,
    passed_on: &Map<String, Value>,
) -> String {
    call_frame(invocation_id, function_id, data.get(), caller, passed_on)
}

fn call_frame(
    invocation_id: BusId,
    function_id: &str,
    data: &str,
    caller: &str,
    more: &Map<String, Value>,
) -> String {
    let (function_id, data) = (json!(function_id), with_caller(data, caller));
    let more: String =
        more.iter().map(|(name, value)| format!(",{}:{value}", json!(name))).collect();
    format!(
        "{{\"type\":\"invokefunction\",\"invocation_id\":\"{invocation_id}\",\"function_id\":{function_id},\
         \"data\":{data}{more}}}"
    )
}

/// Names the caller in data that is an object: last, so that it counts also where the data has such a member.
fn with_caller(data: &str, caller: &str) -> String {
    let members = data.strip_suffix('}').filter(|_| data.starts_with('{')).map(str::trim_end);
    let Some(members) = members else { return data.to_owned() };
    let comma = if members.ends_with('{') { "" } else { "," };
    format!("{members}{comma}\"_caller_worker_id\":{}}}", json!(caller))
}

/// The delivery of an event: the same call, with a payload that is JSON text already.
pub(crate) fn deliver(
    invocation_id: BusId,
    binding: &TriggerFrame,
    payload: &str,
    caller: &str,
) -> String {
    let mut more = Map::new();
    more.extend(binding.metadata.clone().map(|metadata| ("metadata".to_owned(), metadata)));
    if binding.observer.is_some() {
        let activation =
            json!({ "observer_id": binding.id, "activation_id": invocation_id.to_string() });
        more.insert("activation".to_owned(), activation);
    }
    call_frame(invocation_id, &binding.function_id, payload, caller, &more)
}

/// An event in the envelope of an observer.
pub(crate) fn envelope(observer: &TriggerFrame, id: BusId, payload: &str, now_ms: i64) -> String {
    let (observer_id, function) = (json!(observer.id), json!(observer.trigger_type));
    format!(
        "{{\"observer_id\":{observer_id},\"activation_id\":\"{id}\",\"function_id\":{function},\"namespace\":\"default\",\
         \"invocation_id\":\"{id}\",\"status\":\"success\",\"input\":{payload},\"started_at_ms\":{now_ms},\"duration_ms\":0.0}}"
    )
}

/// The answer to `observe`: active, pending while no worker hosts the target, or the error.
pub(crate) fn observe_result(id: &str, is_hosted: bool, error: Option<Value>) -> String {
    let mut frame = json!({ "type": "observeresult", "id": id, "state": "active" });
    let Some(map) = frame.as_object_mut() else { return String::new() };
    if let Some(error) = error {
        map.insert("state".to_owned(), json!("error"));
        map.insert("error".to_owned(), error);
    } else if !is_hosted {
        let reason = error_body("NO_TARGET", "no worker hosts the target yet");
        map.insert("state".to_owned(), json!("pending"));
        map.insert("reason".to_owned(), reason);
    }
    frame.to_string()
}

/// A worker hosts the target of an observer now.
pub(crate) fn observer_active(id: &str) -> String {
    json!({ "type": "observerstatechanged", "id": id, "state": "active", "fires": 0 }).to_string()
}

/// An observer ended because its worker asked for it.
pub(crate) fn observer_disposed(id: &str) -> String {
    let reason = error_body("UNOBSERVED", "the worker does not observe any more");
    json!({ "type": "observerstatechanged", "id": id, "state": "disposed", "reason": reason, "fires": 0 })
        .to_string()
}

/// A binding, as it is passed to the worker that owns its type.
pub(crate) fn register_trigger(trigger: &TriggerFrame) -> String {
    let mut frame = json!({
        "type": "registertrigger",
        "id": trigger.id,
        "trigger_type": trigger.trigger_type,
        "function_id": trigger.function_id,
        "config": trigger.config,
    });
    if let (Some(metadata), Some(map)) = (&trigger.metadata, frame.as_object_mut()) {
        map.insert("metadata".to_owned(), metadata.clone());
    }
    frame.to_string()
}

pub(crate) fn unregister_trigger(id: &str, trigger_type: &str) -> String {
    json!({ "type": "unregistertrigger", "id": id, "trigger_type": trigger_type }).to_string()
}

/// Notifies a subscriber that its binding was refused.
pub(crate) fn trigger_refused(trigger: &TriggerFrame, error: Value) -> String {
    json!({
        "type": "triggerregistrationresult",
        "id": trigger.id,
        "trigger_type": trigger.trigger_type,
        "function_id": trigger.function_id,
        "error": error,
    })
    .to_string()
}

pub(crate) fn worker_registered(worker_id: BusId, reattach_token: BusId) -> String {
    json!({
        "type": "workerregistered",
        "worker_id": worker_id.to_string(),
        "reattach_token": reattach_token.to_string(),
        "features": ["observe.v1"],
    })
    .to_string()
}

/// Notifies a worker that it cannot host a function.
pub(crate) fn function_refused(function_id: &str, owner: &str) -> String {
    json!({
        "type": "registrationrejected",
        "code": "FUNCTION_NAMESPACE_CONFLICT",
        "namespace": "default",
        "function_id": function_id,
        "owner_worker_id": owner,
    })
    .to_string()
}

pub(crate) const PONG: &str = r#"{"type":"pong"}"#;
