//! The tools and resources on a service in memory.

use std::sync::Arc;

use async_trait::async_trait;
use bough_service::Function;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::*;
use crate::limits::PAGE_BYTES_MAX;
use crate::protocol::{Wire, answer};
use crate::rpc::Request;

/// Answers each call from what a test says, and notes it.
#[derive(Clone, Default)]
struct Scripted {
    calls: Arc<Mutex<Vec<(&'static str, Value)>>>,
    is_read_only: bool,
}

#[async_trait]
impl Functions for Scripted {
    fn may_call(&self, function: &Function) -> bool {
        !self.is_read_only || function.is_read()
    }

    async fn call(
        &self,
        function: &'static Function,
        request: Value,
    ) -> Result<Value, CallRefused> {
        self.calls.lock().await.push((function.id, request.clone()));
        match function.id {
            "session::describe" => Ok(Value::Null),
            "session::path" => {
                let count = usize::try_from(request["limit"].as_u64().unwrap()).unwrap();
                let text = "x".repeat(PAGE_BYTES_MAX / 3);
                let item =
                    json!({ "entry_id": "e", "message": { "role": "user", "content": text } });
                Ok(json!({ "messages": vec![item; count] }))
            }
            "session::path-tail" => {
                let text = "x".repeat(PAGE_BYTES_MAX + 1);
                let item =
                    json!({ "entry_id": "e", "message": { "role": "user", "content": text } });
                Ok(json!({ "messages": [item], "next_cursor": "c" }))
            }
            _ => Err(CallRefused {
                code: "session/not_found".to_owned(),
                message: "session s does not exist".to_owned(),
            }),
        }
    }
}

async fn use_tool(name: &str, arguments: Value) -> (Value, Vec<(&'static str, Value)>) {
    let functions = Scripted::default();
    let host = SessionHost::new(functions.clone());
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let answer = host.call_tool(name, arguments, &Value::Null).await.unwrap();
    let calls = functions.calls.lock().await.clone();
    (answer, calls)
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

#[test]
fn every_tool_is_a_row_of_the_table_and_takes_fields_of_it() {
    for tool in tools::TOOLS {
        let row = function(tool.function).unwrap();
        let schema = tool.schema();
        let known = row.request_schema()["properties"].as_object().unwrap().clone();
        let shown = schema["properties"].as_object().unwrap();
        assert!(!shown.is_empty(), "{}", tool.name);
        for name in shown.keys() {
            assert!(known.contains_key(name), "{}: {name}", tool.name);
        }
        for needed in row.request_schema()["required"].as_array().into_iter().flatten() {
            assert!(shown.contains_key(needed.as_str().unwrap()), "{}: {needed}", tool.name);
        }
        let text = schema.to_string();
        for name in schema["definitions"].as_object().into_iter().flat_map(Map::keys) {
            assert!(text.contains(&format!("#/definitions/{name}\"")), "{}: {name}", tool.name);
        }
    }
}

#[test]
fn a_caller_who_may_only_read_is_shown_what_reads() {
    let host = SessionHost::new(Scripted { is_read_only: true, ..Scripted::default() });
    let names: Vec<String> =
        host.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert!(names.contains(&"search".to_owned()) && !names.contains(&"append_message".to_owned()));
    assert!(host.tools().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
}

#[tokio::test]
async fn wrong_arguments_are_explained_to_the_model() {
    let (answer, calls) = use_tool("search", json!({ "text": "rain" })).await;
    assert_eq!(answer["isError"], true);
    assert_eq!(
        text(&answer),
        r#"search has no argument "text". It takes query, limit, cursor, metadata."#
    );
    assert!(calls.is_empty(), "nothing was called");
    for limit in [json!(0), json!(101), json!("ten"), json!(-1)] {
        let (answer, _) = use_tool("search", json!({ "query": "rain", "limit": limit })).await;
        assert_eq!(text(&answer), "`limit` is not a number from 1 to 100.");
    }
    let (answer, _) = use_tool("fork_session", json!({ "session_id": "s" })).await;
    let expected =
        "session s does not exist. list_sessions and search say which sessions there are.";
    assert_eq!((text(&answer), &answer["isError"]), (expected, &json!(true)));
    let (answer, _) = use_tool("describe_session", json!({ "session_id": "s" })).await;
    assert_eq!(text(&answer), expected);
}

#[tokio::test]
async fn a_page_of_messages_is_bounded_by_its_bytes() {
    let (answer, calls) =
        use_tool("read_messages", json!({ "session_id": "s", "limit": 10 })).await;
    let limits: Vec<u64> =
        calls.iter().map(|(_, asked)| asked["limit"].as_u64().unwrap()).collect();
    assert_eq!(limits, [10, 5, 2]);
    assert_eq!(answer["structuredContent"]["messages"].as_array().unwrap().len(), 2);
    let (answer, _) = use_tool("read_latest_messages", json!({ "session_id": "s" })).await;
    let page = &answer["structuredContent"];
    assert!(text(&answer).len() < 1000);
    assert_eq!(page["messages"][0]["entry_id"], "e");
    assert_eq!(page["messages"][0]["left_out"]["role"], "user");
    assert_eq!(page["next_cursor"], "c");
}

#[tokio::test]
async fn an_unknown_tool_or_resource_is_an_error_of_the_protocol() {
    let host = SessionHost::new(Scripted::default());
    let ask = async |wire: Wire, method: &str, params: Value| {
        let Value::Object(params) = params else { panic!("an object") };
        let request = Request { id: json!(1), method: method.to_owned(), params };
        answer(&host, wire, &request).await.unwrap_err()
    };
    let shaken = Wire::Handshake { subscribes: true };
    let error = ask(shaken, "tools/call", json!({ "name": "rm" })).await;
    assert_eq!(error.code, RpcError::INVALID_PARAMS);
    assert!(error.message.contains("list_sessions"), "{}", error.message);
    let uri = json!({ "uri": "bough://sessions/none" });
    assert_eq!(ask(shaken, "resources/read", uri.clone()).await.code, RpcError::RESOURCE_NOT_FOUND);
    let error = ask(Wire::Stateless, "resources/read", uri.clone()).await;
    assert_eq!((error.code, error.data), (RpcError::INVALID_PARAMS, Some(uri)));
    assert_eq!(ask(shaken, "prompts/list", json!({})).await.code, RpcError::METHOD_NOT_FOUND);
    assert_eq!(ask(Wire::Stateless, "ping", json!({})).await.code, RpcError::METHOD_NOT_FOUND);
}
