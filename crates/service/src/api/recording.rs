use bough_recorder::Spawn;
use bough_session::{LoopPhase, RawJson, SessionId, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `session::record`: the next events of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordRequest {
    /// Names the recording, so that a later request can continue it. Without a name a new recording begins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recording_id: String,
    /// How many events of the recording come before the first of these. Events that the recording has already are passed
    /// over, so a request can be repeated. Without it these are the next ones. After the server was restarted, events of
    /// loops that began before are refused: send those after `resume_after`, or all of them with 0.
    pub after: Option<u64>,
    /// The events, in the order of the agent.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub events: Vec<RawJson>,
    /// Whether the recording ends here: loops that have not ended are then broken off. Default false.
    pub finish: Option<bool>,
}

/// Output of `session::record`. Everything up to `position` is durable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordResponse {
    /// The recording.
    pub recording_id: String,
    /// How many events the recording has.
    pub position: u64,
    /// Where to go on after the server was restarted: the events after this one are to be sent again. They belong to loops that
    /// have not ended, and none of them is stored twice.
    pub resume_after: u64,
    /// The sessions that the events of this request named.
    pub sessions: Vec<SessionId>,
    /// How many events of this request were stored before.
    pub already_recorded: u64,
    /// What was not as expected, in the order of the events; the first of them where there are many.
    pub notices: Vec<RecordingNotice>,
    /// How many notices were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub notices_left_out: u64,
}

/// Something unexpected about an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingNotice {
    /// The number of the event in its recording, from 1.
    pub event: u64,
    /// What is unexpected.
    pub notice: String,
    /// Whether the event is not recorded.
    pub lost: bool,
}

/// Input of `session::recording`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingRequest {
    /// The recording.
    pub recording_id: String,
}

/// Output of `session::recording`: where an open recording stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingResponse {
    /// The recording.
    pub recording_id: String,
    /// How many events are durable: the next request goes on after this.
    pub position: u64,
    /// The same, after a restart of the server.
    pub resume_after: u64,
}

/// Input of `session::loops`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopsRequest {
    /// The session.
    pub session_id: SessionId,
    /// Page size. Default 50, clamped to the configured maximum.
    pub limit: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
}

/// Output of `session::loops`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopsResponse {
    /// One page, in the order in which the loops started. Empty for a session that was not recorded.
    pub loops: Vec<LoopSummary>,
    /// Present when more pages remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// How a loop relates to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopContinuation {
    /// It begins something.
    Initial,
    /// It goes on.
    Default,
    /// It tries again.
    Rerun,
    /// It tries something else.
    Branch,
    /// It only compacts the context.
    Compaction,
}

/// Tokens, as the events report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopUsage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens thought.
    pub reasoning: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
    /// All together, as the provider counts.
    pub total_tokens: u64,
}

impl From<&Usage> for LoopUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input.unwrap_or_default(),
            output: usage.output.unwrap_or_default(),
            reasoning: usage.reasoning.unwrap_or_default(),
            cache_read: usage.cache_read.unwrap_or_default(),
            cache_write: usage.cache_write.unwrap_or_default(),
            total_tokens: bough_recorder::total_tokens(usage),
        }
    }
}

/// One loop of a recorded session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopSummary {
    /// Names the loop.
    pub loop_id: String,
    /// The agent that ran it.
    pub agent_id: String,
    /// The loop before it, of this session or of another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_loop_id: Option<String>,
    /// How it relates to that loop.
    pub continuation: LoopContinuation,
    /// The mark of a rerun or a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Where it stands.
    pub status: LoopPhase,
    /// When it started, in milliseconds since the epoch.
    pub started_at: i64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Why its input was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// The model that it ran with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many messages it made.
    pub messages: u64,
    /// Its turns.
    pub turns: Vec<TurnSummary>,
    /// What it cost.
    pub usage: LoopUsage,
    /// The loops of this session that go on from it.
    pub children_loop_ids: Vec<String>,
    /// The group that it ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<LoopGroup>,
    /// The sub-agents that its tools ran.
    pub spawned: Vec<LoopSpawn>,
    /// Whether a summary stands for its messages in a compacted context.
    pub is_compacted: bool,
    /// That summary, and what it hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<LoopCompaction>,
}

/// What stands for messages of a loop in a compacted context. The messages themselves stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopCompaction {
    /// When it was made, in milliseconds since the epoch.
    pub created_at: i64,
    /// How many messages of the loop it stands for.
    pub hidden_messages: u64,
    /// How many messages of the loop come before those.
    pub kept_before: u64,
    /// The text that stands for them.
    pub summary: String,
}

/// One call of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSummary {
    /// Which turn of its loop, from 0.
    pub turn_index: u32,
    /// When it began, in milliseconds since the epoch.
    pub started_at: i64,
    /// When it ended.
    pub ended_at: i64,
    /// How many answers of tools it has.
    pub tool_results: u64,
    /// What it cost.
    pub usage: LoopUsage,
}

/// A group of loops that ran side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopGroup {
    /// All loops of the group, in the order of their configurations.
    pub loop_ids: Vec<String>,
    /// The loop that was chosen; absent until one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// What choosing cost.
    pub evaluation_usage: LoopUsage,
}

/// A sub-agent that a tool of a loop ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopSpawn {
    /// The call of the tool; empty while that is not known.
    pub tool_call_id: String,
    /// The tool; empty while that is not known.
    pub tool_name: String,
    /// The sub-agent's session; empty while that is not known.
    pub session_id: String,
    /// The sub-agent's loop.
    pub loop_id: String,
}

/// Input of `session::loop-chain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopChainRequest {
    /// The session.
    pub session_id: SessionId,
    /// The loop that the chain leads to.
    pub loop_id: String,
}

/// Output of `session::loop-chain`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopChainResponse {
    /// The loops from the root to the asked one. Of a parallel group only the chosen loop is among them.
    pub loop_ids: Vec<String>,
}

/// Input of `session::loop-groups`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopGroupsRequest {
    /// The session.
    pub session_id: SessionId,
}

/// Output of `session::loop-groups`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopGroupsResponse {
    /// The groups of parallel loops, each once, with the winner of each.
    pub groups: Vec<LoopGroup>,
}

/// Input of `session::spawns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnsRequest {
    /// Any session of the family.
    pub session_id: SessionId,
}

/// Output of `session::spawns`: the sessions that spawned each other, up and down from the asked one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnsResponse {
    /// Which loop spawned which session.
    pub spawns: Vec<Spawn>,
    /// The sessions of the family that the caller may see, the asked one first.
    pub sessions: Vec<SpawnedSession>,
    /// Whether the family is larger than what is shown.
    pub more: bool,
}

/// A session of a family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnedSession {
    /// The session.
    pub session_id: String,
    /// Its agent.
    pub agent_id: String,
    /// How many loops it has.
    pub loops: u64,
    /// What its loops, and choosing among parallel ones, cost.
    pub usage: LoopUsage,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
