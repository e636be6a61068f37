//! The records of a V1 file by their places: what is kept in memory of a file that is served.
//!
//! A row says where the line of a record is; the record is made again from the line when it is asked for. Kept whole is
//! only what no line says alone: the session's own record, what this process wrote, the rows of a database. So a file
//! of half a gigabyte is served in a fifth of its size or less, and a page costs its own lines.

use std::collections::HashMap;
use std::sync::Arc;

use bough_platform::{Access, File};
use bough_session::{
    BranchHead, Entry, EntryId, Incarnation, NewRecord, Record, SessionId, SessionState,
};
use bough_store::{
    ChainHash, EntryQuery, Head, PathPage, PathQuery, PathStart, Position, RecordFilter,
    RecordPage, RecordQuery, Snapshot, Steps, StoreError, StoredEntry, StoredRecord,
};

use crate::v1::{Form, LinePlace, LineReader, LiveV1, Node, Taken};
use crate::v1_session::refused;

type Answer<T> = Result<T, StoreError>;

/// What is kept of a served file.
#[derive(Debug)]
pub(crate) struct V1Index {
    incarnation: Incarnation,
    state: SessionState,
    /// By the number of the record, from 1.
    rows: Vec<Row>,
    kept: Vec<NewRecord>,
    /// The number of the record that added each entry.
    numbers: Vec<u32>,
    /// Entries that this process wrote under other ids than the file gives them: lines of version 1 have none.
    given: HashMap<Node, EntryId>,
    by_given: HashMap<EntryId, Node>,
    /// The path that was last read.
    path: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    place: LinePlace,
    form: Form,
    at_ms: i64,
}

