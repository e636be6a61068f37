//! `migrations/ledger.jsonl`: the migrations of a log, and what opening it repaired.

use bough_platform::{Access, Disk, if_there};

use crate::container::Container;
use crate::error::Result;
use crate::format::LedgerEvent;
use crate::limits;

/// A ledger as it is on the disk.
pub(crate) struct Ledger<'a> {
    disk: &'a dyn Disk,
    container: Container,
    pub(crate) events: Vec<LedgerEvent>,
    /// Where the lines begin that are not events.
    pub(crate) unreadable: Vec<u64>,
    /// The bytes up to the end of the last event.
    good: Vec<u8>,
    /// Bytes of the file.
    pub(crate) len: u64,
}

impl<'a> Ledger<'a> {
    pub(crate) fn read(disk: &'a dyn Disk, container: &Container) -> Result<Self> {
        let container = container.clone();
        let found = if_there(disk.read_all(&container.ledger()?, limits::LEDGER_BYTES_MAX))?;
        // A ledger begins with its first event, so an empty file has lost it.
        let is_emptied = found.as_ref().is_some_and(Vec::is_empty);
        let unreadable = if is_emptied { vec![0] } else { Vec::new() };
        let mut good = found.unwrap_or_default();
        let len = good.len() as u64;
        let mut ledger =
            Self { disk, container, events: Vec::new(), unreadable, good: Vec::new(), len };
        let (mut at, mut end) = (0, 0);
        for line in good.split_inclusive(|byte| *byte == b'\n') {
            let start = at;
            at += line.len();
            match LedgerEvent::decode(line.strip_suffix(b"\n").unwrap_or(line)) {
                Some(event) => {
                    ledger.events.push(event);
                    end = at;
                }
                None => ledger.unreadable.push(start as u64),
            }
        }
        good.truncate(end);
        Ok(Self { good, ..ledger })
    }

    /// Bytes after the last event: a crash has torn what was being written.
    pub(crate) fn torn_bytes(&self) -> u64 {
        self.len - self.good.len() as u64
    }

    pub(crate) fn cut_torn_bytes(&self) -> Result<u64> {
        if self.torn_bytes() > 0 {
            let file = self.disk.open(&self.container.ledger()?, Access::ReadWrite)?;
            file.set_len(self.good.len() as u64)?;
            file.sync()?;
        }
        Ok(self.torn_bytes())
    }

    /// Adds an event, in the place of torn bytes; durable when it returns. The file is small and is replaced as a whole,
    /// so that a crash tears no line.
    pub(crate) fn append(&self, event: &LedgerEvent) -> Result<()> {
        let mut bytes = self.good.clone();
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend(event.encode()?);
        let dir = self.container.migrations()?;
        self.disk.ensure_dir(&dir)?;
        self.disk.sync_dir(&self.container.dir)?;
        let temp = dir.join("ledger.jsonl.tmp")?;
        Ok(self.disk.replace(&self.container.ledger()?, &temp, &bytes)?)
    }
}
