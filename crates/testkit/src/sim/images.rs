//! What a power cut can leave of a disk.
//!
//! At one moment the images are all combinations of: which name operations survived (every subset while
//! they are few; else every prefix and every single drop), and for each file which of its pending
//! changes survived (every subset while they are few; else a seeded sample). From each combination one
//! surviving write at a time is torn. Each image is visited once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::content::{Content, digest_of, digest_pair};
use super::disk::SimDisk;
use super::operation::{Change, InodeId, Purpose};
use super::state::{FileNode, Inode, State, View};
use super::tear::{Fineness, Tear};
use crate::limits::{
    COMBINATIONS_MAX, FILE_SUBSETS_MAX, MASK_BITS, NAME_SUBSETS_MAX, SAMPLED_SUBSETS,
};
use crate::seeded::Seeded;

/// How images are made.
#[derive(Clone, Debug)]
pub struct ImageRules {
    seed: u64,
    fineness: Fineness,
    combinations_max: usize,
}

/// What an enumeration covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enumerated {
    /// Distinct images visited.
    pub images: usize,
    /// Whether something was too large to enumerate and was sampled instead.
    pub sampled: bool,
}

/// One disk that a power cut can leave.
#[derive(Debug)]
pub struct Image<'a> {
    ordinal: usize,
    digest: u64,
    frame: &'a Frame,
    picks: &'a [(InodeId, Arc<Content>)],
}

impl ImageRules {
    /// Tears at sectors; samples from a seed where there is too much.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, fineness: Fineness::Sectors, combinations_max: COMBINATIONS_MAX }
    }

    /// Tears at every byte: for short histories.
    #[must_use]
    pub const fn torn_at_every_byte(self) -> Self {
        Self { fineness: Fineness::EveryByte, ..self }
    }

    /// Every write survives whole or not at all.
    #[must_use]
    pub const fn untorn(self) -> Self {
        Self { fineness: Fineness::Whole, ..self }
    }

    /// Samples once there are more combinations than this.
    #[must_use]
    pub const fn combinations_max(self, combinations_max: usize) -> Self {
        Self { combinations_max, ..self }
    }
}

impl Image<'_> {
    /// Which image of its moment this is; the same in every run with the same rules.
    #[must_use]
    pub const fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Identifies this image by paths and bytes.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// The disk: everything on it is durable, nobody holds a lock.
    #[must_use]
    pub fn disk(&self) -> SimDisk {
        let mut state = self.frame.base.clone();
        for (id, content) in self.picks {
            state.set_content(*id, content);
        }
        SimDisk::of(state)
    }
}

/// The tree that one choice of name operations leaves, before the choice of contents.
#[derive(Debug)]
struct Frame {
    base: State,
    /// The sum of what paths with nothing pending add to the digest.
    digest: u64,
    /// Files whose content is in doubt.
    varied: Vec<Varied>,
}

#[derive(Debug)]
struct Varied {
    id: InodeId,
    path_digest: u64,
    wholes: Rc<Vec<Whole>>,
}

/// A file with some of its pending changes, and the same with one of them torn.
#[derive(Debug)]
struct Whole {
    content: Arc<Content>,
    torn: Vec<Arc<Content>>,
}

/// Which of a list of pending things survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    First(usize),
    AllBut(usize),
    Mask(u64),
}

impl Keep {
    const fn holds(self, index: usize) -> bool {
        match self {
            Self::First(count) => index < count,
            Self::AllBut(dropped) => index != dropped,
            Self::Mask(mask) => mask >> index & 1 == 1,
        }
    }

    fn subsets(count: usize) -> Vec<Self> {
        (0..1_u64 << count).map(Self::Mask).collect()
    }

    fn prefixes_and_drops(count: usize) -> Vec<Self> {
        let prefixes = (0..=count).map(Self::First);
        prefixes.chain((0..count).map(Self::AllBut)).collect()
    }
}

/// Visits every image of a state.
pub(crate) fn enumerate(
    state: &State,
    rules: &ImageRules,
    visit: impl FnMut(&Image<'_>),
) -> Enumerated {
    let mut run = Run {
        rules,
        seeded: Seeded::new(rules.seed),
        seen: HashSet::new(),
        counted: Enumerated::default(),
        visit,
    };
    let wholes = run.contents_in_doubt(state);
    let pending = state.names.len();
    let keeps = if pending <= NAME_SUBSETS_MAX {
        Keep::subsets(pending)
    } else {
        Keep::prefixes_and_drops(pending)
    };
    for keep in keeps {
        if let Some(frame) = Frame::new(state, keep, &wholes) {
            run.visit_frame(&frame);
        }
    }
    run.counted
}

struct Run<'r, V> {
    rules: &'r ImageRules,
    seeded: Seeded,
    seen: HashSet<u64>,
    counted: Enumerated,
    visit: V,
}

