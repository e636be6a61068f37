//! Saving what is whole: a new store with every record that verifies. The damaged one is only read.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use bough_platform::RelPath;

use bough_record::{Envelope, Fold, StoredEnvelope, kind};

use crate::container::{Container, SESSIONS, parse_container_name, unescape_id};
use crate::error::{Damage, DamageKind, LogError, Result};
use crate::files::segment_file;
use crate::format::{ActiveStore, Pointer, decode_frame};
use crate::ledger::Ledger;
use crate::load::{Horizon, read_manifest, segment_numbers};
use crate::migration::Switch;
use crate::queue::NewDelta;
use crate::reader::Reader;
use crate::rebuild::{WayBack, way_back};
use crate::record::links;
use crate::scan::{Line, LineScan};
use crate::staged::StagedLog;
use crate::store::LogStore;

/// What was saved of one log, and what was not.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SalvageReport {
    /// The log's id.
    pub id: String,
    /// Records written to the new store.
    pub saved: u64,
    /// Entries whose parent is lost. Each hangs below the newest saved entry from before the loss now.
    pub reparented: u64,
    /// Records left out because what they speak of is lost.
    pub left_out: u64,
    /// Places that could not be read.
    pub damage: Vec<Damage>,
    /// Why nothing of it was saved, if nothing was: the target has it already, or its format is newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_saved: Option<String>,
}

impl SalvageReport {
    fn of(id: &str) -> Self {
        let (id, damage) = (id.to_owned(), Vec::new());
        Self { id, saved: 0, reparented: 0, left_out: 0, damage, not_saved: None }
    }

    fn not_saved(id: &str, why: &LogError) -> Self {
        Self { not_saved: Some(why.to_string()), ..Self::of(id) }
    }
}

/// Records written to the new store at a time.
const BATCH: usize = 1_000;

impl<F: Fold> LogStore<F> {
    /// Copies every frame of a log that is whole by itself into `target`, in order. Frames after damage
    /// are taken too: each one proves itself by its checksum, and the report says what is missing between.
    /// The copy appears whole, with the way back to a V1 file that the log has.
    pub fn salvage(&self, id: &str, target: &Self) -> Result<SalvageReport> {
        let container = self.existing(id)?;
        self.salvage_container(&container, id, target)
    }

    /// The same into a log that the caller has begun, and may read there.
    pub fn salvage_into(&self, staged: &mut StagedLog<F>) -> Result<SalvageReport> {
        let container = self.existing(&staged.id)?;
        self.copy_whole(&container, staged)
    }

    /// Whether there is a live log, whole or damaged.
    pub fn holds_logs(&self) -> Result<bool> {
        let shards = self.inner.platform.disk.list_if_there(&RelPath::parse(SESSIONS)?)?;
        Ok(shards.iter().any(|shard| shard.is_dir))
    }

    /// Copies what is whole of every live log; `visit` is called with each report. A log whose manifest is
    /// unreadable is saved under the id that its folder is named after.
    pub fn salvage_all(&self, target: &Self, visit: &mut dyn FnMut(SalvageReport)) -> Result<()> {
        for dir in self.shards()? {
            let listed = self.inner.platform.disk.list(&dir)?;
            for listed in listed.into_iter().filter(|listed| listed.is_dir) {
                let container = Container { dir: dir.join(&listed.name)? };
                if let Some(report) = self.salvage_found(&container, target)? {
                    visit(report);
                }
            }
        }
        Ok(())
    }

