//! Random but plausible streams of agent events.

pub(crate) mod logs;

use bough_recorder::{
    AgentEnd, AgentEvent, AgentStart, CompactionStarted, ContinuationKind, InputRejected,
    MessageEnd, MessageStart, MessageUpdate, ParallelLoopEnd, ParallelLoopStart, ProgressMessage,
    RecordedMessage, StreamDelta, Timestamp, ToolExecutionEnd, ToolResult, TurnEnd, TurnStart,
    TurnTrigger,
};
use bough_session::Usage;
use proptest::prelude::*;

/// Three numbers decide each step: what is done, to whom, and how.
pub(crate) type Choice = (u8, u8, u8);

pub(crate) fn choices(steps: usize) -> impl Strategy<Value = Vec<Choice>> {
    proptest::collection::vec((0..16_u8, any::<u8>(), any::<u8>()), 1..steps)
}

/// How the sessions of a stream are linked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Links {
    /// The session whose loops this one's loops may name as their parents and sub-agents.
    pub(crate) other: Option<&'static str>,
}

/// The events of one session.
pub(crate) fn stream(session: &'static str, choices: &[Choice], links: Links) -> Vec<AgentEvent> {
    let mut script = Script::new(session, links);
    for choice in choices {
        script.step(*choice);
    }
    script.events
}

/// Interleaves the streams, each in its own order; `turns` chooses the next stream.
pub(crate) fn interleave(streams: Vec<Vec<AgentEvent>>, turns: &[u8]) -> Vec<AgentEvent> {
    let mut left: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    let mut turns = turns.iter().cycle();
    while !left.is_empty() {
        let turn = usize::from(*turns.next().unwrap()) % left.len();
        match left[turn].next() {
            Some(event) => all.push(event),
            None => drop(left.remove(turn)),
        }
    }
    all
}

struct Sim {
    id: String,
    started: i64,
    open: bool,
    turn: u32,
    messages: Vec<RecordedMessage>,
}

struct Script {
    session: &'static str,
    links: Links,
    events: Vec<AgentEvent>,
    loops: Vec<Sim>,
    pending: Vec<String>,
    groups: Vec<Vec<String>>,
    clock: i64,
    number: u64,
}

impl Script {
    fn new(session: &'static str, links: Links) -> Self {
        Self {
            session,
            links,
            events: Vec::new(),
            loops: Vec::new(),
            pending: Vec::new(),
            groups: Vec::new(),
            clock: 1_000,
            number: 0,
        }
    }

    fn step(&mut self, (what, who, how): Choice) {
        self.clock += i64::from(how % 3);
        if how == 7 {
            self.clock -= 2;
        }
        match what {
            0 | 1 => self.start(who, how),
            2 => self.start_announced(who, how),
            3 => self.turn_start(who),
            4 | 5 => self.user_says(who, how),
            6 => self.assistant_says(who, how),
            7 => self.turn_end(who, how),
            8 => self.tool_ends(who, how),
            9 | 10 => self.end(who, how),
            11 => self.announce(how),
            12 => self.choose(who, how),
            13 => self.something_new(who),
            14 => self.late(who),
            _ => self.something_else(who, how),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.clock * 1000)
    }

    fn ms(&self) -> i64 {
        self.clock * 1000
    }

    fn push(&mut self, event: impl Into<AgentEvent>) {
        self.events.push(event.into());
    }

    fn next_id(&mut self) -> String {
        self.number += 1;
        format!("{}.cfg.{}", self.session, self.number)
    }

    fn pick(&self, who: u8, wanted: impl Fn(&Sim) -> bool) -> Option<usize> {
        let found: Vec<usize> =
            (0..self.loops.len()).filter(|at| wanted(&self.loops[*at])).collect();
        (!found.is_empty()).then(|| found[usize::from(who) % found.len()])
    }

