//! Random histories against a small oracle: after each step the store answers as the oracle does, and what
//! survives a crash is a prefix in whole batches with everything acknowledged in it.

use std::collections::BTreeMap;

use bough_log::{Envelope, Expected, Head, Incarnation, LogError, NewDelta, Options, kind};
use bough_testkit::{ImageRules, Seeded, SimDisk};
use proptest::prelude::*;

use crate::support::*;

/// One step. Numbers choose among what is there, so that every list of steps is a history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create(u8),
    Append { session: u8, records: u8, bytes: u16 },
    Conflict(u8),
    Repeat(u8),
    Delta(u8),
    Settle(u8),
    Checkpoint(u8),
    Close(u8),
    Reopen,
    Crash { choice: u64 },
    Delete(u8),
    Undo(u8),
}

const SESSIONS: u8 = 2;

fn step() -> impl Strategy<Value = Step> {
    let session = 0..SESSIONS;
    prop_oneof![
        3 => session.clone().prop_map(Step::Create),
        6 => (session.clone(), 1..4_u8, 0..300_u16)
            .prop_map(|(session, records, bytes)| Step::Append { session, records, bytes }),
        1 => session.clone().prop_map(|session| Step::Append { session, records: 20, bytes: 2_000 }),
        1 => session.clone().prop_map(Step::Conflict),
        1 => session.clone().prop_map(Step::Repeat),
        3 => session.clone().prop_map(Step::Delta),
        1 => session.clone().prop_map(Step::Settle),
        1 => session.clone().prop_map(Step::Checkpoint),
        1 => session.clone().prop_map(Step::Close),
        1 => Just(Step::Reopen),
        2 => any::<u64>().prop_map(|choice| Step::Crash { choice }),
        1 => session.clone().prop_map(Step::Delete),
        1 => session.prop_map(Step::Undo),
    ]
}

/// What one incarnation must hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct LogModel {
    records: Vec<Envelope<'static>>,
    deltas: Vec<NewDelta>,
    deleted: bool,
}

impl LogModel {
    fn entries(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.records.iter().filter_map(|record| record.id.as_deref())
    }

    fn revision_of(&self, target: &str) -> u64 {
        let recorded =
            self.records.iter().filter(|record| record.target.as_deref() == Some(target));
        let streamed = self.deltas.iter().filter(|delta| delta.target == target);
        let recorded = recorded.filter_map(|record| record.revision);
        recorded.chain(streamed.map(|delta| delta.revision)).max().unwrap_or(0)
    }

    /// Whether a stream of this entry is open: opened by a record and not settled since.
    fn streams(&self, target: &str) -> bool {
        let mut about = self.records.iter().rev().filter(|r| r.target.as_deref() == Some(target));
        about
            .find(|record| matches!(&*record.kind, kind::STREAM | kind::REVISION))
            .is_some_and(|record| record.kind == kind::STREAM)
    }
}

/// Which incarnation of which session, by the number of the session and the order of its incarnations.
#[derive(Clone, Debug, Default, PartialEq)]
struct Oracle {
    logs: BTreeMap<(u8, usize), (Incarnation, LogModel)>,
}

struct Run {
    machine: Machine,
    process: Process,
    oracle: Oracle,
    /// The oracle before the step that is being made: a crash may take the step back.
    before: Oracle,
    written: u64,
}

fn name(session: u8) -> String {
    format!("s{session}")
}

impl Run {
    fn new(options: Options) -> Self {
        let machine = Machine::with(|sizes| *sizes = options);
        machine.disk.record();
        let process = machine.start();
        let (oracle, before) = (Oracle::default(), Oracle::default());
        Self { machine, process, oracle, before, written: 0 }
    }

    fn newest(&self, session: u8) -> Option<(usize, &LogModel)> {
        let mut logs = self.oracle.logs.range((session, 0)..=(session, usize::MAX));
        logs.next_back().map(|((_, number), (_, log))| (*number, log))
    }

    fn live(&self, session: u8) -> Option<LogModel> {
        self.newest(session).map(|(_, log)| log).filter(|log| !log.deleted).cloned()
    }

    fn change(&mut self, session: u8, change: impl FnOnce(&mut LogModel)) {
        let (number, _) = self.newest(session).unwrap();
        change(&mut self.oracle.logs.get_mut(&(session, number)).unwrap().1);
    }

