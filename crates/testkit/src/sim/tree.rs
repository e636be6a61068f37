//! Paths to inodes, and the tree as a whole.

use std::io;
use std::sync::Arc;

use bough_platform::RelPath;

use super::content::{Content, digest_of, digest_pair};
use super::operation::{InodeId, Place, Purpose};
use super::state::{DirNode, FileNode, Inode, ROOT, State, View};

impl State {
    /// The inode of a path.
    pub(crate) fn find(&self, path: &RelPath) -> io::Result<InodeId> {
        let names = path.as_str().split('/').filter(|name| !name.is_empty());
        let mut at = ROOT;
        for name in names {
            let dir = self.dir(at).ok_or(io::ErrorKind::NotADirectory)?;
            at = *dir.cache.get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    /// The folder and name of a path, whose folder must exist.
    pub(crate) fn place(&self, path: &RelPath) -> io::Result<Place> {
        if path.as_str().is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let folder = self.find(&path.parent())?;
        if self.dir(folder).is_none() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let name = path.file_name().into();
        Ok(Place { folder, name })
    }

    /// The place of a path that must lead to nothing yet.
    pub(crate) fn free_place(&self, path: &RelPath) -> io::Result<Place> {
        let place = self.place(path)?;
        let taken = self.dir(place.folder).is_some_and(|dir| dir.cache.contains_key(&place.name));
        if taken {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(place)
    }

    /// Whether a rename has something to do; an error where it is not allowed.
    pub(crate) fn may_move(&self, from: &RelPath, to: &RelPath) -> io::Result<bool> {
        let moved = self.find(from)?;
        if to.starts_with(from) && to != from {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let there = match self.find(to) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        if there == moved {
            return Ok(false);
        }
        match (self.dir(moved).is_some(), self.dir(there).is_some()) {
            (false, false) => Ok(true),
            (false, true) => Err(io::ErrorKind::IsADirectory.into()),
            (true, false) => Err(io::ErrorKind::NotADirectory.into()),
            (true, true) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
        }
    }

    /// Visits every path, folders before what is in them, in order.
    pub(crate) fn walk(&self, view: View, visit: &mut dyn FnMut(&RelPath, InodeId)) {
        self.walk_from(&RelPath::root(), ROOT, view, visit);
    }

    /// Visits a path, what it leads to, and everything below.
    pub(crate) fn walk_from(
        &self,
        path: &RelPath,
        id: InodeId,
        view: View,
        visit: &mut dyn FnMut(&RelPath, InodeId),
    ) {
        visit(path, id);
        let Some(dir) = self.dir(id) else { return };
        for (name, child) in dir.names(view) {
            if let Ok(path) = path.join(name) {
                self.walk_from(&path, *child, view, visit);
            }
        }
    }

    /// A digest of paths and bytes as reads see them; independent of how inodes are numbered.
    pub(crate) fn digest(&self) -> u64 {
        let mut sum = 0_u64;
        self.walk(View::Cache, &mut |path, id| {
            sum = sum.wrapping_add(self.digest_at(digest_of(path.as_str().as_bytes()), id));
        });
        sum
    }

    /// The same without lock files: readers create and remove them.
    pub(crate) fn digest_without_locks(&self) -> u64 {
        let mut sum = 0_u64;
        self.walk(View::Cache, &mut |path, id| {
            if self.file(id).is_none_or(|file| file.purpose == Purpose::Data) {
                sum = sum.wrapping_add(self.digest_at(digest_of(path.as_str().as_bytes()), id));
            }
        });
        sum
    }

    /// What one path adds to the digest.
    pub(crate) fn digest_at(&self, path_digest: u64, id: InodeId) -> u64 {
        match self.inode(id) {
            Some(Inode::File(file)) if file.purpose == Purpose::Data => {
                digest_pair(path_digest, file.cache.digest())
            }
            _ => digest_pair(path_digest, 0),
        }
    }

    /// Makes cache and platter of one inode the platter, with nothing pending.
    pub(crate) fn settle(&mut self, id: InodeId) {
        let settled = match self.inode(id) {
            None => return,
            Some(Inode::File(file)) => {
                let content = Arc::clone(&file.platter);
                Inode::File(FileNode::settled(content, file.purpose, file.modified_ms))
            }
            Some(Inode::Dir(dir)) => Inode::Dir(DirNode {
                cache: dir.platter.clone(),
                platter: dir.platter.clone(),
                modified_ms: dir.modified_ms,
            }),
        };
        if let Some(slot) = self.inodes.get_mut(id) {
            *slot = Some(Arc::new(settled));
        }
    }

    /// Puts a file there, durable at once.
    pub(crate) fn plant(&mut self, path: &RelPath, bytes: &[u8]) -> io::Result<()> {
        let folder = self.plant_folder(&path.parent())?;
        let content = Arc::new(Content::new(bytes.to_vec()));
        let purpose = Purpose::Data;
        let id = match self.find(path) {
            Ok(id) => id,
            Err(_) => self.plant_inode(folder, path.file_name(), None)?,
        };
        let slot = self.inodes.get_mut(id).ok_or(io::ErrorKind::NotFound)?;
        *slot = Some(Arc::new(Inode::File(FileNode::settled(content, purpose, 0))));
        Ok(())
    }

    /// Creates a folder with all its parents, durable at once, if it is missing.
    pub(crate) fn plant_folder(&mut self, path: &RelPath) -> io::Result<InodeId> {
        if let Ok(found) = self.find(path) {
            return Ok(found);
        }
        let parent = self.plant_folder(&path.parent())?;
        let dir = Inode::Dir(DirNode::default());
        self.plant_inode(parent, path.file_name(), Some(Arc::new(dir)))
    }

    fn plant_inode(
        &mut self,
        folder: InodeId,
        name: &str,
        inode: Option<Arc<Inode>>,
    ) -> io::Result<InodeId> {
        let id = self.inodes.len();
        self.inodes.push(inode);
        self.edit_folder(folder, |dir| {
            dir.cache.insert(name.into(), id);
            dir.platter.insert(name.into(), id);
        })?;
        Ok(id)
    }

    /// Removes a name, durably.
    pub(crate) fn uproot(&mut self, path: &RelPath) -> io::Result<()> {
        let place = self.place(path)?;
        self.find(path)?;
        self.edit_folder(place.folder, |dir| {
            dir.cache.remove(&place.name);
            dir.platter.remove(&place.name);
        })
    }

    fn edit_folder(&mut self, folder: InodeId, edit: impl FnOnce(&mut DirNode)) -> io::Result<()> {
        match self.inodes.get_mut(folder).and_then(Option::as_mut) {
            Some(inode) => match Arc::make_mut(inode) {
                Inode::Dir(dir) => {
                    edit(dir);
                    Ok(())
                }
                Inode::File(_) => Err(io::ErrorKind::NotADirectory.into()),
            },
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
