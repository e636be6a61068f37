//! Bookkeeping that we understand: first-class here, custom entries with reserved names on the wire.
//!
//! | `custom_type` | `data` |
//! |---|---|
//! | `bough.model_change` | `provider`, `model_id` |
//! | `bough.thinking_level_change` | `thinking_level` |
//! | `bough.compaction` | `summary`, `first_kept_entry_id`, `tokens_before`, `details?`, `from_hook?` |
//! | `bough.branch_summary` | `from_id`, `summary`, `details?`, `from_hook?` |
//! | `bough.session_info` | `name` |
//! | `bough.label` | `target_id`, `label?` |
//!
//! Data of these types is kept as it came, unknown fields included; the types here are how it is read.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CustomPayload, EntryId};

/// The prefix of every reserved `custom_type`.
pub const RESERVED_PREFIX: &str = "bough.";

/// The kinds of bookkeeping that this version knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Bookkeeping {
    /// From here on another model answers.
    ModelChange(ModelChange),
    /// From here on the thinking level is another.
    ThinkingLevelChange(ThinkingLevelChange),
    /// A summary replaces the messages before it in the model's context.
    Compaction(Compaction),
    /// A summary of a branch that the conversation left.
    BranchSummary(BranchSummary),
    /// The session has a name.
    SessionInfo(SessionInfo),
    /// An entry has a label, or no longer has one.
    Label(Label),
}

/// From here on another model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChange {
    /// The provider that serves it.
    pub provider: String,
    /// The name of the model.
    pub model_id: String,
}

/// From here on the thinking level is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkingLevelChange {
    /// `off`, `minimal`, `low`, `medium`, `high`, or what the provider offers.
    pub thinking_level: String,
}

/// A summary replaces the messages before it in the model's context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The summary.
    pub summary: String,
    /// The first entry before the compaction that the model still gets unchanged. The compaction itself, or an entry
    /// that is not on the path, means none.
    pub first_kept_entry_id: EntryId,
    /// How many tokens the context had.
    #[serde(default)]
    pub tokens_before: u64,
    /// Data of the program that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether an extension made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// A summary of a branch that the conversation left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BranchSummary {
    /// The last entry of the summarised branch, or `root`.
    pub from_id: String,
    /// The summary; an empty one is not sent to the model.
    pub summary: String,
    /// Data of the program that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether an extension made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// The session has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The name; an empty one removes it.
    pub name: String,
}

/// An entry has a label, or no longer has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The labelled entry.
    pub target_id: EntryId,
    /// The label; if absent, the label is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl Bookkeeping {
    /// The reserved name of this kind.
    #[must_use]
    pub const fn custom_type(&self) -> &'static str {
        match self {
            Self::ModelChange(_) => "bough.model_change",
            Self::ThinkingLevelChange(_) => "bough.thinking_level_change",
            Self::Compaction(_) => "bough.compaction",
            Self::BranchSummary(_) => "bough.branch_summary",
            Self::SessionInfo(_) => "bough.session_info",
            Self::Label(_) => "bough.label",
        }
    }

    /// The custom payload that carries this.
    #[must_use]
    pub fn to_payload(&self) -> CustomPayload {
        let data = match self {
            Self::ModelChange(data) => serde_json::to_value(data),
            Self::ThinkingLevelChange(data) => serde_json::to_value(data),
            Self::Compaction(data) => serde_json::to_value(data),
            Self::BranchSummary(data) => serde_json::to_value(data),
            Self::SessionInfo(data) => serde_json::to_value(data),
            Self::Label(data) => serde_json::to_value(data),
        };
        CustomPayload {
            custom_type: self.custom_type().to_owned(),
            // These types hold nothing that JSON cannot represent.
            data: data.unwrap_or_default(),
        }
    }

    /// Reads a custom payload; `None` if it is not bookkeeping, or not in a form that this version
    /// knows.
    #[must_use]
    pub fn from_payload(payload: &CustomPayload) -> Option<Self> {
        let data = &payload.data;
        match payload.custom_type.strip_prefix(RESERVED_PREFIX)? {
            "model_change" => read(data).map(Self::ModelChange),
            "thinking_level_change" => read(data).map(Self::ThinkingLevelChange),
            "compaction" => read(data).map(Self::Compaction),
            "branch_summary" => read(data).map(Self::BranchSummary),
            "session_info" => read(data).map(Self::SessionInfo),
            "label" => read(data).map(Self::Label),
            _ => None,
        }
    }
}

fn read<'a, T: Deserialize<'a>>(data: &'a Value) -> Option<T> {
    T::deserialize(data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn every_kind() -> Vec<Bookkeeping> {
        vec![
            Bookkeeping::ModelChange(ModelChange { provider: "p".into(), model_id: "m".into() }),
            Bookkeeping::ThinkingLevelChange(ThinkingLevelChange { thinking_level: "high".into() }),
            Bookkeeping::Compaction(Compaction {
                summary: "s".into(),
                first_kept_entry_id: EntryId::from_stored("e"),
                tokens_before: 9,
                details: Some(json!({"readFiles": []})),
                from_hook: Some(true),
            }),
            Bookkeeping::BranchSummary(BranchSummary {
                from_id: "root".into(),
                summary: "s".into(),
                details: None,
                from_hook: None,
            }),
            Bookkeeping::SessionInfo(SessionInfo { name: "n".into() }),
            Bookkeeping::Label(Label { target_id: EntryId::from_stored("e"), label: None }),
        ]
    }

    #[test]
    fn every_kind_survives_its_payload() {
        for kind in every_kind() {
            let payload = kind.to_payload();
            assert!(payload.custom_type.starts_with(RESERVED_PREFIX));
            assert_eq!(Bookkeeping::from_payload(&payload), Some(kind));
        }
    }

    #[test]
    fn what_we_do_not_know_is_not_ours() {
        let check = |custom_type: &str, data: Value| {
            let payload = CustomPayload { custom_type: custom_type.into(), data };
            assert_eq!(Bookkeeping::from_payload(&payload), None, "{payload:?}");
        };
        check("label", json!({"target_id": "e"}));
        check("bough.tomorrow", json!({}));
        check("bough.label", json!({"label": "no target"}));
        check("bough.label", json!(null));
    }
}
