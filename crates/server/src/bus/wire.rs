//! The frames of the worker protocol: JSON objects, told apart by `type`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ids::BusId;
use crate::limits::BUS_NAME_BYTES_MAX;

/// A frame from a worker.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    RegisterFunction {
        id: String,
        info: FunctionInfo,
    },
    UnregisterFunction {
        id: String,
    },
    RegisterTriggerType {
        id: String,
        info: Map<String, Value>,
    },
    UnregisterTriggerType {
        id: String,
    },
    RegisterTrigger(TriggerFrame),
    UnregisterTrigger {
        id: String,
    },
    TriggerRegistrationResult {
        id: String,
        error: Option<Value>,
    },
    Observe(ObserveFrame),
    Unobserve {
        id: String,
    },
    Invoke(InvokeFrame),
    Result(ResultFrame),
    Reattach {
        previous: String,
        token: String,
    },
    Ping,
    /// A pong, a service, or something of a later version: nothing to do.
    Other,
}

/// What a worker says of a function that it hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FunctionInfo {
    pub(crate) description: Option<Value>,
    pub(crate) request_format: Option<Value>,
    pub(crate) response_format: Option<Value>,
    pub(crate) metadata: Option<Value>,
}

/// A binding of a function to a type of trigger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TriggerFrame {
    pub(crate) id: String,
    pub(crate) trigger_type: String,
    pub(crate) function_id: String,
    pub(crate) config: Value,
    pub(crate) metadata: Option<Value>,
    /// The engine's namespace that it is for; none is the default one.
    pub(crate) namespace: Option<String>,
    /// How an observer (SDK 0.26) takes its events; `None` for a trigger.
    pub(crate) observer: Option<Deliver>,
}

/// What an observer's target is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deliver {
    /// The event in an envelope that says where it is from.
    Envelope,
    /// The event alone.
    Payload,
}

/// An observer: a binding in the words of SDK 0.26.
#[derive(Debug, PartialEq)]
pub(crate) struct ObserveFrame {
    pub(crate) binding: TriggerFrame,
    /// Something that it asks for and that is not done here, and the code that says so.
    pub(crate) refused: Option<(&'static str, &'static str)>,
}

/// A call.
#[derive(Debug, PartialEq)]
pub(crate) struct InvokeFrame {
    /// What to answer with; none when no answer is wanted.
    pub(crate) invocation_id: Option<Value>,
    pub(crate) function_id: String,
    pub(crate) data: Value,
    pub(crate) action: Action,
    /// Fields that travel on to the handler as they are.
    pub(crate) passed_on: Map<String, Value>,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Wait for the answer.
    Call,
    /// No answer is wanted.
    Void,
    /// By way of a queue.
    Enqueue,
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(crate) struct ResultFrame {
    pub(crate) invocation_id: String,
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<Value>,
}

/// A frame that cannot be read. Where it has an id, its sender waits for an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct BadFrame {
    pub(crate) reason: String,
    pub(crate) invocation_id: Option<Value>,
    pub(crate) function_id: Option<String>,
}

/// Reads a frame.
pub(crate) fn read(text: &str) -> Result<Frame, BadFrame> {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(fields) => Reader(fields).frame(),
        Err(error) => Err(shallow(text, error.to_string())),
    }
}

/// What can be known of a frame that is not JSON, or nested too deep to be read whole.
fn shallow(text: &str, reason: String) -> BadFrame {
    #[derive(Deserialize, Default)]
    struct Head<'a> {
        #[serde(borrow, default)]
        invocation_id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        function_id: Option<&'a RawValue>,
    }
    let head: Head<'_> = serde_json::from_str(text).unwrap_or_default();
    let value = |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let function_id: Option<Value> = value(head.function_id);
    BadFrame {
        reason,
        invocation_id: value(head.invocation_id).filter(|id: &Value| !id.is_null()),
        function_id: function_id.and_then(|id| id.as_str().map(str::to_owned)),
    }
}

struct Reader(Map<String, Value>);

