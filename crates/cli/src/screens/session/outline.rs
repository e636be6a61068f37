use std::collections::{HashMap, HashSet};

use crate::backend::LoopOutline;
use crate::text::{clean_line, count};

/// One line of the outline of an agent's loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutlineLine {
    pub(crate) depth: usize,
    pub(crate) text: String,
}

/// The loops of a session, those that continue one below it, and the sub-agents that each started. Safe on parents
/// that are missing and on circles.
pub(crate) fn outline_lines(session: &str, loops: &[LoopOutline]) -> Vec<OutlineLine> {
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
    // A circle has no root; its loops come at the end.
    for root in roots.into_iter().chain(0..loops.len()) {
        let mut stack = vec![(root, 0)];
        while let Some((at, depth)) = stack.pop() {
            let Some(one) = loops.get(at).filter(|_| seen.insert(at)) else { continue };
            add(session, one, depth, &mut lines);
            let below = children.get(one.loop_id.as_str()).into_iter().flatten().rev();
            stack.extend(below.map(|child| (*child, depth + 1)));
        }
    }
    lines
}

fn add(session: &str, one: &LoopOutline, depth: usize, lines: &mut Vec<OutlineLine>) {
    let mark = match one.status.as_str() {
        "running" => "▶",
        "completed" => "✓",
        "pending" => "…",
        "rejected" | "aborted" => "✗",
        _ => "•",
    };
    let turns = count(one.turns, "turn", "turns");
    // Ids of loops mostly begin with their session's, which says nothing here.
    let rest = one.loop_id.strip_prefix(session).and_then(|rest| rest.strip_prefix('.'));
    let id = clean_line(rest.filter(|rest| !rest.is_empty()).unwrap_or(&one.loop_id));
    let text = format!("{mark} {id} · {} · {turns}", clean_line(&one.status));
    lines.push(OutlineLine { depth, text });
    for session in &one.spawned {
        let text = format!("↳ sub-agent {}", clean_line(session));
        lines.push(OutlineLine { depth: depth + 1, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, parent: Option<&str>, spawned: &[&str]) -> LoopOutline {
        LoopOutline {
            loop_id: id.to_owned(),
            parent_loop_id: parent.map(str::to_owned),
            status: "completed".to_owned(),
            turns: 2,
            spawned: spawned.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn check(loops: &[LoopOutline], expected: &[&str]) {
        let lines: Vec<String> = outline_lines("s", loops)
            .iter()
            .map(|line| format!("{}{}", "  ".repeat(line.depth), line.text))
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn loops_lie_below_the_loop_that_they_continue() {
        check(
            &[one("s.a", None, &["s_sub"]), one("b", Some("s.a"), &[]), one("s.", None, &[])],
            &[
                "✓ a · completed · 2 turns",
                "  ↳ sub-agent s_sub",
                "  ✓ b · completed · 2 turns",
                "✓ s. · completed · 2 turns",
            ],
        );
    }

    #[test]
    fn circles_and_missing_parents_end() {
        check(
            &[one("a", Some("b"), &[]), one("b", Some("a"), &[]), one("c", Some("gone"), &[])],
            &[
                "✓ c · completed · 2 turns",
                "✓ a · completed · 2 turns",
                "  ✓ b · completed · 2 turns",
            ],
        );
    }
}
