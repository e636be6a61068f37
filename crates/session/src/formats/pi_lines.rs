//! Lines of pi session files that are not messages.

use serde_json::{Map, Value};

use super::pi::{self, PI_BLOCKS};
use super::read::Members;
use crate::bookkeeping::{
    BranchSummary, Compaction, Label, ModelChange, SessionInfo, ThinkingLevelChange,
};
use crate::{AgentMessage, Bookkeeping, ContentBlock, CustomPayload, EntryId, RawJson, Usage};

/// Usage that belongs to no message of a model: a line of its own, such as the cost of keeping a cache warm, or a
/// member of a summary or of a tool's result.
pub(super) const USAGE: &str = "pi.usage";
/// The system prompt that a compaction sets from there on.
const SYSTEM_MESSAGE: &str = "pi.system_message";
/// What is sent to the model from here on instead of an earlier entry.
pub(super) const CONTEXT_EDIT: &str = "pi.context_edit";

/// A line that is bookkeeping, with the members that only pi has: what making a summary cost, and the system prompt
/// from there on.
pub(super) fn payload(kind: &str, line: &Value) -> Option<CustomPayload> {
    let mut payload = bookkeeping(kind, line)?.to_payload();
    if let Value::Object(data) = &mut payload.data {
        for (name, key) in [(USAGE, "usage"), (SYSTEM_MESSAGE, "systemMessage")] {
            let value = line.get(key).filter(|value| !value.is_null());
            data.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
    }
    Some(payload)
}

fn bookkeeping(kind: &str, line: &Value) -> Option<Bookkeeping> {
    let text = |key: &str| line.get(key).and_then(Value::as_str);
    let texts = |key: &str| text(key).unwrap_or_default().to_owned();
    let details = line.get("details").filter(|details| !details.is_null()).cloned();
    let from_hook = line.get("fromHook").and_then(Value::as_bool);
    Some(match kind {
        "model_change" => Bookkeeping::ModelChange(ModelChange {
            provider: text("provider")?.to_owned(),
            model_id: text("modelId")?.to_owned(),
        }),
        "thinking_level_change" => Bookkeeping::ThinkingLevelChange(ThinkingLevelChange {
            thinking_level: text("thinkingLevel")?.to_owned(),
        }),
        "compaction" => Bookkeeping::Compaction(Compaction {
            summary: texts("summary"),
            first_kept_entry_id: EntryId::from_stored(texts("firstKeptEntryId")),
            tokens_before: line.get("tokensBefore").and_then(Value::as_u64).unwrap_or(0),
            details,
            from_hook,
        }),
        "branch_summary" => Bookkeeping::BranchSummary(BranchSummary {
            from_id: texts("fromId"),
            summary: texts("summary"),
            details,
            from_hook,
        }),
        "session_info" => Bookkeeping::SessionInfo(SessionInfo { name: texts("name") }),
        "label" => Bookkeeping::Label(Label {
            target_id: EntryId::from_stored(text("targetId")?),
            label: text("label").map(str::to_owned),
        }),
        _ => return None,
    })
}

/// The model of a [`USAGE`] line and what it used.
pub(super) fn usage_line(line: &Value) -> Option<(String, Usage)> {
    let model = line.get("model").and_then(Value::as_str).unwrap_or_default();
    Some((model.to_owned(), usage(line.get("usage")?)))
}

/// What a tool's result or a summary used, beside the model's own messages; `data` is its details or its data.
pub(super) fn usage_beside(data: &Value) -> Option<Usage> {
    data.get(USAGE).map(usage)
}

fn usage(report: &Value) -> Usage {
    let report = RawJson::from(report.clone());
    pi::usage(Members::parse(report.get()).unwrap_or_default())
}

/// The details of a tool's result, with what the tool itself used.
pub(super) fn result_details(details: Option<RawJson>, usage: Option<RawJson>) -> RawJson {
    let Some(usage) = usage else { return details.unwrap_or_default() };
    let mut members = match details.as_ref().map(RawJson::value) {
        Some(Value::Object(members)) => members,
        Some(other) => Map::from_iter([("details".to_owned(), other)]),
        None => Map::new(),
    };
    members.insert(USAGE.to_owned(), usage.value());
    RawJson::from(Value::Object(members))
}

/// The content of a change of the system prompt: its text, the sections that it sets or takes away, and the tools.
pub(super) fn system_content(message: &Value, content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let own = content.into_iter().filter(|block| block.as_text() != Some(""));
    let sections = message.get("sections").and_then(Value::as_object).into_iter().flatten();
    let sections = sections.map(|(name, section)| match section {
        Value::String(text) => text.clone(),
        _ => format!("(section {name} removed)"),
    });
    let tools = [("toolsAdded", "Tools added"), ("toolsRemoved", "Tools removed")];
    let tools = tools.into_iter().filter_map(|(key, words)| {
        let tools = message.get(key).and_then(Value::as_array)?;
        let names: Vec<&str> =
            tools.iter().filter_map(|tool| tool.get("name").and_then(Value::as_str)).collect();
        (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
    });
    own.chain(sections.chain(tools).map(ContentBlock::text)).collect()
}

/// The system prompt that a compaction of pi sets from there on, as it is shown to a person; `None` if it sets none.
#[must_use]
pub fn compacted_system_prompt(compaction: &CustomPayload) -> Option<String> {
    let message = compacted_system_message(compaction, 0)?;
    let texts: Vec<&str> = message.content().iter().filter_map(ContentBlock::as_text).collect();
    Some(texts.join("\n"))
}

/// The same as the message that a model is sent, of the same form as pi's other changes of the system prompt.
pub(crate) fn compacted_system_message(
    compaction: &CustomPayload,
    entry_time: i64,
) -> Option<AgentMessage> {
    let mut message = compaction.data.get(SYSTEM_MESSAGE)?.clone();
    message.as_object_mut()?.insert("role".to_owned(), Value::from("system"));
    let message = pi::message(RawJson::from(message).get(), entry_time)?;
    message.content().iter().any(|block| block.as_text().is_some()).then_some(message)
}

/// The target of a [`CONTEXT_EDIT`] line, and its content from here on; `None` where it is to be left out.
pub(super) fn context_edit(line: &Value) -> Option<(EntryId, Option<Vec<ContentBlock>>)> {
    let target = EntryId::from_stored(line.get("targetId").and_then(Value::as_str)?);
    match line.get("replacement")? {
        Value::Null => Some((target, None)),
        replacement => {
            let replacement = RawJson::from(replacement.clone());
            let mut members = Members::parse(replacement.get()).unwrap_or_default();
            Some((target, Some(pi::content_of(&mut members, &PI_BLOCKS))))
        }
    }
}