impl Reader {
    fn frame(mut self) -> Result<Frame, BadFrame> {
        let Some(Value::String(kind)) = self.0.remove("type") else {
            return Err(self.bad("the frame has no `type`"));
        };
        Ok(match kind.as_str() {
            "registerfunction" => Frame::RegisterFunction {
                id: self.name("id")?,
                info: FunctionInfo {
                    description: self.optional("description"),
                    request_format: self.optional("request_format"),
                    response_format: self.optional("response_format"),
                    metadata: self.optional("metadata"),
                },
            },
            "unregisterfunction" => Frame::UnregisterFunction { id: self.name("id")? },
            "registertriggertype" => {
                Frame::RegisterTriggerType { id: self.name("id")?, info: self.0 }
            }
            "unregistertriggertype" => Frame::UnregisterTriggerType { id: self.name("id")? },
            "registertrigger" => Frame::RegisterTrigger(TriggerFrame {
                id: self.name("id")?,
                trigger_type: self.name("trigger_type")?,
                function_id: self.name("function_id")?,
                config: self.optional("config").unwrap_or_default(),
                metadata: self.optional("metadata"),
                namespace: self.optional("namespace").and_then(text_of),
                observer: None,
            }),
            "observe" => Frame::Observe(self.observe()?),
            "unobserve" => Frame::Unobserve { id: self.name("id")? },
            "unregistertrigger" => Frame::UnregisterTrigger { id: self.name("id")? },
            "triggerregistrationresult" => Frame::TriggerRegistrationResult {
                id: self.name("id")?,
                error: self.optional("error"),
            },
            "invokefunction" => Frame::Invoke(self.invoke()?),
            "invocationresult" => Frame::Result(ResultFrame {
                invocation_id: self.name("invocation_id")?,
                result: self.optional("result"),
                error: self.optional("error"),
            }),
            "reattach" => Frame::Reattach {
                previous: self.name("previous_worker_id")?,
                token: self.name("reattach_token")?,
            },
            "ping" => Frame::Ping,
            _ => Frame::Other,
        })
    }

    fn observe(&mut self) -> Result<ObserveFrame, BadFrame> {
        let id = self.name("id")?;
        let mut part = |name: &str| match self.0.remove(name) {
            Some(Value::Object(fields)) => Ok(Self(fields)),
            _ => Err(self.bad(&format!("`{name}` must be an object"))),
        };
        let (mut source, mut target) = (part("source")?, part("target")?);
        let is_asked = |value: &Value| value.as_object().is_none_or(|map| !map.is_empty());
        let refused = if source.optional("filters").as_ref().is_some_and(is_asked) {
            Some(("INVALID_FILTER", "filters are not evaluated here; filter with args"))
        } else if ["max_fires", "expires_in_ms"].iter().any(|name| self.optional(name).is_some()) {
            Some(("UNSUPPORTED", "an observer of sessions has no end of its own; unobserve it"))
        } else {
            None
        };
        let deliver = source.optional("deliver").and_then(text_of);
        let is_payload = deliver.is_some_and(|word| word == "input" || word == "output");
        let binding = TriggerFrame {
            id,
            trigger_type: source.name("function_id")?,
            function_id: target.name("function_id")?,
            config: source.optional("args").unwrap_or_default(),
            metadata: self.optional("metadata"),
            namespace: target.optional("namespace").and_then(text_of),
            observer: Some(if is_payload { Deliver::Payload } else { Deliver::Envelope }),
        };
        Ok(ObserveFrame { binding, refused })
    }

    fn invoke(&mut self) -> Result<InvokeFrame, BadFrame> {
        let action = match self.0.get("action") {
            None | Some(Value::Null) => Action::Call,
            Some(action) => match action.get("type").and_then(Value::as_str) {
                Some("void") => Action::Void,
                Some("enqueue") => Action::Enqueue,
                _ => return Err(self.bad("the `action` is not known here")),
            },
        };
        let function_id = self.name("function_id")?;
        let invocation_id = self.optional("invocation_id");
        let mut passed_on = Map::new();
        for name in ["traceparent", "baggage", "metadata"] {
            if let Some(value) = self.optional(name) {
                passed_on.insert(name.to_owned(), value);
            }
        }
        let data = self.optional("data").unwrap_or_default();
        Ok(InvokeFrame { invocation_id, function_id, data, action, passed_on })
    }