impl<V: FnMut(&Image<'_>)> Run<'_, V> {
    fn contents_in_doubt(&mut self, state: &State) -> HashMap<InodeId, Rc<Vec<Whole>>> {
        let mut wholes = HashMap::new();
        for id in 0..state.inodes.len() {
            let file = state.file(id).filter(|file| file.is_in_doubt());
            if let Some(file) = file {
                let keeps = self.keeps(file.pending.len());
                wholes.insert(id, Rc::new(wholes_of(file, &keeps, self.rules.fineness)));
            }
        }
        wholes
    }

    fn keeps(&mut self, pending: usize) -> Vec<Keep> {
        if pending <= FILE_SUBSETS_MAX {
            return Keep::subsets(pending);
        }
        self.counted.sampled = true;
        let mut keeps = Keep::prefixes_and_drops(pending);
        if pending < MASK_BITS {
            let masks = (0..SAMPLED_SUBSETS).map(|_| Keep::Mask(self.seeded.next_u64()));
            keeps.extend(masks);
        }
        keeps
    }

    fn visit_frame(&mut self, frame: &Frame) {
        let sizes = frame.varied.iter().map(|varied| varied.wholes.len());
        let combinations = sizes
            .clone()
            .try_fold(1_usize, usize::checked_mul)
            .filter(|count| *count <= self.rules.combinations_max);
        if let Some(count) = combinations {
            for number in 0..count {
                self.visit_combination(frame, &frame.combination(number));
            }
            return;
        }
        self.counted.sampled = true;
        let sizes: Vec<usize> = sizes.collect();
        self.visit_combination(frame, &vec![0; sizes.len()]);
        let all: Vec<usize> = sizes.iter().map(|size| size - 1).collect();
        self.visit_combination(frame, &all);
        for _ in 0..self.rules.combinations_max {
            let drawn: Vec<usize> = sizes.iter().map(|size| self.seeded.below(*size)).collect();
            self.visit_combination(frame, &drawn);
        }
    }

    fn visit_combination(&mut self, frame: &Frame, choice: &[usize]) {
        let chosen: Vec<(&Varied, &Whole)> = frame
            .varied
            .iter()
            .zip(choice)
            .filter_map(|(varied, index)| Some((varied, varied.wholes.get(*index)?)))
            .collect();
        let digest = chosen.iter().fold(frame.digest, |sum, (varied, whole)| {
            sum.wrapping_add(varied.digest_with(&whole.content))
        });
        self.visit_image(frame, digest, &chosen, None);
        for (varied, whole) in &chosen {
            let without = digest.wrapping_sub(varied.digest_with(&whole.content));
            for torn in &whole.torn {
                let digest = without.wrapping_add(varied.digest_with(torn));
                self.visit_image(frame, digest, &chosen, Some((varied.id, torn)));
            }
        }
    }

    fn visit_image(
        &mut self,
        frame: &Frame,
        digest: u64,
        chosen: &[(&Varied, &Whole)],
        torn: Option<(InodeId, &Arc<Content>)>,
    ) {
        if !self.seen.insert(digest) {
            return;
        }
        let picks: Vec<(InodeId, Arc<Content>)> = chosen
            .iter()
            .map(|(varied, whole)| match torn {
                Some((id, content)) if id == varied.id => (id, Arc::clone(content)),
                _ => (varied.id, Arc::clone(&whole.content)),
            })
            .collect();
        (self.visit)(&Image { ordinal: self.counted.images, digest, frame, picks: &picks });
        self.counted.images += 1;
    }
}

impl Frame {
    /// `None` where the choice would give one file two names, which no file system does.
    fn new(state: &State, keep: Keep, wholes: &HashMap<InodeId, Rc<Vec<Whole>>>) -> Option<Self> {
        let mut named = State { inodes: state.inodes.clone(), names: Vec::new() };
        for (index, change) in state.names.iter().enumerate() {
            if keep.holds(index) {
                named.apply_names(change, View::Platter);
            }
        }
        let mut reachable = HashMap::new();
        let mut is_tree = true;
        named.walk_tree(&mut |path, id| {
            is_tree &= reachable.insert(id, digest_of(path.as_str().as_bytes())).is_none();
            is_tree
        });
        is_tree.then(|| Self::of_tree(named, &reachable, wholes))
    }

    fn of_tree(
        mut named: State,
        reachable: &HashMap<InodeId, u64>,
        wholes: &HashMap<InodeId, Rc<Vec<Whole>>>,
    ) -> Self {
        let mut digest = 0_u64;
        let mut varied = Vec::new();
        for id in 0..named.inodes.len() {
            let Some(path_digest) = reachable.get(&id).copied() else {
                named.forget(id);
                continue;
            };
            named.settle_after_cut(id);
            if let Some(wholes) = wholes.get(&id) {
                varied.push(Varied { id, path_digest, wholes: Rc::clone(wholes) });
            } else {
                digest = digest.wrapping_add(named.digest_at(path_digest, id));
            }
        }
        Self { base: named, digest, varied }
    }

    /// The `number`-th combination of the varied files' contents.
    fn combination(&self, mut number: usize) -> Vec<usize> {
        let mut choice = Vec::with_capacity(self.varied.len());
        for varied in &self.varied {
            let size = varied.wholes.len().max(1);
            choice.push(number % size);
            number /= size;
        }
        choice
    }
}

impl Varied {
    fn digest_with(&self, content: &Content) -> u64 {
        digest_pair(self.path_digest, content.digest())
    }
}

impl FileNode {
    /// Whether a cut can leave more than one content. The text in a lock file does not count.
    fn is_in_doubt(&self) -> bool {
        self.purpose == Purpose::Data && !self.pending.is_empty()
    }
}

/// The distinct contents of a file by what survived, each with its torn forms.
fn wholes_of(file: &FileNode, keeps: &[Keep], fineness: Fineness) -> Vec<Whole> {
    let mut seen = HashSet::new();
    let mut wholes = Vec::new();
    for keep in keeps {
        let content = surviving(file, *keep, None);
        if !seen.insert(content.digest()) {
            continue;
        }
        let mut torn = Vec::new();
        for (index, pending) in file.pending.iter().enumerate() {
            if let (true, Change::Write { at, bytes }) = (keep.holds(index), &pending.change) {
                for tear in Tear::all(*at, bytes.len(), fineness) {
                    torn.push(Arc::new(surviving(file, *keep, Some((index, &tear)))));
                }
            }
        }
        wholes.push(Whole { content: Arc::new(content), torn });
    }
    wholes
}

fn surviving(file: &FileNode, keep: Keep, torn: Option<(usize, &Tear)>) -> Content {
    let mut content = Content::clone(&file.platter);
    for (index, pending) in file.pending.iter().enumerate() {
        if !keep.holds(index) {
            continue;
        }
        match (&pending.change, torn) {
            (Change::Write { at, bytes }, Some((which, tear))) if which == index => {
                tear.apply(&mut content, *at, bytes);
            }
            (change, _) => change.apply(&mut content),
        }
    }
    content
}

impl State {
    fn set_content(&mut self, id: InodeId, content: &Arc<Content>) {
        if let Some(slot) = self.inodes.get_mut(id) {
            let file = FileNode::settled(Arc::clone(content), Purpose::Data, 0);
            *slot = Some(Arc::new(Inode::File(file)));
        }
    }

    fn forget(&mut self, id: InodeId) {
        if let Some(slot) = self.inodes.get_mut(id) {
            *slot = None;
        }
    }

    /// As [`State::settle`]; a lock file gets half of its last text, whatever it was.
    fn settle_after_cut(&mut self, id: InodeId) {
        let words = match self.file(id) {
            Some(file) if file.purpose == Purpose::Lock => file.cache.bytes().to_vec(),
            Some(file) if file.pending.is_empty() && Arc::ptr_eq(&file.cache, &file.platter) => {
                return;
            }
            _ => return self.settle(id),
        };
        let half = words.get(..words.len() / 2).unwrap_or_default().to_vec();
        if let Some(slot) = self.inodes.get_mut(id) {
            let content = Arc::new(Content::new(half));
            *slot = Some(Arc::new(Inode::File(FileNode::settled(content, Purpose::Lock, 0))));
        }
    }

    /// Visits the platter's tree while `visit` says to go on.
    fn walk_tree(&self, visit: &mut dyn FnMut(&bough_platform::RelPath, InodeId) -> bool) {
        let mut go_on = true;
        self.walk(View::Platter, &mut |path, id| {
            go_on = go_on && visit(path, id);
        });
    }
}
