//! The events of loops, as agents say them: text that both sides read into their own types.

use serde_json::{Value, json};

/// How many events a loop says.
pub(super) const EVENTS_OF_A_LOOP: usize = 20;

/// How loops follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each begins something.
    Flat,
    /// Each goes on from the one before it.
    Chained,
}

/// Whose loops they are.
pub(super) struct Script {
    session: String,
    agent: String,
    shape: Shape,
}

impl Script {
    pub(super) fn new(session: impl Into<String>, agent: &str, shape: Shape) -> Self {
        Self { session: session.into(), agent: agent.to_owned(), shape }
    }

    /// The id of a loop.
    pub(super) fn loop_id(&self, number: usize) -> String {
        format!("{}.anthropic.opus.{number}", self.session)
    }

    /// The events of the first `loops` loops, one a line.
    pub(super) fn lines(&self, loops: usize) -> Vec<String> {
        (0..loops).flat_map(|number| self.lines_of(number)).collect()
    }

    /// The events of one loop: a question, two calls of a tool, and the answer.
    pub(super) fn lines_of(&self, number: usize) -> Vec<String> {
        let mut says = Loop { id: self.loop_id(number), number, clock: number * 60, lines: vec![] };
        let parent = number.checked_sub(1).filter(|_| self.shape == Shape::Chained);
        let parent = parent.map(|before| self.loop_id(before));
        says.event(json!({"type": "AgentStart", "agent_id": self.agent,
            "session_id": self.session, "loop_id": says.id, "parent_loop_id": parent,
            "continuation_kind": if parent.is_some() { "Default" } else { "Initial" },
            "timestamp": says.now(), "metadata": null,
            "config_snapshot": {"model": "opus", "provider": "anthropic", "config_id": "anthropic.opus",
                "context_window": 200_000, "max_tokens": 8192, "temperature": 0.5}}));
        let question = says.message("user", "Which of the files in this folder are tests?");
        let mut messages = vec![question.clone()];
        for turn in 0..2 {
            says.turn_start(turn);
            if turn == 0 {
                says.said(&question);
            }
            let call = says.call(turn);
            let result = says.result(turn);
            says.said(&call);
            says.used(turn);
            says.turn_end(&call, std::slice::from_ref(&result));
            messages.extend([call, result]);
        }
        says.turn_start(2);
        let answer = says.message("assistant", "There are two: tests/files.rs and tests/all.rs.");
        says.said(&answer);
        says.turn_end(&answer, &[]);
        messages.push(answer);
        says.event(json!({"type": "AgentEnd", "loop_id": says.id, "messages": messages,
            "usage": usage(), "timestamp": says.now(), "rejection": null}));
        says.lines
    }
}

struct Loop {
    id: String,
    number: usize,
    clock: usize,
    lines: Vec<String>,
}

impl Loop {
    fn event(&mut self, event: Value) {
        self.clock += 1;
        self.lines.push(line_of(event));
    }

