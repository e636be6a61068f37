//! Every bound on what a session may hold, by name.
//!
//! The rules check these on input. The folds also cap what they keep, so that the state of a
//! session stays small however long the session grows.

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::entry::{EMPTIED_TYPE, HIDDEN_TYPE};
use crate::json::{JsonMap, RawJson, json_bytes, json_depth};
use crate::members::UnknownMembers;
use crate::{AgentMessage, ContentBlock, CustomPayload, Finish, OpaqueBody};

/// Longest session id, in bytes.
pub const SESSION_ID_BYTES_MAX: usize = 512;
/// Longest entry id, in bytes.
pub const ENTRY_ID_BYTES_MAX: usize = 256;
/// Longest loop id, in bytes.
pub const LOOP_ID_BYTES_MAX: usize = 1024;
/// Longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 4 * 1024;
/// Longest description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// Longest status reason, in bytes.
pub const REASON_BYTES_MAX: usize = 4 * 1024;
/// Longest task name, in bytes.
pub const TASK_NAME_BYTES_MAX: usize = 1024;
/// Largest metadata object, in bytes of compact JSON.
pub const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Most keys of a metadata object; each of them can be searched for, and costs an index row.
pub const METADATA_KEYS_MAX: usize = 64;
/// Largest origin object, in bytes of compact JSON.
pub const ORIGIN_BYTES_MAX: usize = 16 * 1024;
/// Largest message or custom payload, in bytes of compact JSON.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest `finish` of a streamed message, in bytes: reasons, warnings, usage.
pub const FINISH_BYTES_MAX: usize = 64 * 1024;
/// Most content blocks of one message, nested ones included.
pub const CONTENT_BLOCKS_MAX: usize = 10_000;
/// Longest `custom_type`, in bytes.
pub const CUSTOM_TYPE_BYTES_MAX: usize = 256;
/// Longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 512;
/// Deepest nesting of JSON that comes from outside. With what we put around it, it stays well under the 128 levels that
/// common readers accept.
pub const JSON_DEPTH_MAX: usize = 64;
/// Deepest nesting that is shown of JSON that another program stored; as deep as those readers accept.
pub const SHOWN_DEPTH_MAX: usize = 120;
/// Longest key of a document, in bytes.
pub const DOCUMENT_KEY_BYTES_MAX: usize = 1024;
/// Longest name of a scope of documents, in bytes.
pub const DOCUMENT_SCOPE_BYTES_MAX: usize = 256;
/// Most records of one batch.
pub const BATCH_RECORDS_MAX: usize = 10_000;
/// Largest batch, in bytes of compact JSON.
pub const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Page size when the caller gives none.
pub const PAGE_DEFAULT: usize = 50;
/// Largest page.
pub const PAGE_MAX: usize = 500;

/// Most labels that the state of a session remembers; the oldest are dropped.
pub const STATE_LABELS_MAX: usize = 128;
/// Most custom types whose newest entry the state remembers; the least recently used are dropped.
pub const STATE_CUSTOM_TYPES_MAX: usize = 64;
/// Most open loops that the state remembers by name; more are only counted.
pub const STATE_OPEN_LOOPS_MAX: usize = 64;
/// Messages of one session that may stream at the same time.
pub const STATE_OPEN_STREAMS_MAX: usize = 64;
/// Ended streams that a session's state remembers, the newest.
pub const STATE_CLOSED_STREAMS_MAX: usize = 64;
/// Most models whose usage is kept apart; the rest are summed as [`USAGE_OTHER_MODELS`].
pub const STATE_MODELS_MAX: usize = 32;
/// Longest model or provider name that the state keeps, in bytes.
pub const STATE_NAME_BYTES_MAX: usize = 256;
/// Longest preview of the first user message that the state keeps, in characters.
pub const STATE_PREVIEW_CHARS_MAX: usize = 200;
/// The size of most entries, in bytes: one of this size is encoded without growing its memory.
pub const ENTRY_BYTES_MEANT: usize = 512;
/// Payloads beyond this many bytes are shortened before a state takes them into account.
pub const SHORT_PAYLOAD_BYTES: usize = 256 * 1024;
/// The length, in bytes, that long texts are then cut to: more than any text in a state.
pub const SHORT_TEXT_BYTES: usize = 16 * 1024;
/// Most branches of a session whose beginnings the state remembers; the oldest are dropped.
pub const STATE_FORKS_MAX: usize = 256;
/// Ends of branches that the state remembers, to know whether an entry continues one.
pub const STATE_TIPS_MAX: usize = 64;
/// Most rows of usage by day, model and tool that the state keeps.
pub const STATE_USAGE_ROWS_MAX: usize = 128;
/// The name under which usage of models or tools is summed when there are more rows than that.
pub const USAGE_OTHER_NAMES: &str = "(other)";
/// A longer pause between two entries is not counted as working time, in milliseconds.
pub const USAGE_GAP_MAX_MS: i64 = 60 * 60 * 1000;
/// The name under which usage of models beyond [`STATE_MODELS_MAX`] is summed.
pub const USAGE_OTHER_MODELS: &str = "(other models)";

