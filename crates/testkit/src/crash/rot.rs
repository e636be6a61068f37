//! Damage to finished stores: every bit, every length, every sector, and whole files. Damage is reported or changes
//! nothing. It is never ignored silently, and damaged files are left as they are.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::engine::LogStore;
use bough_log::LogError;
use bough_platform::RelPath;

use super::driver::Driver;
use super::engine::{self, ShowError, Shown};
use super::report::{Kind, Report, Verdict};
use super::workload::{Scale, Workload};
use crate::{Damage, SimClock, SimDisk};

/// A finished store, with what it shows while it is intact.
pub(crate) struct Finished {
    name: String,
    scale: Scale,
    disk: SimDisk,
    shown: BTreeMap<String, Shown>,
    /// A segment of another session, to put in a wrong place.
    foreign: Vec<u8>,
    /// The segments of a store with the same history and other texts, by their names.
    twin: BTreeMap<String, Vec<u8>>,
}

impl Finished {
    /// Runs a history, lets everything reach the disk, and remembers what the store shows.
    pub(crate) fn of(workload: &Workload) -> Result<Self, Verdict> {
        let driver = Driver::run(workload, None);
        if let Some(verdict) = driver.verdicts.into_iter().next() {
            return Err(verdict);
        }
        let disk = driver.disk.written_back();
        let mut finished = Self {
            name: workload.name.clone(),
            scale: workload.scale,
            disk,
            shown: BTreeMap::new(),
            foreign: foreign_segment(),
            twin: segments_of(&Driver::run_twin(workload)),
        };
        let store = look(&finished.disk, finished.scale);
        for life in &driver.history.now().lives {
            match outcome(&store, &life.id) {
                Outcome::Shown(shown) => drop(finished.shown.insert(life.id.clone(), *shown)),
                other => return Err(Verdict::broken(format!("{} shows {other:?}", life.id))),
            }
        }
        Ok(finished)
    }

    /// Every single bit of the files whose path contains a text.
    pub(crate) fn bits(&self, about: &str) -> Vec<Damage> {
        let mut files = self.files();
        files.retain(|(path, _)| path.as_str().contains(about));
        files.iter().flat_map(|(path, len)| Damage::every_bit(path, *len)).collect()
    }

    /// Every length and every sector of every file.
    pub(crate) fn parts_of_files(&self) -> Vec<Damage> {
        let mut all = Vec::new();
        for (path, len) in self.files() {
            all.extend(Damage::every_truncation(&path, len));
            all.extend(Damage::every_sector(&path, len));
        }
        all
    }

    /// Files missing, swapped, doubled, and from elsewhere.
    pub(crate) fn whole_files(&self) -> Vec<Damage> {
        let files = self.files();
        let mut all = Vec::new();
        for (path, _) in &files {
            let path = path.clone();
            all.push(Damage::Missing { path: path.clone() });
            let bytes = self.foreign.clone();
            all.push(Damage::Foreign { path, bytes });
        }
        for (one, _) in &files {
            for (other, _) in files.iter().filter(|(other, _)| other != one) {
                let (path, with) = (one.clone(), other.clone());
                all.push(Damage::Swapped { path, with });
                let (from, to) = (one.clone(), other.clone());
                all.push(Damage::Duplicated { from, to });
            }
        }
        all.extend(self.next_to_the_last_segment());
        all.extend(self.segments_of_the_twin());
        all
    }

    /// Segments of another store that fit in every number.
    fn segments_of_the_twin(&self) -> Vec<Damage> {
        let mut all = Vec::new();
        for (path, _) in self.files() {
            if let Some(bytes) = self.twin.get(path.file_name()) {
                all.push(Damage::Foreign { path, bytes: bytes.clone() });
            }
        }
        all
    }

