//! Logs that were loaded from their segments because something derived is damaged, kept for the next reader.
//!
//! A walk opens a reader for each page. Without this, each page of such a log would read the whole log again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bough_record::Fold;

use crate::error::{LogError, Result};
use crate::files::Files;
use crate::format::Manifest;
use crate::limits::REBUILT_LOGS_MAX;
use crate::load::{Loaded, read_manifest};
use crate::rebuild::manifest_of_nothing;
use crate::sync::lock;

/// The logs that were read last and had to be made again, newest first.
#[derive(Debug)]
pub(crate) struct RebuiltLogs<F: Fold> {
    logs: Mutex<VecDeque<Kept<F>>>,
}

#[derive(Debug)]
struct Kept<F: Fold> {
    loaded: Arc<Loaded<F>>,
    sizes: Sizes,
}

/// How large the files are that only a writer changes. Segments only grow, so the last one speaks for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    last_segment: u64,
    last_segment_bytes: u64,
    stream_bytes: u64,
}

// Derived, this would ask the same of the fold.
impl<F: Fold> Default for RebuiltLogs<F> {
    fn default() -> Self {
        Self { logs: Mutex::default() }
    }
}

impl<F: Fold> RebuiltLogs<F> {
    /// The log as it was kept, unless a writer changed it since.
    pub(crate) fn find(&self, files: &Files, id: &str) -> Result<Option<Arc<Loaded<F>>>> {
        let of_this_log = |kept: &Kept<F>| kept.loaded.files.container.dir == files.container.dir;
        let Some((loaded, sizes)) = lock(&self.logs)
            .iter()
            .find(|kept| of_this_log(kept))
            .map(|kept| (Arc::clone(&kept.loaded), kept.sizes))
        else {
            return Ok(None);
        };
        if manifest_or_nothing(files, id)?.as_ref() == Some(&loaded.manifest)
            && Sizes::after(files, sizes.last_segment)? == Some(sizes)
        {
            return Ok(Some(loaded));
        }
        lock(&self.logs).retain(|kept| !of_this_log(kept));
        Ok(None)
    }

    /// Keeps a log, if something of it was made again and it is whole.
    pub(crate) fn keep(&self, loaded: &Arc<Loaded<F>>) {
        if !loaded.is_rebuilt() || !loaded.is_at_end() {
            return;
        }
        let mut logs = lock(&self.logs);
        if logs.front().is_some_and(|kept| Arc::ptr_eq(&kept.loaded, loaded)) {
            return;
        }
        let state = &loaded.state;
        let sizes = Sizes::after(&loaded.files, state.position.segment).ok().flatten();
        // A writer may have come and gone since the log was loaded.
        let Some(sizes) = sizes.filter(|sizes| sizes.last_segment_bytes == state.position.bytes)
        else {
            return;
        };
        let dir = &loaded.files.container.dir;
        logs.retain(|kept| kept.loaded.files.container.dir != *dir);
        logs.push_front(Kept { loaded: Arc::clone(loaded), sizes });
        logs.truncate(REBUILT_LOGS_MAX);
    }
}

impl Sizes {
    /// The sizes, if no segment follows this one.
    fn after(files: &Files, last_segment: u64) -> Result<Option<Self>> {
        let bytes = |path| Ok::<_, LogError>(files.disk.stat(&path)?.map(|stat| stat.len));
        if bytes(files.container.segment(last_segment + 1)?)?.is_some() {
            return Ok(None);
        }
        let last_segment_bytes = bytes(files.container.segment(last_segment)?)?.unwrap_or(0);
        let stream_bytes = bytes(files.container.stream()?)?.unwrap_or(0);
        Ok(Some(Self { last_segment, last_segment_bytes, stream_bytes }))
    }
}

/// The manifest that loading the log would begin with.
fn manifest_or_nothing(files: &Files, id: &str) -> Result<Option<Manifest>> {
    match read_manifest(files) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(LogError::Corrupt(_)) => Ok(manifest_of_nothing(&files.container, id)),
        Err(error) => Err(error),
    }
}
