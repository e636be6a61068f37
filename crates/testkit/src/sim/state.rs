use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::Content;
use super::operation::{Change, InodeId, Operation, Place, Purpose, Step};

/// The folder that every path starts from.
pub(crate) const ROOT: InodeId = 0;

/// The names in a folder.
pub(crate) type Names = BTreeMap<Arc<str>, InodeId>;

/// A file: what reads see, what a power cut leaves, and the pending changes between the two.
#[derive(Clone, Debug)]
pub(crate) struct FileNode {
    pub(crate) cache: Arc<Content>,
    pub(crate) platter: Arc<Content>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) purpose: Purpose,
    pub(crate) modified_ms: i64,
}

/// A change that is not durable.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) change: Change,
    /// A sync of it failed: no later sync will write it to the platter.
    pub(crate) clean: bool,
}

/// A folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirNode {
    pub(crate) cache: Names,
    pub(crate) platter: Names,
    pub(crate) modified_ms: i64,
}

#[derive(Clone, Debug)]
pub(crate) enum Inode {
    File(FileNode),
    Dir(DirNode),
}

/// A name operation that is not durable: a removal, an addition, or both (a move).
#[derive(Clone, Debug)]
pub(crate) struct NameChange {
    pub(crate) inode: InodeId,
    pub(crate) from: Option<Place>,
    pub(crate) to: Option<Place>,
    is_synced: bool,
}

/// What an operation made durable, in order: for disks that mirror the platter elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) changes: Vec<Change>,
    pub(crate) names: Vec<NameChange>,
}

/// Everything on a simulated disk. A copy shares all contents until one of the two is written.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) inodes: Vec<Option<Arc<Inode>>>,
    pub(crate) names: Vec<NameChange>,
}

/// Which of the two sets of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Cache,
    Platter,
}

impl State {
    pub(crate) fn empty() -> Self {
        Self { inodes: vec![Some(Arc::new(Inode::Dir(DirNode::default())))], names: Vec::new() }
    }

    /// Applies one operation, which the caller has checked.
    pub(crate) fn apply(&mut self, step: &Step) -> Settled {
        match &step.operation {
            Operation::Create { to, purpose } => {
                let node = FileNode::empty(*purpose, step.time_ms);
                self.link(Inode::File(node), to);
            }
            Operation::CreateDir { to } => {
                let modified_ms = step.time_ms;
                let node = DirNode { modified_ms, ..DirNode::default() };
                self.link(Inode::Dir(node), to);
            }
            Operation::Change { inode, change } => {
                self.file_mut(*inode).change(change, step.time_ms);
            }
            Operation::Sync { inode } => {
                return Settled { changes: self.file_mut(*inode).sync(), names: Vec::new() };
            }
            Operation::SyncLost { inode } => self.file_mut(*inode).lose_pages(),
            Operation::Rename { from, to } => self.move_name(from, Some(to)),
            Operation::Remove { from } => self.move_name(from, None),
            Operation::SyncDir { inode } => {
                return Settled { changes: Vec::new(), names: self.sync_dir(*inode) };
            }
        }
        Settled::default()
    }

    pub(crate) fn inode(&self, id: InodeId) -> Option<&Inode> {
        self.inodes.get(id).and_then(Option::as_deref)
    }

