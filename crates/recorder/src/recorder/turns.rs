//! Turns: from pairs of `TurnStart` and `TurnEnd`.

use serde_json::Value;

use super::live::Live;
use super::report::{Notice, Report};
use crate::event::{AgentEvent, TurnEnd, TurnStart};
use crate::loops::Slot;
use crate::message::{AgentMessage, Message, TurnId};
use crate::model::{LoopConfigSnapshot, Turn, config_id_in};
use crate::time::Timestamp;
use crate::words::TurnTrigger;

/// A turn that has not ended.
#[derive(Debug)]
pub(super) struct PartialTurn {
    turn_index: u32,
    triggered_by: TurnTrigger,
    started_at: Timestamp,
    input_messages: Vec<AgentMessage>,
    request_payload: Option<Value>,
}

impl Live {
    /// Finds the turn again that a loop was in, from its events.
    pub(super) fn find_turn(&mut self, slot: Slot) {
        let events = self.record(slot).events.iter().map(|event| &event.event);
        let events: Vec<AgentEvent> = events.cloned().collect();
        // What was to be said about these events was said when they were heard.
        let mut said = Report::default();
        for event in &events {
            match event {
                AgentEvent::TurnStart(turn) => self.begin_turn(slot, turn, &mut said),
                AgentEvent::MessageEnd(end) => self.hear_message(slot, &end.message),
                AgentEvent::TurnRequest(request) => self.hear_request(slot, &request.payload),
                AgentEvent::TurnEnd(_) => drop(self.turns.remove(&slot)),
                _ => {}
            }
        }
    }

    pub(super) fn begin_turn(&mut self, slot: Slot, event: &TurnStart, report: &mut Report) {
        let turn = PartialTurn {
            turn_index: event.turn_index,
            triggered_by: event.triggered_by.clone(),
            started_at: event.timestamp,
            input_messages: Vec::new(),
            request_payload: None,
        };
        if let Some(unfinished) = self.turns.insert(slot, turn) {
            report.note(Notice::TurnUnfinished {
                loop_id: event.loop_id.clone(),
                turn_index: unfinished.turn_index,
            });
        }
    }

    /// What is said within a turn, other than by the model, was said to it.
    pub(super) fn hear_message(&mut self, slot: Slot, message: &AgentMessage) {
        if !message.is_assistant()
            && let Some(turn) = self.turns.get_mut(&slot)
        {
            turn.input_messages.push(message.clone());
        }
    }

    pub(super) fn hear_request(&mut self, slot: Slot, payload: &Value) {
        if let Some(turn) = self.turns.get_mut(&slot) {
            turn.request_payload = Some(payload.clone());
        }
    }

    pub(super) fn end_turn(&mut self, slot: Slot, event: &TurnEnd, report: &mut Report) {
        if self.record(slot).config.is_none() {
            let config = config_of(&event.message, &event.loop_id);
            self.change(slot).config = config;
        }
        let Some(turn) = self.turns.remove(&slot) else {
            report.note(Notice::TurnNotStarted { loop_id: event.loop_id.clone() });
            return;
        };
        let turn_id =
            TurnId { loop_id: self.record(slot).loop_id.clone(), turn_index: turn.turn_index };
        let tool_results = event
            .tool_results
            .iter()
            .map(|result| AgentMessage::from(result.clone()).with_turn_id(Some(turn_id.clone())));
        let turn = Turn {
            tool_results: tool_results.collect(),
            turn_id,
            triggered_by: turn.triggered_by,
            usage: event.usage,
            input_messages: without_results(turn.input_messages, &event.tool_results),
            output_message: event.message.clone(),
            started_at: turn.started_at,
            ended_at: event.timestamp,
            request_payload: turn.request_payload,
        };
        self.change(slot).turns.push(turn);
    }
}

/// The answers of a turn's own tools are said to the model in the next turn: they are not inputs of this
/// one, although they are heard within it.
fn without_results(mut inputs: Vec<AgentMessage>, results: &[Message]) -> Vec<AgentMessage> {
    inputs.retain(|input| {
        let Some(Message::ToolResult { tool_call_id, .. }) = input.as_llm() else {
            return true;
        };
        !results.iter().any(|result| {
            matches!(result, Message::ToolResult { tool_call_id: id, .. } if id == tool_call_id)
        })
    });
    inputs
}

/// The settings that a message of the model's gives away.
pub(super) fn config_of(message: &AgentMessage, loop_id: &str) -> Option<Box<LoopConfigSnapshot>> {
    let Some(Message::Assistant { model, provider, .. }) = message.as_llm() else {
        return None;
    };
    Some(Box::new(LoopConfigSnapshot {
        model: model.to_string(),
        provider: provider.to_string(),
        config_id: config_id_in(loop_id),
        ..LoopConfigSnapshot::default()
    }))
}
