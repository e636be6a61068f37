//! Stores on a simulated disk, and files of them taken apart and put together again.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bough_log::format::{Checkpoint, FrameHeader, Manifest, decode_frame, encode_frame};
use bough_log::{
    ChainHash, Damage, Durability, Envelope, Expected, LogError, LogStore, Maintenance, NewDelta,
    Options, VerifyReport,
};
use bough_platform::{Disk, Platform, RelPath};
use bough_testkit::{SimClock, SimDisk, SimEntropy};

/// What checking every log of a store finds.
pub(crate) fn verify_all(store: &LogStore) -> Vec<VerifyReport> {
    let mut reports = Vec::new();
    let visit = &mut |report| {
        reports.push(report);
        ControlFlow::Continue(())
    };
    store.verify_all(visit).unwrap();
    reports
}

/// A simulated machine with one data directory.
pub(crate) struct Machine {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) options: Options,
    /// Every process has randomness of its own.
    seeds: Arc<AtomicU64>,
}

/// One process on it.
pub(crate) struct Process {
    pub(crate) disk: SimDisk,
    pub(crate) store: LogStore,
}

impl Process {
    /// The process ends at once: its locks are free, what it wrote is in the cache.
    pub(crate) fn kill(self) {
        self.disk.kill();
    }
}

impl Machine {
    /// Sizes as in use, apart from the maintenance, which the appending thread does.
    pub(crate) fn new() -> Self {
        let options = Options { maintenance: Maintenance::Inline, ..Options::default() };
        let clock = Arc::new(SimClock::default());
        let disk = SimDisk::new().with_clock(clock.clone());
        Self { disk, clock, options, seeds: Arc::default() }
    }

    /// Nothing is tiny: closing leaves an index and a checkpoint.
    pub(crate) fn full() -> Self {
        Self::with(|options| options.tiny_bytes = 0)
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut machine = Self::new();
        change(&mut machine.options);
        machine
    }

    /// Segments of about two records, rounds after about three, id tables after a few rows.
    pub(crate) fn small() -> Self {
        Self::with(|options| {
            options.tiny_bytes = 0;
            options.segment_bytes = 500;
            options.checkpoint_every_bytes = 900;
            options.tail_rows_max = 2;
        })
    }

    pub(crate) fn weak() -> Self {
        Self::with(|options| {
            options.tiny_bytes = 0;
            options.durability = Durability::MayLoseNewestOnPowerCut;
        })
    }

    fn platform(&self, disk: &SimDisk) -> Platform {
        self.behind(Arc::new(disk.clone()))
    }

    /// This machine with a disk that stands before its own.
    pub(crate) fn behind(&self, disk: Arc<dyn Disk>) -> Platform {
        Platform {
            disk,
            clock: self.clock.clone(),
            entropy: Arc::new(SimEntropy::new(self.seeds.fetch_add(1, Ordering::Relaxed))),
        }
    }

    pub(crate) fn start(&self) -> Process {
        let disk = self.disk.another_process();
        let store = <LogStore>::open(self.platform(&disk), self.options.clone()).unwrap();
        Process { disk, store }
    }

    /// A process that only looks.
    pub(crate) fn look(&self) -> LogStore {
        let disk = self.disk.another_process();
        <LogStore>::open_to_look(self.platform(&disk), self.options.clone())
    }

    /// The same machine with another disk.
    pub(crate) fn on(&self, disk: SimDisk) -> Self {
        let disk = disk.with_clock(self.clock.clone());
        let (clock, seeds) = (self.clock.clone(), self.seeds.clone());
        Self { disk, clock, options: self.options.clone(), seeds }
    }

    /// The machine after a power cut that lost everything that was not synced.
    pub(crate) fn after_power_cut(&self) -> Self {
        self.on(self.disk.platter())
    }

    /// The only file whose path ends so.
    pub(crate) fn path(&self, end: &str) -> RelPath {
        let files = self.disk.files().into_iter().map(|(path, _)| path);
        let mut found: Vec<RelPath> = files.filter(|path| path.as_str().ends_with(end)).collect();
        assert_eq!(found.len(), 1, "{end}: {:?}", self.disk);
        found.remove(0)
    }

    pub(crate) fn has(&self, end: &str) -> bool {
        self.disk.files().iter().any(|(path, _)| path.as_str().ends_with(end))
    }

    pub(crate) fn bytes(&self, end: &str) -> Vec<u8> {
        let path = self.path(end);
        let mut files = self.disk.files().into_iter();
        files.find(|(found, _)| *found == path).map(|(_, bytes)| bytes).unwrap()
    }

    pub(crate) fn put(&self, end: &str, bytes: &[u8]) {
        self.disk.plant(&self.path(end), bytes).unwrap();
    }