    fn pick_open(&self, who: u8) -> Option<usize> {
        self.pick(who, |sim| sim.open)
    }

    fn start(&mut self, who: u8, how: u8) {
        let again = self.pick(who, |sim| !sim.open).filter(|_| how.is_multiple_of(23));
        if let Some(at) = again {
            // The same id once more, as its own parent, as compaction passes do. Loops with the very same start event
            // are one loop.
            let id = self.loops[at].id.clone();
            self.clock = self.clock.max(self.loops[at].started + 1);
            self.loops[at].started = self.clock;
            self.loops[at].open = true;
            self.loops[at].turn = 0;
            self.loops[at].messages.clear();
            self.start_loop(id.clone(), Some(id), ContinuationKind::Compaction);
            return;
        }
        let (parent, kind) = self.parent(who, how);
        let id = self.next_id();
        self.add(id.clone());
        self.start_loop(id, parent, kind);
    }

    fn add(&mut self, id: String) {
        self.loops.push(Sim { id, started: self.clock, open: true, turn: 0, messages: Vec::new() });
    }

    fn parent(&self, who: u8, how: u8) -> (Option<String>, ContinuationKind) {
        let tag = || format!("t{how}");
        let known = self.pick(who, |_| true).map(|at| self.loops[at].id.clone());
        if let (Some(other), 0) = (self.links.other, how % 4) {
            let number = 1 + u64::from(who % 6);
            return (Some(format!("{other}.cfg.{number}")), ContinuationKind::Initial);
        }
        match (known, how % 7) {
            (Some(known), 1 | 2) => (Some(known), ContinuationKind::Default),
            (Some(known), 3) => (Some(known), ContinuationKind::Rerun { tag: tag() }),
            (Some(known), 4) => (Some(known), ContinuationKind::Branch { tag: tag() }),
            // A loop that never starts, and one that may start later.
            (_, 5) => (Some(format!("{}.lost.1", self.session)), ContinuationKind::Default),
            (_, 6) => {
                let later = self.number + 2;
                (Some(format!("{}.cfg.{later}", self.session)), ContinuationKind::Default)
            }
            _ => (None, ContinuationKind::Initial),
        }
    }

    fn start_loop(&mut self, id: String, parent: Option<String>, kind: ContinuationKind) {
        self.push(AgentStart {
            agent_id: format!("agent-{}", self.session),
            session_id: self.session.to_owned(),
            loop_id: id,
            parent_loop_id: parent,
            continuation_kind: kind,
            timestamp: self.now(),
            metadata: None,
            config_snapshot: None,
        });
    }

    fn start_announced(&mut self, who: u8, how: u8) {
        if self.pending.is_empty() {
            return;
        }
        let at = usize::from(who) % self.pending.len();
        let id = self.pending.remove(at);
        let parent = self.pick(how, |sim| !sim.open).map(|at| self.loops[at].id.clone());
        let kind = match parent {
            Some(_) => ContinuationKind::Default,
            None => ContinuationKind::Initial,
        };
        self.add(id.clone());
        self.start_loop(id, parent, kind);
    }

    fn turn_start(&mut self, who: u8) {
        if let Some(at) = self.pick_open(who) {
            let event = TurnStart {
                loop_id: self.loops[at].id.clone(),
                turn_index: self.loops[at].turn,
                timestamp: self.now(),
                triggered_by: TurnTrigger::User,
            };
            self.push(event);
        }
    }

    fn user_says(&mut self, who: u8, how: u8) {
        let Some(at) = self.pick_open(who) else { return };
        let loop_id = self.loops[at].id.clone();
        let message = match how % 5 {
            0 => RecordedMessage::extension("ui", serde_json::json!({"how": how})),
            1 => tool_result(how % 3, self.ms()),
            // Repeated messages differ only in their place.
            2 => RecordedMessage::user("again", 5),
            _ => RecordedMessage::user(format!("say {how}"), self.ms()),
        };
        if how.is_multiple_of(2) {
            self.push(MessageStart { loop_id: loop_id.clone(), message: message.clone() });
        }
        self.loops[at].messages.push(message.clone());
        self.push(MessageEnd { loop_id, message });
    }