    fn batch(&mut self, parent: Option<&str>, records: u8, bytes: u16) -> Vec<Envelope<'static>> {
        let mut parent = parent.map(str::to_owned);
        let mut batch = Vec::new();
        for _ in 0..records {
            self.written += 1;
            let id = format!("w{}", self.written);
            let payload = format!("\"{}{}\"", self.written, "x".repeat(usize::from(bytes)));
            batch.push(Envelope::entry(&id, parent.as_deref(), 1, payload));
            parent = Some(id);
        }
        batch
    }

    fn make(&mut self, step: Step) {
        self.before = self.oracle.clone();
        match step {
            Step::Create(session) => self.create(session),
            Step::Append { session, records, bytes } => self.append(session, records, bytes),
            Step::Conflict(session) => self.conflict(session),
            Step::Repeat(session) => self.repeat(session),
            Step::Delta(session) => self.delta(session),
            Step::Settle(session) => self.settle(session),
            Step::Checkpoint(session) => {
                if self.live(session).is_some() {
                    self.process.store.checkpoint(&name(session)).unwrap();
                }
            }
            Step::Close(session) => self.process.store.close(&name(session)).unwrap(),
            Step::Reopen => {
                self.process.store.close_all().unwrap();
                self.process = self.machine.start();
            }
            Step::Crash { .. } => {}
            Step::Delete(session) => self.delete(session),
            Step::Undo(session) => self.undo(session),
        }
    }

    fn create(&mut self, session: u8) {
        let batch = self.batch(None, 1, 10);
        let made = self.process.store.create(&name(session), batch.clone());
        if self.live(session).is_some() {
            assert!(matches!(made, Err(LogError::Exists { .. })), "{made:?}");
            return;
        }
        let number = self.newest(session).map_or(0, |(number, _)| number + 1);
        let log = LogModel { records: batch, ..LogModel::default() };
        self.oracle.logs.insert((session, number), (made.unwrap().incarnation, log));
    }

    fn append(&mut self, session: u8, records: u8, bytes: u16) {
        let log = self.live(session);
        let parent = log.as_ref().and_then(|log| log.entries().next_back());
        let batch = self.batch(parent, records, bytes);
        let answer = self.process.store.append(&name(session), Expected::Any, batch.clone());
        match log {
            None => assert!(matches!(answer, Err(LogError::NotFound { .. })), "{answer:?}"),
            Some(_) => {
                answer.unwrap();
                self.change(session, |log| log.records.extend(batch));
            }
        }
    }

    fn conflict(&mut self, session: u8) {
        if self.live(session).is_none() {
            return;
        }
        let head = self.process.store.read(&name(session)).unwrap().head();
        let stale = Head::genesis(&name(session), head.incarnation);
        let batch = self.batch(None, 1, 1);
        let refused = self.process.store.append(&name(session), Expected::Head(stale), batch);
        assert!(matches!(refused, Err(LogError::Conflict { current }) if current == head));
    }

    fn repeat(&mut self, session: u8) {
        let Some(log) = self.live(session) else { return };
        let Some(id) = log.entries().next_back() else { return };
        let record = Envelope::entry(id, None, 9, "\"other words\"");
        let refused = self.process.store.append(&name(session), Expected::Any, vec![record]);
        assert!(matches!(refused, Err(LogError::Duplicate { .. })), "{refused:?}");
    }

    fn delta(&mut self, session: u8) {
        let Some(log) = self.live(session) else { return };
        let Some(target) = log.entries().next_back().map(str::to_owned) else { return };
        let base = log.revision_of(&target);
        let delta = delta(&target, base + 1);
        self.process.store.enqueue_delta(&name(session), &delta).unwrap().wait().unwrap();
        let opening = (!log.streams(&target)).then(|| Envelope {
            target: Some(target.into()),
            revision: Some(base),
            ..Envelope::plain(kind::STREAM, delta.at_ms, "null")
        });
        self.change(session, |log| {
            log.records.extend(opening);
            log.deltas.push(delta);
        });
    }

    fn settle(&mut self, session: u8) {
        let Some(log) = self.live(session) else { return };
        let Some(target) = log.entries().next_back().map(str::to_owned) else { return };
        let record = Envelope::revision(&target, log.revision_of(&target) + 1, 4, "\"whole\"");
        let batch = vec![record.clone()];
        self.process.store.append(&name(session), Expected::Any, batch).unwrap();
        self.change(session, |log| {
            log.deltas.retain(|delta| delta.target != target);
            log.records.push(record);
        });
    }

    fn delete(&mut self, session: u8) {
        let deleted = self.process.store.delete(&name(session), 5, "\"gone\"");
        if self.live(session).is_none() {
            assert!(matches!(deleted, Err(LogError::NotFound { .. })), "{deleted:?}");
            return;
        }
        deleted.unwrap();
        self.change(session, |log| {
            log.records.push(Envelope::plain(kind::TOMBSTONE, 5, "\"gone\""));
            log.deleted = true;
        });
    }

    fn undo(&mut self, session: u8) {
        let Some((number, log)) = self.newest(session) else { return };
        let deleted = log.deleted;
        let incarnation = self.oracle.logs[&(session, number)].0;
        let store = &self.process.store;
        let undone = store.undelete(&name(session), Some(incarnation), 6, "\"back\"");
        if !deleted {
            assert!(matches!(undone, Err(LogError::Exists { .. })), "{undone:?}");
            return;
        }
        assert_eq!(undone.unwrap(), incarnation);
        self.change(session, |log| {
            // An undo that was cut short after its record goes on from there.
            if log.records.last().is_some_and(|record| record.kind != kind::RESTORED) {
                log.records.push(Envelope::plain(kind::RESTORED, 6, "\"back\""));
            }
            log.deleted = false;
        });
    }

    /// The power is cut at a moment of the last step, in a way that the number chooses; a new process goes
    /// on with what is left, which the oracle takes over once it is found right.
    fn crash(&mut self, operations_before: usize, choice: u64) {
        let mut seeded = Seeded::new(choice);
        let operations = self.machine.disk.operations();
        let moment = operations_before + seeded.below(operations - operations_before + 1);
        let finished = moment == operations;
        let then = self.machine.disk.recording().disk_at(moment);
        let rules = ImageRules::seeded(choice).combinations_max(16);
        let chosen = seeded.below(then.images(&rules, |_| {}).images);
        let mut left: Option<SimDisk> = None;
        then.images(&rules, |image| {
            if image.ordinal() == chosen {
                left = Some(image.disk());
            }
        });
        self.machine = self.machine.on(left.unwrap());
        self.machine.disk.record();
        self.process = self.machine.start();
        let found = self.found();
        let (before, after) = (&self.before, &self.oracle);
        let mut possible: Vec<&Oracle> = vec![after];
        if !finished {
            possible.push(before);
        }
        let right = possible.iter().any(|oracle| **oracle == found)
            || !finished && is_between(before, &found, after);
        assert!(right, "before {before:#?}\nfound {found:#?}\nafter {after:#?}");
        self.oracle = found;
    }

    /// What the store holds, as an oracle.
    fn found(&self) -> Oracle {
        let mut found = Oracle::default();
        let store = &self.process.store;
        for ((session, number), (incarnation, _)) in &self.oracle.logs {
            let id = name(*session);
            let opened = store.open_for_writing(&id);
            let live = opened.is_ok().then(|| store.read(&id).unwrap());
            let live = live.filter(|reader| reader.head().incarnation == *incarnation);
            let deleted = live.is_none();
            let reader = match live {
                Some(reader) => reader,
                None => match store.read_trash(&id, *incarnation) {
                    Ok(reader) => reader,
                    Err(LogError::NotFound { .. }) => continue,
                    Err(error) => panic!("{error}"),
                },
            };
            assert_eq!(reader.damage(), None);
            let records = reader.records(0, u64::MAX / 2, |stored| stored.into_owned()).unwrap();
            let records: Vec<Envelope<'static>> = records.into_iter().map(|r| r.envelope).collect();
            let log = LogModel {
                deltas: reader.deltas().into_iter().map(of_line).collect(),
                deleted,
                records,
            };
            found.logs.insert((*session, *number), (*incarnation, log));
        }
        found
    }
}