    pub(crate) fn file(&self, id: InodeId) -> Option<&FileNode> {
        match self.inode(id) {
            Some(Inode::File(file)) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn dir(&self, id: InodeId) -> Option<&DirNode> {
        match self.inode(id) {
            Some(Inode::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    pub(crate) fn file_mut(&mut self, id: InodeId) -> &mut FileNode {
        match self.inode_mut(id) {
            Inode::File(file) => file,
            Inode::Dir(_) => unreachable!("inode {id} is a folder"),
        }
    }

    fn dir_mut(&mut self, id: InodeId) -> &mut DirNode {
        match self.inode_mut(id) {
            Inode::Dir(dir) => dir,
            Inode::File(_) => unreachable!("inode {id} is a file"),
        }
    }

    fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        match self.inodes.get_mut(id) {
            Some(Some(inode)) => Arc::make_mut(inode),
            _ => unreachable!("operations refer to inodes that exist"),
        }
    }

    fn link(&mut self, inode: Inode, to: &Place) {
        let id = self.inodes.len();
        self.inodes.push(Some(Arc::new(inode)));
        self.change_names(NameChange::new(id, None, Some(to.clone())));
    }

    fn move_name(&mut self, from: &Place, to: Option<&Place>) {
        let found = self.dir(from.folder).and_then(|dir| dir.cache.get(&from.name));
        if let Some(inode) = found.copied() {
            self.change_names(NameChange::new(inode, Some(from.clone()), to.cloned()));
        }
    }

    fn change_names(&mut self, change: NameChange) {
        self.apply_names(&change, View::Cache);
        self.names.push(change);
    }

    /// Applies a name change to the cache or the platter. A name that leads elsewhere by now is left alone.
    pub(crate) fn apply_names(&mut self, change: &NameChange, view: View) {
        if let Some(from) = &change.from {
            let names = self.dir_mut(from.folder).names_mut(view);
            if names.get(&from.name) == Some(&change.inode) {
                names.remove(&from.name);
            }
        }
        if let Some(to) = &change.to {
            let names = self.dir_mut(to.folder).names_mut(view);
            names.insert(Arc::clone(&to.name), change.inode);
        }
    }

    /// Makes durable what the sync of `folder` makes durable, and returns it in its order.
    fn sync_dir(&mut self, folder: InodeId) -> Vec<NameChange> {
        for change in &mut self.names {
            change.mark_synced(folder);
        }
        let mut settled_places: Vec<Place> = Vec::new();
        let mut is_settled = Vec::with_capacity(self.names.len());
        for change in self.names.iter().rev() {
            let settled =
                change.is_synced || change.places().any(|place| settled_places.contains(place));
            if settled {
                settled_places.extend(change.places().cloned());
            }
            is_settled.push(settled);
        }
        let mut settled = Vec::new();
        let mut waiting = Vec::new();
        for (change, done) in self.names.drain(..).zip(is_settled.into_iter().rev()) {
            if done {
                settled.push(change);
            } else {
                waiting.push(change);
            }
        }
        self.names = waiting;
        for change in &settled {
            self.apply_names(change, View::Platter);
        }
        settled
    }
}

impl FileNode {
    pub(crate) fn empty(purpose: Purpose, modified_ms: i64) -> Self {
        Self::settled(Arc::default(), purpose, modified_ms)
    }

    /// A file whose bytes are all durable.
    pub(crate) fn settled(content: Arc<Content>, purpose: Purpose, modified_ms: i64) -> Self {
        Self {
            cache: Arc::clone(&content),
            platter: content,
            pending: Vec::new(),
            purpose,
            modified_ms,
        }
    }

    fn change(&mut self, change: &Change, time_ms: i64) {
        change.apply(Arc::make_mut(&mut self.cache));
        self.modified_ms = time_ms;
        self.pending.push(Pending { change: change.clone(), clean: false });
    }

    fn sync(&mut self) -> Vec<Change> {
        let mut settled = Vec::new();
        for pending in self.pending.drain(..).filter(|pending| !pending.clean) {
            pending.change.apply(Arc::make_mut(&mut self.platter));
            settled.push(pending.change);
        }
        settled
    }

    fn lose_pages(&mut self) {
        for pending in &mut self.pending {
            pending.clean = true;
        }
    }
}

impl DirNode {
    pub(crate) const fn names(&self, view: View) -> &Names {
        match view {
            View::Cache => &self.cache,
            View::Platter => &self.platter,
        }
    }

    const fn names_mut(&mut self, view: View) -> &mut Names {
        match view {
            View::Cache => &mut self.cache,
            View::Platter => &mut self.platter,
        }
    }
}

impl NameChange {
    const fn new(inode: InodeId, from: Option<Place>, to: Option<Place>) -> Self {
        Self { inode, from, to, is_synced: false }
    }

    /// A name change is durable after a sync of the folder that the name went to; for a removal, of the folder that it
    /// left.
    fn mark_synced(&mut self, folder: InodeId) {
        let settling = self.to.as_ref().or(self.from.as_ref());
        self.is_synced |= settling.is_some_and(|place| place.folder == folder);
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.from.iter().chain(&self.to)
    }
}

impl Change {
    pub(crate) fn apply(&self, content: &mut Content) {
        match self {
            Self::Write { at, bytes } => content.put(*at, bytes),
            Self::SetLen(len) => content.set_len(*len),
        }
    }
}
