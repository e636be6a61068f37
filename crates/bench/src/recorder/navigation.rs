//! Walking a long chain of loops.

use std::hint::black_box;
use std::time::Instant;

use super::events::{Script, Shape};
use super::{ORIGINAL, original, original_session, our_session, ours};
use crate::measure::{ROUNDS, as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome};

const LOOPS: usize = 10_000;

/// The chain that shows how the cost grows is so many times as long.
const LONGER: usize = 2;

/// A question to a session of either side; says how many answers there were.
struct Question {
    name: &'static str,
    ours: fn(&ours::Session, &[String]) -> usize,
    original: fn(&original::session::Session, &[String]) -> usize,
}

const QUESTIONS: [Question; 4] = [
    Question {
        name: "get_loop of each loop",
        ours: |session, ids| ids.iter().filter(|id| session.get_loop(id).is_some()).count(),
        original: |session, ids| ids.iter().filter(|id| session.get_loop(id).is_some()).count(),
    },
    Question {
        name: "children_of each loop",
        ours: |session, ids| ids.iter().map(|id| session.children_of(id).count()).sum(),
        original: |session, ids| ids.iter().map(|id| session.children_of(id).count()).sum(),
    },
    Question {
        name: "loop_chain_to the last loop",
        ours: |session, ids| ids.last().map_or(0, |id| session.loop_chain_to(id).len()),
        original: |session, ids| ids.last().map_or(0, |id| session.loop_chain_to(id).len()),
    },
    Question {
        name: "root_loops",
        ours: |session, _| session.root_loops().count(),
        original: |session, _| session.root_loops().count(),
    },
];

struct Sessions {
    ids: Vec<String>,
    ours: ours::Session,
    original: original::session::Session,
}

impl Sessions {
    fn new(loops: usize) -> Outcome<Self> {
        let script = Script::new("chain", "agent", Shape::Chained);
        let lines = script.lines(loops);
        Ok(Self {
            ids: (0..loops).map(|number| script.loop_id(number)).collect(),
            ours: our_session(&lines)?,
            original: original_session(&lines)?,
        })
    }

    /// How long a question takes on both sides, in milliseconds.
    fn ask(&self, question: &Question) -> Outcome<(f64, f64)> {
        let (mut ours, mut original) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let answers = black_box((question.ours)(&self.ours, &self.ids));
            ours.push(began.elapsed().as_secs_f64() * 1000.0);
            let began = Instant::now();
            let expected = black_box((question.original)(&self.original, &self.ids));
            original.push(began.elapsed().as_secs_f64() * 1000.0);
            if answers != expected {
                return Err(format!("{}: {answers} or {expected}?", question.name).into());
            }
        }
        Ok((median(ours), median(original)))
    }
}

pub(super) fn rows(_: &Options) -> Outcome<Vec<Row>> {
    let short = Sessions::new(LOOPS)?;
    let long = Sessions::new(LONGER * LOOPS)?;
    let mut rows = Vec::new();
    let mut growth = [0.0; 4];
    for question in &QUESTIONS {
        eprintln!("navigation on {LOOPS} loops: {}", question.name);
        let (ours, original) = short.ask(question)?;
        let name = format!("{} on a chain of {} loops", question.name, as_f64(LOOPS));
        rows.push(Row::new(name, "ms", ours).beside(ORIGINAL, original));
        let (our_longer, original_longer) = long.ask(question)?;
        for (sum, value) in growth.iter_mut().zip([ours, our_longer, original, original_longer]) {
            *sum += value;
        }
    }
    let [ours, our_longer, original, original_longer] = growth;
    let name = format!("navigation: {LONGER} times the loops cost so many times as much");
    let row = Row::new(name, "times", our_longer / ours);
    rows.push(row.beside(ORIGINAL, original_longer / original));
    Ok(rows)
}
