//! Turns: from pairs of `TurnStart` and `TurnEnd`.

use bough_session::{AgentMessage, AssistantMessage, ContentBlock, StopReason, Usage};
use serde_json::Value;

use super::live::Live;
use super::report::{Notice, Report};
use crate::event::{AgentEnd, AgentEvent, TurnEnd, TurnStart};
use crate::loops::Slot;
use crate::message::{RecordedMessage, TurnId};
use crate::model::{LoopConfigSnapshot, Turn, config_id_in};
use crate::open_enums::TurnTrigger;
use crate::time::Timestamp;
use crate::verbatim::Verbatim;

/// A turn that has not ended.
#[derive(Debug)]
pub(super) struct PartialTurn {
    turn_index: u32,
    triggered_by: TurnTrigger,
    started_at: Timestamp,
    input_messages: Vec<RecordedMessage>,
    /// The last message of the model.
    output_message: Option<RecordedMessage>,
    request_payload: Option<Verbatim<Value>>,
}

impl Live {
    /// Restores the open turn of a loop from its events.
    pub(super) fn find_turn(&mut self, slot: Slot) {
        let events = self.record(slot).events.iter().map(|event| &event.event);
        let events: Vec<AgentEvent> = events.cloned().collect();
        // The notices of these events were reported when they were recorded.
        let mut report = Report::default();
        for event in &events {
            match event {
                AgentEvent::TurnStart(turn) => self.begin_turn(slot, turn, &mut report),
                AgentEvent::MessageEnd(end) => self.add_message(slot, &end.message),
                AgentEvent::TurnRequest(request) => self.set_request(slot, &request.payload),
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
            output_message: None,
            request_payload: None,
        };
        if let Some(unfinished) = self.turns.insert(slot, turn) {
            report.note(Notice::TurnUnfinished {
                loop_id: event.loop_id.clone(),
                turn_index: unfinished.turn_index,
            });
        }
    }

    /// A message within a turn that is not the model's is an input of the turn.
    pub(super) fn add_message(&mut self, slot: Slot, message: &RecordedMessage) {
        let Some(turn) = self.turns.get_mut(&slot) else {
            return;
        };
        if message.is_assistant() {
            turn.output_message = Some(message.clone());
        } else {
            turn.input_messages.push(message.clone());
        }
    }

    pub(super) fn set_request(&mut self, slot: Slot, payload: &Verbatim<Value>) {
        if let Some(turn) = self.turns.get_mut(&slot) {
            turn.request_payload = Some(payload.clone());
        }
    }

    pub(super) fn end_turn(&mut self, slot: Slot, event: &TurnEnd, report: &mut Report) {
        if self.record(slot).config.is_none() {
            let config = config_of(&event.message, &event.loop_id, &self.session.session_id);
            self.change(slot).config = config;
        }
        let Some(turn) = self.turns.remove(&slot) else {
            report.note(Notice::TurnNotStarted { loop_id: event.loop_id.clone() });
            return;
        };
        let end = Ended {
            given_id: &event.loop_id,
            output_message: event.message.clone(),
            tool_results: event.tool_results.iter().map(RecordedMessage::for_turn).collect(),
            usage: event.usage.clone(),
            at: event.timestamp,
        };
        self.add_turn(slot, turn, end);
    }

    /// A loop ends in the middle of a turn: the turn ends with it, with what was recorded of it.
    pub(super) fn end_open_turn(&mut self, slot: Slot, event: &AgentEnd, report: &mut Report) {
        let Some(mut turn) = self.turns.remove(&slot) else {
            return;
        };
        report.note(Notice::TurnCutShort {
            loop_id: event.loop_id.clone(),
            turn_index: turn.turn_index,
        });
        let is_of_turn = |message: &&RecordedMessage| {
            let turn_id = message.turn_id();
            message.is_assistant() && turn_id.is_some_and(|id| id.turn_index == turn.turn_index)
        };
        let reported = || event.messages.iter().rev().find(is_of_turn).cloned();
        let output_message = turn.output_message.take().or_else(reported);
        let output_message =
            output_message.unwrap_or_else(|| self.silent_message(slot, event.timestamp));
        let usage = output_message.known().and_then(AgentMessage::usage);
        let usage = usage.map_or_else(crate::usage::none, crate::usage::recorded);
        // The answers of its tools arrived as messages; `add_turn` takes them out of the inputs.
        let answers =
            turn.input_messages.iter().filter(|message| answers_to(&output_message, message));
        let tool_results = answers.cloned().collect();
        let end = Ended {
            given_id: &event.loop_id,
            output_message,
            tool_results,
            usage,
            at: event.timestamp,
        };
        self.add_turn(slot, turn, end);
    }

    /// A message in place of one that the model never sent.
    fn silent_message(&self, slot: Slot, at: Timestamp) -> RecordedMessage {
        let config = self.record(slot).config.as_deref();
        let (provider, model) = config
            .map(|config| (config.provider.clone(), config.model.clone()))
            .unwrap_or_default();
        let reply = AssistantMessage {
            error_message: Some("the turn did not end".to_owned()),
            ..AssistantMessage::new(Vec::new(), provider, model, at.unix_ms().max(0))
        };
        RecordedMessage::reply(reply, StopReason::Aborted, "aborted")
    }

    fn add_turn(&mut self, slot: Slot, turn: PartialTurn, end: Ended<'_>) {
        let recorded_as = self.record(slot).loop_id.clone();
        let renamed = |message| renamed(message, end.given_id, &recorded_as);
        let turn_id = TurnId { loop_id: recorded_as.clone(), turn_index: turn.turn_index };
        let inputs = without_results(turn.input_messages, &end.tool_results);
        let tool_results =
            end.tool_results.into_iter().map(|result| result.with_turn_id(Some(turn_id.clone())));
        let turn = Turn {
            tool_results: tool_results.collect(),
            turn_id,
            triggered_by: turn.triggered_by,
            usage: end.usage,
            input_messages: inputs.into_iter().map(renamed).collect(),
            output_message: renamed(end.output_message),
            started_at: turn.started_at,
            ended_at: end.at,
            request_payload: turn.request_payload,
        };
        self.change(slot).turns.push(turn);
    }
}

/// How a turn ended.
struct Ended<'a> {
    /// The id that the loop came with.
    given_id: &'a str,
    output_message: RecordedMessage,
    tool_results: Vec<RecordedMessage>,
    usage: Usage,
    at: Timestamp,
}