/// A bound that input exceeded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LimitError {
    /// An empty value where one is required.
    #[error("{what} must not be empty")]
    Empty {
        /// What was empty.
        what: &'static str,
    },
    /// A name of a kind that is reserved.
    #[error("{what} cannot begin with `{prefix}`")]
    Reserved {
        /// What was named.
        what: &'static str,
        /// The prefix of such names.
        prefix: &'static str,
    },
    /// Too long, too many or too large.
    #[error("{what} is {actual} {unit}; at most {limit} are allowed")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// Bytes, characters, keys, levels or records.
        unit: &'static str,
        /// The bound.
        limit: usize,
        /// What was given.
        actual: usize,
    },
}

/// Refuses `actual` above `limit`.
pub fn check_at_most(
    what: &'static str,
    unit: &'static str,
    actual: usize,
    limit: usize,
) -> Result<(), LimitError> {
    if actual <= limit {
        return Ok(());
    }
    Err(LimitError::TooLarge { what, unit, limit, actual })
}

/// Checks a title.
pub fn check_title(title: &str) -> Result<(), LimitError> {
    check_at_most("title", "bytes", title.len(), TITLE_BYTES_MAX)
}

/// Checks a description.
pub fn check_description(text: &str) -> Result<(), LimitError> {
    check_at_most("description", "bytes", text.len(), DESCRIPTION_BYTES_MAX)
}

/// Checks a status reason.
pub fn check_reason(reason: &str) -> Result<(), LimitError> {
    check_at_most("reason", "bytes", reason.len(), REASON_BYTES_MAX)
}

/// Checks a task name.
pub fn check_task_name(name: &str) -> Result<(), LimitError> {
    check_at_most("task name", "bytes", name.len(), TASK_NAME_BYTES_MAX)
}

/// Checks a label.
pub fn check_label(label: &str) -> Result<(), LimitError> {
    check_at_most("label", "bytes", label.len(), LABEL_BYTES_MAX)
}

/// Checks a metadata object: keys, bytes, depth.
pub fn check_metadata(metadata: &JsonMap) -> Result<(), LimitError> {
    check_at_most("metadata", "keys", metadata.len(), METADATA_KEYS_MAX)?;
    check_map("metadata", metadata, METADATA_BYTES_MAX)
}

/// Checks an origin object: bytes, depth.
pub fn check_origin(origin: &JsonMap) -> Result<(), LimitError> {
    check_map("origin", origin, ORIGIN_BYTES_MAX)
}

/// Checks a message: blocks, depth, bytes.
pub fn check_message(message: &AgentMessage) -> Result<(), LimitError> {
    check_blocks(message.content())?;
    check_unknown("message", 1, message.unknown())?;
    if let Some(usage) = message.usage() {
        check_unknown("usage", 2, &usage.unknown)?;
    }
    if let Some(details) = message.details() {
        check_levels("details", details.depth())?;
    }
    check_size("message", message, MESSAGE_BYTES_MAX)
}

/// Checks the parts of an update: the new content and details of a message.
pub fn check_content(
    content: &[ContentBlock],
    details: Option<&RawJson>,
) -> Result<(), LimitError> {
    check_blocks(content)?;
    if let Some(details) = details {
        check_levels("details", details.depth())?;
    }
    let size = json_bytes(content) + details.map_or(0, json_bytes);
    check_at_most("message", "bytes", size, MESSAGE_BYTES_MAX)
}

/// Checks the `finish` of a streamed message.
pub fn check_finish(finish: &Finish) -> Result<(), LimitError> {
    if let Some(usage) = &finish.usage {
        check_unknown("usage", 2, &usage.after.unknown)?;
    }
    check_size("finish", finish, FINISH_BYTES_MAX)
}

