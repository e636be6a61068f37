//! Reads a session as its store keeps it, here or through a server: its summary, an outline of all its entries, and its
//! records for the recorder.

use bough_recorder::RecordFold;
use bough_service::compaction::ContextStream;
use bough_session::text::preview;
use bough_session::{Bookkeeping, Canonical, ContentBlock, Entry, EntryId, Role, SessionId};
use bough_store::{Position, ReadStore, StoreExt};

use super::calls::absent_is_none;
use super::error::{service_failed, store_failed};
use super::types::{EntriesPage, Outline, Summary};
use super::{Backend, CallError, pi_files};
use crate::limits::{ENTRIES_PAGE, OUTLINE_PAGE};

/// Characters of an entry's beginning.
const PREVIEW_CHARS: usize = 200;

impl Backend {
    /// One session, if it is there.
    pub(crate) async fn summary(&self, session: &SessionId) -> Result<Option<Summary>, CallError> {
        let snapshot = self.reads().state(session).await;
        let snapshot = absent_is_none(snapshot.map_err(store_failed))?;
        Ok(snapshot.map(|snapshot| Summary {
            meta: snapshot.state.meta.clone(),
            details: snapshot.state.details(),
            active_leaf: snapshot.state.leaf.clone(),
            file: None,
        }))
    }