    /// Segments that were never written, with the number that comes next.
    fn next_to_the_last_segment(&self) -> Vec<Damage> {
        let mut segments: Vec<RelPath> = self.files().into_iter().map(|(path, _)| path).collect();
        segments.retain(|path| path.as_str().ends_with(".seg"));
        let mut all = Vec::new();
        for from in &segments {
            let number = from.file_name().trim_end_matches(".seg").parse::<u64>().unwrap_or(0);
            let next = format!("{:016}.seg", number + 1);
            let Ok(to) = from.parent().join(&next) else { continue };
            if !segments.contains(&to) {
                let (path, bytes) = (to.clone(), self.foreign.clone());
                all.push(Damage::Foreign { path, bytes });
                let from = from.clone();
                all.push(Damage::Duplicated { from, to });
            }
        }
        all
    }

    fn files(&self) -> Vec<(RelPath, usize)> {
        let files = self.disk.files().into_iter();
        files
            .filter(|(path, _)| path.file_name() != "lock")
            .map(|(path, bytes)| (path, bytes.len()))
            .collect()
    }

    /// Applies the damage and judges every way of opening.
    fn judge(&self, damage: &Damage) -> Result<(), Verdict> {
        let damaged = damage
            .done_to(&self.disk)
            .map_err(|error| Verdict::broken(format!("the damage could not be done: {error}")))?;
        let before = damaged.digest_without_locks();
        let store = look(&damaged, self.scale);
        let is_derived = files_of(damage).into_iter().all(is_derived);
        let mut is_seen = false;
        for (id, whole) in &self.shown {
            is_seen |= self.judge_outcome(id, whole, outcome(&store, id), "reading")?;
        }
        if is_seen && is_derived {
            return Err(Verdict::broken("the segments are whole, and reading is refused"));
        }
        drop(store);
        if damaged.digest_without_locks() != before {
            return Err(Verdict::broken("reading wrote"));
        }
        let mut is_refused = false;
        for (id, whole) in &self.shown {
            let store = write(&damaged, self.scale)?;
            let opened = match store.open_for_writing(id) {
                Ok(_) => outcome(&store, id),
                Err(_) => {
                    is_refused = true;
                    Outcome::Reported
                }
            };
            self.judge_outcome(id, whole, opened, "opening")?;
            let closed = store.close_all();
            closed.map_err(|error| Verdict::broken(format!("closing fails: {error}")))?;
        }
        if is_derived && is_refused {
            return Err(Verdict::broken("the segments are whole, and writing is refused"));
        }
        if is_derived && is_reported_by_verify(&damaged, self.scale) {
            return Err(Verdict::broken("a writer left what is derived as it was"));
        }
        if is_refused && self.shown.len() == 1 && damaged.digest_without_locks() != before {
            return Err(Verdict::broken("it was refused and changed all the same"));
        }
        if is_seen && !is_reported_by_verify(&self.damaged_again(damage)?, self.scale) {
            return Err(Verdict::new(Kind::Silent, "verify finds nothing"));
        }
        Ok(())
    }

    fn damaged_again(&self, damage: &Damage) -> Result<SimDisk, Verdict> {
        let done = damage.done_to(&self.disk);
        done.map_err(|error| Verdict::broken(format!("the damage could not be done: {error}")))
    }

    /// Judges the result: it is wrong only if it differs and no damage was reported.
    fn judge_outcome(
        &self,
        id: &str,
        whole: &Shown,
        outcome: Outcome,
        doing: &str,
    ) -> Result<bool, Verdict> {
        match outcome {
            Outcome::Reported => Ok(true),
            Outcome::Shown(shown) if *shown == *whole => Ok(false),
            Outcome::Shown(shown) => {
                let (now, then) = (shown.records.len(), whole.records.len());
                let words = format!("{doing} {id}: {now} records for {then}, nothing reported");
                Err(Verdict::new(Kind::Silent, words))
            }
            Outcome::Contradiction(words) => Err(Verdict::new(Kind::Silent, words)),
        }
    }
}

