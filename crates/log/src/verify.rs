//! Checking everything: every byte of every file of a log against every invariant. Reads only.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use bough_platform::RelPath;

use crate::container::{Container, TRASH, parse_container_name};
use crate::error::{Damage, DamageKind, LogError, Result};
use crate::files::Files;
use crate::format::{
    BranchHeads, Checkpoint, Manifest, OffsetRow, PAGE_BYTES, ROW_BYTES, decode_page, hash_id,
};
use crate::ids::table_damage;
use crate::ledger::Ledger;
use crate::limits;
use crate::load::{Horizon, Loaded, Trust, load, read_checkpoint, read_manifest, segment_numbers};
use crate::rebuild::manifest_of_nothing;
use crate::store::LogStore;
use bough_record::{Fold, Incarnation};

/// What checking one log found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct VerifyReport {
    /// The log's id, where its manifest can be read.
    pub id: String,
    /// Its incarnation.
    pub incarnation: Option<Incarnation>,
    /// Records that verify, from the first on.
    pub records: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that an earlier crash left behind after the end of a batch; they belong to nothing.
    pub abandoned_bytes: u64,
    /// Everything that contradicts what was durable, or that would have to be made again.
    pub damage: Vec<Damage>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.damage.is_empty()
    }

    /// Whether every record is there and only what can be made again from them is damaged.
    #[must_use]
    pub fn lost_nothing(&self) -> bool {
        self.damage.iter().all(|damage| damage.kind.is_derived())
    }
}

impl<F: Fold> LogStore<F> {
    /// Checks one live log.
    pub fn verify(&self, id: &str) -> Result<VerifyReport> {
        let container = self.locate(id)?.ok_or_else(|| crate::container::not_found(id))?;
        self.verify_container(container, Some(id))
    }

