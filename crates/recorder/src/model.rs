//! Sessions, loops and turns: what a recorder makes of events, and what the session files hold.

use std::sync::Arc;

use bough_session::{AgentMessage, LoopPhase, Usage};
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

use crate::announced::Announcements;
use crate::event::{AgentEvent, ContinuationKind};
use crate::events::Events;
use crate::lineage::Lineage;
use crate::loops::Loops;
use crate::message::{RecordedMessage, TurnId};
use crate::open_enums::{ApiProtocol, ThinkingLevel, TurnTrigger};
use crate::time::Timestamp;
use crate::verbatim::Verbatim;

/// All loops of one session, in the order in which they started.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RecordedSession {
    /// Names the session.
    pub session_id: String,
    /// The agent of its first loop.
    pub agent_id: String,
    /// When its first loop started.
    pub created_at: Timestamp,
    /// When its last loop started.
    pub last_active_at: Timestamp,
    /// Why it was made.
    pub formation: SessionFormation,
    /// The loop of another session whose tool spawned this session.
    pub parent_spawn_ref: Option<SpawnRef>,
    /// Whether it is to be kept.
    #[serde(default)]
    pub scope: SessionScope,
    /// The name of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_name: Option<String>,
    /// The status of its task, if the caller set it; see [`RecordedSession::task_status`].
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "task_status")]
    pub stated_task_status: Option<TaskStatus>,
    /// Its loops.
    pub loops: Loops,
    /// What is known of the session's file; not part of the session's content.
    #[serde(skip)]
    pub(crate) lineage: Lineage,
    /// When its groups were announced; not part of the session's content.
    #[serde(skip)]
    pub(crate) announced: Announcements,
}

/// Why a session was made.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SessionFormation {
    /// A caller created it explicitly.
    Explicit {
        /// When.
        timestamp: Timestamp,
    },
    /// A loop named it for the first time.
    FirstLoop {
        /// When.
        timestamp: Timestamp,
    },
    /// Its agent had been idle for too long to continue the session before it.
    InactivityTimeout {
        /// The longest idle time, in seconds.
        threshold_secs: u64,
        /// The session before it.
        previous_session_id: Option<String>,
        /// When.
        timestamp: Timestamp,
    },
}

/// Whether a session is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionScope {
    /// It may be forgotten.
    #[default]
    Ephemeral,
    /// It is to be kept.
    Persistent,
}

/// The status of a session's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TaskStatus {
    /// Nothing has started.
    Pending,
    /// A loop is running.
    Running,
    /// The last loop ended well.
    Completed,
    /// The last loop was rejected or aborted.
    Failed,
}

/// The origin of a sub-agent's session.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SpawnRef {
    /// The session of the loop that spawned it; empty while it is not known.
    pub parent_session_id: String,
    /// The loop that spawned it.
    pub parent_loop_id: String,
    /// The call of the tool that spawned it; empty while it is not known.
    pub tool_call_id: String,
    /// That tool; empty while it is not known.
    pub tool_name: String,
}

/// A sub-agent that a tool of a loop ran.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChildLoopRef {
    /// The call of the tool; empty while it is not known.
    pub tool_call_id: String,
    /// The tool; empty while it is not known.
    pub tool_name: String,
    /// The sub-agent's loop.
    pub child_loop_id: String,
    /// The sub-agent's session; empty while it is not known.
    pub child_session_id: String,
}

/// The group of loops that ran in parallel, on the record of each of them.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ParallelGroupRecord {
    /// All loops of the group, in the order of their configurations.
    pub all_loop_ids: Vec<String>,
    /// The chosen loop; empty until one is chosen.
    pub selected_loop_id: String,
    /// Its place among the configurations, from 0.
    pub selected_config_index: u64,
    /// The usage of choosing.
    #[serde(with = "crate::usage")]
    pub evaluation_usage: Usage,
    /// Whether this loop is the chosen one.
    pub is_selected: bool,
}

/// The status of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum LoopStatus {
    /// Announced with its group, not started.
    Pending,
    /// Started.
    Running,
    /// Ended.
    Completed,
    /// Its input was refused.
    Rejected,
    /// Stopped before it ended.
    Aborted,
}