/// Checks the payload of a custom entry.
pub fn check_custom(custom: &CustomPayload) -> Result<(), LimitError> {
    check_custom_type(&custom.custom_type)?;
    check_depth("data", &custom.data)?;
    check_size("custom entry", custom, MESSAGE_BYTES_MAX)
}

/// Checks an application's document.
pub fn check_opaque(body: &OpaqueBody) -> Result<(), LimitError> {
    check_custom_type(&body.custom_type)?;
    check_levels("data", body.data.depth())?;
    check_at_most("custom entry", "bytes", body.data.get().len(), MESSAGE_BYTES_MAX)
}

/// Entries of some types are shown by no read, so only the log may have them.
fn check_custom_type(name: &str) -> Result<(), LimitError> {
    check_at_most("custom_type", "bytes", name.len(), CUSTOM_TYPE_BYTES_MAX)?;
    let reserved = [HIDDEN_TYPE, EMPTIED_TYPE].into_iter().find(|prefix| name.starts_with(prefix));
    reserved.map_or(Ok(()), |prefix| Err(LimitError::Reserved { what: "custom_type", prefix }))
}

/// Checks a document under a key.
pub fn check_document(key: &str, value: Option<&RawJson>) -> Result<(), LimitError> {
    if key.is_empty() {
        return Err(LimitError::Empty { what: "key" });
    }
    check_at_most("key", "bytes", key.len(), DOCUMENT_KEY_BYTES_MAX)?;
    let Some(value) = value else { return Ok(()) };
    check_levels("value", value.depth())?;
    check_at_most("value", "bytes", value.get().len(), MESSAGE_BYTES_MAX)
}

/// Checks a message that came in a format: its JSON and its content.
pub fn check_given(json: &RawJson, message: &AgentMessage) -> Result<(), LimitError> {
    check_levels("message", json.depth())?;
    check_at_most("message", "bytes", json.get().len(), MESSAGE_BYTES_MAX)?;
    check_message(message)
}

/// Checks the number of records of a batch.
pub fn check_batch_records(count: usize) -> Result<(), LimitError> {
    check_at_most("batch", "records", count, BATCH_RECORDS_MAX)
}

/// Checks the size of a batch.
pub fn check_batch_bytes(bytes: usize) -> Result<(), LimitError> {
    check_at_most("batch", "bytes", bytes, BATCH_BYTES_MAX)
}

/// The page size for a request: `default` if absent, otherwise clamped to 1..=`max`. Neither bound
/// is trusted to be sensible.
#[must_use]
pub fn clamp_page(asked: Option<usize>, default: usize, max: usize) -> usize {
    let max = max.max(1);
    asked.unwrap_or(default).clamp(1, max)
}

fn check_map(what: &'static str, map: &JsonMap, limit: usize) -> Result<(), LimitError> {
    for value in map.values() {
        check_levels(what, 1 + json_depth(value))?;
    }
    check_size(what, map, limit)
}

fn check_depth(what: &'static str, value: &Value) -> Result<(), LimitError> {
    check_levels(what, json_depth(value))
}

fn check_levels(what: &'static str, depth: usize) -> Result<(), LimitError> {
    check_at_most(what, "levels of nesting", depth, JSON_DEPTH_MAX)
}

fn check_size<T: Serialize>(what: &'static str, value: &T, limit: usize) -> Result<(), LimitError> {
    check_at_most(what, "bytes", json_bytes(value), limit)
}

fn check_unknown(
    what: &'static str,
    level: usize,
    unknown: &UnknownMembers,
) -> Result<(), LimitError> {
    unknown.iter().try_for_each(|(_, member)| check_levels(what, level + member.depth()))
}

/// Counts blocks and levels without recursion, so that a hostile message cannot use up the stack. A block
/// is two levels of JSON below the one that it is in: the list and the object.
fn check_blocks(content: &[ContentBlock]) -> Result<(), LimitError> {
    let mut left: Vec<(usize, &ContentBlock)> = content.iter().map(|block| (2, block)).collect();
    let mut count = 0;
    while let Some((level, block)) = left.pop() {
        count += 1;
        check_at_most("content", "blocks", count, CONTENT_BLOCKS_MAX)?;
        check_levels("content", level)?;
        check_unknown("content", level, block.unknown())?;
        match block {
            ContentBlock::FunctionResult(result) => {
                left.extend(result.content.iter().map(|inner| (level + 2, inner)));
            }
            ContentBlock::FunctionCall(call) => {
                check_levels("arguments", level + call.arguments.depth())?;
            }
            ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Thinking(_) => {}
        }
    }
    Ok(())
}