    fn assistant_says(&mut self, who: u8, how: u8) {
        let Some(at) = self.pick_open(who) else { return };
        let loop_id = self.loops[at].id.clone();
        let empty = assistant("", self.ms());
        let message = assistant(&format!("answer {how}"), self.ms());
        self.push(MessageStart { loop_id: loop_id.clone(), message: empty.clone() });
        for piece in 0..how % 4 {
            let message = if how.is_multiple_of(2) {
                empty.clone()
            } else {
                assistant(&"x".repeat(usize::from(piece) + 1), self.ms())
            };
            self.push(MessageUpdate {
                loop_id: loop_id.clone(),
                message,
                delta: StreamDelta::Text { delta: "x".into() },
            });
        }
        self.loops[at].messages.push(message.clone());
        self.push(MessageEnd { loop_id, message });
    }

    fn turn_end(&mut self, who: u8, how: u8) {
        let Some(at) = self.pick_open(who) else { return };
        let turn_id = bough_recorder::TurnId {
            loop_id: self.loops[at].id.clone(),
            turn_index: self.loops[at].turn,
        };
        self.loops[at].turn += 1;
        let reply = self.loops[at].messages.iter().rev().find(|message| message.is_assistant());
        let message = match reply {
            Some(reply) => reply.clone().with_turn_id(Some(turn_id)),
            None => assistant("never announced", self.ms()),
        };
        let tool_results = (0..how % 3).map(|call| tool_result(call, self.ms())).collect();
        let event = TurnEnd {
            loop_id: self.loops[at].id.clone(),
            message,
            usage: usage(1),
            timestamp: self.now(),
            tool_results,
        };
        self.push(event);
    }

    fn tool_ends(&mut self, who: u8, how: u8) {
        let Some(at) = self.pick_open(who) else { return };
        let child = self.links.other.filter(|_| how.is_multiple_of(2));
        let child = child.map(|other| format!("{other}.cfg.{}", 1 + how % 5));
        let event = ToolExecutionEnd {
            loop_id: self.loops[at].id.clone(),
            tool_call_id: format!("call-{}", how % 4),
            tool_name: "sub_agent".to_owned(),
            result: ToolResult {
                content: vec![],
                details: serde_json::Value::Null,
                child_loop_id: child.clone().filter(|_| !how.is_multiple_of(3)),
            }
            .into(),
            is_error: false,
            child_loop_id: child,
        };
        self.push(event);
    }

    fn end(&mut self, who: u8, how: u8) {
        let Some(at) = self.pick_open(who) else { return };
        self.loops[at].open = false;
        let mut messages = self.loops[at].messages.clone();
        if how.is_multiple_of(5) {
            messages.push(RecordedMessage::user("never announced", self.ms()));
        }
        if how.is_multiple_of(7) {
            messages.reverse();
        }
        let event = AgentEnd {
            loop_id: self.loops[at].id.clone(),
            messages,
            usage: usage(3),
            timestamp: self.now(),
            rejection: how.is_multiple_of(11).then(|| "no".to_owned()),
        };
        self.push(event);
    }

    fn announce(&mut self, how: u8) {
        let mut loop_ids: Vec<String> = (0..2 + how % 2).map(|_| self.next_id()).collect();
        if how.is_multiple_of(13)
            && let Some(at) = self.pick(how, |sim| !sim.open)
        {
            // An id that was used before, as in groups that count from one again.
            loop_ids[0] = self.loops[at].id.clone();
            self.loops.remove(at);
        }
        self.pending.extend(loop_ids.iter().cloned());
        self.groups.push(loop_ids.clone());
        self.push(ParallelLoopStart {
            session_id: self.session.to_owned(),
            loop_ids,
            timestamp: self.now(),
        });
    }

