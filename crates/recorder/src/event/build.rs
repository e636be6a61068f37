//! Constructors for the events that every agent sends.

use std::sync::Arc;

use bough_session::{AgentMessage, ContentBlock, Usage};
use serde_json::Value;

use super::{
    AgentEnd, AgentEvent, AgentStart, ContinuationKind, InputRejected, MessageEnd, MessageStart,
    MessageUpdate, ParallelLoopEnd, ParallelLoopStart, StreamDelta, ToolExecutionEnd,
    ToolExecutionStart, ToolResult, TurnEnd, TurnStart,
};
use crate::message::RecordedMessage;
use crate::model::LoopConfigSnapshot;
use crate::open_enums::TurnTrigger;
use crate::time::Timestamp;
use crate::usage;
use crate::verbatim::Verbatim;

impl AgentStart {
    /// A loop that begins a conversation.
    #[must_use]
    pub fn new(
        agent_id: impl Into<String>,
        session_id: impl Into<String>,
        loop_id: impl Into<String>,
        timestamp: Timestamp,
    ) -> Self {
        Self {
            agent_id: agent_id.into(),
            session_id: session_id.into(),
            loop_id: loop_id.into(),
            timestamp,
            ..Self::default()
        }
    }

    /// The same loop, as one that continues another.
    #[must_use]
    pub fn continuing(self, parent_loop_id: impl Into<String>) -> Self {
        self.after(parent_loop_id, ContinuationKind::Default)
    }

    /// The same loop, as one that tries another one again.
    #[must_use]
    pub fn rerunning(self, parent_loop_id: impl Into<String>, tag: impl Into<String>) -> Self {
        self.after(parent_loop_id, ContinuationKind::Rerun { tag: tag.into() })
    }

    /// The same loop, as one that branches off from another loop.
    #[must_use]
    pub fn branching(self, parent_loop_id: impl Into<String>, tag: impl Into<String>) -> Self {
        self.after(parent_loop_id, ContinuationKind::Branch { tag: tag.into() })
    }

    /// The same loop, as one that a tool of a loop of another session runs.
    #[must_use]
    pub fn spawned_by(self, parent_loop_id: impl Into<String>) -> Self {
        self.after(parent_loop_id, ContinuationKind::Initial)
    }

    /// The same loop, with the model and the settings that it runs with.
    #[must_use]
    pub fn with_config(self, config: LoopConfigSnapshot) -> Self {
        Self { config_snapshot: Some(Box::new(config)), ..self }
    }

    /// The same loop, with data of the caller's. `task_name` in it names the task of the session.
    #[must_use]
    pub fn with_metadata(self, metadata: impl Into<Verbatim<Value>>) -> Self {
        Self { metadata: Some(metadata.into()), ..self }
    }

    fn after(self, parent_loop_id: impl Into<String>, kind: ContinuationKind) -> Self {
        Self { parent_loop_id: Some(parent_loop_id.into()), continuation_kind: kind, ..self }
    }
}

impl AgentEnd {
    /// A loop ended with these messages. Its usage is the sum of theirs; set `usage` if that is not right.
    #[must_use]
    pub fn new(
        loop_id: impl Into<String>,
        messages: impl IntoIterator<Item = impl Into<RecordedMessage>>,
        timestamp: Timestamp,
    ) -> Self {
        let messages: Vec<RecordedMessage> = messages.into_iter().map(Into::into).collect();
        let usage = usage::sum(messages.iter().filter_map(usage_of));
        Self { loop_id: loop_id.into(), messages, usage, timestamp, rejection: None }
    }

    /// A loop ended without a message.
    #[must_use]
    pub fn without_messages(loop_id: impl Into<String>, timestamp: Timestamp) -> Self {
        Self::new(loop_id, [] as [RecordedMessage; 0], timestamp)
    }

    /// A loop ended because a filter refused its input.
    #[must_use]
    pub fn rejected(
        loop_id: impl Into<String>,
        reason: impl Into<String>,
        timestamp: Timestamp,
    ) -> Self {
        let end = Self::without_messages(loop_id, timestamp);
        Self { rejection: Some(reason.into()), ..end }
    }

    /// The same end, with this usage in place of the sum of its messages'.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: usage::recorded(&usage), ..self }
    }
}

impl TurnStart {
    /// A turn begins because a user asked something.
    #[must_use]
    pub fn new(loop_id: impl Into<String>, turn_index: u32, timestamp: Timestamp) -> Self {
        Self { loop_id: loop_id.into(), turn_index, timestamp, triggered_by: TurnTrigger::User }
    }
}

impl TurnEnd {
    /// A turn ended with the model's message. Its usage is the message's.
    #[must_use]
    pub fn new(
        loop_id: impl Into<String>,
        message: impl Into<RecordedMessage>,
        timestamp: Timestamp,
    ) -> Self {
        let message = message.into();
        let usage = usage_of(&message).map_or_else(usage::none, usage::recorded);
        Self { loop_id: loop_id.into(), message, usage, timestamp, tool_results: Vec::new() }
    }

