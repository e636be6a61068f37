//! Cuts the power after every operation of a history, in every way, and again during the recovery.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use super::driver::{DiskFault, Driver};
use super::history::{Cursor, Expectation};
use super::judge::{Ending, judge, recover};
use super::report::Report;
use super::workload::{Scale, Workload};
use crate::{Image, ImageRules, Point, Recording, SimDisk};

/// How thorough the cuts are.
#[derive(Clone, Debug)]
pub(crate) struct Depth {
    pub(crate) rules: ImageRules,
    /// The prefix of the places of failures, so that a replay uses the same rules.
    pub(crate) about: &'static str,
    /// One image in this many is recovered with a cut after every operation of its recovery; 0 for none.
    pub(crate) recovery_every: usize,
    /// Ends at the first broken promise.
    pub(crate) stop_early: bool,
}

/// Pairs of image and oracle state that any thread has judged already.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    seen: Mutex<HashSet<u64>>,
}

impl Judged {
    /// Whether this pair is new. The oracle's state is part of it: the same bytes are right before an acknowledgement
    /// and wrong after.
    fn is_new(&self, digest: u64, oracle: u64, kind: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (digest, oracle, kind).hash(&mut hasher);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(hasher.finish())
    }
}

/// Runs a history and judges what every cut leaves.
pub(crate) fn cut_everywhere(
    workload: &Workload,
    disk_fault: DiskFault,
    depth: &Depth,
    judged: &Judged,
) -> Report {
    let driver = Driver::run(workload, disk_fault);
    let mut run = Run {
        name: format!("{}{}", depth.about, workload.name),
        scale: workload.scale,
        depth,
        judged,
        report: Report::default(),
    };
    for verdict in &driver.verdicts {
        run.report.fail(verdict, &format!("{} (running it)", workload.name));
    }
    let mut cursor = Cursor::default();
    driver.disk.recording().walk(|point| {
        driver.history.advance(&mut cursor, point.number());
        run.at(point, &cursor.expectation);
    });
    run.report
}

struct Run<'a> {
    name: String,
    scale: Scale,
    depth: &'a Depth,
    judged: &'a Judged,
    report: Report,
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.depth.stop_early && self.report.failed() > 0
    }

    fn at(&mut self, point: &Point<'_>, expectation: &Expectation) {
        if self.is_over() {
            return;
        }
        let oracle = expectation.key();
        self.process_ends(point, expectation, oracle);
        let number = point.number();
        let rules = self.depth.rules.clone();
        let enumerated = point.images(&rules, |image| self.cut(number, image, expectation, oracle));
        self.report.moments += 1;
        self.report.sampled_moments += u64::from(enumerated.sampled);
    }

    /// Only the process ends: unsynced writes are still in the cache, and are not durable.
    fn process_ends(&mut self, point: &Point<'_>, expectation: &Expectation, oracle: u64) {
        let disk = point.disk();
        if self.judged.is_new(disk.digest(), oracle, "process") {
            self.report.images += 1;
            let expectation = &expectation.without_power_cut();
            let result = judge(&disk, expectation, self.scale, Ending::Close);
            let place = || format!("{}:{}:process", self.name, point.number());
            if let Err(verdict) = result {
                let place = place();
                self.report.fail(&verdict, &place);
            }
        }
    }

    fn cut(&mut self, number: usize, image: &Image<'_>, expectation: &Expectation, oracle: u64) {
        if self.is_over() || !self.judged.is_new(image.digest(), oracle, "cut") {
            return;
        }
        self.report.images += 1;
        let ending = ending_of(image);
        if let Err(verdict) = judge(&image.disk(), expectation, self.scale, ending) {
            let place = format!("{}:{number}:{}", self.name, image.ordinal());
            self.report.fail(&verdict, &place);
            return;
        }
        let every = self.depth.recovery_every;
        if every > 0 && image.digest().is_multiple_of(every as u64) {
            self.cut_recovery(number, image, expectation);
        }
    }

    /// Cuts the power again after every operation of the recovery of an image.
    fn cut_recovery(&mut self, number: usize, image: &Image<'_>, expectation: &Expectation) {
        let disk: SimDisk = image.disk();
        disk.record();
        let Ok(recovered) = recover(&disk, expectation, self.scale) else {
            return;
        };
        let recording = disk.recording();
        let last = recording.len();
        let rules = rules_of_recovery(&self.depth.rules);
        recording.walk(|point| {
            // What an opening showed must stay from then on.
            let expected = if point.number() == last { &recovered } else { expectation };
            let oracle = expected.key();
            point.images(&rules, |second| {
                if self.is_over() || !self.judged.is_new(second.digest(), oracle, "cut") {
                    return;
                }
                self.report.images += 1;
                self.report.depth_two += 1;
                if let Err(verdict) = judge(&second.disk(), expected, self.scale, Ending::Close) {
                    let (first, then) = (image.ordinal(), point.number());
                    let name = &self.name;
                    let place = format!("{name}:{number}:{first}:{then}:{}", second.ordinal());
                    self.report.fail(&verdict, &place);
                }
            });
        });
    }
}

