//! Walking a long chain of loops.

use std::hint::black_box;

use super::events::{Script, Shape};
use super::{PHI_CORE, SLOW_ROUNDS, in_turns, milliseconds, our_session, ours, phi_session};
use crate::measure::{ROUNDS, as_f64};
use crate::report::Row;
use crate::{Options, Outcome};

const LOOPS: usize = 10_000;

/// The chain that shows how the cost grows is so many times as short.
const SHORTER: usize = 4;

/// How many loops a question to ours is asked of, all told.
const STEPS: usize = 100_000;

/// A question to a session of either side; says how many answers there were.
struct Question {
    name: &'static str,
    ours: fn(&ours::RecordedSession, &[String]) -> usize,
    phi: fn(&phi_core::session::Session, &[String]) -> usize,
}

const QUESTIONS: [Question; 4] = [
    Question {
        name: "get_loop of each loop",
        ours: |session, ids| ids.iter().filter(|id| session.get_loop(id).is_some()).count(),
        phi: |session, ids| ids.iter().filter(|id| session.get_loop(id).is_some()).count(),
    },
    Question {
        name: "children_of each loop",
        ours: |session, ids| ids.iter().map(|id| session.children_of(id).count()).sum(),
        phi: |session, ids| ids.iter().map(|id| session.children_of(id).count()).sum(),
    },
    Question {
        name: "loop_chain_to the last loop",
        ours: |session, ids| ids.last().map_or(0, |id| session.loop_chain_to(id).len()),
        phi: |session, ids| ids.last().map_or(0, |id| session.loop_chain_to(id).len()),
    },
    Question {
        name: "root_loops",
        ours: |session, _| session.root_loops().count(),
        phi: |session, _| session.root_loops().count(),
    },
];

struct Sessions {
    ids: Vec<String>,
    ours: ours::RecordedSession,
    phi: phi_core::session::Session,
}

impl Sessions {
    fn new(loops: usize) -> Outcome<Self> {
        let script = Script::new("chain", "agent", Shape::Chained);
        let lines = script.lines(loops);
        Ok(Self {
            ids: (0..loops).map(|number| script.loop_id(number)).collect(),
            ours: our_session(&lines)?,
            phi: phi_session(&lines)?,
        })
    }

    /// How long it takes to find the roots of a session that nobody asked for them before; later answers are kept.
    fn first_roots(&self) -> Outcome<(f64, f64)> {
        let text = serde_json::to_string(&self.ours)?;
        in_turns(
            "root_loops asked for the first time",
            ROUNDS,
            || {
                let session: ours::RecordedSession = serde_json::from_str(&text)?;
                milliseconds(|| check(1, black_box(session.root_loops().count())))
            },
            || milliseconds(|| check(1, black_box(self.phi.root_loops().count()))),
        )
    }

    /// How long a question takes on both sides, in milliseconds. Ours answers in less than one, so it is asked so often that
    /// it takes as many steps on a short chain as on a long one.
    fn ask(&self, question: &Question) -> Outcome<(f64, f64)> {
        let answers = (question.ours)(&self.ours, &self.ids);
        let times = STEPS / self.ids.len().max(1);
        let ours = || black_box((question.ours)(&self.ours, &self.ids));
        let phi = || black_box((question.phi)(&self.phi, &self.ids));
        in_turns(
            &format!("{} on {} loops", question.name, self.ids.len()),
            SLOW_ROUNDS,
            || {
                let all = milliseconds(|| (0..times).try_for_each(|_| check(answers, ours())))?;
                Ok(all / as_f64(times))
            },
            || milliseconds(|| check(answers, phi())),
        )
    }
}

fn check(answers: usize, expected: usize) -> Outcome<()> {
    if answers == expected {
        return Ok(());
    }
    Err(format!("there are {answers} answers or {expected}").into())
}

pub(super) fn rows(_: &Options) -> Outcome<Vec<Row>> {
    let (short, long) = (Sessions::new(LOOPS / SHORTER)?, Sessions::new(LOOPS)?);
    let mut rows = Vec::new();
    let mut growth = [0.0; 4];
    for question in &QUESTIONS {
        let (ours, phi) = short.ask(question)?;
        let (our_longer, phi_longer) = long.ask(question)?;
        let name = format!("{} on a chain of {LOOPS} loops", question.name);
        rows.push(Row::new(name, "ms", our_longer).beside(PHI_CORE, phi_longer));
        for (sum, value) in growth.iter_mut().zip([ours, our_longer, phi, phi_longer]) {
            *sum += value;
        }
    }
    let (ours, phi) = long.first_roots()?;
    let name = format!("root_loops asked for the first time on a chain of {LOOPS} loops");
    rows.push(Row::new(name, "ms", ours).beside(PHI_CORE, phi));
    let [ours, our_longer, phi, phi_longer] = growth;
    let name =
        format!("navigation: {SHORTER} times the loops (to {LOOPS}) cost so many times as much");
    let row = Row::new(name, "times", our_longer / ours);
    rows.push(row.beside(PHI_CORE, phi_longer / phi));
    Ok(rows)
}
