//! The real server with the tools and resources of a file at `/mcp`, for suites that want given names:
//! `mcp_fixture DATA_DIR LISTEN FILE`.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bough_mcp::limits::CHANGES_WAIT;
use bough_mcp::{Changes, Host, RpcError};
use bough_server::{ServeOptions, run, shutdown_on_signals};
use serde_json::{Map, Value, json};

/// What the file says: `tools` with an `answer` each, `resources` with their `contents`, and `templates`.
struct Fixture(Value);

impl Fixture {
    fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.get(kind).and_then(Value::as_array).into_iter().flatten()
    }

    /// What clients are shown of a thing: all but what it answers.
    fn shown(&self, kind: &str, hidden: &[&str]) -> Vec<Value> {
        let mut things: Vec<Value> = self.all(kind).cloned().collect();
        for fields in things.iter_mut().filter_map(Value::as_object_mut) {
            fields.retain(|name, _| !hidden.contains(&name.as_str()));
        }
        things
    }

    fn find(&self, kind: &str, key: &str, value: &str) -> Option<&Value> {
        self.all(kind).find(|thing| thing.get(key).and_then(Value::as_str) == Some(value))
    }
}

#[async_trait]
impl Host for Fixture {
    fn instructions(&self) -> Option<&str> {
        None
    }

    fn tools(&self) -> Vec<Value> {
        self.shown("tools", &["answer", "needs"])
    }

    async fn call_tool(
        &self,
        name: &str,
        _: Map<String, Value>,
        capabilities: &Value,
    ) -> Result<Value, RpcError> {
        let tool = self.find("tools", "name", name);
        let tool =
            tool.ok_or_else(|| RpcError::bad_params(format!("there is no tool {name:?}")))?;
        if let Some(needed) = tool.get("needs").and_then(Value::as_str)
            && capabilities.get(needed).is_none()
        {
            let text = format!("the client does not declare {needed}");
            let data = json!({ "requiredCapabilities": { needed: {} } });
            return Err(RpcError::new(RpcError::MISSING_CAPABILITY, text).with_data(data));
        }
        Ok(tool.get("answer").cloned().unwrap_or_default())
    }

    async fn resources(&self, _: Option<&str>) -> Result<Value, RpcError> {
        Ok(json!({ "resources": self.shown("resources", &["contents"]) }))
    }

    fn templates(&self) -> Vec<Value> {
        self.shown("templates", &[])
    }

    async fn read(&self, uri: &str) -> Result<Option<Value>, RpcError> {
        if let Some(id) =
            uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"))
        {
            let text =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            let text = text.to_string();
            return Ok(Some(json!({ "uri": uri, "mimeType": "application/json", "text": text })));
        }
        let found = self.find("resources", "uri", uri);
        Ok(found.and_then(|resource| resource.get("contents")).cloned())
    }

    async fn has(&self, uri: &str) -> Result<bool, RpcError> {
        Ok(self.find("resources", "uri", uri).is_some())
    }

    async fn changes(&self, after: Option<&str>) -> Result<Changes, RpcError> {
        if after.is_some() {
            tokio::time::sleep(CHANGES_WAIT).await;
        }
        Ok(Changes::default())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (data_dir, listen) = (words.next().map(PathBuf::from), words.next());
    #[expect(clippy::disallowed_methods, reason = "a program for tests")]
    let text = std::fs::read_to_string(words.next().unwrap_or_default())?;
    let options = ServeOptions {
        data_dir,
        listen,
        bus: Some("off".to_owned()),
        mcp_host: Some(Arc::new(Fixture(serde_json::from_str(&text)?))),
        ..ServeOptions::default()
    };
    run(options, shutdown_on_signals()).await?;
    Ok(())
}
