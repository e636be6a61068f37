use crate::bookkeeping::Compaction;
use crate::context::{Edits, compaction_of, item_of, items_of_compaction};
use crate::formats::context_edit_of;
use crate::{Canonical, ContextItem, Entry, EntryId};

/// What the newest part of a path says about the context of the whole: its compaction and its edits. With it, the items
/// of a context can be made one by one, so that the path need not be in memory.
///
/// The entries of the path are [added](Self::add) from the newest to the oldest, until [`begin`](Self::begin) is known or the path
/// ends. Then [`first_items`](Self::first_items), followed by the [`item`](Self::item) of each entry from `begin` to the leaf,
/// is what [`context_view`](crate::context_view) makes of the path.
#[derive(Clone, Debug, Default)]
pub struct ContextOutline {
    compaction: Option<(Entry, Compaction)>,
    edits: Edits,
    /// Whether the first entry that the compaction keeps was found.
    found_first_kept: bool,
    /// Tokens from the compaction on, or of everything without one.
    tokens: usize,
    /// Tokens of what was added after the compaction. They count once the first kept entry is found.
    tokens_before_compaction: usize,
}

impl ContextOutline {
    /// Adds the next older entry; returns its item, which counts if the context reaches back that far.
    pub fn add(&mut self, entry: &Entry) -> Option<ContextItem> {
        let canonical = entry.canonical();
        if let Canonical::Custom(custom) = &canonical
            && let Some((edited, content)) = context_edit_of(custom)
        {
            // The newest edit of a message counts, and it was added first.
            self.edits.entry(edited).or_insert(content);
        }
        if self.compaction.is_none()
            && let Some(compaction) = compaction_of(&canonical)
        {
            let first = items_of_compaction(entry, &compaction);
            self.tokens += first.iter().map(|item| item.tokens).sum::<usize>();
            self.compaction = Some((entry.clone(), compaction));
            return None;
        }
        let item = item_of(entry, &canonical, &self.edits);
        self.count(entry, item.as_ref().map_or(0, |item| item.tokens));
        item
    }

    fn count(&mut self, entry: &Entry, tokens: usize) {
        let Some((_, compaction)) = &self.compaction else {
            self.tokens += tokens;
            return;
        };
        self.tokens_before_compaction += tokens;
        self.found_first_kept |= entry.id == compaction.first_kept_entry_id;
    }

    /// Whether the path is needed no further back.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.found_first_kept
    }

    /// The compaction that is in force, as far as the path was read.
    pub(crate) fn compaction(&self) -> Option<&EntryId> {
        self.compaction.as_ref().map(|(entry, _)| &entry.id)
    }

    /// The entry that the items begin with; `None` for the first entry of the path. A compaction whose first kept entry is not on the path
    /// keeps nothing that is older.
    #[must_use]
    pub fn begin(&self) -> Option<&EntryId> {
        let (entry, compaction) = self.compaction.as_ref()?;
        Some(if self.found_first_kept { &compaction.first_kept_entry_id } else { &entry.id })
    }

    /// What the compaction puts first.
    #[must_use]
    pub fn first_items(&self) -> Vec<ContextItem> {
        let compaction = self.compaction.as_ref();
        compaction.map_or(Vec::new(), |(entry, compaction)| items_of_compaction(entry, compaction))
    }

    /// The item of an entry, if a model would be sent it.
    #[must_use]
    pub fn item(&self, entry: &Entry) -> Option<ContextItem> {
        item_of(entry, &entry.canonical(), &self.edits)
    }

    /// The tokens of the context, estimated.
    #[must_use]
    pub const fn tokens(&self) -> usize {
        let older = if self.found_first_kept { self.tokens_before_compaction } else { 0 };
        self.tokens.saturating_add(older)
    }
}
