//! Safety steps removed on purpose, one at a time: the harness must notice every one. A harness that misses one would
//! also miss the corresponding bug.

use bough_log::canary;

use super::cuts::{Depth, Judged, cut_everywhere};
use super::driver::DiskFault;
use super::faults::fail_every_call;
use super::plan::CrashOptions;
use super::report::Report;
use super::rot::{self, Finished};
use super::workload::{self, Workload};
use super::{in_parallel, replay_under};
use crate::{BrokenPromise, ImageRules};

/// One removed step: in the engine, or in a disk below it that breaks a promise, which has the same effect.
#[derive(Clone, Copy, Debug)]
struct Canary {
    name: &'static str,
    step: Option<&'static str>,
    disk_fault: DiskFault,
}

/// Promises that a disk breaks, with the safety step that each one removes.
const BROKEN_PROMISES: [(&str, BrokenPromise, &str); 9] = [
    ("segments are not synced", BrokenPromise::SyncIsSkipped, ".seg"),
    ("segments are synced after the offset row", BrokenPromise::SyncIsLate, ".seg"),
    ("a failed sync is taken for a good one", BrokenPromise::SyncErrorIsHidden, ""),
    ("a failed write is taken for a good one", BrokenPromise::WriteErrorIsHidden, ".seg"),
    ("folders are not synced", BrokenPromise::DirSyncIsSkipped, ""),
    ("the manifest is moved before it is synced", BrokenPromise::SyncIsSkipped, "manifest"),
    ("the manifest is overwritten in place", BrokenPromise::RenameOverwrites, "manifest"),
    ("deltas are not synced", BrokenPromise::SyncIsSkipped, "stream.log"),
    ("a lock that is held is given away", BrokenPromise::LockIsNeverRefused, ""),
];

/// Histories that together need every step. They are short: a canary runs them until one notices it.
const HISTORIES: [&str; 11] = [
    "appends",
    "batches",
    "second-writer",
    "old-life",
    "kill",
    "checkpoint",
    "deltas-kill",
    "rounds",
    "restart",
    "weak-appends",
    "weak-settle",
];

/// Histories whose calls fail.
const FAILING: [&str; 3] = ["appends", "kill", "deltas"];
/// One call in this many fails.
const CALLS_STEP: u64 = 3;

/// Finished stores that are damaged, and where.
const FINISHED: [(&str, &str); 4] =
    [("tiny-closed", ""), ("left-open", ""), ("checkpointed", ".seg"), ("tables", "offsets")];
/// The seed of samples that are known to show the canaries.
const SEED: u64 = 1;
/// One bit in this many is flipped.
const BITS_STEP: usize = 29;

/// Removes every step in turn. Nothing else in the process may use the engine meanwhile.
pub(crate) fn remove_each(options: &CrashOptions) -> Report {
    let mut report = Report::default();
    let undisturbed = battery(options, None);
    for failure in &undisturbed.failures {
        let words = format!("none, and the harness complains all the same: {failure}");
        report.canaries_missed.push(words);
    }
    for one in all() {
        canary::remove(one.step);
        let found = battery(options, one.disk_fault);
        let not_repeated = found.failures.iter().find(|failure| !is_repeated(&one, failure));
        canary::remove(None);
        report.canaries += 1;
        if let Some(failure) = not_repeated {
            let words = format!("{}: a replay does not repeat {failure}", one.name);
            report.canaries_missed.push(words);
        } else if found.failed() > 0 && undisturbed.failed() == 0 {
            report.canaries_caught += 1;
            let first = found.failures.first().map_or("", String::as_str);
            (options.progress)(&format!("  {}: {first}", one.name));
        } else {
            report.canaries_missed.push(one.name.to_owned());
        }
    }
    report
}

/// Whether a replay of a failure's place gives the same verdict. Only cuts have a place; a replay knows no faulty disk.
fn is_repeated(canary: &Canary, failure: &str) -> bool {
    let Some((place, verdict)) = failure.split_once(": ") else { return true };
    let is_cut = place.contains(':') && canary.disk_fault.is_none();
    !is_cut || replay_under(&rules(), place).contains(verdict)
}

const fn rules() -> ImageRules {
    ImageRules::seeded(SEED).combinations_max(64)
}

fn all() -> Vec<Canary> {
    let steps = canary::ALL.into_iter();
    let steps = steps.map(|step| Canary { name: step, step: Some(step), disk_fault: None });
    let promises = BROKEN_PROMISES.into_iter();
    let promises = promises.map(|(name, promise, about)| Canary {
        name,
        step: None,
        disk_fault: Some((promise, about)),
    });
    steps.chain(promises).collect()
}

/// All runs for a canary, until one of them notices it.
fn battery(options: &CrashOptions, disk_fault: DiskFault) -> Report {
    let depth = Depth { rules: rules(), about: "", recovery_every: 0, stop_early: true };
    let judged = Judged::default();
    let mut report = in_parallel(options.threads, &histories(&HISTORIES), |workload| {
        cut_everywhere(workload, disk_fault, &depth, &judged)
    });
    if report.failed() == 0 {
        report.add(in_parallel(options.threads, &histories(&FAILING), |workload| {
            fail_every_call(workload, disk_fault, CALLS_STEP, 0)
        }));
    }
    for workload in workload::finished() {
        let damaged = FINISHED.iter().find(|(name, _)| *name == workload.name);
        if let Some((_, about)) = damaged.filter(|_| report.failed() == 0) {
            report.add(damage_some(&workload, about, options.threads));
        }
    }
    report
}

fn histories(names: &[&str]) -> Vec<Workload> {
    let named = workload::named().into_iter();
    named.filter(|workload| names.contains(&workload.name.as_str())).collect()
}

fn damage_some(workload: &Workload, about: &str, threads: usize) -> Report {
    let mut report = Report::default();
    match Finished::of(workload) {
        Ok(finished) => {
            let bits: Vec<_> = finished.bits(about).into_iter().step_by(BITS_STEP).collect();
            report.add(rot::do_all(&finished, &bits, threads));
            if report.failed() == 0 {
                report.add(rot::do_all(&finished, &finished.whole_files(), threads));
            }
        }
        Err(verdict) => report.fail(&verdict, &workload.name),
    }
    report
}
