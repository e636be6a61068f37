//! Facts: what a session knows that no event of an agent states.
//!
//! The events of a session do not state why the session was made, the name of its task, links with other sessions, or a
//! compaction. Facts state them, as events of types of our own among the others, so that the log of a session, or a
//! replay of it, is enough to make the same session again. A program that does not know these types may leave them out.

use std::collections::HashMap;

use crate::event::{AgentEvent, UnknownEvent};
use crate::model::{
    ChildLoopRef, CompactionBlock, RecordedSession, SessionFormation, SessionScope, SpawnRef,
    TaskStatus,
};
use crate::verbatim::Members;

const PREFIX: &str = "bough:";

/// Something about a session that no event of an agent states. It is stored and sent as an event.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Fact {
    /// The fields of a session.
    #[serde(rename = "bough:session")]
    Session(SessionFact),
    /// The sub-agents of a loop, as both sides know them.
    #[serde(rename = "bough:sub_agents")]
    SubAgents {
        /// The session.
        session_id: String,
        /// The loop.
        loop_id: String,
        /// All of its sub-agents.
        child_loop_refs: Vec<ChildLoopRef>,
    },
    /// A compaction was added to a loop, or removed.
    #[serde(rename = "bough:compaction")]
    Compaction {
        /// The session.
        session_id: String,
        /// The loop.
        loop_id: String,
        /// The overlay; none if it was removed.
        block: Option<CompactionBlock>,
    },
    /// A loop was aborted: the program that ran it is gone.
    #[serde(rename = "bough:aborted")]
    Aborted {
        /// The session.
        session_id: String,
        /// The loop.
        loop_id: String,
    },
    /// A loop that was aborted was recorded again from its start, and goes on.
    #[serde(rename = "bough:resumed")]
    Resumed {
        /// The session.
        session_id: String,
        /// The loop.
        loop_id: String,
    },
}

/// The fields of a session, apart from its loops.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SessionFact {
    /// The session.
    pub session_id: String,
    /// Why it was made.
    pub formation: SessionFormation,
    /// Whether it is to be kept.
    pub scope: SessionScope,
    /// The name of its task.
    pub task_name: Option<String>,
    /// The status of its task, if the caller set it.
    pub task_status: Option<TaskStatus>,
    /// The tool call that spawned it.
    pub parent_spawn_ref: Option<SpawnRef>,
}

impl SessionFact {
    /// The fields of `session`.
    #[must_use]
    pub fn of(session: &RecordedSession) -> Self {
        Self {
            session_id: session.session_id.clone(),
            formation: session.formation.clone(),
            scope: session.scope,
            task_name: session.task_name.clone(),
            task_status: session.stated_task_status,
            parent_spawn_ref: session.parent_spawn_ref.clone(),
        }
    }

    pub(crate) fn apply(self, session: &mut RecordedSession) {
        session.formation = self.formation;
        session.scope = self.scope;
        session.task_name = self.task_name;
        session.stated_task_status = self.task_status;
        session.parent_spawn_ref = self.parent_spawn_ref;
    }
}

impl Fact {
    /// The session that the fact is about.
    #[must_use]
    pub fn session_id(&self) -> &str {
        match self {
            Self::Session(fact) => &fact.session_id,
            Self::SubAgents { session_id, .. }
            | Self::Compaction { session_id, .. }
            | Self::Aborted { session_id, .. }
            | Self::Resumed { session_id, .. } => session_id,
        }
    }

    /// The loop that the fact is about.
    #[must_use]
    pub fn loop_id(&self) -> Option<&str> {
        match self {
            Self::Session(_) => None,
            Self::SubAgents { loop_id, .. }
            | Self::Compaction { loop_id, .. }
            | Self::Aborted { loop_id, .. }
            | Self::Resumed { loop_id, .. } => Some(loop_id),
        }
    }

    /// The fact that an event carries, if its type is one of ours and it can be read.
    #[must_use]
    pub fn from_event(event: &AgentEvent) -> Option<Self> {
        let AgentEvent::Unknown(event) = event else {
            return None;
        };
        let type_name = event.type_name();
        if !type_name.starts_with(PREFIX) {
            return None;
        }
        // The type is a member that the fact does not have.
        let named = serde_json::to_string(&HashMap::from([(type_name, event)])).ok()?;
        serde_json::from_str(&named).ok()
    }
}

impl From<Fact> for AgentEvent {
    fn from(fact: Fact) -> Self {
        let text = serde_json::to_string(&fact).unwrap_or_default();
        let named = serde_json::from_str::<HashMap<String, Members>>(&text);
        let Some((type_name, Members(members))) = named.into_iter().flatten().next() else {
            unreachable!("a fact is an object with text for keys");
        };
        Self::Unknown(UnknownEvent::of_members(&type_name, members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_travels_as_an_event() {
        let fact = Fact::Aborted { session_id: "s".to_owned(), loop_id: "l".to_owned() };
        let event = AgentEvent::from(fact.clone());
        assert_eq!(event.type_name(), "bough:aborted");
        assert_eq!(event.loop_id(), Some("l"));
        assert_eq!(Fact::from_event(&event), Some(fact));
        let text = serde_json::to_string(&event).unwrap();
        let read = AgentEvent::from_json(&text).unwrap();
        assert_eq!(read, event);
    }

    #[test]
    fn events_of_others_are_no_facts() {
        for text in
            [r#"{"type":"Dreamt","loop_id":"l"}"#, r#"{"type":"bough:unheard of","loop_id":"l"}"#]
        {
            assert_eq!(Fact::from_event(&AgentEvent::from_json(text).unwrap()), None);
        }
    }
}