impl LoopStatus {
    /// Whether the loop is still to end.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl From<LoopStatus> for LoopPhase {
    fn from(status: LoopStatus) -> Self {
        match status {
            LoopStatus::Pending => Self::Pending,
            LoopStatus::Running => Self::Running,
            LoopStatus::Completed => Self::Completed,
            LoopStatus::Rejected => Self::Rejected,
            LoopStatus::Aborted => Self::Aborted,
        }
    }
}

/// The model and settings that a loop ran with.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LoopConfigSnapshot {
    /// Which model.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// The name of the configuration.
    pub config_id: Option<String>,
    /// The display name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The protocol it is called by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiProtocol>,
    /// The address of its API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Whether it can think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// The context window, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// The longest answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The thinking level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
}

/// One run of an agent's loop.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LoopRecord {
    /// Names the loop.
    pub loop_id: String,
    /// The session that it belongs to.
    pub session_id: String,
    /// The agent that ran it.
    pub agent_id: String,
    /// The loop before it, of this session or of another.
    #[serde(default)]
    pub parent_loop_id: Option<String>,
    /// How it relates to the loop before it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub continuation_kind: ContinuationKind,
    /// When it started; for a loop that never did, when it was announced.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
    /// Its status.
    pub status: LoopStatus,
    /// Why its input was refused.
    #[serde(default)]
    pub rejection: Option<String>,
    /// The model and settings that it ran with.
    #[serde(default)]
    pub config: Option<Box<LoopConfigSnapshot>>,
    /// All messages that it made, as its end reported them.
    pub messages: Vec<RecordedMessage>,
    /// Its turns that were completed.
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// Its usage.
    #[serde(with = "crate::usage")]
    pub usage: Usage,
    /// The caller's own data.
    #[serde(default)]
    pub metadata: Option<Verbatim<Value>>,
    /// Its events, in order.
    #[serde(default)]
    pub events: Events,
    /// The loops of this session that continue it.
    #[serde(default)]
    pub children_loop_ids: Vec<String>,
    /// The sub-agents that its tools ran.
    #[serde(default)]
    pub child_loop_refs: Vec<ChildLoopRef>,
    /// The group that it ran in.
    #[serde(default)]
    pub parallel_group: Option<ParallelGroupRecord>,
    /// The overlay that replaces its messages in a compacted context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_block: Option<CompactionBlock>,
}

/// An event and its place among those of its loop.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LoopEvent {
    /// Its place, from 0, without gaps.
    pub sequence: u64,
    /// The event.
    pub event: AgentEvent,
}

/// One call of the model, from its beginning to the last answer of its tools.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Turn {
    /// Names the turn.
    pub turn_id: TurnId,
    /// What triggered it.
    pub triggered_by: TurnTrigger,
    /// Its usage.
    #[serde(with = "crate::usage")]
    pub usage: Usage,
    /// The input of the model.
    pub input_messages: Vec<RecordedMessage>,
    /// The answer of the model.
    pub output_message: RecordedMessage,
    /// The answers of the tools.
    pub tool_results: Vec<RecordedMessage>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The request to the model, if it was reported (since 0.9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_payload: Option<Verbatim<Value>>,
}

/// An overlay that replaces a loop's messages in a compacted context. The messages themselves stay.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CompactionBlock {
    /// Turns from the start that are kept word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_first: Option<TurnRange>,
    /// Turns from the end, with long tool output cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_recent: Option<CompactedSection>,
    /// A summary of the turns between them, or of the whole loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_compacted: Option<CompactedSection>,
    /// When the block was made.
    #[serde(rename = "createdAt")]
    pub created_at: Timestamp,
}

/// Turns of a loop, both ends included, counted by their place among the loop's groups of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRange {
    /// The first.
    pub start_turn: u32,
    /// The last.
    pub end_turn: u32,
}

/// Messages that stand for some turns.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CompactedSection {
    /// The turns.
    pub range: TurnRange,
    /// The messages that replace them.
    pub messages: Vec<RecordedMessage>,
}

