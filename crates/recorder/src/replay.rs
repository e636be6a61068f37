//! A recorded session as the events that made it.
//!
//! A session keeps the events of each loop in order; how those of several loops lay between each other is
//! found again from their times and from what their order did (which child ended first, which loop the
//! session heard of first and last). Recording a replay gives an equal session.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use crate::event::{AgentEvent, ParallelLoopEnd, ParallelLoopStart};
use crate::fact::{Fact, SessionFact};
use crate::model::{LoopRecord, LoopStatus, ParallelGroupRecord, Session, SessionFormation};
use crate::time::Timestamp;

mod held;
mod synthesis;

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
    place: Option<(String, u64)>,
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
    /// All events of a session, with the facts that no event says.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let mut score = Score::new(session);
        score.add_loops();
        score.add_groups();
        score.add_aborts();
        score.keep_order_of_ids();
        score.keep_order_of_children();
        score.keep_order_of_starts();
        let mut steps = score.play();
        let at = steps.last().map_or(session.last_active_at, |last| last.at);
        steps.extend(facts_of(session).map(|fact| Step { at, event: fact.into(), place: None }));
        Self { steps }
    }

    /// Only the events of one loop.
    #[must_use]
    pub fn only_loop(mut self, loop_id: &str) -> Self {
        self.steps.retain(|step| step.place.as_ref().is_some_and(|(id, _)| id == loop_id));
        self
    }

    /// Only what comes from the event of that number on, counted from 0.
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

    /// Only what comes from an event of a loop on; nothing if there is no such event.
    #[must_use]
    pub fn from_event(mut self, loop_id: &str, sequence: u64) -> Self {
        let is_here = |step: &Step| {
            let place = step.place.as_ref();
            place.is_some_and(|(id, at)| id == loop_id && *at == sequence)
        };
        let start = self.steps.iter().position(is_here);
        self.steps.drain(..start.unwrap_or(self.steps.len()));
        self
    }

    /// Only what a stored session does not hold yet.
    pub(crate) fn since(mut self, stored: Option<&Session>) -> Self {
        if let Some(stored) = stored {
            self.steps.retain(|step| !held::is_held(stored, step));
        }
        self
    }

    /// Only what agents say: without the facts that a program which knows none but their events would not
    /// understand.
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

/// The events of a session, and which must come before which.
struct Score<'a> {
    session: &'a Session,
    steps: Vec<Step>,
    /// For each event those that must come after it.
    then: Vec<Vec<usize>>,
    /// For each loop its first and its last event, and the event that ended it.
    loops: HashMap<&'a str, Span>,
    /// The loops, by start.
    order: Vec<&'a LoopRecord>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// What the session first heard of the loop.
    first: Option<usize>,
    /// Its start.
    start: Option<usize>,
    /// The last that was heard of it.
    last: Option<usize>,
    /// What ended it.
    close: Option<usize>,
    /// What chose it from its group.
    chosen: Option<usize>,
}

impl<'a> Score<'a> {
    fn new(session: &'a Session) -> Self {
        Self {
            session,
            steps: Vec::new(),
            then: Vec::new(),
            loops: HashMap::new(),
            order: session.loops.iter().collect(),
        }
    }

    fn add(&mut self, at: Timestamp, event: AgentEvent, place: Option<(String, u64)>) -> usize {
        self.steps.push(Step { at, event, place });
        self.then.push(Vec::new());
        self.steps.len() - 1
    }

    fn before(&mut self, first: usize, second: usize) {
        if let Some(then) = self.then.get_mut(first)
            && first != second
        {
            then.push(second);
        }
    }

    fn add_loops(&mut self) {
        for record in self.order.clone() {
            let mut span = Span::default();
            let mut at = record.started_at;
            let mut last = None;
            for (sequence, event) in synthesis::events_of(record) {
                at = event.timestamp().map_or(at, |said| said.max(at));
                let closes = matches!(event, AgentEvent::AgentEnd(_)) && span.close.is_none();
                let starts = matches!(event, AgentEvent::AgentStart(_));
                let place = (record.loop_id.clone(), sequence);
                let step = self.add(at, event, Some(place));
                match last {
                    Some(last) => self.before(last, step),
                    None => span.first = Some(step),
                }
                if starts {
                    span.start = span.start.or(Some(step));
                }
                if closes {
                    span.close = Some(step);
                }
                last = Some(step);
            }
            span.last = last;
            self.loops.entry(&record.loop_id).or_insert(span);
        }
    }

