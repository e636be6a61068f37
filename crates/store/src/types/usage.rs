//! Sums of what sessions used.

use bough_session::{JsonMap, SessionId, Used};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// By what sums are kept apart.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UsageGroup {
    /// By day, in UTC.
    Day,
    /// By model. What tools did is left out.
    Model,
    /// By tool. What models used is left out.
    Tool,
    /// By the directory that a session works in: its metadata `cwd` or `project`.
    Project,
    /// By the agent that a session's metadata names.
    Agent,
    /// By the metadata `tenant`.
    Tenant,
    /// By session.
    Session,
}

/// Which sums to give.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageQuery {
    /// By what they are kept apart; in this order the answer is sorted.
    pub by: Vec<UsageGroup>,
    /// The first day that counts, in days since the epoch.
    pub first_day: Option<i64>,
    /// The last day that counts.
    pub last_day: Option<i64>,
    /// Only sessions with these metadata: every key equals.
    pub metadata: JsonMap,
    /// Only sessions with these metadata too: what the caller may see at all.
    pub scope: JsonMap,
    /// How many sums at most.
    pub limit: usize,
}

impl UsageQuery {
    /// Whether sums are kept apart by something.
    #[must_use]
    pub fn is_by(&self, group: UsageGroup) -> bool {
        self.by.contains(&group)
    }
}

/// What a sum is of; what it is not kept apart by is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UsageName {
    /// The day, counted from the epoch.
    pub day: Option<i64>,
    /// The model.
    pub model: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The session.
    pub session_id: Option<SessionId>,
}

/// One sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageSum {
    /// What it is of.
    pub name: UsageName,
    /// What models used.
    pub models: Used,
    /// What tools did.
    pub tools: Used,
}

/// Sums, the largest cost first; where days are kept apart, the oldest day first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// The sums.
    pub sums: Vec<UsageSum>,
    /// Whether there are more than were asked for.
    pub more: bool,
    /// How many sessions have the metadata that were asked for, whatever they used.
    pub sessions: u64,
}