    /// Salvages a folder that was found; `None` when it is not one of ours. One that cannot be saved stops
    /// no other.
    fn salvage_found(&self, container: &Container, target: &Self) -> Result<Option<SalvageReport>> {
        let Some((escaped, _)) = parse_container_name(container.dir.file_name()) else {
            return Ok(None);
        };
        let id = match read_manifest(&self.files(container.clone())) {
            Ok(manifest) => manifest.session_id,
            // A name that is cut does not say the id; it is still a name to find the records under.
            Err(LogError::Corrupt(_)) => unescape_id(escaped).unwrap_or_else(|| escaped.to_owned()),
            Err(error @ LogError::NewerFormat { .. }) => {
                return Ok(Some(SalvageReport::not_saved(escaped, &error)));
            }
            Err(error) => return Err(error),
        };
        match self.salvage_container(container, &id, target) {
            Ok(report) => Ok(Some(report)),
            Err(error @ LogError::Exists { .. }) => Ok(Some(SalvageReport::not_saved(&id, &error))),
            Err(error) => Err(error),
        }
    }

    fn salvage_container(
        &self,
        container: &Container,
        id: &str,
        target: &Self,
    ) -> Result<SalvageReport> {
        if target.contains(id)? {
            return Err(LogError::Exists { id: id.to_owned() });
        }
        let mut random = [0; 8];
        target.inner.platform.entropy.fill(&mut random)?;
        let name = format!("salvage-{:016x}", u64::from_be_bytes(random));
        let mut staged = target.stage(&name, id)?;
        let report = self.copy_whole(container, &mut staged)?;
        if staged.has_begun() {
            self.copy_way_back(container, &staged)?;
            staged.publish()?;
        }
        staged.discard()?;
        Ok(report)
    }

    fn copy_whole(
        &self,
        container: &Container,
        staged: &mut StagedLog<F>,
    ) -> Result<SalvageReport> {
        let mut report = SalvageReport::of(&staged.id);
        if let Err(LogError::Corrupt(damage)) = read_manifest(&self.files(container.clone())) {
            report.damage.push(damage);
        }
        let records = self.whole_frames(container, &mut report)?;
        let mut placed = Placed::default();
        let mut batch = Vec::new();
        for record in records {
            batch.extend(placed.place(record, &mut report));
            if batch.len() == BATCH {
                write(staged, &std::mem::take(&mut batch), &mut report)?;
            }
        }
        write(staged, &batch, &mut report)?;
        self.save_deltas(container, staged, &placed.known, &mut report)?;
        staged.inner.close(&staged.id)?;
        Ok(report)
    }

    /// Gives a copy the way back to the V1 file that its log came from: the pointer to the file, and the ledger.
    fn copy_way_back(&self, container: &Container, staged: &StagedLog<F>) -> Result<()> {
        let files = self.files(container.clone());
        let is_file = |pointer: &Pointer| pointer.marker() != ActiveStore::NativeV2;
        let previous = match (read_manifest(&files), way_back(&files)?) {
            (Ok(old), _) => [old.previous, Some(old.pointer)].into_iter().flatten().find(is_file),
            (Err(_), WayBack::Known(file)) => Some(file),
            (Err(_), _) => None,
        };
        if previous.is_none() {
            return Ok(());
        }
        for event in Ledger::read(&*self.inner.platform.disk, container)?.events {
            staged.inner.record_event(&staged.id, &event)?;
        }
        let pointer = Pointer::NativeV2;
        let switch = Switch { through: &[], pointer, previous, head: None };
        staged.inner.switch(&staged.id, &switch).map(drop)
    }

    /// Deltas that were not settled stream on in the new store.
    fn save_deltas(
        &self,
        container: &Container,
        staged: &StagedLog<F>,
        known: &HashSet<String>,
        report: &mut SalvageReport,
    ) -> Result<()> {
        let id = &staged.id;
        let Ok(loaded) = self.load_once(id, container.clone(), Horizon::WholeTail) else {
            return Ok(());
        };
        for delta in Reader::read_only(loaded).deltas() {
            if !known.contains(&delta.target) {
                report.left_out += 1;
                continue;
            }
            let new = NewDelta {
                target: delta.target,
                revision: delta.revision,
                at_ms: delta.at_ms,
                payload: delta.payload.get().to_owned(),
            };
            staged.inner.enqueue_delta(id, &new)?.wait()?;
            report.saved += 1;
        }
        Ok(())
    }

