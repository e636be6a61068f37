//! Questions to a session.

use std::collections::HashSet;

use bough_session::{AgentMessage, Usage};

use crate::event::ContinuationKind;
use crate::loops::Slot;
use crate::message::RecordedMessage;
use crate::model::{LoopConfigSnapshot, LoopRecord, LoopStatus, RecordedSession, TaskStatus};
use crate::open_enums::ThinkingLevel;

/// The settings of a loop, or those of an agent for loops that do not set them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopSettings {
    /// Which model.
    pub model: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The thinking level.
    pub thinking_level: Option<ThinkingLevel>,
    /// The sampling temperature.
    pub temperature: Option<f32>,
}

impl RecordedSession {
    /// The loops without a predecessor in this session.
    pub fn root_loops(&self) -> impl Iterator<Item = &LoopRecord> {
        self.loops.roots().iter().map(|slot| self.loops.at(*slot))
    }

    /// The loops of this session that continue `loop_id`, by start.
    pub fn children_of(&self, loop_id: &str) -> impl Iterator<Item = &LoopRecord> {
        let children = self.get_loop(loop_id).map_or(&[][..], |record| &record.children_loop_ids);
        self.by_start(children)
    }

    /// All loops of the group of `loop_id`, itself included, by start; none if it ran alone.
    pub fn parallel_siblings(&self, loop_id: &str) -> impl Iterator<Item = &LoopRecord> {
        let group = self.get_loop(loop_id).and_then(|record| record.parallel_group.as_ref());
        self.by_start(group.map_or(&[][..], |group| &group.all_loop_ids))
    }