impl V1Index {
    pub(crate) fn new(session: &SessionId, incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            state: SessionState::new(session.clone()),
            rows: Vec::new(),
            kept: Vec::new(),
            numbers: Vec::new(),
            given: HashMap::new(),
            by_given: HashMap::new(),
            path: Vec::new(),
        }
    }

    /// Says whose records these are; the file says it in its first line.
    pub(crate) fn name(&mut self, session: &SessionId) {
        self.state.meta.session_id = session.clone();
    }

    /// Where the session ends. No two files are read under one incarnation, so that the number says enough.
    pub(crate) fn head(&self) -> Head {
        let chain = ChainHash::from_bytes([0; 32]);
        Head { incarnation: self.incarnation, seq: self.state.seq, chain }
    }

    pub(crate) fn position(&self) -> Position {
        Position::at(self.state.seq)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = Arc::new(self.state.clone());
        Snapshot { head: self.head(), position: self.position(), state }
    }

    /// Takes in the next record of the file.
    pub(crate) fn take(&mut self, taken: Taken) {
        let Taken { place, form, new } = taken;
        self.fold(&new);
        if form.is_kept() {
            return self.keep(form, new);
        }
        self.push(Row { place, form, at_ms: new.at_ms });
    }

    /// Takes in a record that this process wrote; `line` is what the file made of it, where it is a line.
    pub(crate) fn take_own(&mut self, new: NewRecord, line: Option<Taken>) {
        let form = line.as_ref().map_or(Form::Kept, |line| line.form.kept());
        let named = line.as_ref().and_then(|line| line.new.record.as_entry());
        if let (Some(named), Some(entry), Some(node)) = (named, new.record.as_entry(), form.node())
            && named.id != entry.id
        {
            self.given.insert(node, entry.id.clone());
            self.by_given.insert(entry.id.clone(), node);
        }
        self.fold(&new);
        self.keep(form, new);
    }

    fn fold(&mut self, new: &NewRecord) {
        self.state.apply(&new.record, self.state.seq + 1, new.at_ms);
    }

    fn keep(&mut self, form: Form, new: NewRecord) {
        let place = LinePlace { at: self.kept.len() as u64, ..LinePlace::default() };
        let at_ms = new.at_ms;
        self.kept.push(new);
        self.push(Row { place, form, at_ms });
    }

    fn push(&mut self, row: Row) {
        self.rows.push(row);
        if row.form.node().is_some() {
            self.numbers.push(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        }
    }

    /// The entry of an id.
    pub(crate) fn node_of(&self, live: &LiveV1, id: &EntryId) -> Option<Node> {
        self.by_given.get(id).copied().or_else(|| live.linker().node_of(id.as_str()))
    }

    fn known(&self, live: &LiveV1, id: &EntryId) -> Answer<Node> {
        let missing = || StoreError::EntryNotFound { entry: id.clone() };
        self.node_of(live, id).ok_or_else(missing)
    }

    fn id_of(&self, live: &LiveV1, node: Node) -> Option<EntryId> {
        let in_file = || live.linker().name_of(node).map(EntryId::from_stored);
        self.given.get(&node).cloned().or_else(in_file)
    }

    fn row(&self, seq: u64) -> Option<&Row> {
        self.rows.get(usize::try_from(seq.checked_sub(1)?).ok()?)
    }

    fn number_of(&self, node: Node) -> Option<u64> {
        self.numbers.get(usize::try_from(node).ok()?).copied().map(u64::from)
    }

    /// Refuses a batch with an entry that is there already, before any of it is written.
    pub(crate) fn check(&self, live: &LiveV1, entries: &[Entry]) -> Answer<()> {
        for (at, entry) in entries.iter().enumerate() {
            let is_doubled = entries.iter().take(at).any(|before| before.id == entry.id);
            if is_doubled || self.node_of(live, &entry.id).is_some() {
                return Err(StoreError::invalid(format!("entry {} exists already", entry.id)));
            }
        }
        Ok(())
    }

    pub(crate) fn read_entry(
        &self,
        live: &LiveV1,
        query: &EntryQuery,
    ) -> Answer<Option<StoredEntry>> {
        let is_present = query.incarnation.is_none_or(|asked| asked == self.incarnation);
        let Some(node) = self.node_of(live, &query.id).filter(|_| is_present) else {
            return Ok(None);
        };
        let file = Bodies::open(live)?;
        let found = self.entry(live, &mut file.reader(), node)?;
        Ok(Some(found).filter(|found| query.revision.is_none_or(|at| at == found.entry.revision)))
    }

    pub(crate) fn records(&self, live: &LiveV1, query: &RecordQuery) -> Answer<RecordPage> {
        if query.incarnation.is_some_and(|asked| asked != self.incarnation) {
            return Err(StoreError::NotFound { session: self.state.meta.session_id.clone() });
        }
        let after = query.after.seq.saturating_add(1);
        let numbers: Box<dyn Iterator<Item = u64> + '_> = match &query.filter {
            RecordFilter::All => Box::new(after..=self.state.seq),
            RecordFilter::WithoutEntries { up_to } => Box::new(after..=self.state.seq.min(*up_to)),
            RecordFilter::Numbers(numbers) => Box::new(numbers.iter().copied()),
        };
        let takes_entries = !matches!(query.filter, RecordFilter::WithoutEntries { .. });
        let wants = |row: &Row| takes_entries || row.form.node().is_none();
        let mut wanted = numbers.filter(|seq| self.row(*seq).is_some_and(wants));
        let file = Bodies::open(live)?;
        let mut lines = file.reader();
        let mut records = Vec::new();
        for seq in wanted.by_ref().take(query.limit.max(1)) {
            let NewRecord { at_ms, record } = self.record(live, &mut lines, seq)?;
            records.push(StoredRecord { seq, steps: Steps::None, at_ms, record });
        }
        let (incarnation, end) = (self.incarnation, self.position());
        Ok(RecordPage { incarnation, records, end, more: wanted.next().is_some() })
    }

    pub(crate) fn path(&mut self, live: &LiveV1, query: &PathQuery) -> Answer<PathPage> {
        let Some(leaf) = query.leaf.as_ref().or(self.state.leaf.as_ref()).cloned() else {
            return Ok(PathPage { entries: Vec::new(), more: false, leaf: None });
        };
        let node = self.known(live, &leaf)?;
        self.walk(live, node);
        let place_of = |entry: &EntryId| {
            let node = self.node_of(live, entry);
            // Parents come first, so that a path from its root is in order.
            let found = node.and_then(|node| self.path.binary_search(&node).ok());
            found.ok_or_else(|| StoreError::NotOnPath { entry: entry.clone() })
        };
        let part = match &query.start {
            PathStart::Root | PathStart::Leaf => self.path.get(..),
            PathStart::After(entry) => self.path.get(place_of(entry)? + 1..),
            PathStart::Before(entry) => self.path.get(..place_of(entry)?),
        };
        let part = part.unwrap_or_default();
        let more = part.len() > query.limit;
        let file = Bodies::open(live)?;
        let mut lines = file.reader();
        let mut read = |node: &Node| self.entry(live, &mut lines, *node);
        let entries = match &query.start {
            PathStart::Root | PathStart::After(_) => {
                part.iter().take(query.limit).map(&mut read).collect::<Answer<_>>()?
            }
            PathStart::Leaf | PathStart::Before(_) => {
                part.iter().rev().take(query.limit).map(&mut read).collect::<Answer<_>>()?
            }
        };
        Ok(PathPage { more, entries, leaf: Some(leaf) })
    }

    /// Makes the kept path the one to a leaf, from its root. Pages of one path, and a leaf that moves on, do not walk it
    /// again.
    fn walk(&mut self, live: &LiveV1, leaf: Node) {
        if self.path.last() == Some(&leaf) {
            return;
        }
        let parent = live.linker().parent(leaf);
        if parent.is_some() && self.path.last().copied() == parent {
            return self.path.push(leaf);
        }
        self.path.clear();
        let mut next = Some(leaf);
        while let Some(node) = next {
            self.path.push(node);
            next = live.linker().parent(node);
        }
        self.path.reverse();
    }

    /// The ends of all branches, the newest first.
    pub(crate) fn branch_heads(
        &self,
        live: &LiveV1,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Answer<Vec<BranchHead>> {
        let before = before.map(|id| self.known(live, id)).transpose()?;
        let tree = Tree::of(live, self.numbers.len());
        let mut heads = Vec::new();
        for node in tree.ends().rev().filter(|node| before.is_none_or(|before| *node < before)) {
            if heads.len() == limit {
                break;
            }
            let row = self.number_of(node).and_then(|seq| self.row(seq));
            if let (Some(entry_id), Some(row)) = (self.id_of(live, node), row) {
                heads.push(BranchHead { entry_id, depth: tree.depth(node), last_at: row.at_ms });
            }
        }
        Ok(heads)
    }

    fn entry(&self, live: &LiveV1, lines: &mut LineReader<'_>, node: Node) -> Answer<StoredEntry> {
        let seq = self.number_of(node).unwrap_or_default();
        match self.record(live, lines, seq)?.record {
            Record::Entry(entry) => Ok(StoredEntry { seq, entry }),
            _ => Err(changed(live)),
        }
    }

    fn record(&self, live: &LiveV1, lines: &mut LineReader<'_>, seq: u64) -> Answer<NewRecord> {
        let row = self.row(seq).ok_or_else(|| changed(live))?;
        if row.form.is_kept() {
            let kept = usize::try_from(row.place.at).ok().and_then(|at| self.kept.get(at));
            return kept.cloned().ok_or_else(|| changed(live));
        }
        let again = live.record_again(lines, &row.place, row.form, row.at_ms).map_err(refused)?;
        let mut again = again.ok_or_else(|| changed(live))?;
        self.give_ids(live, row.form, &mut again);
        Ok(again)
    }

    /// Puts the id in the place of a parent's under which this process wrote it.
    fn give_ids(&self, live: &LiveV1, form: Form, new: &mut NewRecord) {
        let parent = form.node().and_then(|node| live.linker().parent(node));
        let given = parent.and_then(|parent| self.given.get(&parent));
        if let (Some(given), Record::Entry(entry)) = (given, &mut new.record) {
            entry.parent_id = Some(given.clone());
        }
    }
}