    fn whole_frames(
        &self,
        container: &Container,
        report: &mut SalvageReport,
    ) -> Result<Vec<StoredEnvelope<'static>>> {
        let files = self.files(container.clone());
        let mut found = BTreeMap::new();
        for number in segment_numbers(&files)? {
            let mut scan = LineScan::new(files.segment(number)?, 0);
            while let Some(line) = scan.next_line()? {
                let (at, decoded) = match &line {
                    Line::Whole { at, bytes } => (*at, decode_frame(bytes).ok()),
                    Line::Partial { at } => (*at, None),
                };
                match decoded {
                    Some(frame) if frame.header.segment == number => {
                        found.insert(frame.header.seq, frame.stored().into_owned());
                    }
                    _ => {
                        let file = segment_file(number);
                        report.damage.push(Damage::new(DamageKind::Frame, file, at, "not a frame"));
                    }
                }
                if matches!(line, Line::Partial { .. }) {
                    break;
                }
            }
        }
        note_gaps(&found, report);
        Ok(found.into_values().collect())
    }
}

fn note_gaps(found: &BTreeMap<u64, StoredEnvelope<'static>>, report: &mut SalvageReport) {
    let mut next = 1;
    for seq in found.keys() {
        if *seq != next {
            let text = format!("records {next} to {} are lost", seq - 1);
            let damage = Damage::new(DamageKind::SequenceBroken, "segments", 0, text);
            report.damage.push(damage.of(next));
        }
        next = seq + 1;
    }
}

/// What was saved so far, to which later records have to fit.
#[derive(Default)]
struct Placed {
    known: HashSet<String>,
    last_seq: u64,
    /// The entry that was saved last.
    newest: Option<String>,
    /// The entry that was saved last before the newest loss.
    before_loss: Option<String>,
    /// The entry that stands in for each parent that is lost.
    stand_ins: HashMap<String, Option<String>>,
}

impl Placed {
    /// Makes a record fit what was saved before it; `None` when what it speaks of is lost.
    fn place(
        &mut self,
        stored: StoredEnvelope<'static>,
        report: &mut SalvageReport,
    ) -> Option<Envelope<'static>> {
        if stored.seq != self.last_seq + 1 {
            self.before_loss.clone_from(&self.newest);
        }
        self.last_seq = stored.seq;
        let mut record = stored.envelope;
        // Saving the deltas opens their streams anew.
        if record.kind == kind::STREAM {
            return None;
        }
        let target_lost = links(&record)
            .any(|linked| Some(linked) == record.target.as_deref() && !self.known.contains(linked));
        if target_lost {
            report.left_out += 1;
            return None;
        }
        if let Some(parent) = record.parent.take() {
            let is_lost = !self.known.contains(&*parent);
            record.parent = if is_lost { self.stand_in(&parent) } else { Some(parent) };
            report.reparented += u64::from(is_lost);
        }
        if let Some(id) = record.id.as_deref() {
            if !self.known.insert(id.to_owned()) {
                report.left_out += 1;
                return None;
            }
            self.newest = Some(id.to_owned());
        }
        Some(record)
    }

    /// The entry that a lost parent most likely hung below: entries mostly go on from the one before them. All children of
    /// one parent get the same.
    fn stand_in(&mut self, lost: &str) -> Option<Cow<'static, str>> {
        let before = &self.before_loss;
        let found = self.stand_ins.entry(lost.to_owned()).or_insert_with(|| before.clone());
        found.clone().map(Cow::Owned)
    }
}

fn write<F: Fold>(
    staged: &mut StagedLog<F>,
    batch: &[Envelope<'_>],
    report: &mut SalvageReport,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    staged.add(batch)?;
    report.saved += batch.len() as u64;
    Ok(())
}
