//! Lines of pi session files that are no messages.

use serde_json::Value;

use super::pi::{self, PI_BLOCKS};
use super::read::Members;
use crate::bookkeeping::{
    BranchSummary, Compaction, Label, ModelChange, SessionInfo, ThinkingLevelChange,
};
use crate::{Bookkeeping, ContentBlock, EntryId, RawJson, Usage};

/// Usage that belongs to no message, such as that of keeping a cache warm.
pub(super) const USAGE: &str = "pi.usage";
/// What a model is sent in the place of an earlier entry from here on.
pub(super) const CONTEXT_EDIT: &str = "pi.context_edit";

pub(super) fn bookkeeping(kind: &str, line: &Value) -> Option<Bookkeeping> {
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
    let usage = RawJson::from(line.get("usage")?.clone());
    Some((model.to_owned(), pi::usage(Members::parse(usage.get()).unwrap_or_default())))
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
