//! The order of events that makes the same session again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use super::Step;
use super::event_graph::{EventGraph, Span};
use crate::event::AgentEvent;
use crate::model::LoopRecord;
use crate::time::Timestamp;

impl<'a> EventGraph<'a> {
    /// A loop that arrived with a taken id came after all events of the loop that had it.
    pub(super) fn keep_order_of_ids(&mut self) {
        for records in self.by_given_id() {
            for pair in records.windows(2) {
                if let [earlier, later] = pair {
                    self.keep_apart(earlier, later);
                }
            }
        }
    }

    /// A loop continues the newest loop of the id that it names, so it started before the next loop of that id.
    pub(super) fn keep_order_of_parents(&mut self) {
        let by_id = self.by_given_id().into_iter().filter(|records| records.len() > 1);
        let by_id: HashMap<&str, Vec<&LoopRecord>> = by_id
            .filter_map(|records| Some((self.session.given_id(records.first()?), records)))
            .collect();
        for record in self.order.clone() {
            let named = named_by(record).and_then(|parent_id| by_id.get(parent_id));
            let (Some(named), Some(start)) = (named, self.span(record).start) else {
                continue;
            };
            let others: Vec<_> =
                named.iter().filter(|other| other.loop_id != record.loop_id).collect();
            let is_parent =
                |other: &&&&LoopRecord| Some(&other.loop_id) == record.parent_loop_id.as_ref();
            let Some(at) = others.iter().position(|other| is_parent(&other)) else {
                continue;
            };
            // The first loop of an id may arrive after the loops that named it.
            if let Some(first) =
                others.get(at).filter(|_| at > 0).and_then(|it| self.span(it).first)
            {
                self.before(first, start);
            }
            if let Some(next) = others.get(at + 1).and_then(|it| self.span(it).first) {
                self.before(start, next);
            }
        }
    }

    /// A choice goes to the newest undecided group that has the id. This runs last: everything else determines which of
    /// two choices was first.
    pub(super) fn keep_order_of_choices(&mut self) {
        for records in self.by_given_id() {
            for (at, record) in records.iter().enumerate() {
                self.keep_choice(record, records.get(at + 1..).unwrap_or_default());
            }
        }
    }

    /// The loops that arrived with the same id, in order.
    fn by_given_id(&self) -> Vec<Vec<&'a LoopRecord>> {
        let mut by_id: BTreeMap<&str, Vec<&'a LoopRecord>> = BTreeMap::new();
        for record in &self.order {
            by_id.entry(self.session.given_id(record)).or_default().push(record);
        }
        let sorted = by_id.into_iter().map(|(given_id, mut records)| {
            records.sort_by_key(|record| {
                let suffix = record.loop_id.strip_prefix(given_id);
                let number = suffix.and_then(|suffix| suffix.strip_prefix('-'));
                number.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
            });
            records
        });
        sorted.collect()
    }

    fn keep_apart(&mut self, earlier: &LoopRecord, later: &LoopRecord) {
        let (earlier, later) = (self.span(earlier), self.span(later));
        // A loop that never started may still be announced when the next one of its id is.
        let waits = later.announced.is_some() && earlier.close == earlier.decided;
        let close = earlier.close.filter(|_| !waits);
        for step in [earlier.last, close, earlier.announced].into_iter().flatten() {
            if let Some(first) = later.first {
                self.before(step, first);
            }
        }
    }

    /// The choice came before later groups with the id were announced, or after one of their loops
    /// was chosen.
    fn keep_choice(&mut self, record: &LoopRecord, later: &[&'a LoopRecord]) {
        let is_chosen = record.parallel_group.as_ref().is_some_and(|group| group.is_selected);
        let Some(decided) = self.span(record).decided.filter(|_| is_chosen) else {
            return;
        };
        for later in later {
            let Span { announced: Some(announced), decided: other, .. } = self.span(later) else {
                continue;
            };
            match other.filter(|_| self.comes_before(announced, decided)) {
                Some(other) => self.before(other, decided),
                None => {
                    self.before(decided, announced);
                    return;
                }
            }
        }
    }

    fn comes_before(&self, first: usize, second: usize) -> bool {
        let mut seen = HashSet::from([first]);
        let mut next = vec![first];
        while let Some(step) = next.pop() {
            if step == second {
                return true;
            }
            let then = self.then.get(step).into_iter().flatten();
            next.extend(then.filter(|after| seen.insert(**after)));
        }
        false
    }

    /// A loop that never started takes the parent that the others of its group name, if the session knew that parent
    /// when the loop ended.
    pub(super) fn keep_adoptions(&mut self) {
        for record in self.order.clone() {
            let span = self.span(record);
            let Some(decided) = span.decided.filter(|_| span.close == span.decided) else {
                continue;
            };
            let first = |id: &str| self.session.get_loop(id).and_then(|it| self.span(it).first);
            match &record.parent_loop_id {
                Some(adopted) => {
                    if let Some(first) = first(adopted) {
                        self.before(first, decided);
                    }
                }
                None => {
                    let named = self.named_by_siblings(record);
                    if let Some(first) = named.and_then(first) {
                        self.before(decided, first);
                    }
                }
            }
        }
    }

    /// The loop that all others of a group continue.
    fn named_by_siblings(&self, record: &LoopRecord) -> Option<&'a str> {
        let group = record.parallel_group.as_ref()?;
        let siblings = group.all_loop_ids.iter().filter_map(|id| self.session.get_loop(id));
        let started = siblings.filter(|sibling| self.span(sibling).start.is_some());
        let mut named: Vec<_> = started.map(|sibling| sibling.parent_loop_id.as_deref()).collect();
        named.dedup();
        match named.as_slice() {
            [Some(parent)] if !group.all_loop_ids.iter().any(|id| id == parent) => Some(parent),
            _ => None,
        }
    }

    /// A parent's children are in the order in which they ended.
    pub(super) fn keep_order_of_children(&mut self) {
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

    /// Loops of one moment are in the order of their arrival, and the session remembers the first and the last start.
    pub(super) fn keep_order_of_starts(&mut self) {
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
        if starts.is_empty() {
            self.keep_first_announcement();
        }
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

    /// A session of which no loop started was made by the first announcement.
    fn keep_first_announcement(&mut self) {
        let made_it = |record: &&&LoopRecord| record.started_at == self.session.created_at;
        let Some(first) = self.order.iter().find(made_it).and_then(|it| self.span(it).first) else {
            return;
        };
        for record in self.order.clone() {
            if let Some(other) = self.span(record).first {
                self.before(first, other);
            }
        }
    }

    /// The events by time, as far as the graph allows.
    pub(super) fn play(self) -> Vec<Step> {
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
        // Only a session that was not recorded can contradict itself; its events are played anyway.
        played.extend(steps.into_iter().flatten());
        played
    }
}

/// The id that a loop named as its parent.
fn named_by(record: &LoopRecord) -> Option<&str> {
    match record.events.first().map(|first| &first.event) {
        Some(AgentEvent::AgentStart(start)) => start.parent_loop_id.as_deref(),
        _ => None,
    }
}