/// How the processes that judge an image end.
fn ending_of(image: &Image<'_>) -> Ending {
    if image.ordinal().is_multiple_of(2) { Ending::Close } else { Ending::Kill }
}

/// The rules for images of a recovery: fewer, because there are many recoveries.
fn rules_of_recovery(rules: &ImageRules) -> ImageRules {
    rules.clone().combinations_max(64)
}

/// Repeats one failure and describes it: the operations, the content of the image, and the verdict. `place` is the
/// number of the operation, then the image (none: only the process ended), then the same two for a cut during its
/// recovery.
pub(crate) fn replay(workload: &Workload, place: &[usize], rules: &ImageRules) -> String {
    let driver = Driver::run(workload, None);
    let mut replay = Replay { scale: workload.scale, place, rules, words: String::new() };
    let recording = driver.disk.recording();
    let until = place.first().copied().unwrap_or(recording.len());
    replay.steps(&recording, until, "");
    let mut cursor = Cursor::default();
    recording.walk(|point| {
        driver.history.advance(&mut cursor, point.number());
        if point.number() != until {
            return;
        }
        if place.len() < 2 {
            let expectation = cursor.expectation.without_power_cut();
            replay.describe(&point.disk(), &expectation, Ending::Close);
        }
        point.images(rules, |image| {
            if place.get(1) == Some(&image.ordinal()) {
                replay.image(image, &cursor.expectation);
            }
        });
    });
    replay.words
}

/// The verdict on an image with nothing wrong.
const WELL: &str = "every promise is kept";

struct Replay<'a> {
    scale: Scale,
    place: &'a [usize],
    rules: &'a ImageRules,
    words: String,
}

impl Replay<'_> {
    fn steps(&mut self, recording: &Recording, until: usize, about: &str) {
        for (step, number) in recording.steps().iter().zip(1..=until) {
            self.line(&format!("{about}{number:>5} {step}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.words.push_str(line);
        self.words.push('\n');
    }

    fn image(&mut self, image: &Image<'_>, expectation: &Expectation) {
        let Some(then) = self.place.get(2).copied() else {
            return self.describe(&image.disk(), expectation, ending_of(image));
        };
        let disk = image.disk();
        disk.record();
        let recovered = match recover(&disk, expectation, self.scale) {
            Ok(recovered) => recovered,
            Err(verdict) => return self.line(&format!("it is not recovered: {verdict:?}")),
        };
        let recording = disk.recording();
        self.steps(&recording, then, "recovery: ");
        recording.walk(|point| {
            if point.number() == then {
                let is_last = then == recording.len();
                let expected = if is_last { &recovered } else { expectation };
                point.images(&rules_of_recovery(self.rules), |second| {
                    if self.place.get(3) == Some(&second.ordinal()) {
                        self.describe(&second.disk(), expected, Ending::Close);
                    }
                });
            }
        });
    }

    fn describe(&mut self, disk: &SimDisk, expectation: &Expectation, ending: Ending) {
        for (path, bytes) in disk.files() {
            self.line(&format!("--- {path} ({} bytes)", bytes.len()));
            self.line(&String::from_utf8_lossy(&bytes));
        }
        for life in &expectation.lives {
            let (acked, pending) = (life.must().count(), life.pending.len());
            let place = (life.place, life.moving);
            self.line(&format!("oracle: {} {place:?} acked {acked} pending {pending}", life.id));
        }
        disk.record();
        let verdict = judge(disk, expectation, self.scale, ending);
        for step in disk.recording().steps() {
            self.line(&format!("judge: {step}"));
        }
        let verdict = verdict.map_or_else(|verdict| verdict.to_string(), |()| WELL.to_owned());
        self.line(&format!("verdict, ending with {ending:?}: {verdict}"));
    }
}
