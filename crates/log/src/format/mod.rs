//! The files as bytes: pure encoding and decoding, no disk. `docs/FORMAT.md` draws all of it.

mod checkpoint;
mod frame;
mod id_table;
mod ledger;
mod manifest;
mod offset_row;
mod row_id;
mod sealed;
mod state;
mod stream;

pub use checkpoint::{BranchHead, BranchHeads, Checkpoint, IdTableRef, OpenStream, Position};
pub use frame::{BatchPlace, Frame, FrameError, FrameHeader, decode_frame, encode_frame};
pub(crate) use id_table::decode_page;
pub use id_table::{IdTable, PAGE_BYTES, build_table, hash_id, search_page};
pub use ledger::{LedgerEvent, Outcome, Phase, Verification};
pub use manifest::{ActiveStore, FORMAT_VERSION, Manifest, Pointer};
pub use offset_row::{OffsetRow, ROW_BYTES};
pub use row_id::RowId;
pub use sealed::{SealError, seal, unseal};
pub use state::StoreState;
pub use stream::{STREAM_HEADER_BYTES, StreamHeader, StreamLine};

/// A checksum as files have it: eight lower-case digits.
fn hex(number: u32) -> [u8; 8] {
    let mut text = [b'0'; 8];
    put_hex(&number.to_be_bytes(), &mut text);
    text
}

/// Fills a text with the lower-case digits of bytes, as far as both reach.
fn put_hex(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    for (place, nibble) in text.iter_mut().zip(nibbles) {
        *place = DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    }
}

/// Schema ids of the wire contract (`docs/schema/session_store_v2_contract.json`).
pub mod schema {
    /// The bundle of all the others.
    pub const CONTRACT: &str = "pi.session_store_v2.contract.v1";
    /// `manifest.json`.
    pub const MANIFEST: &str = "pi.session_store_v2.manifest.v1";
    /// One line of a segment.
    pub const SEGMENT_FRAME: &str = "pi.session_store_v2.segment_frame.v1";
    /// One line of `index/offsets.jsonl`.
    pub const OFFSET_INDEX: &str = "pi.session_store_v2.offset_index.v1";
    /// A checkpoint.
    pub const CHECKPOINT: &str = "pi.session_store_v2.checkpoint.v1";
    /// One line of `migrations/ledger.jsonl`.
    pub const MIGRATION_EVENT: &str = "pi.session_store_v2.migration_event.v1";
}
