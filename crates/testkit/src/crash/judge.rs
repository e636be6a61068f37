//! The judge: opens a store from an image and compares it with the requests and answers.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::engine::LogStore;
use bough_log::{Envelope, Expected, Incarnation, LogError, kind};

use super::engine::{self, Shown};
use super::history::{Expectation, Life, Place};
use super::report::Verdict;
use super::workload::Scale;
use crate::{SimClock, SimDisk};

/// How many of the unanswered batches and deltas are there, or were replaced by a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) batches: usize,
    pub(crate) deltas: usize,
}

/// How a process of the judge ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything closed.
    Close,
    /// At once.
    Kill,
}

/// How thoroughly a session is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    /// In every way there is.
    Thorough,
    /// Its records in order.
    Light,
}

/// Judges an image: everything acknowledged is there, as a prefix in whole batches, and nothing is invented; reading
/// writes nothing; opening twice equals opening once; appending works, and what is appended is durable.
pub(crate) fn judge(
    image: &SimDisk,
    expectation: &Expectation,
    scale: Scale,
    ending: Ending,
) -> Result<(), Verdict> {
    let bench = Bench { disk: image, clock: Arc::new(SimClock::default()), scale };
    let ids: BTreeSet<&str> = expectation.lives.iter().map(|life| life.id.as_str()).collect();
    let read = bench.looker().read_only(&ids)?;
    let first = bench.process(1);
    first.nothing_invented(&ids)?;
    let opened = first.open_all(&ids, Care::Thorough)?;
    if let Some((id, _)) = read.iter().find(|(id, shown)| opened.get(*id) != Some(*shown)) {
        return Err(Verdict::broken(format!("{id}: a reader and a writer see different things")));
    }
    check_all(&first, &opened, expectation)?;
    first.end(ending)?;
    let once = image.digest();
    let second = bench.process(2);
    if second.open_all(&ids, Care::Light)? != opened {
        return Err(Verdict::broken("opened again, it shows other things"));
    }
    second.end(ending)?;
    if image.digest() != once {
        return Err(Verdict::broken("opening twice is not opening once"));
    }
    bench.looker().verify_all()?;
    bench.process(3).append_all(&opened)
}

/// Recovers an image as a process does that starts after the crash. Returns what must hold from then on. Writes nothing
/// more.
pub(crate) fn recover(
    image: &SimDisk,
    expectation: &Expectation,
    scale: Scale,
) -> Result<Expectation, Verdict> {
    let bench = Bench { disk: image, clock: Arc::new(SimClock::default()), scale };
    let process = bench.process(1);
    let ids: BTreeSet<&str> = expectation.lives.iter().map(|life| life.id.as_str()).collect();
    let opened = process.open_all(&ids, Care::Light)?;
    let mut promised = expectation.clone();
    for (life, index) in expectation.lives.iter().zip(0..) {
        let shown =
            opened.get(&life.id).filter(|shown| life.is(shown.head.incarnation, expectation));
        if let Some(shown) = shown {
            promised.shown(index, shown.head.incarnation, check_life(shown, life)?);
        }
    }
    Ok(promised)
}

struct Bench<'a> {
    disk: &'a SimDisk,
    clock: Arc<SimClock>,
    scale: Scale,
}

impl Bench<'_> {
    fn process(&self, number: u64) -> Process {
        let disk = self.disk.another_process();
        let platform = engine::platform(Arc::new(disk.clone()), &self.clock, 1000 + number);
        let store = LogStore::open(platform, engine::options(self.scale));
        self.with(disk, store)
    }

    /// A process that only reads.
    fn looker(&self) -> Process {
        let disk = self.disk.another_process();
        let platform = engine::platform(Arc::new(disk.clone()), &self.clock, 0);
        let store = LogStore::open_to_look(platform, engine::options(self.scale));
        self.with(disk, Ok(store))
    }

    fn with(&self, disk: SimDisk, store: Result<LogStore, LogError>) -> Process {
        let (clock, scale) = (Arc::clone(&self.clock), self.scale);
        Process { disk, store, clock, scale }
    }
}