    /// A loop that was broken off is one whose end never comes, unless others ended after that.
    fn add_aborts(&mut self) {
        if self.flush_would_do() && !self.is_begun_again() {
            return;
        }
        for record in self.order.clone() {
            let span = self.span(record);
            if record.status != LoopStatus::Aborted || span.close.is_some() {
                continue;
            }
            let events = record.events.iter();
            let said = events.filter_map(|event| event.event.timestamp()).max();
            let fact = Fact::Aborted {
                session_id: self.session.session_id.clone(),
                loop_id: record.loop_id.clone(),
            };
            let step = self.add(said.unwrap_or(record.started_at), fact.into(), None);
            let group = record.parallel_group.iter();
            let siblings = group.flat_map(|group| &group.all_loop_ids);
            let heard: Vec<usize> = siblings
                .filter_map(|id| self.loops.get(id.as_str())?.start)
                .chain(span.first)
                .chain(span.last)
                .collect();
            for heard in heard {
                self.before(heard, step);
            }
            self.span_mut(record).close = Some(step);
        }
    }

    /// Whether breaking off at the end whatever has not ended makes the same children in the same order.
    fn flush_would_do(&self) -> bool {
        self.session.loops.iter().all(|parent| {
            let children = parent.children_loop_ids.iter();
            let children: Vec<&LoopRecord> =
                children.filter_map(|id| self.session.get_loop(id)).collect();
            let is_aborted = |child: &&LoopRecord| child.status == LoopStatus::Aborted;
            let ended = children.iter().take_while(|child| !is_aborted(child)).count();
            let rest = children.get(ended..).unwrap_or_default();
            rest.iter().all(is_aborted) && rest.is_sorted_by_key(|child| child.started_at)
        })
    }

    /// Whether a loop that was broken off began again with the very same event: a recorder must know that it was
    /// broken off before it hears that event again.
    fn is_begun_again(&self) -> bool {
        let start = |record: &&'a LoopRecord| match record.events.first().map(|first| &first.event)
        {
            Some(AgentEvent::AgentStart(start)) => Some((start.loop_id.as_str(), start.timestamp)),
            _ => None,
        };
        let mut starts: HashMap<_, Vec<&LoopRecord>> = HashMap::new();
        for record in &self.order {
            if let Some(start) = start(record) {
                starts.entry(start).or_default().push(record);
            }
        }
        let is_aborted = |record: &&LoopRecord| record.status == LoopStatus::Aborted;
        starts.values().any(|same| same.len() > 1 && same.iter().any(is_aborted))
    }

    fn add_groups(&mut self) {
        let mut done: HashSet<&[String]> = HashSet::new();
        for record in self.order.clone() {
            let Some(group) = &record.parallel_group else {
                continue;
            };
            if done.insert(&group.all_loop_ids) {
                self.add_group(group);
            }
        }
    }

    fn add_group(&mut self, group: &'a ParallelGroupRecord) {
        let session = self.session;
        let members: Vec<&'a LoopRecord> =
            group.all_loop_ids.iter().filter_map(|id| session.get_loop(id)).collect();
        let announced_at = announcement_of(&members).unwrap_or(session.created_at);
        let start = ParallelLoopStart {
            session_id: session.session_id.clone(),
            loop_ids: members.iter().map(|record| session.given_id(record).to_owned()).collect(),
            timestamp: announced_at,
        };
        let start = self.add(announced_at, start.into(), None);
        let mut ended_at = announced_at;
        for record in &members {
            ended_at = ended_at.max(record.ended_at.unwrap_or(record.started_at));
            if let Some(first) = self.span(record).first {
                self.before(start, first);
            }
            self.span_mut(record).first = Some(start);
        }
        let selected = session.get_loop(&group.selected_loop_id);
        let Some(selected) = selected else {
            return;
        };
        let end = ParallelLoopEnd {
            session_id: session.session_id.clone(),
            selected_loop_id: session.given_id(selected).to_owned(),
            selected_config_index: group.selected_config_index,
            evaluation_usage: group.evaluation_usage,
            timestamp: ended_at,
        };
        let end = self.add(ended_at, end.into(), None);
        self.before(start, end);
        self.span_mut(selected).chosen = Some(end);
        for record in &members {
            match self.span(record).start {
                Some(started) => self.before(started, end),
                None => self.span_mut(record).close = Some(end),
            }
        }
    }

    fn span(&self, record: &LoopRecord) -> Span {
        let span = self.loops.get(record.loop_id.as_str());
        span.copied().unwrap_or_default()
    }

    fn span_mut(&mut self, record: &'a LoopRecord) -> &mut Span {
        self.loops.entry(&record.loop_id).or_default()
    }