    /// Checks every log, live and in the trash; `visit` is called with each and says whether to go on.
    pub fn verify_all(&self, visit: &mut dyn FnMut(VerifyReport) -> ControlFlow<()>) -> Result<()> {
        for folder in std::iter::once(RelPath::parse(TRASH)?).chain(self.shards()?) {
            for listed in self.inner.platform.disk.list_if_there(&folder)? {
                let container = Container { dir: folder.join(&listed.name)? };
                let report = if listed.is_dir {
                    self.verify_settled(&container)?
                } else {
                    let is_ours = parse_container_name(&listed.name).is_some();
                    let damage = vec![container.no_folder()];
                    is_ours.then(|| VerifyReport { damage, ..nothing_found("") })
                };
                if report.is_some_and(|report| visit(report).is_break()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Checks the log in a folder, which others may open, close, delete or purge meanwhile: what looks like damage then is
    /// looked at again. `None` when the folder has gone.
    fn verify_settled(&self, container: &Container) -> Result<Option<VerifyReport>> {
        /// Damage is still there at the next look; what another process was just doing is not.
        const TRIES: u32 = 8;
        let disk = &self.inner.platform.disk;
        let mut tries = 0;
        loop {
            tries += 1;
            let holder = disk.lock_holder(&container.lock()?)?;
            let report = self.verify_container(container.clone(), None);
            if report.as_ref().is_ok_and(VerifyReport::is_well) {
                return report.map(Some);
            }
            if disk.stat(&container.dir)?.is_none() {
                return Ok(None);
            }
            let is_quiet = holder.is_none() && disk.lock_holder(&container.lock()?)?.is_none();
            if is_quiet && tries > 1 || tries == TRIES {
                return report.map(Some);
            }
        }
    }

    fn verify_container(&self, container: Container, id: Option<&str>) -> Result<VerifyReport> {
        let live = self.inner.platform.disk.lock_holder(&container.lock()?)?.is_some();
        let horizon = if live { Horizon::Rows } else { Horizon::WholeTail };
        let files = self.files(container.clone());
        let mut report = nothing_found(id.unwrap_or_default());
        let manifest = match read_manifest(&files) {
            Ok(manifest) => manifest,
            Err(LogError::Corrupt(damage)) => {
                report.damage.push(damage);
                match manifest_of_nothing(&container, id.unwrap_or_default()) {
                    Some(manifest) if id.is_some() => manifest,
                    _ => return Ok(report),
                }
            }
            Err(error) => return Err(error),
        };
        report.id.clone_from(&manifest.session_id);
        report.incarnation = Some(manifest.incarnation);
        if let Err(LogError::Corrupt(damage)) = container.check_incarnation(&manifest) {
            report.damage.push(damage);
        }
        match load::<()>(files, manifest, Trust::Segments, horizon) {
            Ok(loaded) => Check { loaded, report: &mut report, live }.run()?,
            Err(LogError::Corrupt(damage)) => report.damage.push(damage),
            Err(error) => return Err(error),
        }
        Ok(report)
    }
}

fn nothing_found(id: &str) -> VerifyReport {
    VerifyReport {
        id: id.to_owned(),
        incarnation: None,
        records: 0,
        bytes: 0,
        abandoned_bytes: 0,
        damage: Vec::new(),
    }
}

struct Check<'a> {
    loaded: Loaded<()>,
    report: &'a mut VerifyReport,
    live: bool,
}

impl Check<'_> {
    fn run(mut self) -> Result<()> {
        self.report.records = self.loaded.state.head.seq;
        self.report.abandoned_bytes = self.loaded.report.torn_bytes;
        if let Some(damage) = self.loaded.damage.take() {
            self.report.damage.push(damage);
        }
        self.count_bytes()?;
        self.check_parents()?;
        if self.loaded.manifest.index_rows > 0 {
            self.check_rows()?;
        }
        self.check_manifest_head()?;
        self.check_checkpoint()?;
        self.check_ledger()
    }

    fn files(&self) -> &Files {
        &self.loaded.files
    }

    fn count_bytes(&mut self) -> Result<()> {
        for number in segment_numbers(self.files())? {
            let path = self.files().container.segment(number)?;
            self.report.bytes += self.files().disk.stat(&path)?.map_or(0, |stat| stat.len);
        }
        Ok(())
    }

    /// INV-001, and that no entry is there twice.
    fn check_parents(&mut self) -> Result<()> {
        let mut known = HashSet::new();
        let mut next = 1;
        while next <= self.loaded.state.head.seq {
            let rows = self.loaded.state.rows.range(next, 1024)?;
            next += rows.len() as u64;
            for row in rows.into_iter().filter(|row| !row.id.is_empty()) {
                if row.parent >= row.seq || !known.insert(row.id) {
                    let text = format!("entry {} is there twice or is its own parent", row.id);
                    let damage =
                        Damage::new(DamageKind::ParentUnknown, "segments", row.offset, text);
                    self.report.damage.push(damage.of(row.seq));
                }
            }
        }
        Ok(())
    }

    /// INV-003: every row that the manifest counts as synced agrees with the segments.
    fn check_rows(&mut self) -> Result<()> {
        let path = self.files().container.offsets()?;
        let Ok(file) = self.files().disk.open(&path, bough_platform::Access::Read) else {
            let text = "the index is not there";
            self.report.damage.push(crate::files::row_damage(1, text));
            return Ok(());
        };
        let rows = self.loaded.manifest.index_rows.min(self.loaded.state.head.seq);
        let mut bytes = [0; ROW_BYTES];
        let mut expected = Vec::with_capacity(ROW_BYTES);
        for seq in 1..=rows {
            let row = self.loaded.state.rows.get(seq)?;
            let read = file.read_at((seq - 1) * ROW_BYTES as u64, &mut bytes)?;
            self.report.bytes += read as u64;
            expected.clear();
            row.encode(&mut expected);
            // A writer may have noted a newer revision in the row than the durable head we see, or than damage lets us see.
            let may_be_newer = self.live || self.loaded.manifest.index_rows > rows;
            let same = bytes.get(..read) == Some(expected.as_slice())
                || may_be_newer && same_but_revision(&bytes, &row);
            if !same {
                let text = "the row is not what the segment says";
                self.report.damage.push(crate::files::row_damage(seq, text));
            }
        }
        Ok(())
    }

    /// The manifest's head must be on the chain: it was durable when the manifest was written.
    fn check_manifest_head(&mut self) -> Result<()> {
        let head = self.loaded.manifest.head;
        if head.seq == 0 || head.seq > self.loaded.state.head.seq {
            return Ok(());
        }
        let row = self.loaded.state.rows.get(head.seq)?;
        if self.files().frame(&row, |frame| frame.chain)? != head.chain {
            let text = "the manifest's head is not on the chain";
            let damage = Damage::new(DamageKind::ChainBroken, "manifest.json", 0, text);
            self.report.damage.push(damage.of(head.seq));
        }
        Ok(())
    }

    /// INV-004, INV-006, and the tables that the checkpoint names.
    fn check_checkpoint(&mut self) -> Result<()> {
        let manifest = self.loaded.manifest.clone();
        let inline = manifest.checkpoint.as_deref().cloned();
        let checkpoint = match (manifest.checkpoint_seq, inline) {
            (0, inline) => inline,
            (number, _) => {
                let read = read_checkpoint(self.files(), number)?;
                if read.is_none() && !self.live {
                    let file = checkpoint_file(&manifest);
                    let text = "the checkpoint that the manifest names cannot be read";
                    self.report.damage.push(Damage::new(DamageKind::Checkpoint, file, 0, text));
                }
                read
            }
        };
        let Some(checkpoint) = checkpoint else {
            return Ok(());
        };
        self.check_checkpoint_head(&manifest, &checkpoint);
        self.check_heads(&checkpoint)?;
        if self.live { Ok(()) } else { self.check_tables(&checkpoint) }
    }

    fn check_checkpoint_head(&mut self, manifest: &Manifest, checkpoint: &Checkpoint) {
        if checkpoint.head != manifest.head || checkpoint.position != manifest.position {
            let file = checkpoint_file(manifest);
            let text = "the checkpoint's head is not the manifest's";
            self.report.damage.push(Damage::new(DamageKind::CheckpointHead, file, 0, text));
        }
    }

    fn check_heads(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        // The leaf is a branch head, too, as a rule: it is looked for once.
        let mut wanted: BTreeMap<String, Option<u64>> = BTreeMap::new();
        wanted.extend(checkpoint.active_leaf.clone().map(|leaf| (leaf, None)));
        if let BranchHeads::All { heads } = &checkpoint.branch_heads {
            wanted.extend(heads.iter().map(|head| (head.entry_id.clone(), Some(head.seq))));
        }
        let (is_cut, reached) = (self.is_cut(checkpoint), self.loaded.state.head.seq);
        for (entry, seq) in wanted {
            if is_cut && seq.is_none_or(|seq| seq > reached) {
                continue;
            }
            let found = self.loaded.state.find(&entry)?;
            if found.is_none() || seq.is_some() && seq != found {
                let file = checkpoint_file(&self.loaded.manifest);
                let text = format!("branch head {entry:?} is not in the index");
                self.report.damage.push(Damage::new(DamageKind::BranchHead, file, 0, text));
            }
        }
        Ok(())
    }

    /// Whether damage in the segments, which is reported, keeps from comparing all that the checkpoint knows.
    fn is_cut(&self, checkpoint: &Checkpoint) -> bool {
        self.loaded.state.head.seq < checkpoint.head.seq
    }

    /// The id tables must hold exactly the entries up to where they end.
    fn check_tables(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let mut filed = BTreeSet::new();
        for table in &checkpoint.id_tables {
            let path = self.files().container.id_table(table.number)?;
            let limit = limits::RECORDS_MAX * 64;
            let bytes = self.files().disk.read_all(&path, limit).unwrap_or_default();
            self.report.bytes += bytes.len() as u64;
            let mut whole = bytes.len() as u64 == table.pages * PAGE_BYTES as u64;
            for page in bytes.chunks(PAGE_BYTES) {
                match decode_page(page) {
                    Some(rows) => filed.extend(rows),
                    None => whole = false,
                }
            }
            if !whole {
                let damage = table_damage(table.number, "the table cannot be read");
                self.report.damage.push(damage);
                return Ok(());
            }
        }
        if self.is_cut(checkpoint) {
            filed.retain(|(_, seq)| *seq <= self.loaded.state.head.seq);
        }
        let mut expected = BTreeSet::new();
        let end = checkpoint.id_tables_end.min(self.loaded.state.head.seq);
        let mut next = 1;
        while next <= end {
            let rows = self.loaded.state.rows.range(next, 1024.min(end - next + 1))?;
            next += rows.len() as u64;
            let entries = rows.iter().filter(|row| !row.id.is_empty());
            expected.extend(entries.map(|row| (hash_id(&row.id), row.seq)));
        }
        if filed != expected {
            let number = checkpoint.id_tables.first().map_or(0, |table| table.number);
            let text = "the tables do not hold the entries that the index has";
            self.report.damage.push(table_damage(number, text));
        }
        Ok(())
    }

    fn check_ledger(&mut self) -> Result<()> {
        let Files { disk, container, .. } = &self.loaded.files;
        let ledger = Ledger::read(&**disk, container)?;
        self.report.bytes += ledger.len;
        let damage = |at: &u64| {
            let text = "the line is not a ledger event";
            Damage::new(DamageKind::Ledger, "migrations/ledger.jsonl", *at, text)
        };
        self.report.damage.extend(ledger.unreadable.iter().map(damage));
        Ok(())
    }
}

fn same_but_revision(bytes: &[u8], row: &OffsetRow) -> bool {
    OffsetRow::decode(bytes)
        .is_some_and(|found| OffsetRow { revised: row.revised, ..found } == *row)
}

/// The file that holds the checkpoint; that of a small log is in its manifest.
fn checkpoint_file(manifest: &Manifest) -> String {
    match manifest.checkpoint_seq {
        0 => "manifest.json".to_owned(),
        number => format!("checkpoints/{number:016}.json"),
    }
}