/// A message whose turn names the loop by its recorded id.
pub(super) fn renamed(
    message: RecordedMessage,
    given_id: &str,
    recorded_as: &str,
) -> RecordedMessage {
    match message.turn_id() {
        Some(turn_id) if given_id != recorded_as && turn_id.loop_id == given_id => {
            let turn_index = turn_id.turn_index;
            message.with_turn_id(Some(TurnId { loop_id: recorded_as.to_owned(), turn_index }))
        }
        _ => message,
    }
}

/// Whether a message is the answer of a tool that the model called.
fn answers_to(output: &RecordedMessage, message: &RecordedMessage) -> bool {
    let Some(call) = message.answered_call() else {
        return false;
    };
    let is_it =
        |block: &ContentBlock| matches!(block, ContentBlock::FunctionCall(made) if made.id == call);
    output.content().iter().any(is_it)
}

/// Removes the answers of a turn's own tools from its inputs: they are inputs of the next turn, although they arrive
/// within this one.
fn without_results(
    mut inputs: Vec<RecordedMessage>,
    results: &[RecordedMessage],
) -> Vec<RecordedMessage> {
    let is_answer = |call: &str| results.iter().any(|result| result.answered_call() == Some(call));
    inputs.retain(|input| !input.answered_call().is_some_and(is_answer));
    inputs
}

/// The settings that a message of the model reveals.
pub(super) fn config_of(
    message: &RecordedMessage,
    loop_id: &str,
    session_id: &str,
) -> Option<Box<LoopConfigSnapshot>> {
    let AgentMessage::Assistant(reply) = message.known()? else {
        return None;
    };
    Some(Box::new(LoopConfigSnapshot {
        model: reply.model.clone(),
        provider: reply.provider.clone(),
        config_id: config_id_in(loop_id, session_id),
        ..LoopConfigSnapshot::default()
    }))
}