/// The files that a damage changes.
fn files_of(damage: &Damage) -> Vec<&RelPath> {
    match damage {
        Damage::FlippedBit { path, .. }
        | Damage::ZeroedSector { path, .. }
        | Damage::CopiedSector { path, .. }
        | Damage::Truncated { path, .. }
        | Damage::Missing { path }
        | Damage::Foreign { path, .. }
        | Damage::Duplicated { to: path, .. } => vec![path],
        Damage::Swapped { path, with } => vec![path, with],
    }
}

/// Whether a file can be made again from the segments: then its damage stops nobody.
fn is_derived(path: &RelPath) -> bool {
    let folder = path.parent();
    path.file_name() == "manifest.json" || ["index", "checkpoints"].contains(&folder.file_name())
}

/// The result of reading a session.
#[derive(Debug)]
enum Outcome {
    Shown(Box<Shown>),
    Reported,
    Contradiction(String),
}

fn outcome(store: &LogStore, id: &str) -> Outcome {
    let reader = match store.read(id) {
        Ok(reader) => reader,
        Err(error @ LogError::NotFound { .. }) => return Outcome::Contradiction(error.to_string()),
        Err(_) => return Outcome::Reported,
    };
    if reader.damage().is_some() {
        return Outcome::Reported;
    }
    match engine::show(&reader) {
        Ok(shown) => Outcome::Shown(Box::new(shown)),
        Err(ShowError::Refused(_)) => Outcome::Reported,
        Err(ShowError::Contradiction(words)) => Outcome::Contradiction(words),
    }
}

fn look(disk: &SimDisk, scale: Scale) -> LogStore {
    let clock = Arc::new(SimClock::default());
    let platform = engine::platform(Arc::new(disk.another_process()), &clock, 1);
    LogStore::open_to_look(platform, engine::options(scale))
}

fn write(disk: &SimDisk, scale: Scale) -> Result<LogStore, Verdict> {
    let clock = Arc::new(SimClock::default());
    let platform = engine::platform(Arc::new(disk.another_process()), &clock, 1);
    LogStore::open(platform, engine::options(scale))
        .map_err(|error| Verdict::broken(format!("the store does not open: {error}")))
}

fn is_reported_by_verify(disk: &SimDisk, scale: Scale) -> bool {
    let mut found = false;
    let checked = look(disk, scale).verify_all(&mut |report| {
        found |= !report.is_well();
        ControlFlow::Continue(())
    });
    found || checked.is_err()
}

/// The first segment of a session that is unrelated to the others.
fn foreign_segment() -> Vec<u8> {
    let mut driver = Driver::new(Scale::Usual, None);
    driver.disk.record();
    let actions = [super::workload::Action::Create(9)];
    let ran = actions.iter().all(|action| driver.act(*action).is_ok());
    let segment = segments_of(&driver).into_values().next();
    segment.filter(|_| ran).unwrap_or_default()
}

fn segments_of(driver: &Driver) -> BTreeMap<String, Vec<u8>> {
    let files = driver.disk.files().into_iter();
    let segments = files.filter(|(path, _)| path.as_str().ends_with(".seg"));
    segments.map(|(path, bytes)| (path.file_name().to_owned(), bytes)).collect()
}

/// Applies every damage of a list, one at a time, spread over threads.
pub(crate) fn do_all(finished: &Finished, list: &[Damage], threads: usize) -> Report {
    let next = AtomicUsize::new(0);
    let take_all = || {
        let mut report = Report::default();
        while let Some(damage) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
            match damage {
                Damage::FlippedBit { .. } => report.bit_flips += 1,
                _ => report.other_damage += 1,
            }
            if let Err(verdict) = finished.judge(damage) {
                let place = format!("{} {}", finished.name, words_of(damage));
                report.fail(&verdict, &place);
            }
        }
        report
    };
    super::on_threads(threads, take_all)
}

fn words_of(damage: &Damage) -> String {
    match damage {
        Damage::Foreign { path, .. } => format!("Foreign {path}"),
        other => format!("{other:?}"),
    }
}