    fn now(&self) -> String {
        let (minutes, seconds) = (self.clock / 60, self.clock % 60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        let (days, hours) = (hours / 24, hours % 24);
        format!("2026-01-{:02}T{hours:02}:{minutes:02}:{seconds:02}Z", days + 1)
    }

    fn message(&self, role: &str, text: &str) -> Value {
        let text = format!("{text} ({} of {})", self.number, self.id);
        let mut message = json!({"role": role, "content": [{"type": "text", "text": text}],
            "timestamp": 1_767_225_600_000_u64 + self.number as u64});
        if role == "assistant"
            && let Some(fields) = message.as_object_mut()
        {
            fields.extend([
                ("stopReason".to_owned(), json!("stop")),
                ("model".to_owned(), json!("opus")),
                ("provider".to_owned(), json!("anthropic")),
                ("usage".to_owned(), usage()),
            ]);
        }
        message
    }

    fn call(&self, turn: usize) -> Value {
        json!({"role": "assistant", "content": [
                {"type": "text", "text": format!("I look at it: {}", self.number)},
                {"type": "toolCall", "id": format!("call-{turn}"), "name": "bash",
                    "arguments": {"command": "ls -l tests", "timeout": 30}}],
            "stopReason": "toolUse", "model": "opus", "provider": "anthropic", "usage": usage(),
            "timestamp": 1_767_225_600_000_u64, "turnId": {"loopId": self.id, "turnIndex": turn}})
    }

    fn result(&self, turn: usize) -> Value {
        json!({"role": "toolResult", "toolCallId": format!("call-{turn}"), "toolName": "bash",
            "content": [{"type": "text", "text": "files.rs\nall.rs\n".repeat(8)}],
            "isError": false, "timestamp": 1_767_225_600_000_u64})
    }

    fn turn_start(&mut self, turn: usize) {
        self.event(json!({"type": "TurnStart", "loop_id": self.id, "turn_index": turn,
            "timestamp": self.now(), "triggered_by": "User"}));
    }

    fn turn_end(&mut self, message: &Value, results: &[Value]) {
        self.event(json!({"type": "TurnEnd", "loop_id": self.id, "message": message,
            "usage": usage(), "timestamp": self.now(), "tool_results": results}));
    }

    fn said(&mut self, message: &Value) {
        self.event(json!({"type": "MessageStart", "loop_id": self.id, "message": message}));
        self.event(json!({"type": "MessageEnd", "loop_id": self.id, "message": message}));
    }

    fn used(&mut self, turn: usize) {
        let call = format!("call-{turn}");
        self.event(json!({"type": "ToolExecutionStart", "loop_id": self.id, "tool_call_id": call,
            "tool_name": "bash", "args": {"command": "ls -l tests", "timeout": 30}}));
        self.event(json!({"type": "ToolExecutionEnd", "loop_id": self.id, "tool_call_id": call,
            "tool_name": "bash", "is_error": false, "child_loop_id": null,
            "result": {"content": [{"type": "text", "text": "files.rs\nall.rs\n".repeat(8)}],
                "details": null}}));
    }
}

/// An event as agents write it: its type comes first.
fn line_of(mut event: Value) -> String {
    let name = event.as_object_mut().and_then(|fields| fields.remove("type")).unwrap_or_default();
    let fields = event.to_string();
    format!("{{\"type\":{name},{}", fields.strip_prefix('{').unwrap_or_default())
}

fn usage() -> Value {
    json!({"input": 1200, "output": 80, "reasoning": 0, "cache_read": 1000, "cache_write": 20,
        "total_tokens": 2300})
}

/// The events of one loop that streams `updates` pieces of an answer.
pub(super) fn streamed(updates: usize) -> Vec<String> {
    let script = Script::new("streamed", "agent", Shape::Flat);
    let mut lines = script.lines_of(0);
    let id = script.loop_id(0);
    let update = json!({"type": "MessageUpdate", "loop_id": id,
        "message": {"role": "assistant", "content": [{"type": "text", "text": "There are"}],
            "stopReason": "stop", "model": "opus", "provider": "anthropic", "usage": usage(),
            "timestamp": 1_767_225_600_000_u64},
        "delta": {"Text": {"delta": " two"}}});
    let end = lines.len().saturating_sub(1);
    lines.splice(end..end, std::iter::repeat_n(line_of(update), updates));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_says_what_it_promises_in_order() {
        let script = Script::new("s", "a", Shape::Chained);
        let lines = script.lines(3);
        assert_eq!(lines.len(), 3 * EVENTS_OF_A_LOOP);
        let session = super::super::our_session(&lines).unwrap();
        assert_eq!(session.loop_chain_to(&script.loop_id(2)).len(), 3);
        assert!(session.loops.iter().all(|record| record.events.len() == EVENTS_OF_A_LOOP));
        let phi = super::super::phi_session(&lines).unwrap();
        assert_eq!(phi.loops.len(), 3);
    }
}
