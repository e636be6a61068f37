use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_platform::{Access, Disk, File, OsDisk, RelPath};

use crate::pass_on;
use crate::sim::{Change, InodeId, NameChange, ROOT, SimDisk, SimFile, View};

/// The folder in which folders and files are built before a rename.
const WORKSHOP: &str = ".lossy";

/// A real directory whose unsynced writes and names stay in this process's memory, so that SIGKILL loses them as a
/// power cut would.
///
/// All calls go to a [`SimDisk`] in memory. What a sync makes durable there is then copied to the real directory
/// (without fsync: a killed process leaves the page cache in place). Every name arrives by one rename. Locks are held
/// in memory only, so one process at a time may use a directory in this way.
#[derive(Clone, Debug)]
pub struct LossyDisk {
    sim: SimDisk,
    mirror: Arc<Mutex<Mirror>>,
}

/// Which part of the simulated platter is in the real directory, and where.
#[derive(Debug)]
struct Mirror {
    os: OsDisk,
    paths: HashMap<InodeId, RelPath>,
    built: u64,
}

impl LossyDisk {
    /// Reads a whole real directory into memory; from then on only syncs change it.
    pub fn open(os: OsDisk) -> io::Result<Self> {
        let workshop = RelPath::root().join(WORKSHOP)?;
        if os.stat(&workshop)?.is_some() {
            (&os as &dyn Disk).remove_tree(&workshop)?;
        }
        let sim = SimDisk::new();
        load(&os, &sim, &RelPath::root())?;
        os.create_dir(&workshop)?;
        let mut paths = HashMap::new();
        sim.inner().state.walk(View::Platter, &mut |path, id| {
            paths.insert(id, path.clone());
        });
        let built = 0;
        let mirror = Mirror { os, paths, built };
        Ok(Self { sim, mirror: Arc::new(Mutex::new(mirror)) })
    }

    fn file(&self, path: &RelPath, access: Access, inode: InodeId) -> Box<dyn File> {
        Box::new(LossyFile {
            file: SimFile::new(&self.sim, inode, path, access),
            disk: self.clone(),
        })
    }

    fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(os: &OsDisk, sim: &SimDisk, folder: &RelPath) -> io::Result<()> {
    for listed in os.list(folder)? {
        let path = folder.join(&listed.name)?;
        if listed.is_dir {
            sim.plant_folder(&path)?;
            load(os, sim, &path)?;
        } else {
            let disk: &dyn Disk = os;
            sim.plant(&path, &disk.read_all(&path, u64::MAX)?)?;
        }
    }
    Ok(())
}

impl Disk for LossyDisk {
    pass_on! { sim: create_dir, rename, remove_file, remove_dir, list, stat, lock, lock_holder }

    fn create(&self, path: &RelPath) -> io::Result<Box<dyn File>> {
        drop(self.sim.create(path)?);
        let inode = self.sim.inner().state.find(path)?;
        Ok(self.file(path, Access::ReadWrite, inode))
    }

    fn open(&self, path: &RelPath, access: Access) -> io::Result<Box<dyn File>> {
        drop(self.sim.open(path, access)?);
        let inode = self.sim.inner().state.find(path)?;
        Ok(self.file(path, access, inode))
    }

    fn sync_dir(&self, path: &RelPath) -> io::Result<()> {
        let mut mirror = self.mirror();
        let settled = self.sim.sync_dir_settling(path)?;
        for change in &settled.names {
            mirror.follow(change, &self.sim)?;
        }
        Ok(())
    }
}

impl Mirror {
    /// Applies a name change of the platter to the real directory.
    fn follow(&mut self, change: &NameChange, sim: &SimDisk) -> io::Result<()> {
        let to = change.to.as_ref();
        let to = to.and_then(|to| Some((self.paths.get(&to.folder)?, &to.name)));
        let to = to.map(|(folder, name)| folder.join(name)).transpose()?;
        let from = self.paths.get(&change.inode).cloned();
        match (from, to) {
            (None, None) => Ok(()),
            (None, Some(to)) => self.materialise(change.inode, &to, sim),
            (Some(from), Some(to)) => self.move_to(&from, &to),
            (Some(from), None) => self.vanish(&from),
        }
    }

    fn move_to(&mut self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        // A folder that was moved in whole may have brought it along.
        if from == to {
            return Ok(());
        }
        self.os.rename(from, to)?;
        self.moved(from, to)
    }

    fn moved(&mut self, from: &RelPath, to: &RelPath) -> io::Result<()> {
        self.paths.retain(|_, path| path != to);
        for path in self.paths.values_mut().filter(|path| path.starts_with(from)) {
            let below = path.as_str().get(from.as_str().len()..).unwrap_or_default();
            *path = RelPath::parse(&format!("{to}{below}"))?;
        }
        Ok(())
    }

    fn vanish(&mut self, from: &RelPath) -> io::Result<()> {
        let away = self.bench()?;
        self.os.rename(from, &away)?;
        self.paths.retain(|_, path| !path.starts_with(from));
        if self.os.stat(&away)?.is_some_and(|stat| stat.is_dir) {
            (&self.os as &dyn Disk).remove_tree(&away)
        } else {
            self.os.remove_file(&away)
        }
    }

    /// Builds the platter's tree below an inode in the temporary folder, then renames it in.
    fn materialise(&mut self, inode: InodeId, to: &RelPath, sim: &SimDisk) -> io::Result<()> {
        let bench = self.bench()?;
        let mut tree = Vec::new();
        {
            let inner = sim.inner();
            inner.state.walk_from(&bench, inode, View::Platter, &mut |path, id| {
                let bytes = inner.state.file(id).map(|file| file.platter.bytes().to_vec());
                tree.push((path.clone(), id, bytes));
            });
        }
        for (path, id, bytes) in tree {
            match (self.paths.get(&id).cloned(), bytes) {
                (Some(elsewhere), _) => self.move_to(&elsewhere, &path)?,
                (None, None) => self.os.create_dir(&path)?,
                (None, Some(bytes)) => self.os.create(&path)?.write_at(0, &bytes)?,
            }
            self.paths.insert(id, path);
        }
        self.move_to(&bench, to)
    }

    fn bench(&mut self) -> io::Result<RelPath> {
        self.built += 1;
        let name = self.built.to_string();
        Ok(RelPath::root().join(WORKSHOP)?.join(&name)?)
    }

    /// Applies a sync of the platter to the real file.
    fn write(&self, inode: InodeId, changes: &[Change]) -> io::Result<()> {
        let Some(path) = self.paths.get(&inode).filter(|_| inode != ROOT) else {
            return Ok(());
        };
        let file = self.os.open(path, Access::ReadWrite)?;
        for change in changes {
            match change {
                Change::Write { at, bytes } => file.write_at(*at as u64, bytes)?,
                Change::SetLen(len) => file.set_len(*len as u64)?,
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct LossyFile {
    file: SimFile,
    disk: LossyDisk,
}

impl File for LossyFile {
    pass_on! { file: len, read_at, write_at, append, set_len }

    fn sync(&self) -> io::Result<()> {
        let mirror = self.disk.mirror();
        let settled = self.file.sync_settling()?;
        mirror.write(self.file.inode(), &settled.changes)
    }
}
