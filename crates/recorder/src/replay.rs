//! A recorded session as the events that made it.
//!
//! The log of a session holds its events in the order in which they arrived. A session value keeps the events of each
//! loop in order; the order between loops is derived from their times and from its effects (which child ended first,
//! which loop was first and last). Recording a replay gives an equal session.

use std::time::Duration;

use crate::event::AgentEvent;
use crate::fact::{Fact, SessionFact};
use crate::model::{RecordedSession, SessionFormation};
use crate::time::Timestamp;

mod event_graph;
mod event_log;
mod order;
mod synthesis;

use event_graph::EventGraph;
pub(crate) use event_log::EventLog;

/// How fast a replay is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As fast as it was.
    Recorded,
    /// At once.
    #[default]
    AtOnce,
}

/// The events of a session, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
struct Step {
    at: Timestamp,
    event: AgentEvent,
    /// The loop that the event is recorded in, and its place among the events of it.
    location: Option<(String, u64)>,
}

/// An event of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayStep {
    /// How long to wait before it.
    pub after: Duration,
    /// The event.
    pub event: AgentEvent,
}

impl Replay {
    /// All events of a session, with the facts that no event states. [`crate::RecordFold::replay`] knows the order in
    /// which they arrived.
    #[must_use]
    pub fn of(session: &RecordedSession) -> Self {
        let mut graph = EventGraph::new(session);
        graph.add_loops();
        graph.add_groups();
        graph.add_aborts();
        graph.keep_order_of_ids();
        graph.keep_order_of_parents();
        graph.keep_adoptions();
        graph.keep_order_of_children();
        graph.keep_order_of_starts();
        graph.keep_order_of_choices();
        let mut steps = graph.play();
        let at = steps.last().map_or(session.last_active_at, |last| last.at);
        steps.extend(facts_of(session).map(|fact| Step { at, event: fact.into(), location: None }));
        Self { steps }
    }

    /// Only the events of one loop.
    #[must_use]
    pub fn only_loop(mut self, loop_id: &str) -> Self {
        self.steps.retain(|step| step.location.as_ref().is_some_and(|(id, _)| id == loop_id));
        self
    }

    /// Only the events from that number on, counted from 0.
    #[must_use]
    pub fn from_number(mut self, number: usize) -> Self {
        self.steps.drain(..number.min(self.steps.len()));
        self
    }

    /// How many events there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Only what follows from an event of a loop on; nothing if there is no such event.
    #[must_use]
    pub fn from_event(mut self, loop_id: &str, sequence: u64) -> Self {
        let is_here = |step: &Step| {
            let location = step.location.as_ref();
            location.is_some_and(|(id, at)| id == loop_id && *at == sequence)
        };
        let start = self.steps.iter().position(is_here);
        self.steps.drain(..start.unwrap_or(self.steps.len()));
        self
    }

    /// Only the events of agents, without facts, for a program that does not know facts.
    #[must_use]
    pub fn without_facts(mut self) -> Self {
        self.steps.retain(|step| Fact::from_event(&step.event).is_none());
        self
    }

    /// The events, and how long to wait before each.
    pub fn steps(self, pace: Pace) -> impl Iterator<Item = ReplayStep> {
        let mut before = self.steps.first().map(|step| step.at);
        self.steps.into_iter().map(move |step| {
            let after = match (pace, before) {
                (Pace::Recorded, Some(before)) => step.at.since(before),
                _ => Duration::ZERO,
            };
            before = before.max(Some(step.at));
            ReplayStep { after, event: step.event }
        })
    }

    /// The events alone.
    pub fn events(self) -> impl Iterator<Item = AgentEvent> {
        self.steps.into_iter().map(|step| step.event)
    }
}

/// The facts that recording the events alone would not restore.
fn facts_of(session: &RecordedSession) -> impl Iterator<Item = Fact> + '_ {
    let plain = SessionFact {
        session_id: session.session_id.clone(),
        formation: SessionFormation::FirstLoop { timestamp: session.created_at },
        scope: crate::model::SessionScope::default(),
        task_name: None,
        task_status: None,
        parent_spawn_ref: None,
    };
    let says = SessionFact::of(session);
    let header = (says != plain).then_some(Fact::Session(says));
    let of_loops = session.loops.iter().flat_map(|record| {
        let sub_agents = (!record.child_loop_refs.is_empty()).then(|| Fact::SubAgents {
            session_id: session.session_id.clone(),
            loop_id: record.loop_id.clone(),
            child_loop_refs: record.child_loop_refs.clone(),
        });
        let compaction = record.compaction_block.as_ref().map(|block| Fact::Compaction {
            session_id: session.session_id.clone(),
            loop_id: record.loop_id.clone(),
            block: Some(block.clone()),
        });
        sub_agents.into_iter().chain(compaction)
    });
    header.into_iter().chain(of_loops)
}
