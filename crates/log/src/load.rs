//! Opening: from what is on the disk to a [`LogState`]. Reads only: it reports what has to be repaired, and the writer
//! repairs it.

use std::sync::Arc;

use bough_platform::{Access, File, if_there};

use crate::canary;
use crate::container::{parse_checkpoint_name, parse_segment_name};
use crate::error::{Damage, DamageKind, LogError, Result};
use crate::files::Files;
use crate::format::{Checkpoint, Manifest, OffsetRow, Position, ROW_BYTES};
use crate::ids::{Ids, Known};
use crate::limits;
use crate::rebuild::Segments;
use crate::rows::Rows;
use crate::state::LogState;
use crate::streams;
use crate::tail::{TailScan, TailStop};
use bough_record::Fold;

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OpenReport {
    /// The log was closed properly: nothing had to be looked for.
    pub clean: bool,
    /// Frames that were read after the last checkpoint.
    pub frames_scanned: u64,
    /// Rows of the index that were missing or wrong and were made again.
    pub rows_rebuilt: u64,
    /// Records of an unacknowledged tail that were left behind.
    pub torn_records: u64,
    /// Bytes of it, in segments and in `stream.log`.
    pub torn_bytes: u64,
    /// A checkpoint could not be used and an older one, or none, was.
    pub checkpoint_skipped: bool,
}

/// How much of what is derived is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The newest checkpoint and the index up to it.
    Checkpoint,
    /// Only the segments: everything derived is made again.
    Segments,
}

/// How far loading reads, and whether it may open files for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Horizon {
    /// To the end of what verifies, to repair it and write on: this process has the lock.
    Writer,
    /// To the end of what verifies: no process is writing.
    WholeTail,
    /// Only as far as offset rows know: another process is writing, and what they know is durable.
    Rows,
    /// To one record, which is known to be durable.
    UpTo(u64),
}

impl Horizon {
    fn access(self) -> Access {
        if self == Self::Writer { Access::ReadWrite } else { Access::Read }
    }
}

/// A log as it was found.
#[derive(Debug)]
pub(crate) struct Loaded<F: Fold> {
    pub(crate) manifest: Manifest,
    pub(crate) files: Files,
    pub(crate) state: LogState<F>,
    pub(crate) report: OpenReport,
    /// What contradicts what was known to be durable; the state is what stands before it.
    pub(crate) damage: Option<Damage>,
    /// The highest segment number that is taken, whatever is in it.
    pub(crate) last_segment: u64,
    /// The newest record that something other than its own frame knows to be durable.
    pub(crate) witness: u64,
    /// How much of what is derived could be believed.
    pub(crate) trust: Trust,
}

impl<F: Fold> Loaded<F> {
    /// Whether all segments were read to make something derived again.
    pub(crate) fn is_rebuilt(&self) -> bool {
        let LogState { rows, ids, .. } = &self.state;
        self.trust == Trust::Segments || rows.is_damaged() || ids.is_damaged()
    }

    /// Whether the log ends with its last readable record, without anything behind it.
    pub(crate) fn is_at_end(&self) -> bool {
        let left = self.report.torn_records > 0 || self.report.torn_bytes > 0;
        self.damage.is_none() && !left && self.state.position.segment == self.last_segment
    }

    /// When the log was deleted, if it is: records after the manifest speak, else the manifest. An incarnation that another one
    /// took the place of is deleted by its manifest alone.
    pub(crate) fn deleted_at_ms(&self) -> Option<i64> {
        if self.state.head.seq > self.manifest.head.seq {
            self.state.deleted_at_ms
        } else {
            self.manifest.deleted_at_ms
        }
    }
}

/// Reads the manifest of a container.
pub(crate) fn read_manifest(files: &Files) -> Result<Manifest> {
    let path = files.container.manifest()?;
    match if_there(files.disk.read_all(&path, limits::MANIFEST_BYTES_MAX))? {
        Some(bytes) => Manifest::decode(&bytes),
        None => {
            let text = "the file is missing";
            Err(Damage::new(DamageKind::Manifest, "manifest.json", 0, text).into())
        }
    }
}

/// Loads a log. Damage of what is derived is met by trusting less; damage of the segments is reported in
/// [`Loaded::damage`] with everything before it readable.
pub(crate) fn load<F: Fold>(
    files: Files,
    manifest: Manifest,
    trust: Trust,
    horizon: Horizon,
) -> Result<Loaded<F>> {
    let Files { disk, container, .. } = &files;
    let (disk, container) = (Arc::clone(disk), container.clone());
    match load_trusting(files, manifest.clone(), trust, horizon) {
        Err(LogError::Corrupt(damage))
            if damage.kind.is_derived() && trust == Trust::Checkpoint =>
        {
            let files = Files::new(disk, container);
            load_trusting(files, manifest, Trust::Segments, horizon)
        }
        other => other,
    }
}

