//! Making a log: built in `staging/`, synced, moved into place.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_platform::{Platform, RelPath, takes_no_writing};

use crate::container::{Container, SESSIONS, STAGING, TRASH, check_id};
use crate::error::Result;
use crate::format::{
    BatchPlace, BranchHeads, Checkpoint, FrameHeader, Manifest, Position, StoreState, encode_frame,
    schema,
};
use crate::queue::check_batch;
use crate::record;
use crate::store::{Inner, LogStore};
use bough_record::{Envelope, Fold, Head, Incarnation, kind};

/// What stands in `staging/` longer than this was left by a process that ended.
const STAGING_AGE_MS: i64 = 3_600_000;

pub(crate) fn create<F: Fold>(
    store: &LogStore<F>,
    id: &str,
    records: &[Envelope<'_>],
) -> Result<Head> {
    check_id(id)?;
    check_batch(records)?;
    record::check_links(records, |_| Ok(None))?;
    let platform = &store.inner.platform;
    let mut random = [0; 16];
    platform.entropy.fill(&mut random)?;
    let live = Container::live(id, Incarnation::new(random))?;
    let shard = store.lock_unused_id(id)?;
    let staged = live.moved_to(STAGING)?;
    let head = build(platform, &staged, id, Incarnation::new(random), records)?;
    store.move_container(&staged.dir, &live.dir)?;
    drop(shard);
    Ok(head)
}

fn build(
    platform: &Platform,
    container: &Container,
    id: &str,
    incarnation: Incarnation,
    records: &[Envelope<'_>],
) -> Result<Head> {
    let disk = &platform.disk;
    disk.create_dir(&container.dir)?;
    disk.create_dir(&container.segments()?)?;
    let (bytes, head) = first_frames(platform, id, incarnation, records)?;
    let segment = disk.create(&container.segment(1)?)?;
    segment.write_at(0, &bytes)?;
    segment.sync()?;
    disk.sync_dir(&container.segments()?)?;
    let position = Position {
        segment: 1,
        bytes: bytes.len() as u64,
        frames: records.len() as u64,
        closed: false,
    };
    let manifest = first_manifest(platform, id, incarnation, records, head, position)?;
    let file = disk.create(&container.manifest()?)?;
    file.write_at(0, &manifest.encode()?)?;
    file.sync()?;
    disk.sync_dir(&container.dir)?;
    Ok(head)
}

fn first_frames(
    platform: &Platform,
    id: &str,
    incarnation: Incarnation,
    records: &[Envelope<'_>],
) -> Result<(Vec<u8>, Head)> {
    let mut head = Head::genesis(id, incarnation);
    let mut bytes = Vec::new();
    let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
    for (index, record) in records.iter().enumerate() {
        let mut nonce = [0; 16];
        platform.entropy.fill(&mut nonce)?;
        let seq = head.seq + 1;
        let header = FrameHeader {
            seq,
            frame: seq,
            batch: BatchPlace { index: u32::try_from(index).unwrap_or(u32::MAX), count },
            ..FrameHeader::of(record, Cow::Owned(URL_SAFE_NO_PAD.encode(nonce)))
        };
        let (chain, _) = encode_frame(&header, &record.payload, head.chain, &mut bytes);
        head = Head { seq, chain, ..head };
    }
    Ok((bytes, head))
}

/// The manifest of a log that was never open: as if it had been written and closed.
fn first_manifest(
    platform: &Platform,
    id: &str,
    incarnation: Incarnation,
    records: &[Envelope<'_>],
    head: Head,
    position: Position,
) -> Result<Manifest> {
    let now = platform.clock.now_ms();
    let state = StoreState::Clean.go_through(&StoreState::ROUND)?;
    let last = records.iter().rev().find_map(|record| record.id.as_deref());
    let leaf = records.iter().rev().find_map(|record| match &*record.kind {
        kind::ENTRY => Some(record.id.as_deref()),
        kind::LEAF => Some(record.target.as_deref()),
        _ => None,
    });
    let checkpoint = Checkpoint {
        schema: schema::CHECKPOINT.to_owned(),
        checkpoint_seq: 1,
        created_at_ms: now,
        head,
        position,
        last_entry_id: last.map(str::to_owned),
        active_leaf: leaf.flatten().map(str::to_owned),
        branch_heads: BranchHeads::TooMany,
        id_tables: Vec::new(),
        id_tables_end: 0,
        open_streams: Vec::new(),
        last_step: 0,
        deleted_at_ms: None,
        fold: None,
    };
    Ok(Manifest {
        state,
        head,
        position,
        checkpoint: Some(Box::new(checkpoint)),
        ..Manifest::new(id, incarnation, now)
    })
}

impl<F: Fold> LogStore<F> {
    /// Makes the folders that could not be made when the directory was opened. Before anything is put into them.
    pub(crate) fn ensure_folders(&self) -> Result<()> {
        let Inner { platform, lacks_folders, .. } = &*self.inner;
        if lacks_folders.load(Ordering::Acquire) {
            make_side_folders(platform)?;
            platform.disk.sync_dir(&RelPath::root())?;
            lacks_folders.store(false, Ordering::Release);
        }
        Ok(())
    }
}

/// Makes the folders of a directory of logs, and removes what interrupted builds left behind. On a disk that takes no
/// writing, what is missing or left behind beside the logs keeps nobody from reading them. Returns whether all folders are
/// there.
pub(crate) fn make_folders(platform: &Platform) -> Result<bool> {
    let unless_read_only = |error: io::Error| match takes_no_writing(&error) {
        true => Ok(false),
        false => Err(error),
    };
    let (disk, sessions) = (&platform.disk, RelPath::parse(SESSIONS)?);
    disk.ensure_dir(&sessions)?;
    let is_complete = make_side_folders(platform).map(|()| true).or_else(unless_read_only)?;
    // Also when nothing was made: an earlier incarnation may have ended before it synced what it made.
    disk.sync_dir(&RelPath::root())?;
    disk.sync_dir(&sessions)?;
    sweep_staging(platform).map(|()| true).or_else(unless_read_only)?;
    Ok(is_complete)
}

/// Makes the folders beside that of the live logs. The caller syncs the folder that they are in.
pub(crate) fn make_side_folders(platform: &Platform) -> io::Result<()> {
    for folder in [TRASH, STAGING] {
        platform.disk.ensure_dir(&RelPath::parse(folder)?)?;
    }
    Ok(())
}

/// Removes what interrupted builds left behind.
fn sweep_staging(platform: &Platform) -> io::Result<()> {
    let dir = RelPath::parse(STAGING)?;
    let now = platform.clock.now_ms();
    for listed in platform.disk.list_if_there(&dir)? {
        let path = dir.join(&listed.name)?;
        let age = platform.disk.stat(&path)?.map_or(0, |stat| now - stat.modified_ms);
        if age > STAGING_AGE_MS && listed.is_dir {
            platform.disk.remove_tree(&path)?;
        }
    }
    Ok(())
}