    /// A loop that came with an id that was taken came after everything about the loop that had it.
    fn keep_order_of_ids(&mut self) {
        let mut by_id: HashMap<&str, Vec<&'a LoopRecord>> = HashMap::new();
        for record in &self.order {
            by_id.entry(self.session.given_id(record)).or_default().push(record);
        }
        for (given_id, mut records) in by_id {
            let number = |record: &&LoopRecord| -> u64 {
                let suffix = record.loop_id.strip_prefix(given_id);
                let number = suffix.and_then(|suffix| suffix.strip_prefix('-'));
                number.and_then(|number| number.parse().ok()).unwrap_or(0)
            };
            records.sort_by_key(number);
            for pair in records.windows(2) {
                let [earlier, later] = pair else { continue };
                let (earlier, later) = (self.span(earlier), self.span(later));
                let Some(first) = later.first else { continue };
                for step in [earlier.last, earlier.close, earlier.chosen].into_iter().flatten() {
                    self.before(step, first);
                }
            }
        }
    }

    /// A parent's children are in the order in which they ended.
    fn keep_order_of_children(&mut self) {
        for parent in self.order.clone() {
            let closes: Vec<usize> = parent
                .children_loop_ids
                .iter()
                .filter_map(|id| self.loops.get(id.as_str())?.close)
                .collect();
            for pair in closes.windows(2) {
                if let [first, second] = pair {
                    self.before(*first, *second);
                }
            }
        }
    }

    /// Loops of one moment are in the order in which they were heard of, and the session remembers the
    /// first and the last start that it heard.
    fn keep_order_of_starts(&mut self) {
        let order = self.order.clone();
        for pair in order.windows(2) {
            if let [first, second] = pair
                && first.started_at == second.started_at
                && let (Some(first), Some(second)) =
                    (self.span(first).first, self.span(second).first)
            {
                self.before(first, second);
            }
        }
        let session = self.session;
        let starts: Vec<(&LoopRecord, usize)> =
            order.iter().filter_map(|record| Some((*record, self.span(record).start?))).collect();
        let is_first = |(record, _): &&(&LoopRecord, usize)| {
            record.started_at == session.created_at && record.agent_id == session.agent_id
        };
        let is_last =
            |(record, _): &&(&LoopRecord, usize)| record.started_at == session.last_active_at;
        let first = starts.iter().find(is_first).map(|(_, start)| *start);
        let last = starts.iter().rev().find(is_last).map(|(_, start)| *start);
        for (_, start) in &starts {
            if let Some(first) = first.filter(|first| first != start) {
                self.before(first, *start);
            }
            if let Some(last) = last.filter(|last| last != start && Some(*start) != first) {
                self.before(*start, last);
            }
        }
    }

    /// The events by time, as far as what must come before what allows.
    fn play(self) -> Vec<Step> {
        let mut waits = vec![0_usize; self.steps.len()];
        for after in self.then.iter().flatten() {
            if let Some(count) = waits.get_mut(*after) {
                *count += 1;
            }
        }
        let mut steps: Vec<Option<Step>> = self.steps.into_iter().map(Some).collect();
        let at = |steps: &[Option<Step>], step: usize| {
            steps.get(step).and_then(|step| step.as_ref().map(|step| step.at))
        };
        let mut ready: BinaryHeap<Reverse<(Option<Timestamp>, usize)>> = waits
            .iter()
            .enumerate()
            .filter(|(_, count)| **count == 0)
            .map(|(step, _)| Reverse((at(&steps, step), step)))
            .collect();
        let mut played = Vec::with_capacity(steps.len());
        while let Some(Reverse((_, step))) = ready.pop() {
            for after in self.then.get(step).into_iter().flatten() {
                if let Some(count) = waits.get_mut(*after) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(Reverse((at(&steps, *after), *after)));
                    }
                }
            }
            played.extend(steps.get_mut(step).and_then(Option::take));
        }
        // Only a session that was not recorded can contradict itself; its events come all the same.
        played.extend(steps.into_iter().flatten());
        played
    }
}

/// When a group was announced: the loops of it that never started say so, else it was before the first of
/// them started.
fn announcement_of(members: &[&LoopRecord]) -> Option<Timestamp> {
    let never_started = members.iter().find(|record| record.events.is_empty());
    let first = members.iter().map(|record| record.started_at).min();
    never_started.map(|record| record.started_at).or(first)
}

/// What recording the events alone would not bring back.
fn facts_of(session: &Session) -> impl Iterator<Item = Fact> + '_ {
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
