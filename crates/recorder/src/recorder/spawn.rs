//! Links between a loop and its parent, if the parent is in another session or not known yet.
//!
//! Either side of a sub-agent link may arrive first, or only one of them. What is known is written on both sides at
//! once; the rest (the tool, the other session) is filled in when it arrives.

use super::{Effect, LoopLocation, SessionRecorder};
use crate::event::{AgentStart, ContinuationKind, ToolExecutionEnd};
use crate::model::{ChildLoopRef, SpawnRef, session_id_in};

impl SessionRecorder {
    /// Links a loop that has just started, in every direction that is known.
    pub(super) fn link_on_start(&mut self, location: LoopLocation, event: &AgentStart) {
        let given_id = event.loop_id.as_str();
        self.resolve_references(given_id, location);
        let Some(parent_id) = &event.parent_loop_id else {
            return;
        };
        let Some(live) = self.lives.get(&location.session) else {
            return;
        };
        let in_session = live.session.loops.slot_of(parent_id);
        if in_session.is_some_and(|parent| parent != location.slot) {
            return;
        }
        match self.parent_elsewhere(parent_id, location) {
            Some(parent) => self.link_sessions(parent, location),
            None => self.parent_missing(location, parent_id, event),
        }
    }

    /// Resolves references to a loop that others named, as their parent or as their sub-agent.
    pub(super) fn resolve_references(&mut self, loop_id: &str, location: LoopLocation) {
        for child in self.waiting.remove(loop_id).unwrap_or_default() {
            self.parent_found(location, child);
        }
        if let Some(parent) = self.spawned.remove(loop_id) {
            self.link_sessions(parent, location);
        }
    }

    /// The record of a parent in another session.
    fn parent_elsewhere(&self, parent_id: &str, child: LoopLocation) -> Option<LoopLocation> {
        let location = self.locations.get(parent_id).copied()?;
        let live = self.lives.get(&location.session)?;
        let slot = live.session.loops.slot_of(parent_id).unwrap_or(location.slot);
        (location.session != child.session).then_some(LoopLocation { slot, ..location })
    }

    /// The parent may arrive later. Until then a loop that begins a conversation, and whose parent's id is not of this
    /// session, counts as a sub-agent's.
    fn parent_missing(&mut self, location: LoopLocation, parent_id: &str, event: &AgentStart) {
        let waiting = self.waiting.entry(parent_id.to_owned()).or_default();
        waiting.push(location);
        let named = session_id_in(parent_id);
        let is_sub_agent = event.continuation_kind == ContinuationKind::Initial
            && named != Some(event.session_id.as_str());
        let Some(live) = self.lives.get_mut(&location.session) else {
            return;
        };
        if is_sub_agent && live.session.parent_spawn_ref.is_none() {
            live.session.parent_spawn_ref = Some(SpawnRef {
                parent_session_id: named.unwrap_or_default().to_owned(),
                parent_loop_id: parent_id.to_owned(),
                tool_call_id: String::new(),
                tool_name: String::new(),
            });
        }
        self.trace_spawn_ref(location);
    }

    /// A loop has started that another loop in memory named as its parent.
    fn parent_found(&mut self, parent: LoopLocation, child: LoopLocation) {
        if parent.session != child.session {
            self.link_sessions(parent, child);
            return;
        }
        let Some(live) = self.lives.get_mut(&child.session) else {
            return;
        };
        // The supposed sub-agent is a loop of this session.
        let parent_id = live.record(child.slot).parent_loop_id.clone();
        let mistaken = live.session.parent_spawn_ref.as_ref().is_some_and(|spawn| {
            spawn.tool_call_id.is_empty() && Some(&spawn.parent_loop_id) == parent_id.as_ref()
        });
        if mistaken {
            live.session.parent_spawn_ref = None;
        }
        if !live.record(child.slot).status.is_open() {
            live.tell_parent(child.slot);
        }
        self.trace_spawn_ref(child);
    }

