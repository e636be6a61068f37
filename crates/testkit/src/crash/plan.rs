//! The parts of a run, and the amount of each.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bough_platform::{Clock, SystemClock};

use super::cuts::{Depth, Judged, cut_everywhere};
use super::kills::{Memory, kill_many};
use super::report::Report;
use super::rot::{self, Finished};
use super::workload::{self, Scale, Workload};
use super::{canaries, faults, in_parallel, model, on_threads};
use crate::ImageRules;

/// The parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Power cuts after every operation, and during recovery.
    Cuts,
    /// Damage to finished stores.
    Rot,
    /// Failing disk calls.
    Faults,
    /// Random histories against the oracle.
    Model,
    /// Killed processes.
    Kills,
    /// Removed safety steps.
    Canaries,
}

impl Part {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 6] =
        [Self::Cuts, Self::Rot, Self::Faults, Self::Model, Self::Kills, Self::Canaries];
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// Less of everything, for every push.
    pub short: bool,
    /// In a short run, the slice of the rest of a full run that is added to it.
    pub slice: Option<Slice>,
    /// The seed of all samples.
    pub seed: u64,
    /// Threads that judge.
    pub threads: usize,
    /// The parts to run.
    pub parts: Vec<Part>,
    /// The program that becomes a child when its first argument is [`super::CHILD`].
    pub program: Option<PathBuf>,
    /// Called with a line when a part ends.
    pub progress: fn(&str),
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self {
            short: false,
            slice: None,
            seed: 1,
            threads: 2,
            parts: Part::ALL.to_vec(),
            program: std::env::current_exe().ok(),
            progress: |_| {},
        }
    }
}

/// One of several parts of equal size that together are everything that a short run leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    number: u64,
    of: u64,
}

impl Slice {
    /// Slice `number`, counted from 0, of `of`; `None` if there is no such slice.
    #[must_use]
    pub fn new(number: u64, of: u64) -> Option<Self> {
        (number < of).then_some(Self { number, of })
    }

    /// Whether the thing with this index is in the slice.
    const fn has(self, index: usize) -> bool {
        index as u64 % self.of == self.number
    }
}

/// The prefix of the names of histories whose writes are torn at every byte.
pub(crate) const EVERY_BYTE: &str = "every-byte/";

/// Above this many combinations of files' contents at one moment, a sample is taken.
const COMBINATIONS: usize = 256;
/// One image in this many is cut again during its recovery.
const RECOVERY_EVERY: usize = 400;
/// Histories whose writes are torn at every byte, not only at sectors.
const AT_EVERY_BYTE: [&str; 31] = [
    "appends",
    "batches",
    "branches",
    "checkpoint",
    "close-full",
    "close-tiny",
    "delete",
    "deltas",
    "deltas-checkpoint",
    "deltas-kill",
    "deltas-settle",
    "group",
    "import-full",
    "kill",
    "kill-tiny",
    "new-life",
    "notes",
    "purge",
    "reader",
    "refusals",
    "restart",
    "restart-tiny",
    "revisions",
    "roll",
    "rounds",
    "tables",
    "two-sessions",
    "undo",
    "undo-full",
    "weak-checkpoint",
    "weak-restart",
];
/// Verbs of the short histories, of which a full run has all there are.
const SHORT_VERBS: usize = 3;
/// The scales at which it has them.
const SHORT_SCALES: [Scale; 7] = [
    Scale::Full,
    Scale::Usual,
    Scale::Rounds,
    Scale::Tables,
    Scale::Rolling,
    Scale::Weak,
    Scale::WeakTables,
];
/// Random histories.
const HISTORIES: u64 = 5000;
const HISTORIES_SHORT: u64 = 200;
/// A short run flips one bit in this many, and fails one call in this many.
const DAMAGE_STEP: u64 = 31;
const CALLS_STEP: u64 = 11;
/// Kills of each kind.
const KILLS: u64 = 160;
const KILLS_SHORT: u64 = 20;

pub(crate) const fn rules(seed: u64) -> ImageRules {
    ImageRules::seeded(seed).combinations_max(COMBINATIONS)
}

impl CrashOptions {
    /// A short run takes one item in this many.
    const fn step(&self, step: u64) -> u64 {
        if self.short { step } else { 1 }
    }

    /// Which of them it takes: another one with each slice.
    fn turn(&self) -> u64 {
        self.slice.map_or(0, |slice| slice.number)
    }

