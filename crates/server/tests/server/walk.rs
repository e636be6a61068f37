//! Calls every function of the table as one tenant on the data of another. Functions that are added later are included.

use bough_service::{Function, Method, functions};
use serde_json::{Map, Value, json};

use crate::client::{Client, Worker};

/// The session of another tenant.
pub(crate) struct Foreign<'a> {
    /// Its owner, to see that nothing changed.
    pub(crate) owner: &'a Client,
    pub(crate) session: &'a str,
    pub(crate) entry: &'a str,
    /// A text that is in everything that its owner wrote.
    pub(crate) mark: &'a str,
}

impl Foreign<'_> {
    /// Calls every function: by its route, by its name, and on the bus.
    pub(crate) async fn walk(&self, client: &Client, bus: &mut Worker) {
        let before = self.seen_by_owner().await;
        for function in functions() {
            let request = self.request(&function.request_schema());
            let body = Value::Object(request.clone());
            let by_name = format!("/v1/call/{}", function.id);
            let mut answers = vec![client.post(&by_name, body.clone()).await.text];
            answers.push(bus.call_frame(function.id, body).await.to_string());
            if function.route.is_some() {
                answers.push(self.by_route(client, function, request).await);
            }
            for answer in answers {
                assert!(!answer.contains(self.mark), "{}: {answer}", function.id);
            }
            assert_eq!(self.seen_by_owner().await, before, "{} changed it", function.id);
        }
    }

    async fn by_route(
        &self,
        client: &Client,
        function: &Function,
        mut request: Map<String, Value>,
    ) -> String {
        let route = function.route.unwrap();
        let mut path = route.path.to_owned();
        request.retain(|name, value| {
            let test = format!("{{{name}}}");
            let is_in_path = path.contains(&test);
            path = path.replace(&test, value.as_str().unwrap_or_default());
            !is_in_path
        });
        assert!(!path.contains('{'), "{path} has a part that the walk does not know");
        let (method, has_body) = match route.method {
            Method::Get => ("GET", false),
            Method::Delete => ("DELETE", false),
            Method::Post => ("POST", true),
            Method::Put => ("PUT", true),
            Method::Patch => ("PATCH", true),
        };
        if !has_body {
            let query: Vec<String> = request.iter().filter_map(query_pair).collect();
            path = format!("{path}?{}", query.join("&"));
        }
        let body = has_body.then(|| Value::Object(request).to_string());
        client.send(method, &path, body).await.text
    }

    /// A request that names the foreign session wherever it can, and is otherwise minimal for its schema.
    fn request(&self, schema: &Value) -> Map<String, Value> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let Some(properties) = schema["properties"].as_object() else {
            // One of several shapes: each of the bridge's own requests names a session and what to do.
            let fields = json!({"op": "state", "session_id": self.session});
            return fields.as_object().unwrap().clone();
        };
        let named = properties.iter().filter_map(|(name, shape)| {
            let value = self
                .known(name)
                .or_else(|| required.contains(&json!(name)).then(|| plain(shape)))?;
            Some((name.clone(), value))
        });
        named.collect()
    }

    fn known(&self, name: &str) -> Option<Value> {
        let message =
            json!({"role": "user", "content": [{"type": "text", "text": "x"}], "timestamp": 1});
        let meta = json!({"session_id": self.session, "title": "x", "description": "", "status": "idle",
                          "message_count": 0, "created_at": 1, "updated_at": 1});
        Some(match name {
            "session_id" => json!(self.session),
            "entry_id" | "parent_id" | "leaf" => json!(self.entry),
            "recording_id" => json!("r"),
            "query" => json!("mark-of"),
            "message" => message,
            "messages" => json!([message]),
            "content" => message["content"].clone(),
            "status" => json!("done"),
            "title" | "text" | "label" => json!("x"),
            "meta" => meta,
            "entry" => json!({"kind": "message", "id": "x", "parent_id": null, "timestamp": 1,
                              "revision": 0, "message": message}),
            "after" => json!("start"),
            _ => return None,
        })
    }

    async fn seen_by_owner(&self) -> [String; 3] {
        let session = format!("/v1/sessions/{}", self.session);
        let messages = format!("{session}/messages");
        let mut seen = [const { String::new() }; 3];
        for (text, path) in seen.iter_mut().zip([session.as_str(), &messages, "/v1/trash"]) {
            let answer = self.owner.get(path).await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            *text = answer.text;
        }
        seen
    }
}

/// The plainest value that a schema allows.
fn plain(shape: &Value) -> Value {
    match shape["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("string") => json!("x"),
        _ => json!({}),
    }
}

fn query_pair((name, value): (&String, &Value)) -> Option<String> {
    match value {
        Value::String(text) => Some(format!("{name}={}", text.replace(' ', "%20"))),
        Value::Bool(_) | Value::Number(_) => Some(format!("{name}={value}")),
        _ => None,
    }
}