    fn choose(&mut self, who: u8, how: u8) {
        if self.groups.is_empty() {
            return;
        }
        let at = usize::from(who) % self.groups.len();
        let group = self.groups.remove(at);
        let index = usize::from(how) % group.len();
        self.pending.retain(|id| !group.contains(id));
        self.push(ParallelLoopEnd {
            session_id: self.session.to_owned(),
            selected_loop_id: group[index].clone(),
            selected_config_index: u64::try_from(index).unwrap(),
            evaluation_usage: usage(u64::from(how)),
            timestamp: self.now(),
        });
    }

    fn something_new(&mut self, who: u8) {
        if let Some(at) = self.pick_open(who) {
            let fields =
                serde_json::json!({"type": "Dreamt", "loop_id": self.loops[at].id, "of": who});
            self.push(serde_json::from_value::<AgentEvent>(fields).unwrap());
        }
    }

    fn late(&mut self, who: u8) {
        if let Some(at) = self.pick(who, |sim| !sim.open) {
            let event = ProgressMessage {
                loop_id: self.loops[at].id.clone(),
                tool_call_id: "call-0".to_owned(),
                tool_name: "slow".to_owned(),
                text: "done at last".to_owned(),
            };
            self.push(event);
        }
    }

    fn something_else(&mut self, who: u8, how: u8) {
        let Some(at) = self.pick_open(who) else { return };
        let loop_id = self.loops[at].id.clone();
        if how.is_multiple_of(2) {
            self.push(InputRejected { loop_id, reason: "no".to_owned() });
        } else {
            self.push(CompactionStarted {
                loop_id,
                estimated_tokens: 5,
                message_count: 6,
                timestamp: self.now(),
            });
        }
    }
}

fn usage(input: u64) -> Usage {
    Usage {
        input: Some(input),
        output: Some(1),
        reasoning: Some(0),
        cache_read: Some(0),
        cache_write: Some(0),
        ..Usage::default()
    }
}

pub(crate) fn assistant(text: &str, timestamp: i64) -> RecordedMessage {
    read(serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": text}],
        "stopReason": "stop", "model": "m", "provider": "p", "timestamp": timestamp,
        "usage": {"input": 2, "output": 1, "reasoning": 0, "cache_read": 0, "cache_write": 0, "total_tokens": 0}}))
}

fn tool_result(call: u8, timestamp: i64) -> RecordedMessage {
    read(
        serde_json::json!({"role": "toolResult", "toolCallId": format!("call-{call}"), "toolName": "bash",
        "content": [{"type": "text", "text": "ok"}], "isError": false, "timestamp": timestamp}),
    )
}

fn read(message: serde_json::Value) -> RecordedMessage {
    serde_json::from_value(message).unwrap()
}

/// The places in which two values differ, for the output of failed tests.
pub(crate) fn differences<T: serde::Serialize>(left: &T, right: &T) -> String {
    fn walk(path: &str, left: &serde_json::Value, right: &serde_json::Value, out: &mut String) {
        use serde_json::Value;
        match (left, right) {
            (Value::Object(left), Value::Object(right)) => {
                let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
                for key in keys {
                    let (one, two) = (left.get(key), right.get(key));
                    let path = format!("{path}/{key}");
                    walk(&path, one.unwrap_or(&Value::Null), two.unwrap_or(&Value::Null), out);
                }
            }
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                for (at, (left, right)) in left.iter().zip(right).enumerate() {
                    walk(&format!("{path}/{at}"), left, right, out);
                }
            }
            _ if left != right => out.push_str(&format!("{path}: {left} is not {right}\n")),
            _ => {}
        }
    }
    let mut out = String::new();
    let value = |value: &T| serde_json::to_value(value).unwrap();
    walk("", &value(left), &value(right), &mut out);
    out
}
