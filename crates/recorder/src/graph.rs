//! Which session spawned which, and the usage of all of them.

use std::collections::{BTreeMap, BTreeSet};

use bough_session::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::RecordedSession;

/// One sub-agent and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SpawnLink")]
pub struct Spawn {
    /// The session of the loop that spawned it.
    pub parent_session_id: String,
    /// That loop.
    pub parent_loop_id: String,
    /// The call of the tool; empty while that is not known.
    pub tool_call_id: String,
    /// The tool; empty while that is not known.
    pub tool_name: String,
    /// The sub-agent's session.
    pub child_session_id: String,
    /// The sub-agent's first loop, where the parent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_loop_id: Option<String>,
}

/// The spawns among some sessions, from what either side states about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnGraph {
    spawns: Vec<Spawn>,
}

impl SpawnGraph {
    /// The graph of these sessions.
    #[must_use]
    pub fn new<'a>(sessions: impl IntoIterator<Item = &'a RecordedSession>) -> Self {
        let mut spawns = BTreeMap::new();
        let mut claims = Vec::new();
        for session in sessions {
            for record in &session.loops {
                for child in &record.child_loop_refs {
                    let spawn = Spawn {
                        parent_session_id: session.session_id.clone(),
                        parent_loop_id: record.loop_id.clone(),
                        tool_call_id: child.tool_call_id.clone(),
                        tool_name: child.tool_name.clone(),
                        child_session_id: child.child_session_id.clone(),
                        child_loop_id: Some(child.child_loop_id.clone()),
                    };
                    spawns.insert(key(&spawn), spawn);
                }
            }
            claims.extend(claim(session));
        }
        // Spawns that only the child states; if both sides state one, the parent's has more detail.
        for spawn in claims {
            spawns.entry(key(&spawn)).or_insert(spawn);
        }
        let mut spawns: Vec<Spawn> = spawns.into_values().collect();
        spawns.sort_unstable();
        Self { spawns }
    }

    /// Merges the graph of other sessions. If both know a spawn, the one with more detail stays.
    pub fn join(&mut self, other: Self) {
        let mut spawns: BTreeMap<_, Spawn> =
            self.spawns.drain(..).map(|spawn| (key(&spawn), spawn)).collect();
        for spawn in other.spawns {
            let known = spawns.entry(key(&spawn)).or_insert_with(|| spawn.clone());
            if known.child_loop_id.is_none() {
                *known = spawn;
            }
        }
        self.spawns = spawns.into_values().collect();
        self.spawns.sort_unstable();
    }

    /// All spawns, sorted.
    #[must_use]
    pub fn spawns(&self) -> &[Spawn] {
        &self.spawns
    }

    /// The sessions that loops of this one spawned.
    pub fn children_of<'a>(&'a self, session_id: &'a str) -> impl Iterator<Item = &'a str> {
        // Spawns are sorted by their parents.
        let before = |spawn: &Spawn| spawn.parent_session_id.as_str() < session_id;
        let first = self.spawns.partition_point(before);
        let children: BTreeSet<&str> = self
            .spawns
            .iter()
            .skip(first)
            .take_while(|spawn| spawn.parent_session_id == session_id)
            .map(|spawn| spawn.child_session_id.as_str())
            .filter(|child| *child != session_id)
            .collect();
        children.into_iter()
    }

    /// How a session came to be: the spawns from the outermost parent to it.
    #[must_use]
    pub fn chain_to(&self, session_id: &str) -> Vec<&Spawn> {
        let mut chain = Vec::new();
        let mut seen = BTreeSet::from([session_id]);
        let mut current = session_id;
        while let Some(spawn) = self.spawns.iter().find(|spawn| spawn.child_session_id == current) {
            if !seen.insert(&spawn.parent_session_id) {
                break;
            }
            chain.push(spawn);
            current = &spawn.parent_session_id;
        }
        chain.reverse();
        chain
    }

    /// A session and everything that was spawned below it, each once, parents first.
    #[must_use]
    pub fn family_of<'a>(&'a self, session_id: &'a str) -> Vec<&'a str> {
        let mut family = vec![session_id];
        let mut seen = BTreeSet::from([session_id]);
        let mut at = 0;
        while let Some(&member) = family.get(at) {
            family.extend(self.children_of(member).filter(|child| seen.insert(child)));
            at += 1;
        }
        family
    }
}

/// The identity of a spawn, whichever side states it.
fn key(spawn: &Spawn) -> (String, String, String, String) {
    (
        spawn.parent_session_id.clone(),
        spawn.parent_loop_id.clone(),
        spawn.child_session_id.clone(),
        spawn.tool_call_id.clone(),
    )
}

fn claim(session: &RecordedSession) -> Option<Spawn> {
    let spawned = session.parent_spawn_ref.as_ref()?;
    Some(Spawn {
        parent_session_id: spawned.parent_session_id.clone(),
        parent_loop_id: spawned.parent_loop_id.clone(),
        tool_call_id: spawned.tool_call_id.clone(),
        tool_name: spawned.tool_name.clone(),
        child_session_id: session.session_id.clone(),
        child_loop_id: None,
    })
}