fn of_line(line: bough_log::format::StreamLine) -> NewDelta {
    NewDelta {
        target: line.target,
        revision: line.revision,
        at_ms: line.at_ms,
        payload: line.payload.get().to_owned(),
    }
}

/// A step in the middle: every incarnation is at least as before and at most as after, record by record. A delta
/// begins with the record that opens its stream, so the record may be there without the delta.
fn is_between(before: &Oracle, found: &Oracle, after: &Oracle) -> bool {
    let logs_fit = found.logs.keys().all(|key| after.logs.contains_key(key))
        && before.logs.keys().all(|key| found.logs.contains_key(key));
    logs_fit
        && found.logs.iter().all(|(key, (_, log))| {
            let most = &after.logs[key].1;
            let none = LogModel::default();
            let least = before.logs.get(key).map_or(&none, |(_, log)| log);
            let settled = |delta: &NewDelta| !most.deltas.contains(delta);
            log.records.starts_with(&least.records)
                && most.records.starts_with(&log.records)
                && least.deltas.iter().all(|d| log.deltas.contains(d) || settled(d))
                && log.deltas.iter().all(|d| least.deltas.contains(d) || most.deltas.contains(d))
        })
}

fn run(options: Options, steps: &[Step]) {
    let mut run = Run::new(options);
    let mut last = 0;
    for step in steps {
        match step {
            Step::Crash { choice } => run.crash(last.min(run.machine.disk.operations()), *choice),
            step => {
                last = run.machine.disk.operations();
                run.make(*step);
            }
        }
        if matches!(step, Step::Crash { .. }) {
            last = run.machine.disk.operations();
            run.before = run.oracle.clone();
        }
        assert_eq!(run.found(), run.oracle, "after {step:?}");
    }
    run.process.store.close_all().unwrap();
    let look = run.machine.look();
    for report in verify_all(&look) {
        assert!(report.is_well(), "{:?}", report.damage);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_answers_as_the_oracle_when_nothing_is_tiny(
        steps in prop::collection::vec(step(), 1..24),
    ) {
        run(Machine::small().options, &steps);
    }

    #[test]
    fn the_store_answers_as_the_oracle_at_its_usual_sizes(
        steps in prop::collection::vec(step(), 1..24),
    ) {
        run(Machine::new().options, &steps);
    }
}
