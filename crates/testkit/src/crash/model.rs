//! Long random histories compared with the oracle, with power cuts in the middle of anything.

use super::driver::Driver;
use super::engine;
use super::history::Place;
use super::judge::{Ending, check_running, judge};
use super::report::{Report, Verdict};
use super::workload::{Action, LARGE, SMALL, Scale, THREE, WIDE};
use crate::{ImageRules, Seeded};

/// One step of a random history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something is done.
    Act(Action),
    /// An action, with a power cut at a moment of it, in a way that the number chooses.
    CutDuring(Action, u64),
}

/// Steps of one history.
const STEPS: usize = 40;
/// Sessions that it is about.
const SESSIONS: usize = 3;
const HOURS: [i64; 3] = [-1, 1, 9000];

/// Runs this many histories, each from its own seed.
pub(crate) fn run_many(seed: u64, histories: std::ops::Range<u64>) -> Report {
    let mut report = Report::default();
    for number in histories {
        let mut seeded = Seeded::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
        let scale = SCALES.get(seeded.below(SCALES.len())).copied().unwrap_or(Scale::Full);
        let steps: Vec<Step> = (0..STEPS).map(|_| draw(&mut seeded)).collect();
        report.model_steps += steps.len() as u64;
        if let Err(verdict) = run(scale, &steps) {
            report.fail(&verdict, &format!("model:{number} at {scale:?}"));
        }
    }
    report
}

pub(crate) const SCALES: [Scale; 7] = [
    Scale::Usual,
    Scale::Full,
    Scale::Rolling,
    Scale::Rounds,
    Scale::Tables,
    Scale::Weak,
    Scale::WeakTables,
];

fn draw(seeded: &mut Seeded) -> Step {
    let session = u8::try_from(seeded.below(SESSIONS)).unwrap_or(0);
    let action = action(seeded.below(ACTIONS), session, seeded.below(HOURS.len()));
    if seeded.one_in(8) { Step::CutDuring(action, seeded.next_u64()) } else { Step::Act(action) }
}

/// How many numbers [`action`] distinguishes.
pub(crate) const ACTIONS: usize = 24;

pub(crate) fn action(number: usize, session: u8, hours: usize) -> Action {
    match number {
        0..=2 => Action::Create(session),
        3..=6 => Action::Append(session, SMALL),
        7 => Action::Append(session, LARGE),
        8 => Action::Append(session, THREE),
        9 => Action::Append(session, WIDE),
        10 => Action::Group(session, 3),
        11 => Action::Stale(session),
        12 => Action::Repeat(session),
        13 => Action::Branch(session),
        14 => Action::Revise(session),
        15 | 16 => Action::Delta(session),
        17 => Action::Checkpoint(session),
        18 => Action::Close(session),
        19 => Action::Kill,
        20 => Action::Delete(session),
        21 => Action::Undo(session),
        22 => Action::Restart,
        _ => Action::ClockJump(HOURS.get(hours).copied().unwrap_or(0)),
    }
}

/// Runs one history; after each step the store must answer as the oracle does.
pub(crate) fn run(scale: Scale, steps: &[Step]) -> Result<(), Verdict> {
    let mut driver = Driver::new(scale, None);
    driver.disk.record();
    for (step, number) in steps.iter().zip(1..) {
        let within = |verdict: Verdict| Verdict {
            words: format!("step {number}, {step:?}: {}", verdict.words),
            ..verdict
        };
        perform(&mut driver, *step).map_err(within)?;
        if let Some(verdict) = driver.verdicts.pop() {
            return Err(within(verdict));
        }
        answers_as_the_oracle(&mut driver).map_err(within)?;
    }
    let end = driver.disk.platter();
    judge(&end, driver.history.now(), scale, Ending::Close)
}

fn perform(driver: &mut Driver, step: Step) -> Result<(), Verdict> {
    let (Step::Act(action) | Step::CutDuring(action, _)) = step;
    if !is_possible(driver, action) {
        return Ok(());
    }
    let before = driver.disk.operations();
    driver.act(action).map_err(|error| Verdict::broken(error.to_string()))?;
    if let Step::CutDuring(_, choice) = step {
        cut(driver, before, choice)?;
    }
    Ok(())
}

/// Goes back to a moment of the last step, cuts the power there, and starts a new process on the result.
fn cut(driver: &mut Driver, before: usize, choice: u64) -> Result<(), Verdict> {
    let mut seeded = Seeded::new(choice);
    let moment = before + seeded.below(driver.disk.operations() - before + 1);
    let rules = ImageRules::seeded(choice).combinations_max(64);
    let at_that_moment = driver.disk.recording().disk_at(moment);
    let mut images = Vec::new();
    at_that_moment.images(&rules, |image| images.push(image.disk()));
    let image = images.swap_remove(seeded.below(images.len()));
    driver.start_again_on(image, moment);
    driver.resolve_all().map_err(|error| Verdict::broken(format!("after the cut: {error}")))
}

/// Whether the oracle's state lets an action succeed.
fn is_possible(driver: &Driver, action: Action) -> bool {
    let Some(session) = action.session() else { return true };
    let place = driver.place_of(session);
    match action {
        Action::Create(_) => place != Place::Live,
        Action::Undo(_) => place == Place::Trash,
        _ => place == Place::Live,
    }
}

fn answers_as_the_oracle(driver: &mut Driver) -> Result<(), Verdict> {
    let store = driver.store().map_err(|error| Verdict::broken(error.to_string()))?;
    for life in driver.history.now().lives.clone() {
        if life.place != Place::Live {
            continue;
        }
        let reader = store.read(&life.id).map_err(|error| Verdict::lost(error.to_string()))?;
        if Some(reader.head().incarnation) != life.incarnation {
            return Err(Verdict::invented(format!("another life of {}", life.id)));
        }
        let shown = engine::show(&reader).map_err(|error| error.verdict())?;
        check_running(&shown, &life)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let sessions = 0..u8::try_from(SESSIONS).unwrap();
        let act = (0..ACTIONS, sessions, 0..HOURS.len()).prop_map(|(n, s, h)| action(n, s, h));
        let step = (act, prop::option::weighted(0.15, any::<u64>())).prop_map(|(action, cut)| {
            cut.map_or(Step::Act(action), |choice| Step::CutDuring(action, choice))
        });
        prop::collection::vec(step, 1..STEPS)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn the_store_answers_as_the_oracle(scale in 0..SCALES.len(), steps in steps()) {
            let result = run(SCALES[scale], &steps);
            prop_assert!(result.is_ok(), "{:?}", result);
        }
    }

    #[test]
    fn every_number_is_an_action_and_every_verb_has_one() {
        let verbs: std::collections::BTreeSet<String> = (0..ACTIONS)
            .map(|number| format!("{:?}", action(number, 0, 0)))
            .map(|words| words.split('(').next().unwrap_or_default().to_owned())
            .collect();
        for verb in ["Append", "Stale", "Delta", "Kill", "Checkpoint", "Delete", "Undo", "Restart"]
        {
            assert!(verbs.contains(verb), "{verb}");
        }
    }
}
