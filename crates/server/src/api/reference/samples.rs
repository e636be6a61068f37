//! A call of each operation in curl, Python and TypeScript.

use http::uri::PathAndQuery;
use serde_json::Value;

use super::client_samples::{ClientCall, client_call};
use crate::api::body::NDJSON;

const BASE: &str = "http://127.0.0.1:7717";

/// One call.
pub(super) struct Sample<'a> {
    method: &'a str,
    url: String,
    content: Content<'a>,
    is_stream: bool,
    client: Option<&'static ClientCall>,
}

/// What a call sends.
enum Content<'a> {
    Nothing,
    Json(&'a Value),
    /// Lines of JSON.
    Lines(&'a str),
}

impl<'a> Sample<'a> {
    /// The call that the examples of an operation make.
    pub(super) fn of(path: &str, method: &'a str, operation: &'a Value) -> Self {
        let content = operation.pointer("/requestBody/content").unwrap_or(&Value::Null);
        Self {
            method,
            url: format!("{BASE}{}", target(path, &operation["parameters"])),
            content: match (
                content.pointer("/application~1json/example"),
                content.get(NDJSON).and_then(|media| media.get("example")),
            ) {
                (Some(example), _) => Content::Json(example),
                (None, Some(Value::String(lines))) => Content::Lines(lines),
                _ => Content::Nothing,
            },
            is_stream: operation.pointer("/responses/200/content/text~1event-stream").is_some(),
            client: operation["operationId"].as_str().and_then(client_call),
        }
    }

    pub(super) fn in_every_language(&self) -> [(&'static str, String); 3] {
        [("curl", self.curl()), ("Python", self.python()), ("TypeScript", self.typescript())]
    }

    fn curl(&self) -> String {
        let Self { method, url, .. } = self;
        let flag = if self.is_stream { " -N" } else { "" };
        match self.content {
            Content::Nothing if *method == "GET" => format!("curl{flag} '{url}'"),
            Content::Nothing => format!("curl -X {method} '{url}'"),
            Content::Json(body) => {
                let body = body.to_string().replace('\'', r"'\''");
                format!(
                    "curl -X {method} '{url}' \\\n  -H 'content-type: application/json' \\\n  -d '{body}'"
                )
            }
            Content::Lines(lines) => format!(
                "curl -X {method} '{url}' \\\n  -H 'content-type: {NDJSON}' \\\n  --data-binary @- <<'END'\n{lines}END"
            ),
        }
    }

    fn python(&self) -> String {
        if let Some(call) = self.client {
            return call.python();
        }
        let (method, url) = (self.method, &self.url);
        let more = match self.content {
            Content::Nothing => String::new(),
            Content::Json(body) => format!(",\n    json={},\n", python_literal(body)),
            Content::Lines(lines) => format!(
                ",\n    content=\"\"\"{lines}\"\"\",\n    headers={{\"content-type\": \"{NDJSON}\"}},\n"
            ),
        };
        format!(
            "import httpx\n\nanswer = httpx.request(\"{method}\", \"{url}\"{more})\nanswer.raise_for_status()\n\
             print(answer.text)"
        )
    }

    fn typescript(&self) -> String {
        if let Some(call) = self.client {
            return call.typescript();
        }
        let (method, url) = (self.method, &self.url);
        let options = match self.content {
            Content::Nothing if method == "GET" => String::new(),
            Content::Nothing => format!(", {{ method: \"{method}\" }}"),
            Content::Json(body) => format!(
                ", {{\n  method: \"{method}\",\n  headers: {{ \"content-type\": \"application/json\" }},\n  \
                 body: JSON.stringify({body}),\n}}"
            ),
            Content::Lines(lines) => format!(
                ", {{\n  method: \"{method}\",\n  headers: {{ \"content-type\": \"{NDJSON}\" }},\n  \
                 body: `{lines}`,\n}}"
            ),
        };
        format!(
            "const answer = await fetch(\"{url}\"{options});\nif (!answer.ok) throw new Error(await answer.text());\n\
             console.log(await answer.text());"
        )
    }
}

/// The path with its examples in place of the names, and what the query needs.
fn target(path: &str, parameters: &Value) -> String {
    let mut target = path.to_owned();
    let mut query = Vec::new();
    for parameter in parameters.as_array().into_iter().flatten() {
        let Some(example) = parameter.get("example") else { continue };
        let name = parameter["name"].as_str().unwrap_or_default();
        let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        let text: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        if parameter["in"] == "path" {
            target = target.replace(&format!("{{{name}}}"), &text);
        } else if parameter["in"] == "query" {
            query.push(format!("{name}={text}"));
        }
    }
    let mark = if query.is_empty() { "" } else { "?" };
    let target = format!("{target}{mark}{}", query.join("&"));
    debug_assert!(target.parse::<PathAndQuery>().is_ok(), "{target}");
    target
}

/// JSON as Python writes it.
fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python_literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let pair = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), python_literal(value))
            };
            format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_written_in_each_language() {
        let operation = json!({
            "parameters": [{"name": "session_id", "in": "path", "example": "a/b"}],
            "requestBody": {"content": {"application/json": {"example": {"title": "it's", "x": [true, null]}}}},
            "responses": {},
        });
        let sample = Sample::of("/v1/sessions/{session_id}", "PUT", &operation);
        let [(_, curl), (_, python), (_, typescript)] = sample.in_every_language();
        assert!(
            curl.starts_with("curl -X PUT 'http://127.0.0.1:7717/v1/sessions/a%2Fb'"),
            "{curl}"
        );
        assert!(curl.contains(r"it'\''s"), "{curl}");
        assert!(python.contains(r#"{"title": "it's", "x": [True, None]}"#), "{python}");
        assert!(
            typescript.contains(r#"JSON.stringify({"title":"it's","x":[true,null]})"#),
            "{typescript}"
        );
    }
}
