//! The steps. Values in them are JSON; `$name` stands for a value that an earlier step named.

use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use serde_json::{Value, json};

use crate::instance::{BusInstance, Instance};
use crate::matching::assert_has;
use crate::world::{MAIN, World, message};

/// The value of a step: at the end of its line, or below it.
fn value(world: &World, inline: &str, step: &Step) -> Value {
    world.json(step.docstring.as_deref().unwrap_or(inline))
}

#[given(regex = r#"^a session "([^"]*)"$"#)]
async fn session(world: &mut World, id: String) {
    world.must("session::ensure", json!({"session_id": id})).await;
}

#[given(regex = r#"^a session "([^"]*)" with (\{.*\})$"#)]
async fn session_with(world: &mut World, id: String, fields: String) {
    let mut request = world.json(&fields);
    request["session_id"] = json!(id);
    world.must("session::ensure", request).await;
}

/// A table of entries: `entry`, `role` (`-` for a custom entry) and `text`.
#[given(regex = r#"^the session "([^"]*)" has the entries$"#)]
async fn entries(world: &mut World, session: String, step: &Step) {
    let table = step.table.as_ref().expect("a table of entries");
    for row in table.rows.iter().skip(1) {
        let [entry, role, text] = row.as_slice() else { panic!("three columns, not {row:?}") };
        let mut request = json!({"session_id": session, "entry_id": entry});
        match role.as_str() {
            "-" => request["custom"] = json!({"custom_type": "note", "data": text}),
            role => request["message"] = message(role, text),
        }
        world.must("session::append", request).await;
    }
}

#[given(regex = r"^(\d+) sessions$")]
async fn sessions(world: &mut World, count: usize) {
    for number in 0..count {
        world.must("session::ensure", json!({"session_id": format!("s{number:04}")})).await;
    }
}

#[given(regex = r#"^a bridged instance "([^"]*)"$"#)]
async fn bridged_instance(world: &mut World, name: String) {
    let url = world.instance(MAIN).await.bus().url();
    let directory = tempfile::tempdir().unwrap();
    let config = format!("adapter: {{name: bridge, config: {{url: '{url}', timeout_ms: 20000}}}}");
    let bridge = BusInstance::start(directory, &config).await.unwrap();
    world.add_instance(&name, Instance::Bus(Box::new(bridge)));
}

#[given("the client connects again")]
#[when("the client connects again")]
async fn connects_again(world: &mut World) {
    world.instance(MAIN).await.connect_again().await;
}

#[when(regex = r#"^"([^"]*)" unbinds$"#)]
async fn unbinds(world: &mut World, handler: String) {
    world.instance(MAIN).await.unbind(&handler).await;
}

#[given(regex = r#"^"([^"]*)" is bound to "([^"]*)"$"#)]
#[when(regex = r#"^"([^"]*)" is bound to "([^"]*)"$"#)]
async fn bound(world: &mut World, handler: String, trigger_type: String) {
    world.bind(&handler, MAIN, &trigger_type, json!({})).await;
    world.answer();
}

#[given(regex = r#"^"([^"]*)" is bound to "([^"]*)" with (\{.*\})$"#)]
async fn bound_with(world: &mut World, handler: String, trigger_type: String, config: String) {
    let config = world.json(&config);
    world.bind(&handler, MAIN, &trigger_type, config).await;
    world.answer();
}

#[given(regex = r#"^"([^"]*)" is bound to "([^"]*)" on "([^"]*)"(?: with (\{.*\}))?$"#)]
async fn bound_on(
    world: &mut World,
    handler: String,
    trigger_type: String,
    instance: String,
    config: String,
) {
    let config = if config.is_empty() { json!({}) } else { world.json(&config) };
    world.bind(&handler, &instance, &trigger_type, config).await;
    world.answer();
}

#[when(regex = r#"^"([^"]*)" asks to be bound to "([^"]*)" with (.*)$"#)]
async fn asks_to_be_bound(
    world: &mut World,
    handler: String,
    trigger_type: String,
    config: String,
) {
    let config = world.json(&config);
    world.bind(&handler, MAIN, &trigger_type, config).await;
}

#[given(regex = r#"^I call "([^"]*)" with ?(\{.*\})?$"#)]
#[when(regex = r#"^I call "([^"]*)" with ?(\{.*\})?$"#)]
async fn call(world: &mut World, function: String, inline: String, step: &Step) {
    let request = value(world, &inline, step);
    world.call_on(MAIN, &function, request).await;
}

#[when(regex = r#"^I call "([^"]*)" on "([^"]*)" with ?(\{.*\})?$"#)]
async fn call_on(
    world: &mut World,
    function: String,
    instance: String,
    inline: String,
    step: &Step,
) {
    let request = value(world, &inline, step);
    world.call_on(&instance, &function, request).await;
}

#[when(regex = r#"^a "([^"]*)" says "([^"]*)" as "([^"]*)" in "([^"]*)"$"#)]
async fn says(world: &mut World, role: String, text: String, entry: String, session: String) {
    let session = world.expand(&session);
    let request =
        json!({"session_id": session, "entry_id": entry, "message": message(&role, &text)});
    world.call_on(MAIN, "session::append", request).await;
    world.answer();
}

#[given(regex = r#"^the message "([^"]*)" of "([^"]*)" becomes "([^"]*)"$"#)]
#[when(regex = r#"^the message "([^"]*)" of "([^"]*)" becomes "([^"]*)"$"#)]
async fn becomes(world: &mut World, entry: String, session: String, text: String) {
    let content = json!([{"type": "text", "text": text}]);
    let request = json!({"session_id": session, "entry_id": entry, "content": content});
    world.call_on(MAIN, "session::update-message", request).await;
    world.answer();
}

