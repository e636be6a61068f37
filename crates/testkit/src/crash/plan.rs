//! What a run consists of, and how much of each.

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

/// How a run goes.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// Less of everything, for every push.
    pub short: bool,
    /// Where all samples come from.
    pub seed: u64,
    /// Threads that judge.
    pub threads: usize,
    /// What is run.
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
            seed: 1,
            threads: 2,
            parts: Part::ALL.to_vec(),
            program: std::env::current_exe().ok(),
            progress: |_| {},
        }
    }
}

/// Combinations of files' contents at one moment above which a sample is taken.
const COMBINATIONS: usize = 256;
/// One image in so many is cut again during its recovery.
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
/// Kills of each kind.
const KILLS: u64 = 160;
const KILLS_SHORT: u64 = 20;

pub(crate) const fn rules(seed: u64) -> ImageRules {
    ImageRules::seeded(seed).combinations_max(COMBINATIONS)
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
            faults::fail_every_call(workload, None, if options.short { 11 } else { 1 })
        }),
        Part::Model => model(options),
        Part::Kills => kill(options),
        Part::Canaries => canaries::remove_each(options),
    }
}

/// The named histories; in a full run also all short ones, and some torn at every byte.
fn cut(options: &CrashOptions) -> Report {
    let depth =
        Depth { rules: rules(options.seed), recovery_every: RECOVERY_EVERY, stop_early: false };
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
    if options.short {
        return report;
    }
    for scale in SHORT_SCALES {
        let histories: Vec<Workload> = workload::all_short(SHORT_VERBS, scale).collect();
        report.add(cut_all(&format!("all of {SHORT_VERBS} verbs, {scale:?}"), &histories, &depth));
    }
    let depth = Depth { rules: depth.rules.torn_at_every_byte(), recovery_every: 0, ..depth };
    let mut histories = workload::named();
    histories.retain(|workload| AT_EVERY_BYTE.contains(&workload.name.as_str()));
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
                if options.short {
                    list = list.into_iter().step_by(31).collect();
                }
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
    let next = AtomicU64::new(0);
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