fn load_trusting<F: Fold>(
    files: Files,
    manifest: Manifest,
    trust: Trust,
    horizon: Horizon,
) -> Result<Loaded<F>> {
    let mut report = OpenReport::default();
    let offsets = open_offsets(&files, horizon.access())?;
    let base = match trust {
        Trust::Checkpoint => usable_checkpoint(&files, &manifest, &mut report)?,
        Trust::Segments => None,
    };
    let witness = witness(&manifest, base.as_ref(), offsets.as_ref())?;
    let mut state = base_state(&files, &manifest, base.as_ref(), offsets.as_ref(), trust)?;
    let stop = TailScan::new(&files, &mut state, witness, manifest.head.seq).run(horizon)?;
    report.frames_scanned = stop.frames;
    report.torn_records = stop.torn_records;
    report.torn_bytes = stop.torn_bytes;
    let last_segment = highest_segment(&files, &state)?;
    if horizon != Horizon::Rows {
        report.rows_rebuilt = rows_that_differ(&state, offsets.as_ref())?;
    }
    let streams = streams::load(&files, manifest.incarnation, &mut state.streams)?;
    report.torn_bytes += streams.torn_bytes;
    report.clean = is_clean(&manifest, &state, &stop, &files, last_segment)?;
    let damage = stop.damage.or(streams.damage);
    Ok(Loaded { manifest, files, state, report, damage, last_segment, witness, trust })
}

fn open_offsets(files: &Files, access: Access) -> Result<Option<Arc<dyn File>>> {
    Ok(if_there(files.disk.open(&files.container.offsets()?, access))?.map(Arc::from))
}

/// The newest checkpoint that can be believed and is not newer than the manifest.
fn usable_checkpoint(
    files: &Files,
    manifest: &Manifest,
    report: &mut OpenReport,
) -> Result<Option<Checkpoint>> {
    if manifest.checkpoint_seq == 0 {
        return Ok(None);
    }
    if let Some(checkpoint) = read_checkpoint(files, manifest.checkpoint_seq)? {
        return Ok(Some(checkpoint));
    }
    report.checkpoint_skipped = true;
    let mut older: Vec<u64> = files
        .disk
        .list(&files.container.checkpoints()?)
        .unwrap_or_default()
        .iter()
        .filter_map(|listed| parse_checkpoint_name(&listed.name))
        .filter(|number| *number < manifest.checkpoint_seq)
        .collect();
    older.sort_unstable_by(|a, b| b.cmp(a));
    for number in older {
        if let Some(checkpoint) = read_checkpoint(files, number)? {
            return Ok(Some(checkpoint));
        }
    }
    Ok(None)
}

/// A checkpoint; `None` when it is not there or cannot be believed: it is derived.
pub(crate) fn read_checkpoint(files: &Files, number: u64) -> Result<Option<Checkpoint>> {
    let path = files.container.checkpoint(number)?;
    let bytes = if_there(files.disk.read_all(&path, limits::CHECKPOINT_BYTES_MAX))?;
    let checkpoint = bytes.and_then(|bytes| Checkpoint::decode(&bytes, path.file_name()).ok());
    Ok(checkpoint.filter(|checkpoint| checkpoint.checkpoint_seq == number))
}

fn base_state<F: Fold>(
    files: &Files,
    manifest: &Manifest,
    base: Option<&Checkpoint>,
    offsets: Option<&Arc<dyn File>>,
    trust: Trust,
) -> Result<LogState<F>> {
    let segments = Segments::of(files, manifest);
    let restored = base.and_then(|checkpoint| {
        // A snapshot that is `null` reads as none.
        let snapshot = checkpoint.fold.as_ref().map_or("null", |fold| fold.get());
        Some((checkpoint, F::restore(snapshot)?))
    });
    let Some((checkpoint, fold)) = restored else {
        let head = bough_record::Head::genesis(&manifest.session_id, manifest.incarnation);
        // Rows that a checkpoint relies on are not written over in place: a crash in between would leave a mixture.
        let relied_on = trust == Trust::Segments || manifest.checkpoint_seq > 0;
        let rows = if relied_on {
            Rows::distrusting(offsets.cloned(), segments)
        } else {
            Rows::new(offsets.cloned(), 0, Some(segments))
        };
        return Ok(LogState::empty(
            head,
            Arc::new(F::start(&manifest.session_id)),
            rows,
            Ids::default(),
        ));
    };
    let rows = Rows::new(offsets.cloned(), checkpoint.head.seq, Some(segments));
    let ids =
        Ids::open(&*files.disk, &files.container, &checkpoint.id_tables, checkpoint.id_tables_end)?;
    let mut state = LogState::empty(checkpoint.head, Arc::new(fold), rows, ids);
    state.position = checkpoint.position;
    let tail = checkpoint.head.seq - checkpoint.id_tables_end.min(checkpoint.head.seq);
    for row in state.rows.range(checkpoint.id_tables_end + 1, tail)? {
        if !row.id.is_empty() {
            let known = Known { seq: row.seq, run: row.run, depth: row.depth };
            state.ids.insert(row.id, known);
        }
    }
    state.restore_tree(checkpoint)?;
    Ok(state)
}

