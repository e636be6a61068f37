//! From a function and its request to an HTTP request: the path's names are fields, the rest is the query or the body.

use bough_service::{Function, Method, Right, Route, percent_encode};
use serde_json::{Map, Value};

/// An HTTP request that is ready but for the server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sendable {
    pub(super) method: &'static str,
    /// Path and query.
    pub(super) target: String,
    pub(super) body: Option<String>,
}

/// The request for a function; `None` for functions that only instances call. Functions that have no route of their own, because
/// HTTP has others in their place, are called by their name.
pub(super) fn sendable(function: &Function, request: Value) -> Option<Sendable> {
    if function.right == Right::Bridge {
        return None;
    }
    let mut fields = match request {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    // A server refuses what its functions do not know; what only a data directory can answer is not asked.
    let schema = function.request_schema();
    let known = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
    fields.retain(|name, value| !value.is_null() && known(name));
    let Some(Route { method, path }) = function.route else {
        let target = format!("/v1/call/{}", percent_encode(function.id));
        let body = Some(Value::Object(fields).to_string());
        return Some(Sendable { method: Method::Post.name(), target, body });
    };
    let path = fill(path, &mut fields);
    Some(match method {
        Method::Get | Method::Delete => {
            let query = query(&fields);
            let mark = if query.is_empty() { "" } else { "?" };
            let target = format!("{path}{mark}{query}");
            Sendable { method: method.name(), target, body: None }
        }
        Method::Post | Method::Put | Method::Patch => {
            let body = Some(Value::Object(fields).to_string());
            Sendable { method: method.name(), target: path, body }
        }
    })
}

/// The path with its names replaced by the fields of the same name, which are taken out.
fn fill(path: &str, fields: &mut Map<String, Value>) -> String {
    let part = |part: &str| {
        let name = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match name {
            Some(name) => {
                let value = fields.remove(name).unwrap_or_default();
                percent_encode(value.as_str().unwrap_or_default())
            }
            None => part.to_owned(),
        }
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn query(fields: &Map<String, Value>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Array(items)
                if items.iter().all(|item| !item.is_object() && !item.is_array()) =>
            {
                pairs.extend(
                    items.iter().map(|item| format!("{name}={}", percent_encode(&plain(item)))),
                );
            }
            value => pairs.push(format!("{name}={}", percent_encode(&plain(value)))),
        }
    }
    pairs.join("&")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(function: &str, request: Value, method: &str, target: &str, body: Option<&str>) {
        let function = bough_service::function(function).unwrap();
        let made = sendable(function, request).unwrap();
        assert_eq!(
            (made.method, made.target.as_str(), made.body.as_deref()),
            (method, target, body)
        );
    }

    #[test]
    fn fields_go_into_the_path_the_query_or_the_body() {
        check(
            "session::usage",
            json!({"session_id": "a/b ü"}),
            "GET",
            "/v1/sessions/a%2Fb%20%C3%BC/usage",
            None,
        );
        check(
            "session::sessions",
            json!({"limit": 5, "cursor": null, "metadata": {"cwd": "/x"}, "unknown": true}),
            "GET",
            "/v1/sessions?limit=5&metadata=%7B%22cwd%22%3A%22%2Fx%22%7D",
            None,
        );
        check(
            "session::set-status",
            json!({"session_id": "s", "status": "done"}),
            "PUT",
            "/v1/sessions/s/status",
            Some(r#"{"status":"done"}"#),
        );
    }

    #[test]
    fn lists_repeat_their_parameter() {
        let fields = json!({"roles": ["user", "assistant"]});
        assert_eq!(query(fields.as_object().unwrap()), "roles=user&roles=assistant");
    }

    #[test]
    fn what_has_no_route_is_called_by_name() {
        check(
            "session::set-meta",
            json!({"session_id": "s", "title": "t"}),
            "POST",
            "/v1/call/session%3A%3Aset-meta",
            Some(r#"{"session_id":"s","title":"t"}"#),
        );
    }

    #[test]
    fn what_only_instances_call_has_no_route() {
        let function = bough_service::function("session::store::get-meta").unwrap();
        assert_eq!(sendable(function, json!({"session_id": "s"})), None);
    }
}
