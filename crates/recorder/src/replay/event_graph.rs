//! The events of a session as the nodes of a graph, with the known order between them.

use std::collections::{HashMap, HashSet};

use super::{Step, synthesis};
use crate::event::{AgentEvent, ParallelLoopEnd, ParallelLoopStart};
use crate::fact::Fact;
use crate::model::{LoopRecord, LoopStatus, ParallelGroupRecord, RecordedSession};
use crate::time::Timestamp;

/// The events of a session, and which must come before which.
pub(super) struct EventGraph<'a> {
    pub(super) session: &'a RecordedSession,
    pub(super) steps: Vec<Step>,
    /// For each event those that must come after it.
    pub(super) then: Vec<Vec<usize>>,
    /// For each loop its first and its last event, and the event that ended it.
    pub(super) loops: HashMap<&'a str, Span>,
    /// The loops, by start, and where in that order each is.
    pub(super) order: Vec<&'a LoopRecord>,
    ranks: HashMap<&'a str, usize>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    /// The first event of the loop.
    pub(super) first: Option<usize>,
    /// Its start.
    pub(super) start: Option<usize>,
    /// The last event of the loop.
    pub(super) last: Option<usize>,
    /// The event that ended it.
    pub(super) close: Option<usize>,
    /// The event that announced its group.
    pub(super) announced: Option<usize>,
    /// The event that chose a loop of its group.
    pub(super) decided: Option<usize>,
}

impl<'a> EventGraph<'a> {
    pub(super) fn new(session: &'a RecordedSession) -> Self {
        let order: Vec<&LoopRecord> = session.loops.iter().collect();
        let ids = order.iter().map(|record| record.loop_id.as_str());
        Self {
            session,
            steps: Vec::new(),
            then: Vec::new(),
            loops: HashMap::new(),
            ranks: ids.zip(0..).collect(),
            order,
        }
    }

    fn add(&mut self, at: Timestamp, event: AgentEvent, location: Option<(String, u64)>) -> usize {
        self.steps.push(Step { at, event, location });
        self.then.push(Vec::new());
        self.steps.len() - 1
    }

    pub(super) fn before(&mut self, first: usize, second: usize) {
        if let Some(then) = self.then.get_mut(first)
            && first != second
        {
            then.push(second);
        }
    }

    pub(super) fn add_loops(&mut self) {
        for record in self.order.clone() {
            let mut span = Span::default();
            let mut at = record.started_at;
            let mut last = None;
            for (sequence, event) in synthesis::events_of(record) {
                at = event.timestamp().map_or(at, |time| time.max(at));
                let closes = matches!(event, AgentEvent::AgentEnd(_)) && span.close.is_none();
                let starts = matches!(event, AgentEvent::AgentStart(_));
                let location = (record.loop_id.clone(), sequence);
                let step = self.add(at, event, Some(location));
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

    /// Adds aborts. An aborted loop has no event at its end, unless other loops ended after it.
    pub(super) fn add_aborts(&mut self) {
        if self.flush_would_do() && !self.is_begun_again() {
            return;
        }
        for record in self.order.clone() {
            let span = self.span(record);
            if record.status != LoopStatus::Aborted || span.close.is_some() {
                continue;
            }
            let events = record.events.iter();
            let last = events.filter_map(|event| event.event.timestamp()).max();
            let fact = Fact::Aborted {
                session_id: self.session.session_id.clone(),
                loop_id: record.loop_id.clone(),
            };
            let step = self.add(last.unwrap_or(record.started_at), fact.into(), None);
            let group = record.parallel_group.iter();
            let siblings = group.flat_map(|group| &group.all_loop_ids);
            let earlier: Vec<usize> = siblings
                .filter_map(|id| self.loops.get(id.as_str())?.start)
                .chain(span.first)
                .chain(span.last)
                .collect();
            for earlier in earlier {
                self.before(earlier, step);
            }
            self.span_mut(record).close = Some(step);
        }
    }

    /// Whether aborting all open loops at the end gives the same children in the same order.
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

    /// Whether an aborted loop began again with the very same event. Then a recorder must know of the abort before it
    /// receives that event again.
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

    pub(super) fn add_groups(&mut self) {
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
        let overtook = self.overtook(&members);
        let mut ended_at = announced_at;
        for record in &members {
            ended_at = ended_at.max(record.ended_at.unwrap_or(record.started_at));
            match self.span(record).first {
                Some(first) if overtook.contains(record.loop_id.as_str()) => {
                    self.before(first, start);
                    continue;
                }
                Some(first) => self.before(start, first),
                None => {}
            }
            self.span_mut(record).first = Some(start);
        }
        for record in &members {
            self.span_mut(record).announced = Some(start);
        }
        let selected = session.get_loop(&group.selected_loop_id);
        let Some(selected) = selected else {
            return;
        };
        let end = ParallelLoopEnd {
            session_id: session.session_id.clone(),
            selected_loop_id: session.given_id(selected).to_owned(),
            selected_config_index: group.selected_config_index,
            evaluation_usage: group.evaluation_usage.clone(),
            timestamp: ended_at,
        };
        let end = self.add(ended_at, end.into(), None);
        self.before(start, end);
        for record in &members {
            self.span_mut(record).decided = Some(end);
            match self.span(record).start {
                Some(started) => self.before(started, end),
                None => self.span_mut(record).close = Some(end),
            }
        }
    }

    /// The loops of a group that started before it was announced. An announcement adds all its other loops at once:
    /// where another loop of the same moment is between two of them, the earlier ones were there before.
    fn overtook(&self, members: &[&'a LoopRecord]) -> HashSet<&'a str> {
        let rank = |record: &&'a LoopRecord| {
            self.ranks.get(record.loop_id.as_str()).map(|rank| (*rank, *record))
        };
        let mut ranked: Vec<(usize, &LoopRecord)> = members.iter().filter_map(rank).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut earlier = HashSet::new();
        let mut later: Option<(usize, &LoopRecord)> = None;
        let mut is_apart = false;
        for (rank, record) in ranked.into_iter().rev() {
            match later.filter(|(_, later)| later.started_at == record.started_at) {
                Some((after, _)) => is_apart |= after - rank > 1,
                None => is_apart = false,
            }
            if is_apart {
                earlier.insert(record.loop_id.as_str());
            }
            later = Some((rank, record));
        }
        earlier
    }

    pub(super) fn span(&self, record: &LoopRecord) -> Span {
        let span = self.loops.get(record.loop_id.as_str());
        span.copied().unwrap_or_default()
    }

    pub(super) fn span_mut(&mut self, record: &'a LoopRecord) -> &mut Span {
        self.loops.entry(&record.loop_id).or_default()
    }
}

/// When a group was announced: its loops that never started have that time; otherwise it was before the first of them
/// started.
fn announcement_of(members: &[&LoopRecord]) -> Option<Timestamp> {
    let never_started = members.iter().find(|record| record.events.is_empty());
    let first = members.iter().map(|record| record.started_at).min();
    never_started.map(|record| record.started_at).or(first)
}