    pub(crate) fn change(&self, end: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes(end);
        change(&mut bytes);
        self.put(end, &bytes);
    }

    pub(crate) fn remove(&self, end: &str) {
        self.disk.uproot(&self.path(end)).unwrap();
    }

    pub(crate) fn change_manifest(&self, change: impl FnOnce(&mut Manifest)) {
        let mut manifest = Manifest::decode(&self.bytes("manifest.json")).unwrap();
        change(&mut manifest);
        self.put("manifest.json", &manifest.encode().unwrap());
    }

    pub(crate) fn change_checkpoint(&self, end: &str, change: impl FnOnce(&mut Checkpoint)) {
        let mut checkpoint = Checkpoint::decode(&self.bytes(end), "checkpoint").unwrap();
        change(&mut checkpoint);
        self.put(end, &checkpoint.encode().unwrap());
    }

    /// Writes the frames of a closed tiny log again with a change. Chain, checksums and manifest are right
    /// afterwards, so that nothing is wrong but what was changed.
    pub(crate) fn forge(&self, mut change: impl FnMut(&mut FrameHeader<'_>)) {
        let segment = self.bytes("0000000000000001.seg");
        let mut manifest = Manifest::decode(&self.bytes("manifest.json")).unwrap();
        let mut chain = ChainHash::genesis(&manifest.session_id, manifest.incarnation);
        let mut out = Vec::new();
        for line in segment.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n') {
            let frame = decode_frame(line).unwrap();
            let mut header = frame.header.clone();
            change(&mut header);
            (chain, _) = encode_frame(&header, frame.payload, chain, &mut out);
            (manifest.head.seq, manifest.position.frames) = (header.seq, header.frame);
        }
        manifest.head.chain = chain;
        manifest.position.bytes = out.len() as u64;
        if let Some(checkpoint) = &mut manifest.checkpoint {
            (checkpoint.head, checkpoint.position) = (manifest.head, manifest.position);
        }
        self.put("0000000000000001.seg", &out);
        self.put("manifest.json", &manifest.encode().unwrap());
    }

    pub(crate) fn verify(&self, id: &str) -> VerifyReport {
        self.look().verify(id).unwrap()
    }

    /// The names of everything that `verify` finds wrong.
    pub(crate) fn named(&self, id: &str) -> Vec<&'static str> {
        self.verify(id).damage.iter().map(|damage| damage.kind.name()).collect()
    }

    /// What a writer is refused with; nothing may have changed.
    pub(crate) fn refusal(&self, id: &str) -> LogError {
        let process = self.start();
        let before = self.disk.digest_without_locks();
        let refused = process.store.open_for_writing(id).unwrap_err();
        assert_eq!(self.disk.digest_without_locks(), before, "a refusal changed something");
        process.kill();
        refused
    }

    /// The damage that a reader reports.
    pub(crate) fn damage(&self, id: &str) -> Option<Damage> {
        self.look().read(id).unwrap().damage()
    }

    /// The numbers in the payloads, as a reader that only looks shows them.
    pub(crate) fn shown(&self, id: &str) -> Vec<u64> {
        numbers(&self.look(), id)
    }
}

/// The entry of a number, the child of the one before it.
pub(crate) fn entry(n: u64) -> Envelope<'static> {
    let parent = (n > 1).then(|| format!("e{}", n - 1));
    Envelope::entry(&format!("e{n}"), parent.as_deref(), 1, n.to_string())
}

pub(crate) fn append(store: &LogStore, id: &str, n: u64) {
    store.append(id, Expected::Any, vec![entry(n)]).unwrap();
}

/// A log with entries 1 to `count`, each appended by itself.
pub(crate) fn fill(store: &LogStore, id: &str, count: u64) {
    store.create(id, vec![entry(1)]).unwrap();
    (2..=count).for_each(|n| append(store, id, n));
}

pub(crate) fn delta(target: &str, revision: u64) -> NewDelta {
    let payload = format!("\"piece {revision}\"");
    NewDelta { target: target.to_owned(), revision, at_ms: 3, payload }
}

/// The numbers in the payloads of a log's entries, in order.
pub(crate) fn numbers(store: &LogStore, id: &str) -> Vec<u64> {
    let records =
        store.read(id).unwrap().records(0, u64::MAX / 2, |stored| stored.into_owned()).unwrap();
    records.iter().filter_map(|stored| stored.envelope.payload.parse().ok()).collect()
}

/// The bytes where a segment's lines begin, and its length.
pub(crate) fn line_starts(segment: &[u8]) -> Vec<usize> {
    let breaks = segment.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    [0].into_iter().chain(breaks.map(|(at, _)| at + 1)).collect()
}
