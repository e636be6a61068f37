//! What one write and one sync make durable, in memory until then: frames, and deltas of streams.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bough_record::{Envelope, Fold, Head, StoredEnvelope};

use crate::format::StreamLine;
use crate::state::FrameLocation;

/// Frames that one write and one sync make durable.
#[derive(Debug)]
pub(crate) struct Chunk<F: Fold> {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) first_seq: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Queued<F>>,
    /// The head when all of it is durable.
    pub(crate) head: Head,
}

/// One encoded record. Its payload is held once: in the bytes of the frame.
#[derive(Debug)]
pub(crate) struct Queued<F: Fold> {
    /// The record without its payload.
    pub(crate) record: Envelope<'static>,
    /// Where in the chunk's bytes the payload is.
    pub(crate) payload: Range<usize>,
    pub(crate) seq: u64,
    pub(crate) last_step: Option<u64>,
    pub(crate) location: FrameLocation,
    pub(crate) fold: FoldStep<F>,
}

/// How the fold comes to include a record.
#[derive(Debug)]
pub(crate) enum FoldStep<F> {
    /// The log applies the record.
    Apply,
    /// A later record of the same batch brings the value.
    Later,
    /// The caller folded the batch: this is the value after it.
    Value(Arc<F>),
}

impl<F: Fold> Chunk<F> {
    /// The records, in order.
    pub(crate) fn stored(
        &self,
    ) -> impl Iterator<Item = (StoredEnvelope<'_>, FrameLocation, &FoldStep<F>)> {
        self.records
            .iter()
            .map(|queued| (queued.stored(&self.bytes), queued.location, &queued.fold))
    }
}

impl<F: Fold> Queued<F> {
    fn stored<'a>(&'a self, bytes: &'a [u8]) -> StoredEnvelope<'a> {
        let payload = bytes.get(self.payload.clone()).unwrap_or_default();
        // It was text when it was encoded.
        let payload = Cow::Borrowed(std::str::from_utf8(payload).unwrap_or_default());
        let envelope = Envelope { payload, ..self.record.borrowed() };
        StoredEnvelope { seq: self.seq, last_step: self.last_step, envelope }
    }
}

/// Deltas that one write and one sync make durable.
#[derive(Debug, Default)]
pub(crate) struct DeltaChunk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: Vec<StreamLine>,
}
