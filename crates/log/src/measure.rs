//! What logs occupy on the disk, and how many have records after their checkpoint. Reads only.

use std::ops::ControlFlow;

use bough_platform::RelPath;

use crate::container::{Container, SESSIONS, STAGING, TRASH};
use crate::error::{LogError, Result};
use crate::files::Files;
use crate::format::Position;
use crate::load::{read_manifest, segment_numbers};
use crate::store::LogStore;
use bough_record::Fold;

/// What the logs of a directory occupy. Logs that are written meanwhile are counted as they were at some moment of the look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSizes {
    /// Live logs.
    pub logs: u64,
    /// Bytes of the live logs on the disk.
    pub live_bytes: u64,
    /// Bytes of the deleted ones.
    pub trash_bytes: u64,
    /// Bytes of logs that are being built, or that a crash left half built.
    pub staging_bytes: u64,
    /// Live logs whose newest checkpoint knows all their records.
    pub checkpointed: u64,
    /// Live logs with records after their newest checkpoint; opening one reads those.
    pub dirty: u64,
    /// Live logs whose manifest cannot be read.
    pub unreadable: u64,
}

/// How the end of a log relates to its newest checkpoint.
enum Reach {
    Checkpointed,
    Dirty,
    Unreadable,
}

impl<F: Fold> LogStore<F> {
    /// Measures all logs. `pause` is called after each; when it returns `Break`, the result is `None`.
    pub fn measure(&self, pause: &mut dyn FnMut() -> ControlFlow<()>) -> Result<Option<LogSizes>> {
        let disk = &self.inner.platform.disk;
        let sessions = RelPath::parse(SESSIONS)?;
        let mut sizes = LogSizes {
            trash_bytes: disk.allocated(&RelPath::parse(TRASH)?)?,
            staging_bytes: disk.allocated(&RelPath::parse(STAGING)?)?,
            ..LogSizes::default()
        };
        for shard in disk.list_if_there(&sessions)? {
            let path = sessions.join(&shard.name)?;
            sizes.live_bytes += disk.stat(&path)?.map_or(0, |stat| stat.allocated);
            let listed = if shard.is_dir { disk.list_if_there(&path)? } else { Vec::new() };
            for listed in listed {
                let dir = path.join(&listed.name)?;
                sizes.live_bytes += disk.allocated(&dir)?;
                if listed.is_dir {
                    self.count(Container { dir }, &mut sizes)?;
                }
                if pause().is_break() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(sizes))
    }

    fn count(&self, container: Container, sizes: &mut LogSizes) -> Result<()> {
        let dir = container.dir.clone();
        let reach = reach(&self.files(container))?;
        if self.inner.platform.disk.stat(&dir)?.is_none() {
            // It went away while we looked.
            return Ok(());
        }
        sizes.logs += 1;
        *match reach {
            Reach::Checkpointed => &mut sizes.checkpointed,
            Reach::Dirty => &mut sizes.dirty,
            Reach::Unreadable => &mut sizes.unreadable,
        } += 1;
        Ok(())
    }
}

/// Frames after the manifest's position make a log dirty, in its segment or in a later one.
fn reach(files: &Files) -> Result<Reach> {
    let Position { segment, bytes, .. } = match read_manifest(files) {
        Ok(manifest) => manifest.position,
        Err(LogError::Corrupt(_)) => return Ok(Reach::Unreadable),
        Err(error) => return Err(error),
    };
    for number in segment_numbers(files)?.into_iter().filter(|number| *number >= segment) {
        let stat = files.disk.stat(&files.container.segment(number)?)?;
        let known = if number == segment { bytes } else { 0 };
        if stat.is_some_and(|stat| stat.len > known) {
            return Ok(Reach::Dirty);
        }
    }
    Ok(Reach::Checkpointed)
}
