//! Which session spawned which, and what it all cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::Usage;
use crate::model::Session;

/// One sub-agent that a tool of a loop ran.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spawn {
    /// The session of the loop.
    pub parent_session_id: String,
    /// The loop.
    pub parent_loop_id: String,
    /// The call of the tool; empty where it is not known.
    pub tool_call_id: String,
    /// The tool; empty where it is not known.
    pub tool_name: String,
    /// The sub-agent's session.
    pub child_session_id: String,
    /// The sub-agent's loop, where the parent's side names it.
    pub child_loop_id: Option<String>,
}

/// The spawns among some sessions, from what either side says of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnGraph {
    spawns: Vec<Spawn>,
}

impl SpawnGraph {
    /// The graph of these sessions.
    #[must_use]
    pub fn new<'a>(sessions: impl IntoIterator<Item = &'a Session>) -> Self {
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
        // What only the child says; where both sides speak, the parent's words are the fuller ones.
        for spawn in claims {
            spawns.entry(key(&spawn)).or_insert(spawn);
        }
        let mut spawns: Vec<Spawn> = spawns.into_values().collect();
        spawns.sort_unstable();
        Self { spawns }
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

/// What tells one spawn from another, whichever side speaks.
fn key(spawn: &Spawn) -> (String, String, String, String) {
    (
        spawn.parent_session_id.clone(),
        spawn.parent_loop_id.clone(),
        spawn.child_session_id.clone(),
        spawn.tool_call_id.clone(),
    )
}

fn claim(session: &Session) -> Option<Spawn> {
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

/// What a session cost with everything below it: its loops, choosing among parallel loops, and the same of
/// every sub-agent's session among `sessions`, each once.
#[must_use]
pub fn usage_with_sub_agents(session_id: &str, sessions: &[Session]) -> Usage {
    let graph = SpawnGraph::new(sessions);
    let by_id: BTreeMap<&str, &Session> =
        sessions.iter().map(|session| (session.session_id.as_str(), session)).collect();
    graph
        .family_of(session_id)
        .into_iter()
        .filter_map(|member| by_id.get(member))
        .map(|session| session.total_usage().plus(session.evaluation_usage()))
        .sum()
}