    /// The session files of pi that were not migrated, the last changed first; none through a server.
    pub(crate) async fn pi_files(&self) -> Result<Vec<Summary>, CallError> {
        let (Self::Local(_), Some(dir)) = (self, pi_files::sessions_dir()) else {
            return Ok(Vec::new());
        };
        let found = tokio::task::spawn_blocking(move || pi_files::find(&dir)).await;
        let mut files = Vec::new();
        for file in found.unwrap_or_default() {
            if self.summary(file.id()).await?.is_none() {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Sets or removes the label of an entry. Other entries that have the label lose it, so that it names one entry;
    /// they are returned.
    pub(crate) async fn move_label(
        &self,
        session: &SessionId,
        entry: &EntryId,
        label: Option<&str>,
    ) -> Result<Vec<EntryId>, CallError> {
        let mut others = self.labelled(session, label).await?;
        others.retain(|other| other != entry);
        self.set_label(session, entry, label).await?;
        for other in &others {
            self.set_label(session, other, None).await?;
        }
        Ok(others)
    }

    /// The entries with a label, the newest at the end; none for `None`.
    pub(crate) async fn labelled(
        &self,
        session: &SessionId,
        label: Option<&str>,
    ) -> Result<Vec<EntryId>, CallError> {
        let Some(label) = label else { return Ok(Vec::new()) };
        let snapshot = self.reads().state(session).await.map_err(store_failed)?;
        let Some(snapshot) = snapshot else { return Ok(Vec::new()) };
        let found = snapshot.state.labels.iter().filter(|(_, text)| *text == label);
        Ok(found.map(|(entry, _)| entry.clone()).collect())
    }

    /// A page of all entries of a session, on any branch, in the order of the log. The cursor is a position in it.
    pub(crate) async fn entries(
        &self,
        session: &SessionId,
        cursor: Option<&str>,
    ) -> Result<EntriesPage, CallError> {
        let store = self.reads();
        let after = cursor.and_then(parse_position).unwrap_or_default();
        let page = store.records(session, after, OUTLINE_PAGE).await.map_err(store_failed)?;
        let state = store.state(session).await.map_err(store_failed)?.map(|now| now.state);
        let has_hidden = state.as_ref().is_some_and(|state| state.hidden_count > 0);
        let mut entries = Vec::new();
        let added = page.records.iter().filter_map(|stored| stored.record.as_entry());
        for entry in added.filter(|entry| !entry.is_hidden()) {
            let mut outline = outline_of_newest(&*store, session, entry).await?;
            if has_hidden {
                outline.parent_id = visible_parent(&*store, session, entry).await?;
            }
            entries.push(outline);
        }
        let at = page.position_after(after);
        let next = page.more.then(|| format!("{}.{}", at.seq, at.step));
        // The first page and the last one name the active leaf.
        let is_named = cursor.is_none() || next.is_none();
        let active_leaf = state.filter(|_| is_named).and_then(|state| state.leaf.clone());
        Ok(EntriesPage { entries, active_leaf, next_cursor: next })
    }

    /// What a model would be sent, to be read a part at a time; `None` where only the service can tell it.
    pub(crate) async fn context_stream(
        &self,
        session: &SessionId,
        leaf: Option<&EntryId>,
    ) -> Result<Option<ContextStream>, CallError> {
        let stream = ContextStream::open(self.reads(), session, leaf.cloned()).await;
        stream.map_err(service_failed)
    }

    /// The recorder's view of a session, from its log.
    pub(crate) async fn fold(
        &self,
        session: &SessionId,
        mut fold: RecordFold,
    ) -> Result<RecordFold, CallError> {
        let store = self.reads();
        let mut after = Position::default();
        loop {
            let page = store.records(session, after, ENTRIES_PAGE).await.map_err(store_failed)?;
            page.records.iter().for_each(|stored| fold.read(&stored.record));
            if !page.more {
                return Ok(fold);
            }
            after = page.position_after(after);
        }
    }
}

fn parse_position(text: &str) -> Option<Position> {
    let (seq, step) = text.split_once('.')?;
    Some(Position { seq: seq.parse().ok()?, step: step.parse().ok()? })
}

/// The nearest ancestor that was not hidden.
async fn visible_parent(
    store: &dyn ReadStore,
    session: &SessionId,
    entry: &Entry,
) -> Result<Option<EntryId>, CallError> {
    let mut parent = entry.parent_id.clone();
    while let Some(above) = &parent {
        let found = store.entry(session, above).await.map_err(store_failed)?;
        match found.filter(|stored| stored.entry.is_hidden()) {
            Some(hidden) => parent = hidden.entry.parent_id,
            None => break,
        }
    }
    Ok(parent)
}

/// A streamed message is empty in its first record, so its current text is looked up.
async fn outline_of_newest(
    store: &dyn ReadStore,
    session: &SessionId,
    entry: &Entry,
) -> Result<Outline, CallError> {
    let outlined = outline(entry);
    let empty = outlined.role == Some(Role::Assistant)
        && outlined.preview.is_empty()
        && outlined.calls.is_empty();
    if !empty {
        return Ok(outlined);
    }
    let newest = store.entry(session, &entry.id).await.map_err(store_failed)?;
    Ok(newest.map_or(outlined, |stored| outline(&stored.entry)))
}

/// An entry in one line.
fn outline(entry: &Entry) -> Outline {
    let mut outlined = Outline {
        id: entry.id.clone(),
        parent_id: entry.parent_id.clone(),
        timestamp: entry.timestamp,
        role: None,
        custom_type: None,
        preview: String::new(),
        calls: Vec::new(),
        label_target: None,
        label: None,
    };
    fill(&mut outlined, entry.canonical());
    outlined
}

/// Sets the role and the text.
fn fill(outlined: &mut Outline, canonical: Canonical) {
    match canonical {
        Canonical::Message(message) => {
            outlined.role = Some(message.role());
            outlined.preview = preview(&message.text(), PREVIEW_CHARS);
            outlined.calls = message.content().iter().filter_map(call_name).collect();
        }
        Canonical::Custom(custom) => {
            outlined.preview = match Bookkeeping::from_payload(&custom) {
                Some(Bookkeeping::ModelChange(to)) => format!("{}/{}", to.provider, to.model_id),
                Some(Bookkeeping::ThinkingLevelChange(to)) => to.thinking_level,
                Some(Bookkeeping::Compaction(done)) => preview(&done.summary, PREVIEW_CHARS),
                Some(Bookkeeping::BranchSummary(left)) => preview(&left.summary, PREVIEW_CHARS),
                Some(Bookkeeping::SessionInfo(info)) => info.name,
                Some(Bookkeeping::Label(label)) => {
                    outlined.label_target = Some(label.target_id);
                    outlined.label.clone_from(&label.label);
                    label.label.unwrap_or_default()
                }
                None => preview(&custom.data.to_string(), PREVIEW_CHARS),
            };
            outlined.custom_type = Some(custom.custom_type);
        }
    }
}

fn call_name(block: &ContentBlock) -> Option<String> {
    match block {
        ContentBlock::FunctionCall(call) => Some(call.function_id.clone()),
        _ => None,
    }
}