/// The newest record that the manifest, the checkpoint or an offset row knows to be durable.
fn witness(
    manifest: &Manifest,
    base: Option<&Checkpoint>,
    offsets: Option<&Arc<dyn File>>,
) -> Result<u64> {
    let floor = base.map_or(0, |checkpoint| checkpoint.head.seq);
    let row = offsets.map_or(Ok(floor), |file| newest_row(&**file, floor))?;
    Ok(manifest.head.seq.max(row))
}

/// The newest record that a readable row knows. Rows after a checkpoint are not synced, so some may be
/// missing or garbage while later ones are whole; a later one speaks for all before it.
fn newest_row(file: &dyn File, floor: u64) -> Result<u64> {
    let mut seq = file.len()? / ROW_BYTES as u64;
    let mut bytes = [0; ROW_BYTES];
    while seq > floor {
        let read = file.read_at((seq - 1) * ROW_BYTES as u64, &mut bytes)?;
        let row = (read == ROW_BYTES).then(|| OffsetRow::decode(&bytes)).flatten();
        if row.is_some_and(|row| row.seq == seq) {
            return Ok(seq);
        }
        seq -= 1;
    }
    Ok(floor)
}

/// How many rows in the file are not what the segments say, among those after the base.
fn rows_that_differ<F: Fold>(state: &LogState<F>, offsets: Option<&Arc<dyn File>>) -> Result<u64> {
    let base = state.rows.on_disk();
    let Some(file) = offsets else {
        return Ok(state.rows.len() - base);
    };
    let mut wrong = 0;
    let mut bytes = [0; ROW_BYTES];
    let mut expected = Vec::with_capacity(ROW_BYTES);
    for row in state.rows.range(base + 1, state.rows.len() - base)? {
        let read = file.read_at((row.seq - 1) * ROW_BYTES as u64, &mut bytes)?;
        expected.clear();
        row.encode(&mut expected);
        wrong += u64::from(bytes.get(..read) != Some(expected.as_slice()));
    }
    Ok(wrong)
}

/// The highest segment number that a file has. Only the end of the numbers is looked at.
fn highest_segment<F: Fold>(files: &Files, state: &LogState<F>) -> Result<u64> {
    let mut number = state.position.segment;
    while files.disk.stat(&files.container.segment(number + 1)?)?.is_some() {
        number += 1;
    }
    Ok(number)
}

/// Whether the log ends exactly where the manifest says: then it was closed properly.
fn is_clean<F: Fold>(
    manifest: &Manifest,
    state: &LogState<F>,
    stop: &TailStop,
    files: &Files,
    last_segment: u64,
) -> Result<bool> {
    let at_manifest = manifest.head == state.head && stop.damage.is_none();
    if !at_manifest || last_segment != manifest.position.segment {
        return Ok(false);
    }
    let segment = files.disk.stat(&files.container.segment(last_segment)?)?;
    let len = segment.map_or(0, |stat| stat.len);
    Ok(manifest.position.closed || len == manifest.position.bytes)
}

/// All segment numbers that have a file, in order.
pub(crate) fn segment_numbers(files: &Files) -> Result<Vec<u64>> {
    let listed = files.disk.list_if_there(&files.container.segments()?)?;
    let mut numbers: Vec<u64> =
        listed.iter().filter_map(|listed| parse_segment_name(&listed.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The position that appending goes on from: after an unclean end, never a file of the earlier incarnation.
pub(crate) fn append_position<F: Fold>(loaded: &Loaded<F>) -> Position {
    if loaded.report.clean {
        return loaded.manifest.position;
    }
    if canary::on(canary::APPEND_TO_OLD_SEGMENT) {
        return loaded.state.position;
    }
    Position { segment: loaded.last_segment, closed: true, ..loaded.state.position }
}
