use std::collections::BTreeSet;

use bough_session::FunctionCallBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cut::calls;
use super::path::{PathItem, Previous};

/// Calls that read a file, by the last word of their name.
const READING: [&str; 3] = ["read", "read_file", "readfile"];
/// Calls that change a file, by the last word of their name.
const CHANGING: [&str; 7] =
    ["write", "write_file", "writefile", "edit", "edit_file", "editfile", "multiedit"];
/// Where a call says which file.
const PATH_FIELDS: [&str; 4] = ["path", "file_path", "filePath", "file"];

/// The files that a conversation read and changed. A file that was changed is not among the read ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// Read and not changed, sorted.
    pub read: BTreeSet<String>,
    /// Written or edited, sorted.
    pub modified: BTreeSet<String>,
}

impl Files {
    /// The files of a part of a path, together with those of the compaction before it (unless an extension made it,
    /// whose details have a form of their own).
    pub(super) fn of(items: &[PathItem], previous: Option<&Previous>) -> Self {
        let mut read = BTreeSet::new();
        let mut modified = BTreeSet::new();
        let details = previous
            .filter(|found| found.compaction.from_hook != Some(true))
            .and_then(|found| found.compaction.details.as_ref());
        if let Some(details) = details {
            read.extend(texts(details, "readFiles"));
            modified.extend(texts(details, "modifiedFiles"));
        }
        for call in items.iter().filter_map(PathItem::message).flat_map(calls) {
            match (use_of(call), path_of(call)) {
                (Some(Use::Read), Some(path)) => read.insert(path),
                (Some(Use::Change), Some(path)) => modified.insert(path),
                _ => continue,
            };
        }
        read.retain(|path| !modified.contains(path));
        Self { read, modified }
    }

    /// The data that a compaction keeps beside its summary.
    pub(super) fn to_details(&self) -> Value {
        json!({ "readFiles": self.read, "modifiedFiles": self.modified })
    }

    /// A text with the lists below it, as summaries have them.
    #[must_use]
    pub fn below(&self, text: &str) -> String {
        format!("{text}{}", self.to_text())
    }

    /// The lists as they stand at the end of a summary; empty without files.
    pub(super) fn to_text(&self) -> String {
        let block = |name: &str, files: &BTreeSet<String>| {
            if files.is_empty() {
                return String::new();
            }
            let lines: Vec<&str> = files.iter().map(String::as_str).collect();
            format!("\n\n<{name}>\n{}\n</{name}>", lines.join("\n"))
        };
        block("read-files", &self.read) + &block("modified-files", &self.modified)
    }
}

enum Use {
    Read,
    Change,
}

fn use_of(call: &FunctionCallBlock) -> Option<Use> {
    let name = call.function_id.to_lowercase();
    let word = name.rsplit([':', '.', '/']).next().unwrap_or_default();
    let word = word.rsplit("__").next().unwrap_or_default();
    if READING.contains(&word) {
        Some(Use::Read)
    } else if CHANGING.contains(&word) {
        Some(Use::Change)
    } else {
        None
    }
}

fn path_of(call: &FunctionCallBlock) -> Option<String> {
    let arguments = call.arguments.value();
    let text = |field: &&str| arguments.get(*field).and_then(Value::as_str);
    let path = PATH_FIELDS.iter().find_map(text)?;
    // A line break in a name would break the list.
    (!path.is_empty() && !path.contains(['\n', '\r'])).then(|| path.to_owned())
}

fn texts(details: &Value, field: &str) -> Vec<String> {
    let list = details.get(field).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
