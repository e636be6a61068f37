//! What a data directory can be asked beyond the table of functions: lists with details, all entries of a
//! session as an outline, the loops of a recorded session.

use bough_recorder::RecordFold;
use bough_session::text::preview;
use bough_session::{Bookkeeping, Canonical, ContentBlock, Entry, EntryId, Role, SessionId};
use bough_store::{ListQuery, Position, Store};

use super::CallError;
use super::calls::ListAsk;
use super::local::{Local, store_failed};
use super::types::{EntriesPage, ListPage, LoopOutline, Outline, Summary};
use crate::limits::{ENTRIES_PAGE, OUTLINE_PAGE};

/// Characters of an entry's beginning.
const PREVIEW_CHARS: usize = 200;

impl Local {
    pub(super) async fn list(&self, ask: &ListAsk) -> Result<ListPage, CallError> {
        let query = ListQuery {
            order: ask.order.unwrap_or_default(),
            status: ask.status,
            task_status: ask.task_status,
            archived: match ask.archived {
                "only" => Some(true),
                "include" => None,
                _ => Some(false),
            },
            metadata: ask.metadata.clone(),
            task_name: ask.task.clone(),
            id_prefix: ask.id_prefix.clone(),
            text: ask.query.clone(),
            limit: ask.limit,
            cursor: ask.cursor.clone(),
            ..ListQuery::default()
        };
        let page = self.store().list(&query).await.map_err(store_failed)?;
        let sessions = page.sessions.into_iter().map(|listed| Summary {
            meta: listed.meta,
            details: listed.details,
            active_leaf: None,
        });
        Ok(ListPage { sessions: sessions.collect(), next_cursor: page.next_cursor })
    }

    pub(super) async fn summary(&self, session: &SessionId) -> Result<Option<Summary>, CallError> {
        let snapshot = self.store().state(session).await.map_err(store_failed)?;
        Ok(snapshot.map(|snapshot| Summary {
            meta: snapshot.state.meta(),
            details: snapshot.state.details(),
            active_leaf: snapshot.state.leaf,
        }))
    }

    /// A page of all entries, in the order of the log. The cursor is a place in it.
    pub(super) async fn entries(
        &self,
        session: &SessionId,
        cursor: Option<&str>,
    ) -> Result<EntriesPage, CallError> {
        let store = self.store();
        let after = cursor.and_then(parse_position).unwrap_or_default();
        let page = store.records(session, after, OUTLINE_PAGE).await.map_err(store_failed)?;
        let last = page.records.last().map(|record| record.position);
        let mut entries = Vec::new();
        for stored in &page.records {
            if let Some(entry) = stored.record.as_entry() {
                entries.push(outline_of_newest(&*store, session, entry).await?);
            }
        }
        let next =
            last.filter(|last| *last < page.end).map(|at| format!("{}.{}", at.seq, at.revision));
        // Where the path ends is told with the first page and again with the last.
        let active_leaf = match cursor.is_none() || next.is_none() {
            true => {
                store.state(session).await.map_err(store_failed)?.and_then(|now| now.state.leaf)
            }
            false => None,
        };
        Ok(EntriesPage { entries, active_leaf, next_cursor: next })
    }

    pub(super) async fn loops(&self, session: &SessionId) -> Result<Vec<LoopOutline>, CallError> {
        let folded = self.fold(session).await?;
        let Some(session) = folded.session() else {
            return Ok(Vec::new());
        };
        let outline = |record: &bough_recorder::LoopRecord| LoopOutline {
            loop_id: record.loop_id.clone(),
            parent_loop_id: record.parent_loop_id.clone(),
            status: format!("{:?}", record.status).to_lowercase(),
            turns: record.turns.len() as u64,
            spawned: spawned_by(record),
        };
        Ok(session.loops.iter().map(outline).collect())
    }

    /// The recorder's view of a session, from its log.
    pub(crate) async fn fold(&self, session: &SessionId) -> Result<RecordFold, CallError> {
        let store = self.store();
        let mut fold = RecordFold::new(session.as_str());
        let mut after = Position::default();
        loop {
            let page = store.records(session, after, ENTRIES_PAGE).await.map_err(store_failed)?;
            let Some(last) = page.records.last().map(|record| record.position) else {
                return Ok(fold);
            };
            page.records.iter().for_each(|stored| fold.read(&stored.record));
            if last >= page.end {
                return Ok(fold);
            }
            after = last;
        }
    }
}

fn parse_position(text: &str) -> Option<Position> {
    let (seq, revision) = text.split_once('.')?;
    Some(Position { seq: seq.parse().ok()?, revision: revision.parse().ok()? })
}

/// A message that was streamed begins empty in the log; what it says now is looked up.
async fn outline_of_newest(
    store: &dyn Store,
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
pub(super) fn outline(entry: &Entry) -> Outline {
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

/// Says who speaks and what it is about.
pub(super) fn fill(outlined: &mut Outline, said: Canonical) {
    match said {
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

/// An entry of a path, whose parent is the one before it.
pub(super) fn outline_on_path(id: EntryId, parent_id: Option<EntryId>, said: Canonical) -> Outline {
    let mut outlined = Outline {
        id,
        parent_id,
        timestamp: 0,
        role: None,
        custom_type: None,
        preview: String::new(),
        calls: Vec::new(),
        label_target: None,
        label: None,
    };
    fill(&mut outlined, said);
    outlined
}

/// The sessions of the sub-agents that a loop started, as far as they are known.
fn spawned_by(record: &bough_recorder::LoopRecord) -> Vec<String> {
    let children = record.child_loop_refs.iter().map(|child| &child.child_session_id);
    children.filter(|id| !id.is_empty()).cloned().collect()
}