    fn by_start(&self, loop_ids: &[String]) -> impl Iterator<Item = &LoopRecord> + use<'_> {
        let found = loop_ids.iter().filter_map(|id| self.loops.slot_of(id));
        let mut slots: Vec<Slot> = found.collect();
        slots.sort_unstable_by_key(|slot| self.loops.key(*slot));
        slots.dedup();
        slots.into_iter().map(|slot| self.loops.at(slot))
    }

    /// The conversation that leads to a loop: the ids of the loops from the root to it.
    ///
    /// - The chain follows `parent_loop_id`, whatever the messages of the loops are.
    /// - Of a parallel group only the chosen loop is on the chain: a loop that continues (`Default`) from one that was
    ///   not chosen continues from the chosen one. A `Branch` or `Rerun` from a loop that was not chosen means exactly
    ///   that loop.
    /// - An id that the session does not have ends the chain: it is the head if a loop names it as its parent, and the
    ///   whole chain if it is the one that was asked for.
    #[must_use]
    pub fn loop_chain_to(&self, loop_id: &str) -> Vec<String> {
        self.chain_to(loop_id, Self::chosen_parent)
    }

    /// The loops whose messages lead to a loop. A loop that a rerun tried again is not among them: the chain goes from
    /// the rerun to the loop before the first try.
    pub(crate) fn active_chain_to(&self, loop_id: &str) -> Vec<String> {
        self.chain_to(loop_id, Self::active_parent)
    }

    fn chain_to<'a>(
        &'a self,
        loop_id: &'a str,
        parent: fn(&'a Self, &'a LoopRecord) -> Option<&'a str>,
    ) -> Vec<String> {
        let mut chain = vec![loop_id];
        let mut seen = HashSet::new();
        let mut at = self.loops.slot_of(loop_id);
        while let Some(slot) = at.filter(|slot| seen.insert(*slot)) {
            let Some(before) = parent(self, self.loops.at(slot)) else {
                break;
            };
            at = self.loops.slot_of(before);
            if at.is_none_or(|at| !seen.contains(&at)) {
                chain.push(before);
            }
        }
        chain.into_iter().rev().map(str::to_owned).collect()
    }

    /// The id of the loop that this one continues on the active path.
    pub(crate) fn active_parent<'a>(&'a self, record: &'a LoopRecord) -> Option<&'a str> {
        let mut child = record;
        let mut skipped = HashSet::new();
        while let Some(superseded) = self.superseded_by(child) {
            if !skipped.insert(superseded.loop_id.as_str()) {
                return None;
            }
            child = superseded;
        }
        self.chosen_parent(child).filter(|parent| *parent != record.loop_id)
    }

    /// The id of the loop that this one continues, or of the one that was chosen instead.
    fn chosen_parent<'a>(&'a self, record: &'a LoopRecord) -> Option<&'a str> {
        let parent_id = record.parent_loop_id.as_deref()?;
        let goes_on = record.continuation_kind == ContinuationKind::Default;
        let parent = goes_on.then(|| self.get_loop(parent_id)).flatten();
        let passed_over = parent.filter(|parent| parent.is_passed_over());
        let chosen = passed_over
            .and_then(|parent| parent.parallel_group.as_ref())
            .and_then(|group| self.get_loop(&group.selected_loop_id))
            .filter(|chosen| chosen.loop_id != record.loop_id);
        Some(chosen.map_or(parent_id, |chosen| &chosen.loop_id))
    }

    /// The loop that `record` tried again, if it is a rerun.
    ///
    /// A rerun names the loop that it tries again as its parent. If the parent begins with another message than the
    /// rerun, it is taken for the loop before the rerun instead.
    pub(crate) fn superseded_by(&self, record: &LoopRecord) -> Option<&LoopRecord> {
        if !matches!(record.continuation_kind, ContinuationKind::Rerun { .. }) {
            return None;
        }
        let parent = self.get_loop(record.parent_loop_id.as_deref()?)?;
        let same = match (opening(record), opening(parent)) {
            (Some(again), Some(first)) => {
                again.known().map(AgentMessage::content) == first.known().map(AgentMessage::content)
            }
            _ => true,
        };
        (same && parent.loop_id != record.loop_id).then_some(parent)
    }

    /// The id that a loop arrived with. It differs from the recorded id if that one was taken.
    pub(crate) fn given_id<'a>(&self, record: &'a LoopRecord) -> &'a str {
        let given = record.events.first().and_then(|first| first.event.loop_id());
        let base = record.loop_id.rsplit_once('-').map(|(base, _)| base);
        let taken = base.filter(|base| record.events.is_empty() && self.get_loop(base).is_some());
        given.or(taken).unwrap_or(&record.loop_id)
    }

    /// The usage of all loops. Choosing among parallel loops is not counted; [`crate::usage_with_sub_agents`] counts
    /// it.
    #[must_use]
    pub fn total_usage(&self) -> Usage {
        crate::usage::sum(self.loops.iter().map(|record| &record.usage))
    }

    /// The usage of choosing among parallel loops, each group once.
    #[must_use]
    pub fn evaluation_usage(&self) -> Usage {
        let mut seen = HashSet::new();
        let groups = self.loops.iter().filter_map(|record| record.parallel_group.as_ref());
        let groups = groups.filter(|group| seen.insert(&group.all_loop_ids));
        crate::usage::sum(groups.map(|group| &group.evaluation_usage))
    }

    /// The usage of all loops, and of choosing among parallel ones.
    #[must_use]
    pub fn whole_usage(&self) -> Usage {
        crate::usage::sum([&self.total_usage(), &self.evaluation_usage()].into_iter())
    }

    /// The status of the session's task: the one that the caller set, else the one that its loops
    /// imply.
    #[must_use]
    pub fn task_status(&self) -> TaskStatus {
        if let Some(stated) = self.stated_task_status {
            return stated;
        }
        let has = |status| self.loops.iter().any(|record| record.status == status);
        if has(LoopStatus::Running) {
            return TaskStatus::Running;
        }
        let settled = |record: &&LoopRecord| {
            !record.status.is_open()
                && !record.is_passed_over()
                && record.continuation_kind != ContinuationKind::Compaction
        };
        match self.loops.iter().rev().find(settled).map(|last| last.status) {
            _ if has(LoopStatus::Pending) => TaskStatus::Pending,
            Some(LoopStatus::Completed) => TaskStatus::Completed,
            Some(_) => TaskStatus::Failed,
            None => TaskStatus::Pending,
        }
    }

    /// The effective settings of a loop: its own, and the agent's where it has none.
    #[must_use]
    pub fn effective_settings(
        &self,
        loop_id: &str,
        defaults: &LoopSettings,
    ) -> Option<LoopSettings> {
        let config = self.get_loop(loop_id)?.config.as_deref();
        let of_loop = |read: fn(&LoopConfigSnapshot) -> &str| {
            config.map(read).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(LoopSettings {
            model: of_loop(|config| &config.model).or_else(|| defaults.model.clone()),
            provider: of_loop(|config| &config.provider).or_else(|| defaults.provider.clone()),
            thinking_level: config
                .and_then(|config| config.thinking_level.clone())
                .or_else(|| defaults.thinking_level.clone()),
            temperature: config.and_then(|config| config.temperature).or(defaults.temperature),
        })
    }
}

