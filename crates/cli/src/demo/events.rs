//! From the script of an agent to the events for a recorder.

use std::collections::BTreeMap;

use bough_recorder::Timestamp;
use serde_json::{Value, json};

use super::agent_run::{
    AgentRun, CallScript, CompactionScript, LoopKind, LoopScript, ParallelScript, RunStep,
    TurnScript, TurnUsage,
};

/// An event and when it happens, in milliseconds since the epoch.
#[derive(Clone, Debug)]
pub(crate) struct TimedEvent {
    pub(crate) at_ms: i64,
    pub(crate) event: Value,
}

/// When a run begins, and how long one of its seconds takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tempo {
    pub(crate) start_ms: i64,
    pub(crate) second_ms: i64,
}

/// The sessions of a run: that of the agent, and that of each sub-agent by its name in the script.
#[derive(Clone, Debug)]
pub(crate) struct RunSessions {
    pub(crate) main: String,
    pub(crate) sub_agents: BTreeMap<String, String>,
}

/// The events of a run, in the order in which they happen.
pub(crate) fn events_of(run: &AgentRun, sessions: &RunSessions, tempo: Tempo) -> Vec<TimedEvent> {
    let mut writer = EventWriter {
        run,
        sessions,
        tempo,
        now_ms: tempo.start_ms,
        loop_ids: BTreeMap::new(),
        events: Vec::new(),
    };
    for step in &run.steps {
        match step {
            RunStep::Loop(script) => writer.main_loop(script),
            RunStep::Parallel(script) => writer.parallel_loops(script),
            RunStep::Compaction(script) => writer.compact(script),
            RunStep::Pause(seconds) => writer.wait(*seconds),
        }
        writer.wait(PAUSE_SECONDS);
    }
    writer.events.sort_by_key(|event| event.at_ms);
    writer.events
}

/// The time in which a person reads an answer and asks again.
const PAUSE_SECONDS: i64 = 8;

struct EventWriter<'a> {
    run: &'a AgentRun,
    sessions: &'a RunSessions,
    tempo: Tempo,
    now_ms: i64,
    /// By their names in the script.
    loop_ids: BTreeMap<&'a str, String>,
    events: Vec<TimedEvent>,
}

/// The loop that is being written.
struct OpenLoop<'a> {
    id: String,
    model: &'a str,
    messages: Vec<Value>,
    usage: TurnUsage,
}

/// The agent and the session of a loop, and the loop before it.
struct LoopContext<'a> {
    session: &'a str,
    agent: &'a str,
    parent: Option<String>,
    trigger: &'static str,
}

impl<'a> EventWriter<'a> {
    fn wait(&mut self, seconds: i64) {
        self.now_ms = self.after(seconds);
    }

    const fn after(&self, seconds: i64) -> i64 {
        self.now_ms.saturating_add(seconds.saturating_mul(self.tempo.second_ms))
    }

    fn say(&mut self, event: Value) {
        self.events.push(TimedEvent { at_ms: self.now_ms, event });
    }

    fn timestamp(&self) -> String {
        Timestamp::from_unix_ms(self.now_ms).to_string()
    }

    fn main_loop(&mut self, script: &'a LoopScript) {
        let parent = script.after.as_deref().and_then(|name| self.loop_ids.get(name)).cloned();
        let context = LoopContext {
            session: &self.sessions.main,
            agent: &self.run.agent,
            parent,
            trigger: if script.kind == LoopKind::Branch { "Branch" } else { "User" },
        };
        self.write_loop(script, &context);
    }

