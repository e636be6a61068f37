use std::collections::{HashMap, HashSet};

use bough_service::api::{LoopContinuation, LoopSummary};
use bough_session::LoopPhase;

use crate::text::{clean_line, count};

/// One line of the outline of an agent's loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutlineLine {
    pub(crate) depth: usize,
    pub(crate) text: String,
}

/// The loops of a session, each after the one that it continues, and the sub-agents that each started. A loop that
/// continues stands below its parent; reruns, branches and loops that were not chosen stand further right. Safe on
/// missing parents and cycles.
pub(crate) fn outline_lines(session: &str, loops: &[LoopSummary]) -> Vec<OutlineLine> {
    let known: HashSet<&str> = loops.iter().map(|one| one.loop_id.as_str()).collect();
    let mut children: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for (at, one) in loops.iter().enumerate() {
        let parent = one.parent_loop_id.as_deref().filter(|id| known.contains(id));
        match parent.filter(|id| *id != one.loop_id) {
            Some(parent) => children.entry(parent).or_default().push(at),
            None => roots.push(at),
        }
    }
    let mut lines = Vec::new();
    let mut seen = HashSet::new();
    // A cycle has no root; its loops come at the end.
    for root in roots.into_iter().chain(0..loops.len()) {
        let mut stack = vec![(root, 0)];
        while let Some((at, depth)) = stack.pop() {
            let Some(one) = loops.get(at).filter(|_| seen.insert(at)) else { continue };
            add(session, one, depth, &mut lines);
            let below = children.get(one.loop_id.as_str()).map_or(&[][..], Vec::as_slice);
            let below = below.iter().filter_map(|child| Some((*child, loops.get(*child)?)));
            // The continuation comes last, so that side branches stay close to their fork.
            let (on, aside): (Vec<_>, Vec<_>) = below.partition(|(_, child)| goes_on(child));
            stack.extend(on.iter().rev().map(|(child, _)| (*child, depth)));
            stack.extend(aside.iter().rev().map(|(child, _)| (*child, depth + 1)));
        }
    }
    lines
}

/// Whether a loop is the continuation of its parent.
fn goes_on(one: &LoopSummary) -> bool {
    let is_aside = matches!(one.continuation, LoopContinuation::Rerun | LoopContinuation::Branch);
    let is_passed_over = one
        .group
        .as_ref()
        .and_then(|group| group.winner.as_ref())
        .is_some_and(|winner| *winner != one.loop_id);
    !is_aside && !is_passed_over
}

fn add(session: &str, one: &LoopSummary, depth: usize, lines: &mut Vec<OutlineLine>) {
    let (mark, status) = match one.status {
        LoopPhase::Running => ("▶", "running"),
        LoopPhase::Completed => ("✓", "completed"),
        LoopPhase::Pending => ("…", "pending"),
        LoopPhase::Rejected => ("✗", "rejected"),
        LoopPhase::Aborted => ("✗", "aborted"),
    };
    let turns = count(one.turns.len() as u64, "turn", "turns");
    let mut text = format!("{mark} {} · {status} · {turns}", short(session, &one.loop_id));
    if let Some(relation) = relation(session, one) {
        text.push_str(&format!(" · {relation}"));
    }
    if let Some(choice) = choice(session, one) {
        text.push_str(&format!(" · {choice}"));
    }
    lines.push(OutlineLine { depth, text });
    for spawn in &one.spawned {
        let (id, tool) = (clean_line(&spawn.session_id), clean_line(&spawn.tool_name));
        let text = match (id.is_empty(), tool.is_empty()) {
            (true, _) => format!("↳ sub-agent loop {}", clean_line(&spawn.loop_id)),
            (false, true) => format!("↳ sub-agent {id}"),
            (false, false) => format!("↳ sub-agent {id} by {tool}"),
        };
        lines.push(OutlineLine { depth: depth + 1, text });
    }
}

/// Ids of loops mostly begin with their session's, which is redundant here.
fn short(session: &str, loop_id: &str) -> String {
    let rest = loop_id.strip_prefix(session).and_then(|rest| rest.strip_prefix('.'));
    clean_line(rest.filter(|rest| !rest.is_empty()).unwrap_or(loop_id)).into_owned()
}

/// How a loop relates to the one before it.
fn relation(session: &str, one: &LoopSummary) -> Option<String> {
    let parent = short(session, one.parent_loop_id.as_deref()?);
    let tag = one.tag.as_deref().map(clean_line).filter(|tag| !tag.is_empty());
    let tag = tag.map(|tag| format!(" ({tag})")).unwrap_or_default();
    Some(match one.continuation {
        LoopContinuation::Initial => format!("spawned by {parent}"),
        LoopContinuation::Default => format!("continues {parent}"),
        LoopContinuation::Rerun => format!("rerun of {parent}{tag}"),
        LoopContinuation::Branch => format!("branch from {parent}{tag}"),
        LoopContinuation::Compaction => format!("compaction after {parent}"),
    })
}