/// The usage of a session with everything below it: its loops, choosing among parallel loops, and the same of every
/// sub-agent's session among `sessions`, each once.
#[must_use]
pub fn usage_with_sub_agents(session_id: &str, sessions: &[RecordedSession]) -> Usage {
    let graph = SpawnGraph::new(sessions);
    let by_id: BTreeMap<&str, &RecordedSession> =
        sessions.iter().map(|session| (session.session_id.as_str(), session)).collect();
    let family = graph.family_of(session_id).into_iter().filter_map(|member| by_id.get(member));
    let usages: Vec<Usage> = family.map(|session| session.whole_usage()).collect();
    crate::usage::sum(usages.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ChildLoopRef, LoopRecord, LoopStatus, ParallelGroupRecord, SpawnRef};
    use crate::time::Timestamp;

    fn tokens(input: u64) -> Usage {
        crate::usage::recorded(&Usage { input: Some(input), ..Usage::default() })
    }

    /// A session of one loop, which cost 1 token and ran these sub-agents.
    fn session(id: &str, children: &[&str]) -> RecordedSession {
        let at = Timestamp::default();
        let mut session = RecordedSession::explicit(id, "agent", at);
        let mut record = LoopRecord::new(format!("{id}.1"), id, "agent", LoopStatus::Completed, at);
        record.usage = tokens(1);
        record.child_loop_refs = children
            .iter()
            .map(|child| ChildLoopRef {
                tool_call_id: format!("call {child}"),
                tool_name: "task".to_owned(),
                child_loop_id: format!("{child}.1"),
                child_session_id: (*child).to_owned(),
            })
            .collect();
        session.loops.add(record).unwrap();
        session
    }

    fn chain(graph: &SpawnGraph, id: &str) -> String {
        let parents = graph.chain_to(id).into_iter();
        parents.map(|spawn| spawn.parent_session_id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn spawns_are_followed_over_any_number_of_sessions() {
        let sessions =
            [session("a", &["b", "c"]), session("b", &["d"]), session("c", &[]), session("d", &[])];
        let graph = SpawnGraph::new(&sessions);
        assert_eq!(graph.children_of("a").collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(graph.family_of("a"), ["a", "b", "c", "d"]);
        assert_eq!(chain(&graph, "d"), "a b");
        assert_eq!(chain(&graph, "a"), "");
        assert_eq!(usage_with_sub_agents("a", &sessions), tokens(4));
        assert_eq!(usage_with_sub_agents("b", &sessions), tokens(2));
        assert_eq!(usage_with_sub_agents("nobody", &sessions), tokens(0));
    }

    #[test]
    fn a_circle_of_spawns_does_no_harm() {
        let sessions = [session("a", &["b"]), session("b", &["a"])];
        let graph = SpawnGraph::new(&sessions);
        assert_eq!(graph.family_of("a"), ["a", "b"]);
        assert_eq!(chain(&graph, "a"), "b");
        assert_eq!(usage_with_sub_agents("a", &sessions), tokens(2));
    }

    #[test]
    fn what_both_sides_say_is_one_spawn() {
        let mut child = session("b", &[]);
        child.parent_spawn_ref = Some(SpawnRef {
            parent_session_id: "a".to_owned(),
            parent_loop_id: "a.1".to_owned(),
            tool_call_id: "call b".to_owned(),
            tool_name: "task".to_owned(),
        });
        let both = [session("a", &["b"]), child.clone()];
        assert_eq!(SpawnGraph::new(&both).spawns().len(), 1);
        // In whichever order they are put together.
        for order in [[0, 1], [1, 0]] {
            let mut joined = SpawnGraph::default();
            for at in order {
                joined.join(SpawnGraph::new([&both[at]]));
            }
            assert_eq!(joined, SpawnGraph::new(&both));
        }
        // The child's word is enough.
        let sessions = [session("a", &[]), child];
        assert_eq!(SpawnGraph::new(&sessions).family_of("a"), ["a", "b"]);
    }

    #[test]
    fn choosing_among_loops_is_counted_once_for_each_group() {
        let mut chosen = session("a", &[]);
        let mut other =
            LoopRecord::new("a.2", "a", "agent", LoopStatus::Completed, Timestamp::default());
        other.usage = tokens(1);
        chosen.loops.add(other).unwrap();
        for id in ["a.1", "a.2"] {
            let slot = chosen.loops.slot_of(id).unwrap();
            chosen.loops.change(slot).parallel_group = Some(ParallelGroupRecord {
                all_loop_ids: vec!["a.1".to_owned(), "a.2".to_owned()],
                selected_loop_id: "a.1".to_owned(),
                selected_config_index: 0,
                evaluation_usage: tokens(10),
                is_selected: id == "a.1",
            });
        }
        assert_eq!(chosen.total_usage(), tokens(2));
        assert_eq!(usage_with_sub_agents("a", &[chosen]), tokens(12));
    }
}