    fn write_loop(&mut self, script: &'a LoopScript, context: &LoopContext<'_>) {
        let model = script.model.as_deref().unwrap_or(&self.run.model);
        let id = self.name_loop(script, context.session, model);
        let continuation = match (script.kind, &context.parent) {
            (LoopKind::Next, Some(_)) if context.trigger != "SubAgent" => json!("Default"),
            (LoopKind::Next, _) => json!("Initial"),
            (LoopKind::Rerun, _) => json!({ "Rerun": { "tag": script.name } }),
            (LoopKind::Branch, _) => json!({ "Branch": { "tag": script.name } }),
        };
        self.say(json!({
            "type": "AgentStart", "agent_id": context.agent, "session_id": context.session, "loop_id": id,
            "parent_loop_id": context.parent, "continuation_kind": continuation,
            "timestamp": self.timestamp(), "metadata": null,
            "config_snapshot": { "model": model, "provider": "demo", "config_id": model },
        }));
        let mut open = OpenLoop { id, model, messages: Vec::new(), usage: TurnUsage::default() };
        self.ask(&mut open, script, context.trigger);
        for (index, turn) in script.turns.iter().enumerate() {
            self.write_turn(&mut open, index, turn);
        }
        self.say(json!({
            "type": "AgentEnd", "loop_id": open.id, "messages": open.messages,
            "usage": open.usage.to_json(), "timestamp": self.timestamp(),
            "rejection": script.rejected,
        }));
    }

    /// The id that a loop has, as phi-core makes them: the session, the configuration, a number.
    fn name_loop(&mut self, script: &'a LoopScript, session: &str, model: &str) -> String {
        if let Some(id) = self.loop_ids.get(script.name.as_str()) {
            return id.clone();
        }
        let id = format!("{session}.{model}.{}", self.loop_ids.len() + 1);
        self.loop_ids.insert(&script.name, id.clone());
        id
    }

    /// The question, with the first turn that it begins.
    fn ask(&mut self, open: &mut OpenLoop<'_>, script: &LoopScript, trigger: &str) {
        if script.rejected.is_none() {
            self.begin_turn(open, 0, trigger);
        }
        let content = [text(&script.user)];
        let message = json!({ "role": "user", "content": content, "timestamp": self.now_ms });
        self.say_message(open, message);
        if let Some(reason) = &script.rejected {
            self.say(json!({ "type": "InputRejected", "loop_id": open.id, "reason": reason }));
        }
    }

    fn begin_turn(&mut self, open: &OpenLoop<'_>, index: usize, trigger: &str) {
        self.say(json!({
            "type": "TurnStart", "loop_id": open.id, "turn_index": index,
            "timestamp": self.timestamp(), "triggered_by": trigger,
        }));
    }

    fn say_message(&mut self, open: &mut OpenLoop<'_>, message: Value) {
        self.say(json!({ "type": "MessageEnd", "loop_id": open.id, "message": message }));
        open.messages.push(message);
    }

    fn write_turn(&mut self, open: &mut OpenLoop<'a>, index: usize, turn: &'a TurnScript) {
        if index > 0 {
            self.begin_turn(open, index, "Continuation");
        }
        self.wait(turn.seconds);
        let calls: Vec<(String, &CallScript)> = (1..)
            .zip(&turn.calls)
            .map(|(number, call)| (format!("call-{index}-{number}"), call))
            .collect();
        let mut message = reply(open, turn, &calls, self.now_ms);
        self.say_message(open, message.clone());
        let results = self.run_calls(open, &calls);
        if let Some(members) = message.as_object_mut() {
            let turn_id = json!({ "loopId": open.id, "turnIndex": index });
            members.insert("turnId".to_owned(), turn_id);
        }
        self.say(json!({
            "type": "TurnEnd", "loop_id": open.id, "message": message,
            "usage": turn.usage.to_json(), "timestamp": self.timestamp(), "tool_results": results,
        }));
        open.usage = open.usage.plus(turn.usage);
    }