impl RecordedSession {
    /// An explicitly created session, without loops.
    #[must_use]
    pub fn explicit(
        session_id: impl Into<String>,
        agent_id: impl Into<String>,
        now: Timestamp,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            agent_id: agent_id.into(),
            created_at: now,
            last_active_at: now,
            formation: SessionFormation::Explicit { timestamp: now },
            parent_spawn_ref: None,
            scope: SessionScope::Ephemeral,
            task_name: None,
            stated_task_status: None,
            loops: Loops::default(),
            lineage: Lineage::default(),
            announced: Announcements::default(),
        }
    }

    /// The loop with that id, in constant time.
    #[must_use]
    pub fn get_loop(&self, loop_id: &str) -> Option<&LoopRecord> {
        self.loops.get(loop_id)
    }

    /// Adds a compaction to a loop, or removes it. Returns whether the loop exists. The loop's messages stay unchanged,
    /// so removing the compaction restores the conversation.
    pub fn set_compaction_block(&mut self, loop_id: &str, block: Option<CompactionBlock>) -> bool {
        let Some(slot) = self.loops.slot_of(loop_id) else {
            return false;
        };
        self.loops.change(slot).compaction_block = block;
        true
    }
}

impl LoopRecord {
    /// A record of a loop of which only the ids and the time of its announcement or start are known.
    #[must_use]
    pub fn new(
        loop_id: impl Into<String>,
        session_id: impl Into<String>,
        agent_id: impl Into<String>,
        status: LoopStatus,
        started_at: Timestamp,
    ) -> Self {
        Self {
            loop_id: loop_id.into(),
            session_id: session_id.into(),
            agent_id: agent_id.into(),
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            started_at,
            ended_at: None,
            status,
            rejection: None,
            config: None,
            messages: Vec::new(),
            turns: Vec::new(),
            usage: crate::usage::none(),
            metadata: None,
            events: Events::default(),
            children_loop_ids: Vec::new(),
            child_loop_refs: Vec::new(),
            parallel_group: None,
            compaction_block: None,
        }
    }

    /// The turn of that index, by its own number rather than by its place.
    #[must_use]
    pub fn get_turn(&self, turn_index: u32) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.turn_id.turn_index == turn_index)
    }

    /// The messages that the loop made. Those of the application alone are left out.
    pub fn canonical_messages(&self) -> impl Iterator<Item = &AgentMessage> {
        self.messages.iter().filter_map(RecordedMessage::message)
    }

    /// Whether another loop of its group was chosen.
    #[must_use]
    pub fn is_passed_over(&self) -> bool {
        self.parallel_group
            .as_ref()
            .is_some_and(|group| !group.selected_loop_id.is_empty() && !group.is_selected)
    }
}

impl Turn {
    /// All messages of the turn, each once, in order.
    pub fn all_messages(&self) -> impl Iterator<Item = &RecordedMessage> {
        self.input_messages
            .iter()
            .chain(std::iter::once(&self.output_message))
            .chain(&self.tool_results)
    }

    /// All messages of the turn, oldest first. Those of the application alone are left out.
    pub fn canonical_messages(&self) -> impl Iterator<Item = &AgentMessage> {
        self.all_messages().filter_map(RecordedMessage::message)
    }
}

/// The configuration id in a loop id of the usual form (`{session_id}.{config_id}.{number}`). Each of the two ids may
/// contain dots; that of the session is known.
pub(crate) fn config_id_in(loop_id: &str, session_id: &str) -> Option<String> {
    let of_session = loop_id.strip_prefix(session_id).and_then(|rest| rest.strip_prefix('.'));
    let rest = of_session.or_else(|| loop_id.split_once('.').map(|(_, rest)| rest))?;
    let (config_id, _) = rest.rsplit_once('.')?;
    Some(config_id.to_owned())
}

/// The session id in a loop id of the usual form. Used only while the session is not known.
pub(crate) fn session_id_in(loop_id: &str) -> Option<&str> {
    loop_id.split_once('.').map(|(session_id, _)| session_id)
}

fn null_is_default<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ContinuationKind, D::Error> {
    Ok(Option::<ContinuationKind>::deserialize(deserializer)?.unwrap_or_default())
}

/// Looks up a session that a recorder does not have in memory.
pub type LoadSessionFn = Arc<dyn Fn(&str) -> Option<RecordedSession> + Send + Sync>;
