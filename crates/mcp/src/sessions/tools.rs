//! The tools: which rows of the function table they are, and which of their fields a model gets.

use std::collections::BTreeSet;

use bough_service::function;
use serde_json::{Map, Value, json};

use super::{Functions, SessionHost};
use crate::limits::{PAGE, PAGE_MAX};

/// A tool: a function of the table under a plain name.
pub(super) struct Tool {
    /// Its name.
    pub(super) name: &'static str,
    title: &'static str,
    /// What it does, for a model.
    description: &'static str,
    /// The function that it calls.
    pub(super) function: &'static str,
    /// The fields of the function's request that it takes.
    fields: &'static [&'static str],
}

/// A row for each tool: its name, its function, the fields that it takes, its title and what it does.
macro_rules! tools {
    ($($name:ident = $function:literal ($($field:tt)*) $title:literal $description:literal;)*) => {
        &[$(Tool {
            name: stringify!($name),
            title: $title,
            description: $description,
            function: $function,
            fields: &[$(stringify!($field)),*],
        }),*]
    };
}

/// Every tool, in the order in which clients list them.
pub(super) const TOOLS: &[Tool] = tools! {
    list_sessions = "session::sessions" (limit cursor status order archived metadata task id_prefix include_details)
        "List sessions"
        "List sessions page by page, those that changed last first.";
    search = "session::search" (query limit cursor metadata)
        "Search sessions"
        "Search everything that was said in all sessions: words, phrases and filters, the best hits first.";
    describe_session = "session::describe" (session_id)
        "Describe a session"
        "Read a session's title, description, status, metadata and active leaf.";
    read_latest_messages = "session::path-tail" (session_id limit cursor roles from_entry_id include_custom format)
        "Read the latest messages"
        "Read the messages of a session's active path (or of the path to an entry), the newest first, page by page.";
    read_messages = "session::path" (session_id limit cursor roles from_entry_id include_custom format)
        "Read messages from the beginning"
        "Read the messages of a session's active path (or of the path to an entry), the oldest first, page by page.";
    list_branches = "session::branches" (session_id limit cursor)
        "List branches"
        "List the ends of a session's branches, with depth, last activity and label.";
    create_session = "session::create" (title description metadata)
        "Create a session"
        "Create a session, and get its id.";
    append_message = "session::append-entry" (session_id message format parent_id entry_id expected_leaf create)
        "Append a message"
        "Append a message to a session, such as {\"role\": \"user\", \"content\": \"hello\"}. With `parent_id` it answers an earlier entry and begins a branch. It is on the disk when this answers.";
    fork_session = "session::fork" (session_id entry_id title new_session_id whole)
        "Fork a session"
        "Copy the path up to an entry, or the whole tree, into a new session.";
    switch_branch = "session::set-active-leaf" (session_id entry_id expected_leaf)
        "Switch branches"
        "Make a session's active path end at an entry, so that what is appended next follows it.";
};

impl Tool {
    /// Whether its answer is a page of messages, which are bounded by their bytes too.
    fn has_messages(&self) -> bool {
        matches!(self.function, "session::path" | "session::path-tail")
    }

    /// The tool as clients list it.
    pub(super) fn describe(&self) -> Value {
        let is_read = function(self.function).is_some_and(bough_service::Function::is_read);
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema(),
            "annotations": {
                "readOnlyHint": is_read,
                "destructiveHint": false,
                "openWorldHint": false,
            },
        })
    }

    /// The schema of the function's request, restricted to the tool's fields.
    pub(super) fn schema(&self) -> Value {
        let mut schema =
            function(self.function).map(|row| row.request_schema()).unwrap_or_default();
        let Some(root) = schema.as_object_mut() else { return json!({ "type": "object" }) };
        for of_rust in ["title", "description"] {
            root.remove(of_rust);
        }
        if let Some(fields) = root.get_mut("properties").and_then(Value::as_object_mut) {
            fields.retain(|name, _| self.fields.contains(&name.as_str()));
            if let Some(limit) = fields.get_mut("limit") {
                *limit = limit_schema();
            }
        }
        if let Some(names) = root.get_mut("required").and_then(Value::as_array_mut) {
            names.retain(|name| name.as_str().is_some_and(|name| self.fields.contains(&name)));
        }
        root.insert("additionalProperties".to_owned(), Value::Bool(false));
        keep_used(root);
        schema
    }

    /// The request to the function, or the error in the arguments.
    fn request(&self, mut arguments: Map<String, Value>) -> Result<Value, String> {
        if let Some(unknown) = arguments.keys().find(|name| !self.fields.contains(&name.as_str())) {
            let known = self.fields.join(", ");
            return Err(format!("{} has no argument {unknown:?}. It takes {known}.", self.name));
        }
        if self.fields.contains(&"limit") {
            let limit = match arguments.get("limit") {
                None | Some(Value::Null) => PAGE,
                Some(given) => given
                    .as_u64()
                    .filter(|limit| (1..=PAGE_MAX as u64).contains(limit))
                    .and_then(|limit| usize::try_from(limit).ok())
                    .ok_or_else(|| format!("`limit` is not a number from 1 to {PAGE_MAX}."))?,
            };
            arguments.insert("limit".to_owned(), limit.into());
        }
        Ok(Value::Object(arguments))
    }
}

fn limit_schema() -> Value {
    let description = format!("Page size. Default {PAGE}.");
    json!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "description": description })
}

/// Removes definitions that are no longer referenced.
fn keep_used(root: &mut Map<String, Value>) {
    let Some(Value::Object(mut definitions)) = root.remove("definitions") else { return };
    let mut used = BTreeSet::new();
    let mut waiting = names_in(&Value::Object(root.clone()));
    while let Some(name) = waiting.pop() {
        let Some(shape) = definitions.get(&name) else { continue };
        if used.insert(name) {
            waiting.extend(names_in(shape));
        }
    }
    definitions.retain(|name, _| used.contains(name));
    if !definitions.is_empty() {
        root.insert("definitions".to_owned(), Value::Object(definitions));
    }
}

/// The definitions that a schema names.
fn names_in(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => {
            let named = fields.get("$ref").and_then(Value::as_str);
            let named = named.and_then(|name| name.strip_prefix("#/definitions/"));
            let below = fields.values().flat_map(names_in);
            named.map(str::to_owned).into_iter().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(names_in).collect(),
        _ => Vec::new(),
    }
}

impl<F: Functions> SessionHost<F> {
    /// Whether the caller may use a tool.
    pub(super) fn may_use(&self, tool: &Tool) -> bool {
        function(tool.function).is_some_and(|row| self.functions.may_call(row))
    }

    /// Uses a tool. An error is for the model.
    pub(super) async fn use_tool(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
    ) -> Result<Value, String> {
        let request = tool.request(arguments)?;
        let answer = if tool.has_messages() {
            self.bounded_page(tool.function, request.clone()).await
        } else {
            self.call(tool.function, request.clone()).await
        };
        match answer {
            // The function answers `null` for a session that does not exist.
            Ok(Value::Null) => {
                let session = request.get("session_id").and_then(Value::as_str).unwrap_or_default();
                let code = "session/not_found".to_owned();
                let message = format!("session {session} does not exist");
                Err(super::CallRefused { code, message }.text())
            }
            Ok(answer) => Ok(answer),
            Err(refused) => Err(refused.text()),
        }
    }
}