    /// A tool ended; if it ran a sub-agent, the link is written on both sides.
    pub(super) fn tool_ended(&mut self, parent: LoopLocation, event: &ToolExecutionEnd) {
        let child_id = event.result.child_loop_id.as_ref();
        let Some(child_id) = child_id.or(event.child_loop_id.as_ref()) else {
            return;
        };
        let child = self.locations.get(child_id).copied();
        let child = child.filter(|location| self.lives.contains_key(&location.session));
        let Some(live) = self.lives.get_mut(&parent.session) else {
            return;
        };
        let refs = &mut live.change(parent.slot).child_loop_refs;
        let known = refs.iter_mut().find(|known| {
            known.child_loop_id == *child_id
                && (known.tool_call_id.is_empty() || known.tool_call_id == event.tool_call_id)
        });
        match known {
            Some(known) => {
                known.tool_call_id.clone_from(&event.tool_call_id);
                known.tool_name.clone_from(&event.tool_name);
            }
            None => refs.push(ChildLoopRef {
                tool_call_id: event.tool_call_id.clone(),
                tool_name: event.tool_name.clone(),
                child_loop_id: child_id.clone(),
                child_session_id: session_id_in(child_id).unwrap_or_default().to_owned(),
            }),
        }
        match child {
            Some(child) => self.link_sessions(parent, child),
            None => {
                self.spawned.entry(child_id.clone()).or_insert(parent);
                self.trace_child_refs(parent);
            }
        }
    }

    /// Writes what is known of a spawn on both sides.
    fn link_sessions(&mut self, parent: LoopLocation, child: LoopLocation) {
        let Some(child_live) = self.lives.get(&child.session) else {
            return;
        };
        let child_loop_id = child_live.record(child.slot).loop_id.clone();
        let child_session_id = child_live.session.session_id.clone();
        let Some(parent_live) = self.lives.get_mut(&parent.session) else {
            return;
        };
        // What a side has already is not written again: another process may be recording it.
        let refs = &parent_live.record(parent.slot).child_loop_refs;
        let is_new = !knows(refs, &child_loop_id, &child_session_id);
        if is_new {
            parent_live.touch();
            let refs = &mut parent_live.change(parent.slot).child_loop_refs;
            add_child(refs, &child_loop_id, &child_session_id);
        }
        let record = parent_live.record(parent.slot);
        let (tool_call_id, tool_name) = tool_of(&record.child_loop_refs, &child_loop_id);
        let spawn = SpawnRef {
            parent_session_id: parent_live.session.session_id.clone(),
            parent_loop_id: record.loop_id.clone(),
            tool_call_id,
            tool_name,
        };
        if is_new {
            self.trace_child_refs(parent);
        }
        if parent.session != child.session {
            self.child_side(child, spawn);
        }
    }

    /// Writes into a sub-agent's session where it comes from, unless it has that, or something
    /// better.
    fn child_side(&mut self, child: LoopLocation, spawn: SpawnRef) {
        let Some(live) = self.lives.get_mut(&child.session) else {
            return;
        };
        let known = live.session.parent_spawn_ref.as_ref();
        let may_learn = known.is_none_or(|known| {
            known.tool_call_id.is_empty() && known.parent_loop_id == spawn.parent_loop_id
        });
        // The tool's event is better than a parent that a loop only named.
        let knows_better = known
            .is_some_and(|known| known.tool_call_id.is_empty() && !spawn.tool_call_id.is_empty());
        if (may_learn || knows_better) && known != Some(&spawn) {
            live.session.parent_spawn_ref = Some(spawn);
            live.touch();
            self.trace_spawn_ref(child);
        }
    }

    fn trace_spawn_ref(&mut self, location: LoopLocation) {
        self.trace_at(location, |session_id, _| Effect::SpawnRef { session_id });
    }

    fn trace_child_refs(&mut self, location: LoopLocation) {
        self.trace_at(location, |session_id, loop_id| Effect::ChildRefs { session_id, loop_id });
    }
}

/// Whether a parent's side knows the child and its session.
fn knows(refs: &[ChildLoopRef], loop_id: &str, session_id: &str) -> bool {
    let mut known = refs.iter().filter(|known| known.child_loop_id == loop_id).peekable();
    known.peek().is_some() && known.all(|known| known.child_session_id == session_id)
}

fn add_child(refs: &mut Vec<ChildLoopRef>, loop_id: &str, session_id: &str) {
    if !refs.iter().any(|known| known.child_loop_id == loop_id) {
        refs.push(ChildLoopRef {
            tool_call_id: String::new(),
            tool_name: String::new(),
            child_loop_id: loop_id.to_owned(),
            child_session_id: String::new(),
        });
    }
    for known in refs.iter_mut().filter(|known| known.child_loop_id == loop_id) {
        session_id.clone_into(&mut known.child_session_id);
    }
}

/// The call and the name of the tool that ran a child, as far as that is known.
fn tool_of(refs: &[ChildLoopRef], loop_id: &str) -> (String, String) {
    let mut known = refs.iter().filter(|known| known.child_loop_id == loop_id);
    let tool = known.find(|known| !known.tool_call_id.is_empty());
    tool.map(|tool| (tool.tool_call_id.clone(), tool.tool_name.clone())).unwrap_or_default()
}
