//! Reading the frames after a known point, and deciding what their end means.

use crate::canary;
use crate::chunk::FoldStep;
use crate::error::{Damage, DamageKind, Result};
use crate::files::{Files, missing_segment, segment_file};
use crate::format::{BatchPlace, Frame, Position, decode_frame};
use crate::load::Horizon;
use crate::recovery::{Decision, Found, TailFacts, decide};
use crate::scan::{Line, LineScan};
use crate::state::{FrameLocation, LogState};
use bough_record::{ChainHash, Fold};

/// How the scan ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct TailStop {
    pub(crate) frames: u64,
    pub(crate) torn_records: u64,
    pub(crate) torn_bytes: u64,
    pub(crate) damage: Option<Damage>,
}

/// A frame of a batch that is not whole yet.
struct Held {
    line: Vec<u8>,
    location: FrameLocation,
}

pub(crate) struct TailScan<'a, F: Fold> {
    files: &'a Files,
    state: &'a mut LogState<F>,
    /// The newest record that something knows to be durable.
    witness: u64,
    /// The newest record that the manifest knows.
    closed_at: u64,
    held: Vec<Held>,
    stop: TailStop,
}

/// The end of what can be taken from one segment.
struct SegmentEnd {
    found: Found,
    at: u64,
    detail: String,
    /// The invariant that a good frame breaks by standing there.
    breaks: DamageKind,
}

impl SegmentEnd {
    fn new(found: Found, at: u64, detail: impl Into<String>) -> Self {
        Self { found, at, detail: detail.into(), breaks: DamageKind::ChainBroken }
    }
}

impl<'a, F: Fold> TailScan<'a, F> {
    pub(crate) fn new(
        files: &'a Files,
        state: &'a mut LogState<F>,
        witness: u64,
        closed_at: u64,
    ) -> Self {
        Self { files, state, witness, closed_at, held: Vec::new(), stop: TailStop::default() }
    }

    /// Applies every whole batch that verifies, segment after segment.
    pub(crate) fn run(&mut self, horizon: Horizon) -> Result<TailStop> {
        let mut position = self.state.position.next();
        loop {
            if self.is_at(horizon) {
                return Ok(std::mem::take(&mut self.stop));
            }
            let end = self.scan_segment(position.segment, position.bytes, horizon)?;
            let Some(end) = end else {
                return Ok(std::mem::take(&mut self.stop));
            };
            match self.continuing_segment(position.segment)? {
                Some(next) => {
                    self.abandon(position.segment, end.at)?;
                    position = Position { segment: next, ..Position::START };
                }
                None => {
                    self.finish(position.segment, &end)?;
                    return Ok(std::mem::take(&mut self.stop));
                }
            }
        }
    }

    /// Whether nothing after this point is asked for.
    fn is_at(&self, horizon: Horizon) -> bool {
        match horizon {
            Horizon::Writer | Horizon::WholeTail => false,
            Horizon::Rows => self.state.head.seq >= self.witness,
            Horizon::UpTo(seq) => self.state.head.seq >= seq,
        }
    }

    /// Takes frames from one segment until something else stands there. `None` when the horizon is
    /// reached.
    fn scan_segment(
        &mut self,
        segment: u64,
        at: u64,
        horizon: Horizon,
    ) -> Result<Option<SegmentEnd>> {
        let nothing = |at| SegmentEnd::new(Found::Nothing, at, "the log ends");
        if self.files.disk.stat(&self.files.container.segment(segment)?)?.is_none() {
            return Ok(Some(nothing(0)));
        }
        let mut scan = LineScan::new(self.files.segment(segment)?, at);
        let mut good = at;
        while let Some(line) = scan.next_line()? {
            let (at, bytes) = match line {
                Line::Whole { at, bytes } => (at, bytes),
                Line::Partial { at } => {
                    let detail = "a line that does not end";
                    return Ok(Some(SegmentEnd::new(Found::Unreadable, at, detail)));
                }
            };
            if let Some(end) = self.take(segment, at, bytes)? {
                return Ok(Some(end));
            }
            good = self.next_offset();
            if self.is_at(horizon) {
                return Ok(None);
            }
        }
        Ok(Some(nothing(good)))
    }

