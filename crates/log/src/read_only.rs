//! Loading a log that this process does not write, while others may come, write and go.

use std::sync::Arc;

use bough_record::Fold;

use crate::container::{Container, not_found};
use crate::error::{LogError, Result};
use crate::load::{Horizon, Loaded, Trust, load, read_manifest};
use crate::open::check_native;
use crate::rebuild::{is_manifest_damage, is_whole_without_manifest, manifest_of_nothing};
use crate::store::LogStore;

impl<F: Fold> LogStore<F> {
    /// The container of a log; `NotFound` when there is none.
    pub(crate) fn existing(&self, id: &str) -> Result<Container> {
        self.locate(id)?.ok_or_else(|| not_found(id))
    }

    /// Loads a log for reading. While another process writes it, only what its offset rows know is shown.
    pub(crate) fn load_read_only(&self, id: &str) -> Result<Arc<Loaded<F>>> {
        /// A writer may come, go, or replace checkpoints and tables while we look; then we look again.
        const TRIES: u32 = 8;
        let mut last = Err(not_found(id));
        for _ in 0..TRIES {
            let container = self.existing(id)?;
            let disk = &self.inner.platform.disk;
            let holder = disk.lock_holder(&container.lock()?)?;
            let live = holder.is_some();
            if !live
                && let Some(kept) = self.inner.rebuilt.find(&self.files(container.clone()), id)?
            {
                return Ok(kept);
            }
            let horizon = if live { Horizon::Rows } else { Horizon::WholeTail };
            last = self.load_once(id, container.clone(), horizon).and_then(|loaded| {
                container.check_incarnation(&loaded.manifest)?;
                Ok(Arc::new(loaded))
            });
            let same_writer = disk.lock_holder(&container.lock()?)? == holder;
            let of_one_moment = match &last {
                Ok(loaded) if loaded.damage.is_none() => !(live && is_replaced(loaded)),
                // A container that was moved away meanwhile looks like one that has lost everything.
                Ok(_) => disk.stat(&container.dir)?.is_some(),
                Err(error) => !(live && may_be_a_race(error)),
            };
            if same_writer && of_one_moment {
                return last;
            }
        }
        last
    }

    pub(crate) fn load_once(
        &self,
        id: &str,
        container: Container,
        horizon: Horizon,
    ) -> Result<Loaded<F>> {
        let files = self.files(container.clone());
        match read_manifest(&files) {
            Ok(manifest) => {
                check_native(&manifest)?;
                load(files, manifest, Trust::Checkpoint, horizon)
            }
            Err(LogError::Corrupt(damage)) => {
                let Some(nothing) = manifest_of_nothing(&container, id) else {
                    return Err(damage.into());
                };
                let mut loaded = load(files, nothing, Trust::Segments, horizon)?;
                let error = damage.clone().into();
                if !is_manifest_damage(&error) || !is_whole_without_manifest(&loaded)? {
                    loaded.damage = Some(damage);
                }
                Ok(loaded)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether the manifest is another by now. A tiny log that is closed loses its rows, which were the only ones that knew
/// what an older manifest does not.
fn is_replaced<F: Fold>(loaded: &Loaded<F>) -> bool {
    read_manifest(&loaded.files).is_ok_and(|manifest| manifest != loaded.manifest)
}

/// Whether an error may come from reading while another process replaces derived files.
fn may_be_a_race(error: &LogError) -> bool {
    match error {
        LogError::Corrupt(_) => true,
        LogError::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}