    /// The same end, with the answers of the tools. Messages that are no answers of tools are left out.
    #[must_use]
    pub fn with_tool_results(
        self,
        results: impl IntoIterator<Item = impl Into<RecordedMessage>>,
    ) -> Self {
        let results = results.into_iter().filter_map(|result| result.into().without_turn());
        let results = results.filter(|result| result.answered_call().is_some());
        Self { tool_results: results.collect(), ..self }
    }

    /// The same end, with this usage in place of its message's.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: usage::recorded(&usage), ..self }
    }
}

impl MessageStart {
    /// A message begins.
    #[must_use]
    pub fn new(loop_id: impl Into<String>, message: impl Into<RecordedMessage>) -> Self {
        Self { loop_id: loop_id.into(), message: message.into() }
    }
}

impl MessageUpdate {
    /// A piece was added to a message, which is given as far as it is known now.
    #[must_use]
    pub fn new(
        loop_id: impl Into<String>,
        message: impl Into<RecordedMessage>,
        delta: StreamDelta,
    ) -> Self {
        Self { loop_id: loop_id.into(), message: message.into(), delta }
    }
}

impl MessageEnd {
    /// A message is complete.
    #[must_use]
    pub fn new(loop_id: impl Into<String>, message: impl Into<RecordedMessage>) -> Self {
        Self { loop_id: loop_id.into(), message: message.into() }
    }
}

impl ToolExecutionStart {
    /// A tool is called.
    #[must_use]
    pub fn new(
        loop_id: impl Into<String>,
        tool_call_id: impl Into<String>,
        tool_name: impl Into<String>,
        args: impl Into<Verbatim<Value>>,
    ) -> Self {
        Self {
            loop_id: loop_id.into(),
            tool_call_id: tool_call_id.into(),
            tool_name: tool_name.into(),
            args: args.into(),
        }
    }
}

impl ToolExecutionEnd {
    /// A tool answered.
    #[must_use]
    pub fn new(
        loop_id: impl Into<String>,
        tool_call_id: impl Into<String>,
        tool_name: impl Into<String>,
        result: impl Into<Verbatim<ToolResult>>,
    ) -> Self {
        Self {
            loop_id: loop_id.into(),
            tool_call_id: tool_call_id.into(),
            tool_name: tool_name.into(),
            result: result.into(),
            is_error: false,
            child_loop_id: None,
        }
    }
}

impl ToolResult {
    /// The answer of a tool, in words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// The same answer, given by a sub-agent that ran this loop.
    #[must_use]
    pub fn from_sub_agent(self, child_loop_id: impl Into<String>) -> Self {
        Self { child_loop_id: Some(child_loop_id.into()), ..self }
    }
}

impl InputRejected {
    /// A filter refused the input of the user.
    #[must_use]
    pub fn new(loop_id: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { loop_id: loop_id.into(), reason: reason.into() }
    }
}

impl ParallelLoopStart {
    /// Loops are about to run side by side, in the order of their configurations.
    #[must_use]
    pub fn new(
        session_id: impl Into<String>,
        loop_ids: impl IntoIterator<Item = impl Into<String>>,
        timestamp: Timestamp,
    ) -> Self {
        let loop_ids = loop_ids.into_iter().map(Into::into).collect();
        Self { session_id: session_id.into(), loop_ids, timestamp }
    }
}

impl ParallelLoopEnd {
    /// One of several loops was chosen, by its place among the configurations, without cost.
    #[must_use]
    pub fn new(
        session_id: impl Into<String>,
        selected_loop_id: impl Into<String>,
        selected_config_index: u64,
        timestamp: Timestamp,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            selected_loop_id: selected_loop_id.into(),
            selected_config_index,
            evaluation_usage: usage::none(),
            timestamp,
        }
    }

    /// The same choice, with what choosing cost.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { evaluation_usage: usage::recorded(&usage), ..self }
    }
}

/// The usage of a message; only a model's message has one.
fn usage_of(message: &RecordedMessage) -> Option<&Usage> {
    message.known().and_then(AgentMessage::usage)
}

impl AgentEvent {
    /// The event with its usage as records have it, so that it equals the event that is read from one.
    pub(crate) fn with_recorded_usage(mut self) -> Self {
        fn record<T: Clone>(
            event: &mut Arc<T>,
            usage: impl Fn(&mut T) -> &mut Usage,
            given: &Usage,
        ) {
            let recorded = usage::recorded(given);
            if recorded != *given {
                *usage(Arc::make_mut(event)) = recorded;
            }
        }
        match &mut self {
            Self::AgentEnd(end) => record(end, |end| &mut end.usage, &end.usage.clone()),
            Self::TurnEnd(end) => record(end, |end| &mut end.usage, &end.usage.clone()),
            Self::ParallelLoopEnd(end) => {
                record(end, |end| &mut end.evaluation_usage, &end.evaluation_usage.clone());
            }
            _ => {}
        }
        self
    }
}

/// A start at the epoch without ids, to be filled in.
impl Default for AgentStart {
    fn default() -> Self {
        Self {
            agent_id: String::new(),
            session_id: String::new(),
            loop_id: String::new(),
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            timestamp: Timestamp::default(),
            metadata: None,
            config_snapshot: None,
        }
    }
}
