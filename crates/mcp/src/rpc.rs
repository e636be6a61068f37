//! JSON-RPC 2.0: messages in, answers out.

use serde_json::{Map, Value, json};

/// One message of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification {
        /// What it is about.
        method: String,
        /// The rest of it.
        params: Map<String, Value>,
    },
    /// An answer to a request of ours. We send none, so it is ignored.
    Answer,
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id for its answer: a string or a number.
    pub id: Value,
    /// What is asked for.
    pub method: String,
    /// The rest of it.
    pub params: Map<String, Value>,
}

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The error code of the protocol.
    pub code: i64,
    /// What happened, and the next step.
    pub message: String,
    /// Details for programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// The message is not JSON.
    pub const PARSE: i64 = -32700;
    /// The message is JSON and not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method does not take these parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something went wrong on this side.
    pub const INTERNAL: i64 = -32603;
    /// There is no such resource, with the code of the protocol of 2025.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Headers say another thing than the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client does not declare a capability that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The version of the protocol is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// An error of a kind.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds details for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// There is no such method.
    #[must_use]
    pub fn no_method(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method {method:?} here"))
    }

    /// A parameter is missing or wrong.
    pub fn bad_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }
}

impl Message {
    /// Reads a message. An error comes with the id for its answer, if there is one.
    pub fn parse(bytes: &[u8]) -> Result<Self, (Value, RpcError)> {
        let read: Result<Value, _> = serde_json::from_slice(bytes);
        let value = read.map_err(|error| {
            let text = format!("the message is not JSON: {error}");
            (Value::Null, RpcError::new(RpcError::PARSE, text))
        })?;
        let Value::Object(mut fields) = value else {
            return Err(invalid(
                &Value::Null,
                "a message is one JSON object; batches are not taken",
            ));
        };
        let id = fields.remove("id");
        let echo = id.clone().filter(is_id).unwrap_or_default();
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(invalid(&echo, r#"a message has the member "jsonrpc": "2.0""#));
        }
        let Some(method) = fields.remove("method") else {
            let is_answer = fields.contains_key("result") || fields.contains_key("error");
            return if is_answer {
                Ok(Self::Answer)
            } else {
                Err(invalid(&echo, "`method` is missing"))
            };
        };
        let Value::String(method) = method else {
            return Err(invalid(&echo, "`method` is not a text"));
        };
        let params = match fields.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err((echo, RpcError::bad_params("`params` is not an object"))),
        };
        match id {
            None => Ok(Self::Notification { method, params }),
            Some(id) if is_id(&id) => Ok(Self::Request(Request { id, method, params })),
            Some(_) => Err(invalid(&Value::Null, "`id` is neither a text nor a number")),
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

fn invalid(id: &Value, text: &str) -> (Value, RpcError) {
    (id.clone(), RpcError::new(RpcError::INVALID_REQUEST, text))
}

/// The answer to a request, on one line.
#[must_use]
pub fn result_text(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// The refusal of a request, on one line.
#[must_use]
pub fn error_text(id: &Value, error: &RpcError) -> String {
    let mut body = json!({ "code": error.code, "message": error.message });
    if let (Some(data), Some(fields)) = (&error.data, body.as_object_mut()) {
        fields.insert("data".to_owned(), data.clone());
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": body }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (Value, i64) {
        let (id, error) = Message::parse(text.as_bytes()).unwrap_err();
        (id, error.code)
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let read = |text: &str| Message::parse(text.as_bytes()).unwrap();
        let Message::Request(request) = read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#)
        else {
            panic!("a request");
        };
        assert_eq!((request.id, request.method.as_str()), (json!("a"), "ping"));
        let notification = read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(notification, Message::Notification { .. }));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Answer);
    }

    #[test]
    fn what_is_not_a_message_is_refused_with_its_id() {
        assert_eq!(refused("{"), (Value::Null, RpcError::PARSE));
        assert_eq!(refused("[]"), (Value::Null, RpcError::INVALID_REQUEST));
        assert_eq!(refused(r#"{"id":7,"method":"ping"}"#), (json!(7), RpcError::INVALID_REQUEST));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":7}"#), (json!(7), RpcError::INVALID_REQUEST));
        let null = r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#;
        assert_eq!(refused(null), (Value::Null, RpcError::INVALID_REQUEST));
        let list = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#;
        assert_eq!(refused(list), (json!(7), RpcError::INVALID_PARAMS));
    }
}