    /// Runs the calls of a turn in parallel; the turn continues when the last of them is done.
    fn run_calls(
        &mut self,
        open: &mut OpenLoop<'a>,
        calls: &[(String, &'a CallScript)],
    ) -> Vec<Value> {
        let begun = self.now_ms;
        let mut answers = Vec::new();
        for (id, call) in calls {
            self.now_ms = begun;
            self.say(json!({
                "type": "ToolExecutionStart", "loop_id": open.id, "tool_call_id": id,
                "tool_name": call.tool, "args": call.arguments,
            }));
            let (answer, child) = self.run_call(open, call);
            let content = [text(answer)];
            self.say(json!({
                "type": "ToolExecutionEnd", "loop_id": open.id, "tool_call_id": id,
                "tool_name": call.tool, "is_error": call.is_error, "child_loop_id": child,
                "result": { "content": content, "details": null, "child_loop_id": child },
            }));
            answers.push(json!({
                "role": "toolResult", "toolCallId": id, "toolName": call.tool, "content": content,
                "isError": call.is_error, "timestamp": self.now_ms,
            }));
        }
        answers.sort_by_key(time_of);
        for answer in &answers {
            self.now_ms = time_of(answer);
            self.say_message(open, answer.clone());
        }
        answers
    }

    /// Runs one call to its end. Returns its answer, and the loop of the sub-agent that it ran.
    fn run_call(&mut self, open: &OpenLoop<'_>, call: &'a CallScript) -> (&'a str, Option<String>) {
        let named = call.sub_agent.as_deref();
        let found = named
            .and_then(|name| self.run.sub_agents.get(name).zip(self.sessions.sub_agents.get(name)));
        let Some((sub_agent, session)) = found else {
            self.wait(call.seconds);
            return (&call.result, None);
        };
        let context = LoopContext {
            session,
            agent: &sub_agent.agent,
            parent: Some(open.id.clone()),
            trigger: "SubAgent",
        };
        self.write_loop(&sub_agent.work, &context);
        (sub_agent.work.answer(), self.loop_ids.get(sub_agent.work.name.as_str()).cloned())
    }

    fn parallel_loops(&mut self, script: &'a ParallelScript) {
        let mut ids = Vec::new();
        for script in &script.loops {
            let model = script.model.as_deref().unwrap_or(&self.run.model);
            ids.push(self.name_loop(script, &self.sessions.main, model));
        }
        self.say(json!({
            "type": "ParallelLoopStart", "session_id": self.sessions.main, "loop_ids": ids,
            "timestamp": self.timestamp(),
        }));
        let begun = self.now_ms;
        let mut ended = begun;
        for script in &script.loops {
            self.now_ms = begun;
            self.main_loop(script);
            ended = ended.max(self.now_ms);
        }
        self.now_ms = ended;
        self.wait(2);
        self.say(json!({
            "type": "ParallelLoopEnd", "session_id": self.sessions.main,
            "selected_loop_id": ids.get(script.winner), "selected_config_index": script.winner,
            "evaluation_usage": script.choosing.to_json(), "timestamp": self.timestamp(),
        }));
    }

    /// Lays a summary over each loop.
    fn compact(&mut self, script: &CompactionScript) {
        self.wait(script.seconds);
        for name in &script.loops {
            let Some(id) = self.loop_ids.get(name.as_str()).cloned() else { continue };
            let summary = json!({
                "role": "user", "content": [text(&script.summary)], "timestamp": self.now_ms,
            });
            self.say(json!({
                "type": "bough:compaction", "session_id": self.sessions.main, "loop_id": id,
                "block": {
                    "keep_compacted": { "range": { "startTurn": 0, "endTurn": 1 }, "messages": [summary] },
                    "createdAt": self.timestamp(),
                },
            }));
        }
    }
}

fn reply(
    open: &OpenLoop<'_>,
    turn: &TurnScript,
    calls: &[(String, &CallScript)],
    timestamp: i64,
) -> Value {
    let thinking = turn.thinking.iter().map(|text| json!({ "type": "thinking", "thinking": text }));
    let calls = calls.iter().map(|(id, call)| {
        json!({ "type": "toolCall", "id": id, "name": call.tool, "arguments": call.arguments })
    });
    let content: Vec<Value> = thinking.chain([text(&turn.text)]).chain(calls).collect();
    let stop = match (&turn.failure, turn.calls.is_empty()) {
        (Some(_), _) => "error",
        (None, true) => "stop",
        (None, false) => "toolUse",
    };
    let mut message = json!({
        "role": "assistant", "content": content, "model": open.model, "provider": "demo",
        "stopReason": stop, "timestamp": timestamp, "usage": turn.usage.to_json(),
        "cost_usd": turn.usage.cost_usd(),
    });
    if let (Some(failure), Some(members)) = (&turn.failure, message.as_object_mut()) {
        members.insert("error_message".to_owned(), json!(failure));
    }
    message
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn time_of(message: &Value) -> i64 {
    message.get("timestamp").and_then(Value::as_i64).unwrap_or_default()
}
