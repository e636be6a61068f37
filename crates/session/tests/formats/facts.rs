//! What every mapping must keep: roles, text, calls with their results, pictures, usage.

use std::collections::BTreeMap;

use bough_session::{AgentMessage, ContentBlock, CustomMessage, Format, ImageBlock};
use serde_json::{Value, json};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// Who said what, in order.
    pub(crate) texts: Vec<(String, String)>,
    /// The calls, in order: id, function, arguments.
    pub(crate) calls: Vec<(String, String, Value)>,
    /// The results by call: text, pictures.
    pub(crate) results: BTreeMap<String, (String, Vec<String>)>,
    /// The pictures outside of results, in order.
    pub(crate) images: Vec<String>,
    /// Tokens read in all, read from a cache, and written.
    pub(crate) usage: (u64, u64, u64),
}

impl Facts {
    /// The facts of messages, as far as `through` has such roles.
    pub(crate) fn of(messages: &[AgentMessage], through: &[Format]) -> Self {
        let mut facts = Self::default();
        for message in messages {
            facts.add(message, through);
        }
        facts
    }

    fn add(&mut self, message: &AgentMessage, through: &[Format]) {
        if let AgentMessage::FunctionResult(said) = message {
            self.results.insert(said.function_call_id.clone(), result(&said.content));
            return;
        }
        let role = role(message, through);
        for block in message.content() {
            match block {
                ContentBlock::Text(text) if text.text.is_empty() => {}
                ContentBlock::Text(text) => self.texts.push((role.clone(), text.text.clone())),
                ContentBlock::Image(image) => self.images.push(picture(image)),
                ContentBlock::FunctionCall(call) => self.calls.push((
                    call.id.clone(),
                    call.function_id.clone(),
                    arguments(call.arguments.value()),
                )),
                ContentBlock::FunctionResult(said) => {
                    self.results.insert(said.function_call_id.clone(), result(&said.content));
                }
                ContentBlock::Thinking(_) => {}
            }
        }
        if let Some(usage) = message.usage() {
            let figure = |figure: Option<u64>| figure.unwrap_or(0);
            let cache_read = figure(usage.cache_read);
            self.usage.0 += figure(usage.input) + cache_read + figure(usage.cache_write);
            self.usage.1 += cache_read;
            self.usage.2 += figure(usage.output);
        }
    }
}

/// Some formats write missing arguments as an empty object.
fn arguments(value: Value) -> Value {
    if value.is_null() { json!({}) } else { value }
}

fn result(content: &[ContentBlock]) -> (String, Vec<String>) {
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
    let images = content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(picture(image)),
        _ => None,
    });
    (texts.join("\n"), images.collect())
}

fn picture(image: &ImageBlock) -> String {
    match image.unknown.get("url") {
        Some(url) if image.data.is_empty() => url.value().as_str().unwrap().to_owned(),
        _ => format!("{};{}", image.mime, image.data),
    }
}

/// The role. A custom message becomes the user's in formats without custom messages, and so does a system message in
/// phi.
fn role(message: &AgentMessage, through: &[Format]) -> String {
    let has_custom = |format: &Format| matches!(format, Format::Bough | Format::Pi);
    match message {
        AgentMessage::Custom(CustomMessage { custom_type, .. }) if custom_type == "system" => {
            let has_system = !through.contains(&Format::Phi);
            if has_system { "system" } else { "user" }.to_owned()
        }
        AgentMessage::Custom(said) if through.iter().all(has_custom) => said.custom_type.clone(),
        AgentMessage::Custom(_) => "user".to_owned(),
        message => message.role().as_str().to_owned(),
    }
}