fn changed(live: &LiveV1) -> StoreError {
    StoreError::Unavailable {
        reason: format!(
            "{} was changed by another program while it was read; try again",
            live.file().address()
        ),
    }
}

/// The file that the records of a page are read from; a database has nothing left in it to read.
struct Bodies(Option<Box<dyn File>>);

impl Bodies {
    fn open(live: &LiveV1) -> Answer<Self> {
        if live.is_database() {
            return Ok(Self(None));
        }
        Ok(Self(Some(live.file().open(Access::Read).map_err(refused)?)))
    }

    fn reader(&self) -> LineReader<'_> {
        LineReader::new(self.0.as_deref())
    }
}

/// Depths and ends of a file's tree. A parent comes before its children, so that one pass is enough.
struct Tree {
    depths: Vec<u32>,
    is_followed: Vec<bool>,
}

impl Tree {
    fn of(live: &LiveV1, count: usize) -> Self {
        let mut tree = Self { depths: Vec::with_capacity(count), is_followed: vec![false; count] };
        for node in (0..).take(count) {
            let parent = live.linker().parent(node).and_then(|parent| usize::try_from(parent).ok());
            let before = parent.and_then(|parent| tree.depths.get(parent)).copied();
            tree.depths.push(before.unwrap_or_default() + 1);
            if let Some(followed) = parent.and_then(|parent| tree.is_followed.get_mut(parent)) {
                *followed = true;
            }
        }
        tree
    }

    /// Entries that no other follows, in the order of the file.
    fn ends(&self) -> impl DoubleEndedIterator<Item = Node> + '_ {
        let all = self.is_followed.iter().enumerate();
        all.filter(|(_, followed)| !**followed).filter_map(|(at, _)| Node::try_from(at).ok())
    }

    fn depth(&self, node: Node) -> u64 {
        let depth = usize::try_from(node).ok().and_then(|at| self.depths.get(at));
        depth.copied().unwrap_or_default().into()
    }
}