/// One process of the judge's.
struct Process {
    disk: SimDisk,
    store: Result<LogStore, LogError>,
    clock: Arc<SimClock>,
    scale: Scale,
}

/// What the live sessions show.
type Seen = std::collections::BTreeMap<String, Shown>;

impl Process {
    fn store(&self) -> Result<&LogStore, Verdict> {
        self.store
            .as_ref()
            .map_err(|error| Verdict::broken(format!("the store does not open: {error}")))
    }

    /// Reads every session without opening any for writing; not a byte may change.
    fn read_only(&self, ids: &BTreeSet<&str>) -> Result<Seen, Verdict> {
        let store = self.store()?;
        let before = self.disk.digest();
        let mut seen = Seen::new();
        for id in ids {
            // It could be made again, but it is replaced in one step, so no crash should make that necessary.
            if let Err(LogError::Corrupt(damage)) = store.manifest(id) {
                return Err(Verdict::broken(format!("{id}: a crash hit the manifest: {damage}")));
            }
            if let Some(shown) = self.show(store, id, Care::Thorough)? {
                seen.insert((*id).to_owned(), shown);
            }
        }
        if self.disk.digest() != before {
            return Err(Verdict::broken("reading wrote"));
        }
        Ok(seen)
    }

    fn show(&self, store: &LogStore, id: &str, care: Care) -> Result<Option<Shown>, Verdict> {
        let reader = match store.read(id) {
            Ok(reader) => reader,
            Err(LogError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(Verdict::broken(format!("{id} cannot be read: {error}"))),
        };
        if let Some(damage) = reader.damage() {
            return Err(Verdict::broken(format!("{id}: taken for damage: {damage}")));
        }
        let shown = match care {
            Care::Thorough => engine::show(&reader),
            Care::Light => engine::show_records(&reader),
        };
        shown.map(Some).map_err(|error| error.verdict())
    }

    /// Opens every session for writing, which recovers it.
    fn open_all(&self, ids: &BTreeSet<&str>, care: Care) -> Result<Seen, Verdict> {
        let store = self.store()?;
        let mut seen = Seen::new();
        for id in ids {
            match store.open_for_writing(id) {
                Ok(report) if report.checkpoint_skipped => {
                    return Err(Verdict::broken(format!("{id}: a crash hit the checkpoint")));
                }
                Ok(_) | Err(LogError::NotFound { .. }) => {}
                Err(error) => return Err(Verdict::broken(format!("{id} does not open: {error}"))),
            }
            if let Some(shown) = self.show(store, id, care)? {
                seen.insert((*id).to_owned(), shown);
            }
        }
        Ok(seen)
    }

    /// Every log, live or in the trash, passes every check.
    fn verify_all(&self) -> Result<(), Verdict> {
        let mut wrong = None;
        let checked = self.store()?.verify_all(&mut |report| {
            if let Some(damage) = report.damage.first() {
                wrong = Some(Verdict::broken(format!("{} after recovery: {damage}", report.id)));
            }
            ControlFlow::Continue(())
        });
        checked.map_err(|error| Verdict::broken(format!("checking fails: {error}")))?;
        wrong.map_or(Ok(()), Err)
    }

    /// Checks that every listed session was created.
    fn nothing_invented(&self, ids: &BTreeSet<&str>) -> Result<(), Verdict> {
        let store = self.store()?;
        let mut wrong = None;
        let listing = store.visit(&mut |listed| match listed {
            Ok(listed) if ids.contains(listed.id.as_str()) => {}
            Ok(listed) => wrong = Some(Verdict::invented(format!("session {}", listed.id))),
            Err(error) => wrong = Some(Verdict::broken(format!("a listing fails: {error}"))),
        });
        listing.map_err(|error| Verdict::broken(format!("listing fails: {error}")))?;
        wrong.map_or(Ok(()), Err)
    }

    fn end(&self, ending: Ending) -> Result<(), Verdict> {
        match ending {
            Ending::Kill => self.disk.kill(),
            Ending::Close => {
                let closed = self.store()?.close_all();
                closed.map_err(|error| Verdict::broken(format!("closing fails: {error}")))?;
            }
        }
        Ok(())
    }

    /// Appends to every session; what was acknowledged must be there after a power cut.
    fn append_all(&self, opened: &Seen) -> Result<(), Verdict> {
        let store = self.store()?;
        let mut expected = Vec::new();
        for (id, shown) in opened {
            let parent = shown.records.iter().rev().find_map(|record| record.id.as_deref());
            let record = Envelope::entry("judged", parent, 7, "{\"by\":\"the judge\"}");
            store
                .append(id, Expected::Head(shown.head), vec![record.clone()])
                .map_err(|error| Verdict::broken(format!("{id}: no append after it: {error}")))?;
            if self.scale.is_weak() {
                let synced = store.checkpoint(id);
                synced.map_err(|error| Verdict::broken(format!("{id}: no checkpoint: {error}")))?;
            }
            let mut records = shown.records.clone();
            records.push(record);
            expected.push((id, records));
        }
        let after =
            Bench { disk: &self.disk.platter(), clock: Arc::clone(&self.clock), scale: self.scale };
        let after = after.process(4);
        for (id, records) in expected {
            let shown = after.show(after.store()?, id, Care::Light)?;
            if shown.is_none_or(|shown| shown.records != records) {
                return Err(Verdict::lost(format!("{id}: what was appended after recovery")));
            }
        }
        Ok(())
    }
}

/// Checks that every incarnation is where it must be, with what it must have.
fn check_all(process: &Process, opened: &Seen, expectation: &Expectation) -> Result<(), Verdict> {
    let store = process.store()?;
    let trash = store.trash().map_err(|error| Verdict::broken(format!("no trash: {error}")))?;
    let mut made_by_nobody: Vec<&str> = opened.keys().map(String::as_str).collect();
    for life in &expectation.lives {
        let live =
            opened.get(&life.id).filter(|shown| life.is(shown.head.incarnation, expectation));
        let trashed =
            trash.iter().any(|log| log.id == life.id && life.is(log.incarnation, expectation));
        let place = match (live, trashed) {
            (Some(shown), _) => {
                made_by_nobody.retain(|id| *id != life.id);
                check_life(shown, life)?;
                Place::Live
            }
            (None, true) => Place::Trash,
            (None, false) => Place::Nowhere,
        };
        if !life.may_be(place) {
            let words = format!("{} is {place:?}, not {:?}", life.id, life.place);
            return Err(Verdict::lost(words));
        }
    }
    if let Some(id) = made_by_nobody.first() {
        return Err(Verdict::invented(format!("a life of {id} that nobody made")));
    }
    check_trash(process, expectation, &trash, opened)
}

/// Checks that sessions in the trash can be undeleted whole. Works on a copy, because the image is
/// still needed.
fn check_trash(
    process: &Process,
    expectation: &Expectation,
    trash: &[bough_log::ListedLog],
    opened: &Seen,
) -> Result<(), Verdict> {
    let words = "\"by the judge\"";
    for listed in trash {
        let mut lives = expectation.lives.iter();
        let life =
            lives.find(|life| life.id == listed.id && life.is(listed.incarnation, expectation));
        let Some(life) = life else {
            return Err(Verdict::invented(format!("{} in the trash", listed.id)));
        };
        // An incarnation that is being removed need not be whole any more; one whose id is in use
        // again stays.
        if life.moving == Some(Place::Nowhere) || opened.contains_key(&listed.id) {
            continue;
        }
        let bench = Bench {
            disk: &process.disk.copy(),
            clock: Arc::clone(&process.clock),
            scale: process.scale,
        };
        let undo = bench.process(5);
        let store = undo.store()?;
        store
            .undelete(&listed.id, Some(listed.incarnation), 7, words)
            .map_err(|error| Verdict::lost(format!("{} cannot be undone: {error}", listed.id)))?;
        let Some(mut shown) = undo.show(store, &listed.id, Care::Light)? else {
            return Err(Verdict::lost(format!("{} is not there when undone", listed.id)));
        };
        let by_us = |r: &Envelope<'static>| r.kind == kind::RESTORED && r.payload == words;
        if shown.records.last().is_some_and(by_us) {
            shown.records.pop();
        }
        check_life(&shown, life)?;
    }
    Ok(())
}

impl Life {
    /// Whether this incarnation was found, and not another of the same id.
    fn is(&self, found: Incarnation, expectation: &Expectation) -> bool {
        match self.incarnation {
            Some(mine) => mine == found,
            None => {
                let others = expectation.lives.iter().filter(|life| life.id == self.id);
                others.filter_map(|life| life.incarnation).all(|other| other != found)
            }
        }
    }
}

/// Compares one session with the requests and answers.
pub(crate) fn check_life(shown: &Shown, life: &Life) -> Result<Kept, Verdict> {
    let id = &life.id;
    let mut found = shown.records.iter();
    for (must, number) in life.must().zip(1..) {
        match found.next() {
            Some(record) if record == must => {}
            Some(record) => {
                let words = format!("{id}: record {number} is {record:?}, was {must:?}");
                return Err(Verdict::invented(words));
            }
            None => {
                let words = format!("{id}: record {number} was acknowledged and is not there");
                return Err(Verdict::lost(words));
            }
        }
    }
    let rest = found.as_slice();
    let batches = whole_batches(rest, life)?;
    let deltas = check_deltas(shown, life)?;
    Ok(Kept { batches, deltas })
}

/// The same without a power cut: what was answered before its sync is there, too.
pub(crate) fn check_running(shown: &Shown, life: &Life) -> Result<Kept, Verdict> {
    let kept = check_life(shown, life)?;
    if kept.batches < life.written || kept.deltas < life.written_deltas {
        let words = format!("{}: what was answered before its sync is gone", life.id);
        return Err(Verdict::lost(words));
    }
    Ok(kept)
}

/// How many unanswered batches are there, whole and in order. Anything else is wrong.
fn whole_batches(mut rest: &[Envelope<'static>], life: &Life) -> Result<usize, Verdict> {
    let id = &life.id;
    for (batch, count) in life.pending.iter().zip(0..) {
        if rest.is_empty() {
            return Ok(count);
        }
        let Some((head, tail)) = rest.split_at_checked(batch.len()) else {
            return Err(Verdict::broken(format!("{id}: a part of a batch")));
        };
        if head != &batch[..] {
            return Err(Verdict::invented(format!(
                "{id}: {:?} was not appended there",
                head.first()
            )));
        }
        rest = tail;
    }
    match rest.first() {
        None => Ok(life.pending.len()),
        Some(record) => Err(Verdict::invented(format!("{id}: {record:?} was never appended"))),
    }
}

/// Whether a revision took a delta's place.
fn is_settled(delta: &bough_log::NewDelta, shown: &Shown) -> bool {
    shown.records.iter().any(|record| {
        record.kind == kind::REVISION
            && record.target.as_deref() == Some(delta.target.as_str())
            && record.revision.is_some_and(|revision| revision >= delta.revision)
    })
}

/// Checks that acknowledged deltas are there unless a revision replaced them, and nothing else is.
fn check_deltas(shown: &Shown, life: &Life) -> Result<usize, Verdict> {
    let id = &life.id;
    let acked = life.acked_deltas.iter().filter(|delta| !is_settled(delta, shown));
    if let Some(lost) = acked.clone().find(|delta| !shown.deltas.contains(delta)) {
        let words = format!("{id}: delta {} of {}", lost.revision, lost.target);
        return Err(Verdict::lost(words));
    }
    let acked: Vec<_> = acked.collect();
    let extra: Vec<_> = shown.deltas.iter().filter(|delta| !acked.contains(delta)).collect();
    let unanswered = life.pending_deltas.iter().filter(|delta| !is_settled(delta, shown));
    if !extra.iter().copied().eq(unanswered.take(extra.len())) {
        return Err(Verdict::invented(format!("{id}: deltas {extra:?}")));
    }
    // Deltas that became a record count as present.
    let gone = |delta: &&bough_log::NewDelta| !is_settled(delta, shown) && !extra.contains(delta);
    let first_gone = life.pending_deltas.iter().position(|delta| gone(&delta));
    Ok(first_gone.unwrap_or(life.pending_deltas.len()))
}
