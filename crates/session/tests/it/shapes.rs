//! The published JSON shapes, as the API and the files have them.

use bough_session::{AgentMessage, SessionEntry, SessionMeta};
use schemars::schema_for;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The text is read, and written back the same.
#[track_caller]
fn check<T: Serialize + DeserializeOwned>(text: &str) {
    let value: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
}

/// The text is read, and written back as `expected`.
#[track_caller]
fn check_as<T: Serialize + DeserializeOwned>(text: &str, expected: &str) {
    let value: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), expected);
}

#[test]
fn messages_have_their_fields_in_order() {
    check::<AgentMessage>(
        r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","mime":"image/png","data":"aGk="}],"timestamp":1}"#,
    );
    check::<AgentMessage>(
        r#"{"role":"assistant","content":[{"type":"thinking","text":"hm","signature":"s"},{"type":"function_call","id":"c","function_id":"f","arguments":{"a":1}}],"stop_reason":"function_call","native_stop_reason":"tool_use","error_message":"e","error_kind":"rate_limited","warnings":["w"],"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"cost_usd":0.5},"model":"m","provider":"p","timestamp":2}"#,
    );
    check::<AgentMessage>(
        r#"{"role":"function_result","function_call_id":"c","function_id":"f","content":[{"type":"function_result","function_call_id":"c","content":[],"is_error":true}],"details":{"x":1},"is_error":true,"timestamp":3}"#,
    );
    check::<AgentMessage>(
        r#"{"role":"custom","custom_type":"x","content":[],"display":"d","details":[1],"timestamp":4}"#,
    );
}

#[test]
fn absent_fields_are_left_out_or_take_their_default() {
    check::<AgentMessage>(
        r#"{"role":"assistant","content":[],"stop_reason":"end","model":"m","provider":"p","timestamp":2}"#,
    );
    check_as::<AgentMessage>(
        r#"{"role":"function_result","function_call_id":"c","function_id":"f","content":[],"timestamp":3}"#,
        r#"{"role":"function_result","function_call_id":"c","function_id":"f","content":[],"details":null,"is_error":false,"timestamp":3}"#,
    );
    check_as::<AgentMessage>(
        r#"{"role":"custom","custom_type":"x","content":[{"type":"function_call","id":"i","function_id":"f"}],"display":null,"details":null,"timestamp":4}"#,
        r#"{"role":"custom","custom_type":"x","content":[{"type":"function_call","id":"i","function_id":"f","arguments":null}],"timestamp":4}"#,
    );
}

#[test]
fn wrong_words_are_refused() {
    let refused = |text: &str| serde_json::from_str::<AgentMessage>(text).unwrap_err();
    refused(r#"{"role":"robot","content":[],"timestamp":1}"#);
    refused(r#"{"role":"user","content":[{"type":"video"}],"timestamp":1}"#);
    refused(r#"{"role":"user","content":[],"timestamp":1.5}"#);
    refused(r#"{"role":"user","content":"text","timestamp":1}"#);
    refused(
        r#"{"role":"assistant","content":[],"stop_reason":"halted","model":"m","provider":"p","timestamp":2}"#,
    );
}

#[test]
fn entries_and_metas_have_their_fields_in_order() {
    check::<SessionEntry>(
        r#"{"kind":"message","id":"e","parent_id":null,"timestamp":2,"revision":0,"origin":{"turn_id":"t"},"message":{"role":"user","content":[],"timestamp":1}}"#,
    );
    check::<SessionEntry>(
        r#"{"kind":"custom","id":"e","parent_id":"p","timestamp":3,"revision":1,"custom_type":"x","data":null}"#,
    );
    check_as::<SessionEntry>(
        r#"{"kind":"custom","id":"e","timestamp":3,"custom_type":"x"}"#,
        r#"{"kind":"custom","id":"e","parent_id":null,"timestamp":3,"revision":0,"custom_type":"x","data":null}"#,
    );
    // Members of the other kind are passed over, whatever they are: files of session-manager are read by this, too.
    check_as::<SessionEntry>(
        r#"{"kind":"custom","id":"e","timestamp":3,"custom_type":"x","message":"none"}"#,
        r#"{"kind":"custom","id":"e","parent_id":null,"timestamp":3,"revision":0,"custom_type":"x","data":null}"#,
    );
    check::<SessionMeta>(
        r#"{"session_id":"s","title":"t","description":"","status":"error","status_reason":"r","metadata":{"o":"u"},"forked_from":"f","created_at":1,"updated_at":2,"message_count":3}"#,
    );
    check::<SessionMeta>(
        r#"{"session_id":"s","title":"t","description":"","status":"idle","created_at":1,"updated_at":2,"message_count":3}"#,
    );
}

/// What is required, and of which type, of one variant or object of a schema.
fn required(schema: &Value) -> Vec<String> {
    let names = schema["required"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_schema_says_the_same() {
    let schema = json!(schema_for!(AgentMessage));
    let roles: Vec<_> = schema["oneOf"].as_array().unwrap().iter().map(required).collect();
    assert_eq!(
        roles,
        [
            vec!["content", "role", "timestamp"],
            vec!["content", "model", "provider", "role", "stop_reason", "timestamp"],
            vec!["content", "function_call_id", "function_id", "role", "timestamp"],
            vec!["content", "custom_type", "role", "timestamp"],
        ]
    );
    let result = &schema["oneOf"][2]["properties"];
    assert_eq!(result["role"], json!({"type": "string", "enum": ["function_result"]}));
    assert_eq!(result["is_error"]["default"], json!(false));
    assert_eq!(result["is_error"]["type"], json!("boolean"));
    assert_eq!(result["timestamp"]["format"], json!("int64"));

    let meta = json!(schema_for!(SessionMeta));
    assert_eq!(meta["properties"]["session_id"]["type"], json!("string"));
    assert_eq!(meta["properties"]["forked_from"]["type"], json!(["string", "null"]));
    assert_eq!(meta["properties"]["metadata"]["type"], json!(["object", "null"]));
    let entry = json!(schema_for!(SessionEntry));
    assert_eq!(required(&entry["oneOf"][0]), ["id", "kind", "message", "timestamp"]);
    assert_eq!(required(&entry["oneOf"][1]), ["custom_type", "id", "kind", "timestamp"]);
    assert_eq!(entry["oneOf"][0]["properties"]["parent_id"]["type"], json!(["string", "null"]));
}