    /// Takes one line as the next frame, or says why not.
    fn take(&mut self, segment: u64, at: u64, line: Vec<u8>) -> Result<Option<SegmentEnd>> {
        let frame = match decode_frame(&line) {
            Ok(frame) => frame,
            Err(error) => {
                return Ok(Some(SegmentEnd::new(Found::Unreadable, at, error.to_string())));
            }
        };
        if !self.fits(&frame, segment) {
            return Ok(Some(self.foreign(&frame, segment, at)));
        }
        let location = FrameLocation {
            segment,
            frame: frame.header.frame,
            offset: at,
            len: line.len() as u64 + 1,
            crc: frame.crc,
            chain: frame.chain,
        };
        let whole = frame.header.batch.is_last() || canary::on(canary::PARTIAL_BATCHES);
        self.stop.frames += 1;
        self.held.push(Held { line, location });
        if whole {
            self.apply_held()?;
        }
        Ok(None)
    }

    /// A good frame that is not the next one: of another chain, or of this one with a wrong number.
    fn foreign(&self, frame: &Frame<'_>, segment: u64, at: u64) -> SegmentEnd {
        let (found, expected) = (frame.header.seq, self.expected());
        if found != expected && frame.follows(self.tip(segment).0) {
            let detail = format!("frame {found} stands where frame {expected} must");
            let end = SegmentEnd::new(Found::Foreign, at, detail);
            return SegmentEnd { breaks: DamageKind::SequenceBroken, ..end };
        }
        let detail = format!("frame {found} does not continue the chain");
        SegmentEnd::new(Found::Foreign, at, detail)
    }

    /// The number of the next frame.
    fn expected(&self) -> u64 {
        self.state.head.seq + self.held.len() as u64 + 1
    }

    fn apply_held(&mut self) -> Result<()> {
        for held in std::mem::take(&mut self.held) {
            if let Ok(frame) = decode_frame(&held.line) {
                self.state.apply(&frame.stored(), held.location, &FoldStep::Apply)?;
            }
        }
        Ok(())
    }

    /// Whether a frame is the very next one: number, place, batch and chain.
    fn fits(&self, frame: &Frame<'_>, segment: u64) -> bool {
        let header = &frame.header;
        let (chain, frames) = self.tip(segment);
        let batch_fits = match self.held.last() {
            Some(held) => decode_frame(&held.line).is_ok_and(|last| {
                let last = last.header.batch;
                header.batch == BatchPlace { index: last.index + 1, count: last.count }
            }),
            None => header.batch.index == 0 || canary::on(canary::PARTIAL_BATCHES),
        };
        header.seq == self.expected()
            && header.segment == segment
            && header.frame == frames + 1
            && batch_fits
            && (frame.follows(chain) || canary::on(canary::NO_CHAIN))
    }

    /// The chain and the number of frames that the next frame of a segment goes on from.
    fn tip(&self, segment: u64) -> (ChainHash, u64) {
        match self.held.last() {
            Some(held) => (held.location.chain, held.location.frame),
            None if self.state.position.segment == segment && !self.state.position.closed => {
                (self.state.head.chain, self.state.position.frames)
            }
            None => (self.state.head.chain, 0),
        }
    }

    fn next_offset(&self) -> u64 {
        self.held
            .last()
            .map_or(self.state.position.bytes, |held| held.location.offset + held.location.len)
    }

    /// A later segment whose first frame continues the log: then what this one has after its last whole
    /// batch was left behind by an earlier opening.
    fn continuing_segment(&self, segment: u64) -> Result<Option<u64>> {
        let mut number = segment + 1;
        while self.files.disk.stat(&self.files.container.segment(number)?)?.is_some() {
            if self.first_frame_continues(number)? {
                return Ok(Some(number));
            }
            number += 1;
        }
        Ok(None)
    }

    fn first_frame_continues(&self, segment: u64) -> Result<bool> {
        let mut scan = LineScan::new(self.files.segment(segment)?, 0);
        let Some(Line::Whole { bytes, .. }) = scan.next_line()? else {
            return Ok(false);
        };
        Ok(decode_frame(&bytes).is_ok_and(|frame| {
            frame.header.seq == self.state.head.seq + 1
                && frame.header.segment == segment
                && frame.header.frame == 1
                && frame.header.batch.index == 0
                && frame.follows(self.state.head.chain)
        }))
    }

    /// Counts what a segment has after its last whole batch, and forgets the held frames.
    fn abandon(&mut self, segment: u64, at: u64) -> Result<()> {
        let held_bytes: u64 = self.held.iter().map(|held| held.location.len).sum();
        let file = self.files.container.segment(segment)?;
        let len = self.files.disk.stat(&file)?.map_or(0, |stat| stat.len);
        self.stop.torn_records += self.held.len() as u64 + u64::from(len > at);
        self.stop.torn_bytes += len.saturating_sub(at) + held_bytes;
        self.held.clear();
        Ok(())
    }

