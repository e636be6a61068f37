//! Reading the frames of a worker.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::*;
use crate::limits::BUS_NAME_BYTES_MAX;

/// Reads a frame.
pub(crate) fn read(text: &str) -> Result<Frame, BadFrame> {
    match serde_json::from_str::<Reader>(text) {
        Ok(reader) => reader.frame(),
        Err(error) => Err(shallow(text, error.to_string())),
    }
}

/// What can be read of a frame that is not JSON, or nested too deeply.
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

/// The members of a frame. What calls and answers carry stays as it was written.
#[derive(Default, Deserialize)]
struct Reader {
    data: Option<RawJson>,
    result: Option<RawJson>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Reader {
    fn frame(mut self) -> Result<Frame, BadFrame> {
        let Some(Value::String(kind)) = self.fields.remove("type") else {
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
                Frame::RegisterTriggerType { id: self.name("id")?, info: self.fields }
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
                result: self.result.take(),
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
        let mut part = |name: &str| match self.fields.remove(name) {
            Some(Value::Object(fields)) => Ok(Self { fields, ..Self::default() }),
            _ => Err(self.bad(&format!("`{name}` must be an object"))),
        };
        let (mut source, mut target) = (part("source")?, part("target")?);
        let is_asked = |value: &Value| value.as_object().is_none_or(|map| !map.is_empty());
        let on = source.optional("on").and_then(text_of);
        let refused = if source.optional("filters").as_ref().is_some_and(is_asked) {
            Some(("INVALID_FILTER", "filters are not evaluated here; filter with args"))
        } else if on.is_some_and(|word| word != "success" && word != "complete") {
            Some(("UNSUPPORTED", "events of sessions do not fail; observe them on success"))
        } else if ["max_fires", "expires_in_ms"].iter().any(|name| self.optional(name).is_some()) {
            Some(("UNSUPPORTED", "an observer of sessions has no end of its own; unobserve it"))
        } else if self.optional("max_in_flight").is_some() {
            Some((
                "UNSUPPORTED",
                "the calls of an observer are bounded by the server; leave it out",
            ))
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
        let action = match self.fields.get("action") {
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
        let data = self.data.take().unwrap_or_default();
        Ok(InvokeFrame { invocation_id, function_id, data, action, passed_on })
    }

    fn optional(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    fn name(&mut self, name: &str) -> Result<String, BadFrame> {
        match self.fields.get(name) {
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
            invocation_id: self.fields.get("invocation_id").filter(|id| !id.is_null()).cloned(),
            function_id: self.fields.get("function_id").and_then(Value::as_str).map(str::to_owned),
        }
    }
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}