/// Whether a parallel loop was chosen.
fn choice(session: &str, one: &LoopSummary) -> Option<String> {
    let group = one.group.as_ref()?;
    let all = group.loop_ids.len();
    Some(match group.winner.as_deref() {
        Some(winner) if winner == one.loop_id => format!("winner of {all}"),
        Some(winner) => format!("passed over for {}", short(session, winner)),
        None => format!("one of {all}, none chosen yet"),
    })
}

/// Loops for tests of this screen.
#[cfg(test)]
pub(super) mod testing {
    use bough_service::api::{LoopSpawn, LoopSummary};
    use serde_json::json;

    /// A loop with two turns.
    pub(in super::super) fn one_loop(id: &str, parent: Option<&str>) -> LoopSummary {
        let usage = json!({"input": 0, "output": 0, "reasoning": 0, "cache_read": 0,
            "cache_write": 0, "total_tokens": 0});
        let turn = |index: u32| {
            json!({"turn_index": index, "started_at": 1, "ended_at": 2, "tool_results": 0,
                "usage": usage})
        };
        serde_json::from_value(json!({
            "loop_id": id, "agent_id": "a", "parent_loop_id": parent, "continuation": "default",
            "status": "completed", "started_at": 1, "messages": 2, "turns": [turn(0), turn(1)],
            "usage": usage, "children_loop_ids": [], "spawned": [], "is_compacted": false,
        }))
        .unwrap()
    }

    /// One sub-agent.
    pub(in super::super) fn spawned(session: &str) -> Vec<LoopSpawn> {
        vec![LoopSpawn {
            tool_call_id: "c".to_owned(),
            tool_name: "task".to_owned(),
            session_id: session.to_owned(),
            loop_id: format!("{session}.1"),
        }]
    }
}

#[cfg(test)]
mod tests {
    use bough_service::api::{LoopGroup, LoopUsage};

    use super::testing::{one_loop as one, spawned};
    use super::*;

    fn check(loops: &[LoopSummary], expected: &[&str]) {
        let lines: Vec<String> = outline_lines("s", loops)
            .iter()
            .map(|line| format!("{}{}", "  ".repeat(line.depth), line.text))
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_goes_on_stands_below_and_what_turns_aside_to_the_right() {
        let mut first = one("s.a", None);
        first.continuation = LoopContinuation::Initial;
        first.spawned = spawned("s_sub");
        let mut again = one("s.b", Some("s.a"));
        (again.continuation, again.tag) = (LoopContinuation::Rerun, Some("t".to_owned()));
        check(
            &[first, one("s.c", Some("s.a")), again, one("s.d", Some("s.c"))],
            &[
                "✓ a · completed · 2 turns",
                "  ↳ sub-agent s_sub by task",
                "  ✓ b · completed · 2 turns · rerun of a (t)",
                "✓ c · completed · 2 turns · continues a",
                "✓ d · completed · 2 turns · continues c",
            ],
        );
    }

    #[test]
    fn of_a_group_the_winner_goes_on() {
        let group = LoopGroup {
            loop_ids: vec!["s.x".to_owned(), "s.y".to_owned()],
            winner: Some("s.y".to_owned()),
            evaluation_usage: LoopUsage::default(),
        };
        let member = |id| LoopSummary { group: Some(group.clone()), ..one(id, Some("s.a")) };
        check(
            &[one("s.a", None), member("s.x"), member("s.y"), one("s.n", Some("s.y"))],
            &[
                "✓ a · completed · 2 turns",
                "  ✓ x · completed · 2 turns · continues a · passed over for y",
                "✓ y · completed · 2 turns · continues a · winner of 2",
                "✓ n · completed · 2 turns · continues y",
            ],
        );
    }

    /// Lines that grow with their number would make a long session's outline larger than the session.
    #[test]
    fn a_long_chain_is_not_indented() {
        let mut loops = vec![one("l0", None)];
        loops.extend((1..500).map(|n| one(&format!("l{n}"), Some(&format!("l{}", n - 1)))));
        assert!(outline_lines("s", &loops).iter().all(|line| line.depth == 0));
    }

    #[test]
    fn circles_and_missing_parents_end() {
        check(
            &[one("a", Some("b")), one("b", Some("a")), one("c", Some("gone"))],
            &[
                "✓ c · completed · 2 turns · continues gone",
                "✓ a · completed · 2 turns · continues b",
                "✓ b · completed · 2 turns · continues a",
            ],
        );
    }
}