/// The first message of a loop, if it is not the model's.
fn opening(record: &LoopRecord) -> Option<&RecordedMessage> {
    record.messages.first().filter(|message| message.role() == "user")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ParallelGroupRecord;
    use crate::time::Timestamp;

    struct Sketch(RecordedSession);

    impl Sketch {
        fn new() -> Self {
            Self(RecordedSession::explicit("s", "a", Timestamp::default()))
        }

        fn add(mut self, id: &str, parent: Option<&str>, kind: ContinuationKind) -> Self {
            let at = Timestamp::from_unix_ms(i64::try_from(self.0.loops.len()).unwrap());
            let mut record = LoopRecord::new(id, "s", "a", LoopStatus::Completed, at);
            record.parent_loop_id = parent.map(str::to_owned);
            record.continuation_kind = kind;
            self.0.loops.add(record).unwrap();
            self
        }

        fn says(mut self, id: &str, text: &str) -> Self {
            let slot = self.0.loops.slot_of(id).unwrap();
            let message = RecordedMessage::user(text, 1);
            self.0.loops.change(slot).messages.push(message);
            self
        }

        fn group(mut self, ids: &[&str], selected: &str) -> Self {
            for id in ids {
                let slot = self.0.loops.slot_of(id).unwrap();
                self.0.loops.change(slot).parallel_group = Some(ParallelGroupRecord {
                    all_loop_ids: ids.iter().map(|&id| id.to_owned()).collect(),
                    selected_loop_id: selected.to_owned(),
                    selected_config_index: 0,
                    evaluation_usage: Usage { input: Some(5), ..Usage::default() },
                    is_selected: *id == selected,
                });
            }
            self
        }

        fn chain(&self, id: &str) -> String {
            self.0.loop_chain_to(id).join(" ")
        }
    }

    const GOES_ON: ContinuationKind = ContinuationKind::Default;
    const BEGINS: ContinuationKind = ContinuationKind::Initial;

    fn rerun() -> ContinuationKind {
        ContinuationKind::Rerun { tag: "t".to_owned() }
    }

    #[test]
    fn a_chain_leads_from_the_root() {
        let sketch = Sketch::new().add("a", None, BEGINS).add("b", Some("a"), GOES_ON).add(
            "c",
            Some("b"),
            GOES_ON,
        );
        assert_eq!(sketch.chain("c"), "a b c");
        assert_eq!(sketch.chain("a"), "a");
    }

    #[test]
    fn ids_that_are_not_held_and_circles_do_no_harm() {
        let sketch = Sketch::new()
            .add("a", Some("b"), GOES_ON)
            .add("b", Some("a"), GOES_ON)
            .add("self", Some("self"), GOES_ON)
            .add("child", Some("elsewhere.x.1"), BEGINS)
            .add("r", Some("q"), rerun())
            .add("q", Some("r"), rerun());
        assert_eq!(sketch.chain("a"), "b a");
        assert_eq!(sketch.chain("self"), "self");
        assert_eq!(sketch.chain("child"), "elsewhere.x.1 child");
        assert_eq!(sketch.chain("nowhere"), "nowhere");
        assert_eq!(sketch.chain("r"), "q r");
    }

    #[test]
    fn only_the_chosen_loop_of_a_group_is_on_the_way() {
        let sketch = Sketch::new()
            .add("a", None, BEGINS)
            .add("lost", Some("a"), GOES_ON)
            .add("won", Some("a"), GOES_ON)
            .group(&["lost", "won"], "won")
            .add("next", Some("won"), GOES_ON)
            .add("astray", Some("lost"), GOES_ON)
            .add("explore", Some("lost"), ContinuationKind::Branch { tag: "t".to_owned() });
        assert_eq!(sketch.chain("next"), "a won next");
        assert_eq!(sketch.chain("astray"), "a won astray");
        assert_eq!(sketch.chain("explore"), "a lost explore");
        assert_eq!(sketch.chain("lost"), "a lost");
        assert_eq!(sketch.0.evaluation_usage().input, Some(5));
    }

    #[test]
    fn a_chain_follows_the_parents_and_a_context_leaves_out_what_was_tried_again() {
        let sketch = Sketch::new()
            .add("a", None, BEGINS)
            .add("first", Some("a"), GOES_ON)
            .add("second", Some("first"), rerun())
            .add("third", Some("second"), rerun())
            .add("next", Some("third"), GOES_ON);
        assert_eq!(sketch.chain("third"), "a first second third");
        assert_eq!(sketch.chain("next"), "a first second third next");
        assert_eq!(sketch.0.active_chain_to("next").join(" "), "a third next");
    }

    #[test]
    fn a_chain_is_the_same_whatever_the_loops_say() {
        let sketch = Sketch::new()
            .add("a", None, BEGINS)
            .says("a", "draw a cat")
            .add("dog", Some("a"), rerun())
            .says("dog", "draw a dog")
            .add("cat", Some("a"), rerun())
            .says("cat", "draw a cat");
        assert_eq!(sketch.chain("dog"), "a dog");
        assert_eq!(sketch.chain("cat"), "a cat");
        assert_eq!(sketch.0.active_chain_to("dog").join(" "), "a dog");
        assert_eq!(sketch.0.active_chain_to("cat").join(" "), "cat");
    }

    #[test]
    fn a_task_stands_where_its_last_loop_stands() {
        let check =
            |session: &RecordedSession, expected| assert_eq!(session.task_status(), expected);
        let mut session = Sketch::new().0;
        check(&session, TaskStatus::Pending);
        let statuses = [
            (LoopStatus::Completed, TaskStatus::Completed),
            (LoopStatus::Rejected, TaskStatus::Failed),
            (LoopStatus::Completed, TaskStatus::Completed),
            (LoopStatus::Aborted, TaskStatus::Failed),
            (LoopStatus::Pending, TaskStatus::Pending),
            (LoopStatus::Running, TaskStatus::Running),
        ];
        for (at, (status, expected)) in statuses.into_iter().enumerate() {
            let started = Timestamp::from_unix_ms(i64::try_from(at).unwrap());
            let record = LoopRecord::new(format!("l{at}"), "s", "a", status, started);
            session.loops.add(record).unwrap();
            check(&session, expected);
        }
        session.stated_task_status = Some(TaskStatus::Failed);
        check(&session, TaskStatus::Failed);
    }

    #[test]
    fn settings_come_from_the_loop_and_then_from_the_agent() {
        let mut session = Sketch::new().add("a", None, BEGINS).add("b", None, BEGINS).0;
        let slot = session.loops.slot_of("b").unwrap();
        session.loops.change(slot).config = Some(Box::new(LoopConfigSnapshot {
            model: "opus".to_owned(),
            thinking_level: Some(ThinkingLevel::High),
            ..LoopConfigSnapshot::default()
        }));
        let defaults = LoopSettings {
            model: Some("haiku".to_owned()),
            provider: Some("p".to_owned()),
            thinking_level: Some(ThinkingLevel::Off),
            temperature: Some(0.5),
        };
        let check = |id: &str, model: &str, thinking: ThinkingLevel| {
            let settings = session.effective_settings(id, &defaults).unwrap();
            assert_eq!(settings.model.as_deref(), Some(model));
            assert_eq!(settings.provider.as_deref(), Some("p"));
            assert_eq!(settings.thinking_level, Some(thinking));
            assert_eq!(settings.temperature, Some(0.5));
        };
        check("a", "haiku", ThinkingLevel::Off);
        check("b", "opus", ThinkingLevel::High);
        assert!(session.effective_settings("none", &defaults).is_none());
    }
}
