//! The crash harness: cuts the power, kills processes, fails calls and flips bits, and compares the result with an
//! oracle that knows what was acknowledged.

mod canaries;
mod cuts;
mod driver;
mod engine;
mod faults;
mod histories;
mod history;
mod judge;
mod kills;
mod model;
mod plan;
mod report;
mod rot;
mod workload;

pub use kills::{CHILD, Memory, child};
pub use plan::{CrashOptions, Part, Slice, run};
pub use report::Report;

use std::sync::atomic::{AtomicUsize, Ordering};

use workload::Workload;

use crate::ImageRules;

/// Repeats one failure, in words.
#[must_use]
pub fn replay(place: &str, seed: u64) -> String {
    replay_under(&plan::rules(seed), place)
}

/// The same under the rules that the failure was found with.
fn replay_under(rules: &ImageRules, place: &str) -> String {
    let mut parts = place.split(':');
    let name = parts.next().unwrap_or_default();
    let numbers: Vec<usize> = parts.filter_map(|part| part.parse().ok()).collect();
    let (name, rules) = match name.strip_prefix(plan::EVERY_BYTE) {
        Some(name) => (name, rules.clone().torn_at_every_byte()),
        None => (name, rules.clone()),
    };
    match plan::history_named(name) {
        Some(workload) => cuts::replay(&workload, &numbers, &rules),
        None => format!("there is no history {name:?}"),
    }
}

/// Spreads histories over threads and adds up what they found.
fn in_parallel(
    threads: usize,
    work: &[Workload],
    each: impl Fn(&Workload) -> Report + Sync,
) -> Report {
    let next = AtomicUsize::new(0);
    on_threads(threads, || {
        let mut report = Report::default();
        while let Some(one) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            report.add(each(one));
        }
        report
    })
}

/// Runs the same on several threads and adds up what they found.
fn on_threads(threads: usize, run: impl Fn() -> Report + Sync) -> Report {
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(&run)).collect();
        for thread in running {
            match thread.join() {
                Ok(found) => report.add(found),
                Err(_) => report.failures.push("a thread of the harness panicked".to_owned()),
            }
        }
    });
    report
}
