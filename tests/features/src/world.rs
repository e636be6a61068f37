//! What the steps of one scenario share.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::instance::{Instance, Surface};
use crate::matching::assert_has;

/// The instance that steps mean which name none.
pub(crate) const MAIN: &str = "main";

/// The ids of what is written only to see that nothing else was heard before it start with this.
const CLOSING: &str = "closing-";

/// What the steps of one scenario share.
#[derive(Default, cucumber::World)]
pub(crate) struct World {
    pub(crate) surface: Surface,
    instances: BTreeMap<String, Instance>,
    handlers: BTreeMap<String, Handler>,
    names: BTreeMap<String, String>,
    /// The answer to the last call, or the code of its error.
    answer: Option<Result<Value, String>>,
    closings: usize,
}

/// A handler and what it is bound to.
#[derive(Clone)]
struct Handler {
    instance: String,
    trigger_type: String,
    config: Value,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("names", &self.names).field("answer", &self.answer).finish()
    }
}

impl World {
    /// The instance of a name. The main one starts when it is first used.
    pub(crate) async fn instance(&mut self, name: &str) -> &mut Instance {
        if name == MAIN && !self.instances.contains_key(MAIN) {
            let main = Instance::start(self.surface).await;
            self.instances.insert(MAIN.to_owned(), main);
        }
        self.instances.get_mut(name).expect("an instance that was started")
    }

    pub(crate) fn add_instance(&mut self, name: &str, instance: Instance) {
        self.instances.insert(name.to_owned(), instance);
    }

    pub(crate) async fn restart(&mut self) {
        let main = self.instances.remove(MAIN).expect("something to restart");
        self.instances.insert(MAIN.to_owned(), main.restart().await);
    }

    /// Lets `$name` stand for a value in the steps that follow.
    pub(crate) fn set_name(&mut self, name: &str, value: &str) {
        self.names.insert(name.to_owned(), value.to_owned());
    }

    /// A text with the values of its `$name`s.
    pub(crate) fn expand(&self, text: &str) -> String {
        let replace = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("${name}"), value)
        };
        self.names.iter().rev().fold(text.to_owned(), replace)
    }

    /// A JSON text with the values of its `$name`s.
    pub(crate) fn json(&self, text: &str) -> Value {
        let text = self.expand(text);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Calls a function and keeps the answer.
    pub(crate) async fn call_on(&mut self, instance: &str, function: &str, request: Value) {
        let answer = self.instance(instance).await.call(function, request).await;
        self.answer = Some(answer);
    }

    /// Calls a function of the main instance, which must succeed.
    pub(crate) async fn must(&mut self, function: &str, request: Value) -> Value {
        self.must_on(MAIN, function, request).await
    }

    async fn must_on(&mut self, instance: &str, function: &str, request: Value) -> Value {
        let shown = request.to_string();
        let answer = self.instance(instance).await.call(function, request).await;
        answer.unwrap_or_else(|code| panic!("{function} {shown}: {code}"))
    }

    /// The answer to the last call, which must have succeeded.
    pub(crate) fn answer(&self) -> &Value {
        match self.answer.as_ref().expect("a call") {
            Ok(answer) => answer,
            Err(code) => panic!("the call was refused: {code}"),
        }
    }

    /// The code of the last call, which must have been refused.
    pub(crate) fn refusal(&self) -> &str {
        match self.answer.as_ref().expect("a call") {
            Ok(answer) => panic!("the call was not refused: {answer}"),
            Err(code) => code,
        }
    }

    /// Binds a handler. A refusal is kept as that of a call.
    pub(crate) async fn bind(
        &mut self,
        handler: &str,
        instance: &str,
        trigger_type: &str,
        config: Value,
    ) {
        let bound = self.instance(instance).await.bind(handler, trigger_type, &config).await;
        self.answer = Some(bound.map(|()| Value::Null));
        let (instance, trigger_type) = (instance.to_owned(), trigger_type.to_owned());
        self.handlers.insert(handler.to_owned(), Handler { instance, trigger_type, config });
    }

    /// The next event that a handler gets, closings of other handlers left out.
    pub(crate) async fn heard(&mut self, handler: &str) -> Value {
        let instance = self.handlers[handler].instance.clone();
        loop {
            let event = self.instance(&instance).await.heard(handler).await;
            if !is_closing(&event) {
                return event;
            }
        }
    }

    /// Fails if a handler was sent anything that it has not heard yet. Events of a handler come in order, so whatever waits
    /// for it comes before the event that this causes.
    pub(crate) async fn hears_nothing_more(&mut self, name: &str) {
        let handler = self.handlers[name].clone();
        self.closings += 1;
        let mark = format!("{CLOSING}{}", self.closings);
        let expected = self.cause_event(&handler, &mark).await;
        let event = loop {
            let event = self.instance(&handler.instance).await.heard(name).await;
            if !is_closing(&event) || crate::matching::has(&event, &expected) {
                break event;
            }
        };
        assert_has(&event, &expected);
    }

    /// Causes an event that a handler must get; what it has in it.
    async fn cause_event(&mut self, handler: &Handler, mark: &str) -> Value {
        let config = &handler.config;
        let instance = handler.instance.as_str();
        let session = config["session_id"].as_str().unwrap_or(mark);
        let ensure = json!({"session_id": session, "metadata": config["metadata"]});
        self.must_on(instance, "session::ensure", ensure).await;
        let here = |mut request: Value| {
            request["session_id"] = json!(session);
            request
        };
        let role = config["roles"][0].as_str().unwrap_or("user");
        let append = here(json!({"entry_id": mark, "message": message(role, "")}));
        let (function, request, expected) = match handler.trigger_type.as_str() {
            "session::created" => return json!({"session_id": mark}),
            "session::message-added" => ("session::append", append, json!({"entry_id": mark})),
            "session::message-updated" => {
                self.must_on(instance, "session::append", append).await;
                let update = here(json!({"entry_id": mark, "content": []}));
                ("session::update-message", update, json!({"entry_id": mark}))
            }
            "session::status-changed" => {
                let status = here(json!({"status": "error", "reason": mark}));
                ("session::set-status", status, json!({"status_reason": mark}))
            }
            "session::meta-updated" => {
                ("session::set-meta", here(json!({"title": mark})), json!({"title": mark}))
            }
            "session::deleted" => {
                ("session::delete", here(json!({})), json!({"session_id": session}))
            }
            other => panic!("no event of {other} can be caused"),
        };
        self.must_on(instance, function, request).await;
        expected
    }
}

fn is_closing(event: &Value) -> bool {
    ["session_id", "entry_id"]
        .iter()
        .any(|name| event[name].as_str().is_some_and(|id| id.starts_with(CLOSING)))
}

/// A message of a role with a text.
pub(crate) fn message(role: &str, text: &str) -> Value {
    let mut message =
        json!({"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1});
    let more = match role {
        "assistant" => json!({"stop_reason": "end", "model": "m", "provider": "p"}),
        "function_result" => json!({"function_call_id": "call-1", "function_id": "math::add"}),
        "custom" => json!({"custom_type": "note"}),
        _ => json!({}),
    };
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}
