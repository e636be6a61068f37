use serde_json::json;

use super::*;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_call_is_read_as_each_sdk_writes_it() {
    let check = |text: &str, action: Action, data: Value| {
        let Ok(Frame::Invoke(invoke)) = read(text) else { panic!("{text}") };
        let data = RawJson::from(data);
        assert_eq!((invoke.function_id.as_str(), invoke.action, invoke.data), ("f", action, data));
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
    check(r#"{"type":"invokefunction","invocation_id":"i","function_id":""}"#, Some(json!("i")));
    check(
        r#"{"type":"invokefunction","invocation_id":"i","function_id":"f","action":{"type":"jump"}}"#,
        Some(json!("i")),
    );
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let text = format!(
        r#"{{"type":"invokefunction","invocation_id":"i","function_id":"f","metadata":{deep}}}"#
    );
    check(&text, Some(json!("i")));
    assert_eq!(read(&text).unwrap_err().function_id.as_deref(), Some("f"));
    let data = format!(r#"{{"type":"invokefunction","function_id":"f","data":{deep}}}"#);
    assert!(read(&data).is_ok(), "the function that it is for judges it");
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
fn a_worker_gets_its_capabilities() {
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
    let mut binding = TriggerFrame {
        id: "t".to_owned(),
        trigger_type: "session::created".to_owned(),
        function_id: "ui::on\"x".to_owned(),
        config: Value::Null,
        metadata: None,
        namespace: None,
        observer: None,
    };
    let text = deliver(id, &binding, r#"{"session_id":"s","text":"a\"b"}"#, "w");
    let expected = json!({
        "type": "invokefunction", "invocation_id": id.to_string(), "function_id": "ui::on\"x",
        "data": {"_caller_worker_id": "w", "session_id": "s", "text": "a\"b"},
    });
    assert_eq!(parsed(&text), expected);
    binding.metadata = Some(json!({"k": 1}));
    let text = deliver(id, &binding, "{}", "w");
    assert_eq!(parsed(&text)["data"], json!({"_caller_worker_id": "w"}));
    assert_eq!(parsed(&text)["metadata"], json!({"k": 1}));
}

#[test]
fn the_caller_is_named_in_objects_only() {
    let data = |data: &str| {
        let data = RawJson::parse(data).unwrap();
        let passed_on = json!({"metadata": {"k": 1}});
        let text = invoke(BusId(1, 2), "f", &data, "w", passed_on.as_object().unwrap());
        assert_eq!(parsed(&text)["metadata"], json!({"k": 1}));
        parsed(&text)["data"].clone()
    };
    assert_eq!(data(r#"{"a": 1 }"#), json!({"a": 1, "_caller_worker_id": "w"}));
    assert_eq!(data("{}"), json!({"_caller_worker_id": "w"}));
    assert_eq!(data("[1]"), json!([1]));
    let pretended = data(r#"{"_caller_worker_id":"another","a":"}"}"#);
    assert_eq!(pretended, json!({"_caller_worker_id": "w", "a": "}"}));
}

/// A number of a message that a value cannot hold would be another one afterwards.
#[test]
fn what_a_call_carries_stays_as_it_was_written() {
    let long = r#"{"n":123456789012345678901234567890,"f":1.10}"#;
    let text = format!(r#"{{"type":"invokefunction","function_id":"f","data":{long}}}"#);
    let Ok(Frame::Invoke(call)) = read(&text) else { panic!() };
    assert_eq!(call.data.get(), long);
    let text = format!(r#"{{"type":"invocationresult","invocation_id":"i","result":{long}}}"#);
    let Ok(Frame::Result(answer)) = read(&text) else { panic!() };
    let text = result(&json!("i"), "f", &Ok(answer.result.unwrap()));
    assert!(text.ends_with(&format!(r#""result":{long}}}"#)), "{text}");
}
