//! Makes the events of a loop whose record holds none: files since 0.14 leave them out.

use crate::event::{
    AgentEnd, AgentEvent, AgentStart, InputRejected, MessageEnd, MessageStart, TurnEnd, TurnStart,
};
use crate::message::RecordedMessage;
use crate::model::{LoopRecord, LoopStatus, Turn};

/// The events of a loop, recorded or made from its record, numbered. A loop that never started has none.
pub(super) fn events_of(record: &LoopRecord) -> Vec<(u64, AgentEvent)> {
    if !record.events.is_empty() {
        let recorded = record.events.iter();
        return recorded.map(|event| (event.sequence, event.event.clone())).collect();
    }
    let never_started = record.parallel_group.is_some()
        && record.ended_at.is_none()
        && record.turns.is_empty()
        && record.messages.is_empty()
        && record.status != LoopStatus::Running;
    if never_started {
        return Vec::new();
    }
    (0..).zip(made_up(record)).collect()
}

fn made_up(record: &LoopRecord) -> Vec<AgentEvent> {
    let mut events = vec![start_of(record)];
    for turn in &record.turns {
        events.extend(turn_events(record, turn));
    }
    if let Some(reason) = &record.rejection {
        let rejected = InputRejected { loop_id: record.loop_id.clone(), reason: reason.clone() };
        events.push(rejected.into());
    }
    if let Some(ended_at) = record.ended_at {
        let end = AgentEnd {
            loop_id: record.loop_id.clone(),
            messages: record.messages.clone(),
            usage: record.usage.clone(),
            timestamp: ended_at,
            rejection: record.rejection.clone(),
        };
        events.push(end.into());
    }
    events
}

fn start_of(record: &LoopRecord) -> AgentEvent {
    AgentStart {
        agent_id: record.agent_id.clone(),
        session_id: record.session_id.clone(),
        loop_id: record.loop_id.clone(),
        parent_loop_id: record.parent_loop_id.clone(),
        continuation_kind: record.continuation_kind.clone(),
        timestamp: record.started_at,
        metadata: record.metadata.clone(),
        config_snapshot: record.config.clone(),
    }
    .into()
}

fn turn_events(record: &LoopRecord, turn: &Turn) -> Vec<AgentEvent> {
    let loop_id = || record.loop_id.clone();
    let mut events: Vec<AgentEvent> = Vec::new();
    let start = TurnStart {
        loop_id: loop_id(),
        turn_index: turn.turn_id.turn_index,
        timestamp: turn.started_at,
        triggered_by: turn.triggered_by.clone(),
    };
    events.push(start.into());
    for message in turn.all_messages() {
        let message = message.clone();
        let start = MessageStart { loop_id: loop_id(), message: message.clone() };
        let end = MessageEnd { loop_id: loop_id(), message };
        events.extend([start.into(), end.into()]);
    }
    let results = turn.tool_results.iter().filter_map(RecordedMessage::without_turn);
    let end = TurnEnd {
        loop_id: loop_id(),
        message: turn.output_message.clone(),
        usage: turn.usage.clone(),
        timestamp: turn.ended_at,
        tool_results: results.collect(),
    };
    events.push(end.into());
    events
}