    /// The scan cannot go on: what does that mean?
    fn finish(&mut self, segment: u64, end: &SegmentEnd) -> Result<()> {
        let expected = self.state.head.seq + 1;
        let facts = TailFacts {
            found: end.found,
            witnessed: self.witness >= expected,
            vouched: self.vouched(segment, end.at, expected)?,
            mid_batch: !self.held.is_empty(),
        };
        let decision = match decide(facts) {
            Decision::AcknowledgedLost | Decision::Rot if canary::on(canary::ROT_IS_TORN) => {
                Decision::Torn
            }
            Decision::Torn if canary::on(canary::TORN_IS_ROT) => Decision::Rot,
            decision => decision,
        };
        match decision {
            Decision::Accept | Decision::End => Ok(()),
            Decision::Torn => self.abandon(segment, end.at),
            decision => {
                self.stop.damage = Some(self.damage(decision, segment, end)?);
                Ok(())
            }
        }
    }

    /// Names the record that cannot be read. It may stand in the middle of a batch, of which nothing is shown then.
    fn damage(&self, decision: Decision, segment: u64, end: &SegmentEnd) -> Result<Damage> {
        let hit = self.expected();
        if self.files.disk.stat(&self.files.container.segment(segment)?)?.is_none() {
            return Ok(missing_segment(segment).of(hit));
        }
        if end.found == Found::Nothing && self.is_gap_after(segment)? {
            return Ok(missing_segment(segment + 1).of(hit));
        }
        let kind = match decision {
            Decision::AcknowledgedLost => DamageKind::Acknowledged,
            Decision::NotOurs => end.breaks,
            _ => DamageKind::Frame,
        };
        let file = segment_file(segment);
        let mut detail = end.detail.clone();
        if !self.held.is_empty() {
            let first = self.state.head.seq + 1;
            // A batch is shown whole or not at all.
            let text =
                format!("; record {hit} is damaged, and its batch begins with record {first}");
            detail.push_str(&text);
        }
        Ok(Damage::new(kind, file, end.at, detail).of(hit))
    }

    /// Whether the next segment is not there while a later one is.
    fn is_gap_after(&self, segment: u64) -> Result<bool> {
        let next = crate::load::segment_numbers(self.files)?.into_iter().find(|n| *n > segment);
        Ok(next.is_some_and(|next| next > segment + 1))
    }

    /// Whether a good frame of a later write stands anywhere after the place where the scan stopped.
    fn vouched(&self, segment: u64, at: u64, expected: u64) -> Result<bool> {
        let mut number = segment;
        let mut from = at;
        while self.files.disk.stat(&self.files.container.segment(number)?)?.is_some() {
            if self.later_frame_in(number, from, expected)? {
                return Ok(true);
            }
            number += 1;
            from = 0;
        }
        for later in self.behind_a_gap(number)? {
            if self.later_frame_in(later, 0, expected)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The segments after one that is not there: a gap in the numbers hides what follows it. A log that
    /// ends where its manifest says, with no row beyond it, is looked at one number further only: opening
    /// what was closed properly must not cost more for having more segments.
    fn behind_a_gap(&self, missing: u64) -> Result<Vec<u64>> {
        let head = self.state.head.seq;
        if self.held.is_empty() && head == self.closed_at && head == self.witness {
            let next = missing + 1;
            let there = self.files.disk.stat(&self.files.container.segment(next)?)?.is_some();
            return Ok(Vec::from_iter(there.then_some(next)));
        }
        let numbers = crate::load::segment_numbers(self.files)?;
        Ok(numbers.into_iter().filter(|number| *number > missing).collect())
    }

    fn later_frame_in(&self, segment: u64, from: u64, expected: u64) -> Result<bool> {
        let mut scan = LineScan::new(self.files.segment(segment)?, from);
        while let Some(line) = scan.next_line()? {
            let Line::Whole { bytes, .. } = line else {
                return Ok(false);
            };
            let later = frame_in(&bytes).is_some_and(|frame| frame.header.write_start > expected);
            if later {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The frame that a line ends with: damage before it may have eaten the line break in front of it.
fn frame_in(line: &[u8]) -> Option<Frame<'_>> {
    const START: &[u8] = b"{\"c\":\"";
    if let Ok(frame) = decode_frame(line) {
        return Some(frame);
    }
    let last = line.windows(START.len()).rposition(|window| window == START)?;
    decode_frame(line.get(last..)?).ok()
}