    /// The histories that belong to the run: all in a full one, those of its slice in a short one.
    fn of_slice(&self, histories: impl Iterator<Item = Workload>) -> Vec<Workload> {
        let numbered = histories.enumerate();
        let chosen = numbered.filter(|(index, _)| match (self.short, self.slice) {
            (false, _) => true,
            (true, None) => false,
            (true, Some(slice)) => slice.has(*index),
        });
        chosen.map(|(_, workload)| workload).collect()
    }
}

/// Runs the harness.
#[must_use]
pub fn run(options: &CrashOptions) -> Report {
    let clock = SystemClock::new();
    let mut report = Report { seed: options.seed, ..Report::default() };
    for part in &options.parts {
        let before = clock.monotonic();
        let found = run_part(*part, options);
        let seconds = (clock.monotonic() - before).as_secs_f64();
        (options.progress)(&format!("{part:?}: {} failures, {seconds:.1} s", found.failed()));
        report.add(found);
    }
    report.seconds = clock.monotonic().as_secs_f64();
    report
}

fn run_part(part: Part, options: &CrashOptions) -> Report {
    match part {
        Part::Cuts => cut(options),
        Part::Rot => damage(options),
        Part::Faults => in_parallel(options.threads, &workload::named(), |workload| {
            faults::fail_every_call(workload, None, options.step(CALLS_STEP), options.turn())
        }),
        Part::Model => model(options),
        Part::Kills => kill(options),
        Part::Canaries => canaries::remove_each(options),
    }
}

/// The named histories; in a full run also all short ones, and some torn at every byte. A slice has its part of these.
fn cut(options: &CrashOptions) -> Report {
    let depth = Depth {
        rules: rules(options.seed),
        about: "",
        recovery_every: RECOVERY_EVERY,
        stop_early: false,
    };
    let judged = Judged::default();
    let cut_all = |about: &str, histories: &[Workload], depth: &Depth| {
        let report = in_parallel(options.threads, histories, |workload| {
            cut_everywhere(workload, None, depth, &judged)
        });
        (options.progress)(&format!(
            "  {about}: {} histories, {} images",
            histories.len(),
            report.images
        ));
        report
    };
    let mut report = cut_all("named", &workload::named(), &depth);
    for scale in SHORT_SCALES {
        let histories = options.of_slice(workload::all_short(SHORT_VERBS, scale));
        report.add(cut_all(&format!("all of {SHORT_VERBS} verbs, {scale:?}"), &histories, &depth));
    }
    let rules = depth.rules.clone().torn_at_every_byte();
    let depth = Depth { rules, about: EVERY_BYTE, recovery_every: 0, ..depth };
    let torn = |workload: &Workload| AT_EVERY_BYTE.contains(&workload.name.as_str());
    let histories = options.of_slice(workload::named().into_iter().filter(torn));
    report.add(cut_all("torn at every byte", &histories, &depth));
    report
}

fn all_histories() -> impl Iterator<Item = Workload> {
    let short = SHORT_SCALES.into_iter().flat_map(|scale| workload::all_short(SHORT_VERBS, scale));
    workload::named().into_iter().chain(short)
}

pub(crate) fn history_named(name: &str) -> Option<Workload> {
    all_histories().find(|workload| workload.name == name)
}

fn damage(options: &CrashOptions) -> Report {
    let mut report = Report::default();
    for workload in workload::finished() {
        match Finished::of(&workload) {
            Ok(finished) => {
                let mut list = finished.bits("");
                list.extend(finished.parts_of_files());
                let (step, turn) = (options.step(DAMAGE_STEP), options.turn());
                let mut index = 0;
                list.retain(|_| {
                    index += 1;
                    (index - 1) % step == turn % step
                });
                list.extend(finished.whole_files());
                report.add(rot::do_all(&finished, &list, options.threads));
            }
            Err(verdict) => report.fail(&verdict, &workload.name),
        }
    }
    report
}

fn model(options: &CrashOptions) -> Report {
    let each =
        if options.short { HISTORIES_SHORT } else { HISTORIES } / options.threads.max(1) as u64;
    // A full run has the histories of every turn.
    let first = if options.short { options.turn() * HISTORIES_SHORT % HISTORIES } else { 0 };
    let next = AtomicU64::new(first);
    on_threads(options.threads, || {
        let first = next.fetch_add(each, Ordering::Relaxed);
        model::run_many(options.seed, first..first + each)
    })
}

fn kill(options: &CrashOptions) -> Report {
    let mut report = Report::default();
    let Some(program) = &options.program else { return report };
    let kills = if options.short { KILLS_SHORT } else { KILLS };
    for memory in [Memory::Plain, Memory::Lossy] {
        report.add(kill_many(program, memory, kills, options.seed));
    }
    report
}