    fn optional(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    fn name(&mut self, name: &str) -> Result<String, BadFrame> {
        match self.0.get(name) {
            Some(Value::String(text)) if !text.is_empty() && text.len() <= BUS_NAME_BYTES_MAX => {
                Ok(text.clone())
            }
            Some(Value::String(_)) => {
                Err(self.bad(&format!("`{name}` has 1 to {BUS_NAME_BYTES_MAX} bytes")))
            }
            _ => Err(self.bad(&format!("`{name}` must be text"))),
        }
    }

    fn bad(&self, reason: &str) -> BadFrame {
        BadFrame {
            reason: reason.to_owned(),
            invocation_id: self.0.get("invocation_id").filter(|id| !id.is_null()).cloned(),
            function_id: self.0.get("function_id").and_then(Value::as_str).map(str::to_owned),
        }
    }
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Why a call has no result, as it goes over the wire. Never with a stack trace: that is for the log.
pub(crate) fn error_body(code: &str, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

/// The answer to a call.
pub(crate) fn result(
    invocation_id: &Value,
    function_id: &str,
    answer: Result<Value, Value>,
) -> String {
    let (word, value) = match answer {
        Ok(value) => ("result", value),
        Err(error) => ("error", error),
    };
    json!({
        "type": "invocationresult",
        "invocation_id": invocation_id,
        "function_id": function_id,
        word: value,
    })
    .to_string()
}

/// A call of a function that a worker hosts.
pub(crate) fn invoke(
    invocation_id: BusId,
    function_id: &str,
    data: Value,
    caller: &str,
    mut passed_on: Map<String, Value>,
) -> String {
    let mut data = data;
    if let Some(map) = data.as_object_mut() {
        map.insert("_caller_worker_id".to_owned(), Value::String(caller.to_owned()));
    }
    passed_on.insert("type".to_owned(), Value::String("invokefunction".to_owned()));
    passed_on.insert("invocation_id".to_owned(), Value::String(invocation_id.to_string()));
    passed_on.insert("function_id".to_owned(), Value::String(function_id.to_owned()));
    passed_on.insert("data".to_owned(), data);
    Value::Object(passed_on).to_string()
}

/// The delivery of an event: the same call, with a payload that is JSON text already.
pub(crate) fn deliver(
    invocation_id: BusId,
    function_id: &Value,
    payload: &str,
    caller: &str,
    metadata: Option<&Value>,
) -> String {
    let inner = payload.strip_prefix('{').unwrap_or("}");
    let comma = if inner.starts_with('}') { "" } else { "," };
    let metadata = metadata.map(|value| format!(",\"metadata\":{value}")).unwrap_or_default();
    format!(
        "{{\"type\":\"invokefunction\",\"invocation_id\":\"{invocation_id}\",\"function_id\":{function_id},\
         \"data\":{{\"_caller_worker_id\":\"{caller}\"{comma}{inner}{metadata}}}"
    )
}

/// An event in the envelope of an observer.
pub(crate) fn envelope(observer: &TriggerFrame, id: BusId, payload: &str, now_ms: i64) -> String {
    let (observer_id, function) = (json!(observer.id), json!(observer.trigger_type));
    format!(
        "{{\"observer_id\":{observer_id},\"activation_id\":\"{id}\",\"function_id\":{function},\"namespace\":\"default\",\
         \"invocation_id\":\"{id}\",\"status\":\"success\",\"input\":{payload},\"started_at_ms\":{now_ms},\"duration_ms\":0.0}}"
    )
}

/// The answer to `observe`: active, or why not.
pub(crate) fn observe_result(id: &str, error: Option<Value>) -> String {
    let mut frame = json!({ "type": "observeresult", "id": id, "state": "active" });
    if let (Some(error), Some(map)) = (error, frame.as_object_mut()) {
        map.insert("state".to_owned(), json!("error"));
        map.insert("error".to_owned(), error);
    }
    frame.to_string()
}

/// An observer is gone because its worker wants it so.
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

/// Tells a subscriber that its binding was refused.
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

/// Tells a worker that it cannot host a function.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_call_is_read_as_each_sdk_writes_it() {
        let check = |text: &str, action: Action, data: Value| {
            let Ok(Frame::Invoke(invoke)) = read(text) else { panic!("{text}") };
            assert_eq!(
                (invoke.function_id.as_str(), invoke.action, invoke.data),
                ("f", action, data)
            );
        };
        check(
            r#"{"type":"invokefunction","invocation_id":"i","function_id":"f","data":{"a":1}}"#,
            Action::Call,
            json!({"a": 1}),
        );
        check(
            r#"{"function_id":"f","invocation_id":"i","type":"invokefunction"}"#,
            Action::Call,
            json!(null),
        );
        check(
            r#"{"type":"invokefunction","invocation_id":null,"function_id":"f","data":[],"action":{"type":"void"},"namespace":"default"}"#,
            Action::Void,
            json!([]),
        );
        check(
            r#"{"type":"invokefunction","function_id":"f","data":1,"action":{"type":"enqueue","queue":"q"}}"#,
            Action::Enqueue,
            json!(1),
        );
    }

    #[test]
    fn a_frame_that_cannot_be_read_keeps_its_id() {
        let check = |text: &str, id: Option<Value>| {
            let bad = read(text).unwrap_err();
            assert_eq!(bad.invocation_id, id, "{text}: {}", bad.reason);
        };
        check("", None);
        check("[]", None);
        check("{}", None);
        check(r#"{"invocation_id":"i"}"#, Some(json!("i")));
        check(r#"{"type":"invokefunction","invocation_id":"i"}"#, Some(json!("i")));
        check(r#"{"type":"invokefunction","invocation_id":"i","function_id":5}"#, Some(json!("i")));
        check(
            r#"{"type":"invokefunction","invocation_id":"i","function_id":""}"#,
            Some(json!("i")),
        );
        check(
            r#"{"type":"invokefunction","invocation_id":"i","function_id":"f","action":{"type":"jump"}}"#,
            Some(json!("i")),
        );
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let text = format!(
            r#"{{"type":"invokefunction","invocation_id":"i","function_id":"f","data":{deep}}}"#
        );
        check(&text, Some(json!("i")));
        assert_eq!(read(&text).unwrap_err().function_id.as_deref(), Some("f"));
    }

    #[test]
    fn what_is_not_known_is_passed_over() {
        for text in [
            r#"{"type":"localinvocationstats","window_ms":1}"#,
            r#"{"type":"pong"}"#,
            r#"{"type":"registerservice","id":"s"}"#,
        ] {
            assert_eq!(read(text), Ok(Frame::Other));
        }
        assert_eq!(read(r#"{"type":"ping"}"#), Ok(Frame::Ping));
    }

    #[test]
    fn a_worker_is_told_that_it_can_observe() {
        let hello = parsed(&worker_registered(BusId(1, 2), BusId(3, 4)));
        assert_eq!(hello["features"], json!(["observe.v1"]));
    }

    #[test]
    fn an_observer_is_a_binding() {
        let text = r#"{"type":"observe","id":"o","source":{"function_id":"session::created","args":{"metadata":{"a":1}},
                       "filters":{},"deliver":"input"},"target":{"function_id":"ui::on"}}"#;
        let Ok(Frame::Observe(ObserveFrame { binding, refused })) = read(text) else { panic!() };
        assert_eq!(
            (binding.trigger_type.as_str(), binding.function_id.as_str()),
            ("session::created", "ui::on")
        );
        assert_eq!(
            (binding.config, binding.observer),
            (json!({"metadata": {"a": 1}}), Some(Deliver::Payload))
        );
        assert_eq!(refused, None);
        let code = |more: &str| {
            let text = format!(
                r#"{{"type":"observe","id":"o","source":{{"function_id":"f"{more}}},"target":{{"function_id":"g"}},"max_fires":null}}"#
            );
            let Ok(Frame::Observe(frame)) = read(&text) else { panic!("{text}") };
            (frame.refused.map(|(code, _)| code), frame.binding.observer)
        };
        assert_eq!(
            code(r#","filters":{"input.x":1}"#),
            (Some("INVALID_FILTER"), Some(Deliver::Envelope))
        );
        assert!(read(r#"{"type":"observe","id":"o","source":"f","target":{}}"#).is_err());
    }

    #[test]
    fn a_delivery_is_a_call_with_the_payload_as_it_is() {
        let id = BusId(1, 2);
        let text =
            deliver(id, &json!("ui::on\"x"), r#"{"session_id":"s","text":"a\"b"}"#, "w", None);
        let expected = json!({
            "type": "invokefunction", "invocation_id": id.to_string(), "function_id": "ui::on\"x",
            "data": {"_caller_worker_id": "w", "session_id": "s", "text": "a\"b"},
        });
        assert_eq!(parsed(&text), expected);
        let text = deliver(id, &json!("f"), "{}", "w", Some(&json!({"k": 1})));
        assert_eq!(parsed(&text)["data"], json!({"_caller_worker_id": "w"}));
        assert_eq!(parsed(&text)["metadata"], json!({"k": 1}));
    }

    #[test]
    fn the_caller_is_named_in_objects_only() {
        let data = |data| parsed(&invoke(BusId(1, 2), "f", data, "w", Map::new()))["data"].clone();
        assert_eq!(data(json!({"a": 1})), json!({"a": 1, "_caller_worker_id": "w"}));
        assert_eq!(data(json!([1])), json!([1]));
    }
}
