//! Transcripts of sessions with many branches.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::*;
use async_trait::async_trait;
use bough_migrate::{ExportFormat, ExportOptions, export};
use bough_session::{BranchHead, EntryId, MetaChange, NewRecord, Record, SessionId};
use bough_store::{
    EntryQuery, Head, Loaded, MemoryStore, PathPage, PathQuery, ReadStore, RecordPage, RecordQuery,
    StoreError, StoredEntry,
};

/// Counts the entries of paths that are read.
struct Counted {
    store: MemoryStore,
    entries: AtomicUsize,
}

#[async_trait]
impl ReadStore for Counted {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        self.store.load(session, known).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        self.store.read_entry(session, query).await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        self.store.read_records(session, query).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        let page = self.store.path(session, query).await?;
        self.entries.fetch_add(page.entries.len(), Ordering::SeqCst);
        Ok(page)
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        self.store.branch_heads(session, before, limit).await
    }
}

/// A row of entries, of which every one after so many others has a short branch.
fn branched(entries: usize, every: usize) -> Vec<NewRecord> {
    let mut records = vec![Record::Meta(MetaChange::default())];
    let mut above: Option<String> = None;
    for number in 0..entries {
        let id = format!("e{number}");
        let mut add = |id: &str, parent: Option<&str>, text: String| {
            records.push(Record::Entry(native_entry(id, parent, &text, 5)));
        };
        add(&id, above.as_deref(), format!("text {number}"));
        if number % every == 0 {
            add(&format!("side{number}"), Some(&id), format!("aside {number}"));
        }
        above = Some(id);
    }
    records.push(Record::Leaf(above.map(EntryId::from_stored)));
    records.into_iter().map(|record| record.at(5)).collect()
}

#[tokio::test]
async fn what_branches_share_is_not_read_for_each_of_them() {
    let (entries, every) = (6_000, 100);
    let branches = entries / every;
    let store = memory("s", branched(entries, every)).await;
    let store = Counted { store, entries: AtomicUsize::new(0) };
    let options = ExportOptions::whole(ExportFormat::Md);
    let mut out = Vec::new();
    let written = export(&store, &SessionId::from_stored("s"), &options, &mut out).await.unwrap();
    assert_eq!(written.entries, (entries + branches) as u64);
    let text = String::from_utf8(out).unwrap();
    for number in [0, 100, 3_000, 5_900] {
        let branch = format!("# Another branch, to side{number}\n\nFrom e{number} on:\n");
        assert_eq!(text.matches(&branch).count(), 1, "{number}");
        assert_eq!(text.matches(&format!("\naside {number}\n")).count(), 1, "{number}");
        assert_eq!(text.matches(&format!("\ntext {number}\n")).count(), 1, "{number}");
    }
    // Each branch costs the page that finds where it begins, and its own entries.
    let read = store.entries.load(Ordering::SeqCst);
    assert!(read < entries + branches * 510, "{read} entries were read");
}