#[when("it is restarted")]
async fn restarted(world: &mut World) {
    world.restart().await;
}

#[given("the configuration becomes")]
#[when("the configuration becomes")]
async fn configuration(world: &mut World, step: &Step) {
    let main = world.instance(MAIN).await;
    let (sessions, url) = (main.sessions(), main.bus().url());
    world.set_name("sessions", &sessions.display().to_string());
    world.set_name("url", &url);
    let config = world.expand(step.docstring.as_deref().expect("a configuration"));
    world.instance(MAIN).await.bus().configure(&config);
    world.must("session::on-config-change", json!({"id": "session-manager"})).await;
}

#[then("an instance does not start with")]
async fn does_not_start(world: &mut World, step: &Step) {
    let config = world.expand(step.docstring.as_deref().expect("a configuration"));
    let started = BusInstance::start(tempfile::tempdir().unwrap(), &config).await;
    assert!(started.is_err(), "it started");
}

#[then(regex = r"^the answer is ?(null|\{.*\})?$")]
fn answer_is(world: &mut World, inline: String, step: &Step) {
    assert_eq!(*world.answer(), value(world, &inline, step));
}

#[then(regex = r"^the answer has ?(\{.*\})?$")]
fn answer_has(world: &mut World, inline: String, step: &Step) {
    assert_has(world.answer(), &value(world, &inline, step));
}

#[then(regex = r#"^the answer has no "([^"]*)"$"#)]
fn answer_lacks(world: &mut World, pointer: String) {
    let found = world.answer().pointer(&pointer);
    assert!(found.is_none(), "{found:?}");
}

#[then(regex = r#"^the answer lists (\d+) (\w+)$"#)]
fn answer_lists(world: &mut World, count: usize, name: String) {
    assert_eq!(world.answer()[name].as_array().unwrap().len(), count);
}

#[then(regex = r#"^the answer lists the (sessions|messages) "([^"]*)"$"#)]
fn answer_lists_ids(world: &mut World, name: String, expected: String) {
    let id = if name == "sessions" { "session_id" } else { "entry_id" };
    assert_eq!(ids(&world.answer()[name.as_str()], id), world.expand(&expected));
}

#[then(regex = r#"^its "([^"]*)" is called \$(\w+)$"#)]
fn is_called(world: &mut World, pointer: String, name: String) {
    let found = world.answer().pointer(&pointer).and_then(Value::as_str);
    let found = found.expect("a text in the answer").to_owned();
    world.set_name(&name, &found);
}

#[then(regex = r#"^(?:the call|it) is refused with "([^"]*)"$"#)]
fn refused(world: &mut World, code: String) {
    assert_eq!(world.refusal(), code);
}

#[then("the call is refused")]
fn refused_somehow(world: &mut World) {
    world.refusal();
}

#[then(regex = r#"^the transcript of "([^"]*)" is "([^"]*)"$"#)]
async fn transcript(world: &mut World, session: String, expected: String) {
    let session = world.expand(&session);
    let page = world.must("session::messages", json!({"session_id": session})).await;
    assert_eq!(ids(&page["messages"], "entry_id"), world.expand(&expected));
}

#[then(regex = r#"^the transcript of "([^"]*)" reads "([^"]*)"$"#)]
async fn transcript_reads(world: &mut World, session: String, expected: String) {
    let session = world.expand(&session);
    let page = world.must("session::messages", json!({"session_id": session})).await;
    let text = |item: &Value| item["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    let texts: Vec<String> = page["messages"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(texts.join(", "), expected);
}

#[then(regex = r#"^"([^"]*)" hears ?(\{.*\})?$"#)]
async fn hears(world: &mut World, handler: String, inline: String, step: &Step) {
    let expected = value(world, &inline, step);
    assert_has(&world.heard(&handler).await, &expected);
}

#[then(regex = r#"^"([^"]*)" hears nothing more$"#)]
async fn hears_nothing_more(world: &mut World, handler: String) {
    world.hears_nothing_more(&handler).await;
}

/// Each line below the step is what a line of the file has. Entries that Bough reserves for itself are left out.
#[then(regex = r#"^the file "([^"]*)" has the records$"#)]
async fn file_has(world: &mut World, name: String, step: &Step) {
    let path = world.instance(MAIN).await.sessions().join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let is_reserved = |record: &Value| {
        record["entry"]["custom_type"].as_str().is_some_and(|name| name.starts_with("bough."))
    };
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let records: Vec<Value> = records.filter(|record| !is_reserved(record)).collect();
    let expected = step.docstring.as_deref().expect("records").trim();
    let expected: Vec<Value> = expected.lines().map(|line| world.json(line)).collect();
    assert_has(&json!(records), &json!(expected));
}

#[then(regex = r#"^there is no file "([^"]*)"$"#)]
async fn no_file(world: &mut World, name: String) {
    assert!(!world.instance(MAIN).await.sessions().join(name).exists());
}

#[then(regex = r#"^there is a file "([^"]*)"$"#)]
async fn a_file(world: &mut World, name: String) {
    assert!(world.instance(MAIN).await.sessions().join(name).exists());
}

fn ids(items: &Value, name: &str) -> String {
    let ids: Vec<&str> =
        items.as_array().unwrap().iter().map(|item| item[name].as_str().unwrap()).collect();
    ids.join(", ")
}
