//! Runs the effects that screens ask for, on the backend.

use std::sync::Arc;
use std::time::Duration;

use bough_platform::Clock;
use bough_service::api::MessageItem;
use bough_session::{
    AgentMessage, Bookkeeping, BranchSummary, Canonical, ContentBlock, EntryId, SessionEntry,
    SessionId, UserMessage,
};

use super::event::Answer;
use super::session::From;
use super::stack::Effect;
use super::tree::{SummaryWish, Switch, Switched};
use super::{picker, search, session, tree};
use crate::backend::{Backend, CallError};
use crate::command_error::CommandError;
use crate::limits::{EVENTS_WAIT, TRANSCRIPT_PAGE};
use crate::summarise::{Configured, SummarySource, summarise_branch};
use bough_service::compaction::{PathItem, left_behind};

/// Messages of a preview.
const PREVIEW_MESSAGES: usize = 6;

/// Runs effects.
#[derive(Clone)]
pub(super) struct EffectRunner {
    pub(super) backend: Backend,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) configured: Arc<Configured>,
}

/// A message whose text is to be edited first.
#[derive(Clone, Debug)]
pub(super) struct EditedEntry {
    session: SessionId,
    entry: EntryId,
}

/// The message that an effect offers for editing.
pub(super) fn needs_editor(effect: &Effect) -> Option<EditedEntry> {
    let (session, edit) = match effect {
        Effect::Tree(tree::Effect::Switch(switch)) => (&switch.session, &switch.edit),
        Effect::Tree(tree::Effect::Fork { session, edit, .. }) => (session, edit),
        _ => return None,
    };
    edit.as_ref().map(|entry| EditedEntry { session: session.clone(), entry: entry.clone() })
}

/// Carries an effect out. `edited` is the text from the editor, for the effects that need one.
pub(super) async fn run_effect(
    runner: &EffectRunner,
    effect: Effect,
    edited: Option<Result<String, String>>,
) -> Answer {
    match effect {
        Effect::Picker(effect) => Answer::Picker(runner.picker(effect).await),
        Effect::Tree(effect) => Answer::Tree(runner.tree(effect, edited).await),
        Effect::Session(effect) => Answer::Session(runner.session(effect).await),
        Effect::Search(search::Effect::Search(request)) => {
            let found = runner.backend.search(&request).await.map_err(words);
            let is_first = request.cursor.is_none();
            Answer::Search(search::Answer::Found { query: request.query, is_first, found })
        }
    }
}

impl EffectRunner {
    async fn picker(&self, effect: picker::Effect) -> picker::Answer {
        let backend = &self.backend;
        match effect {
            picker::Effect::Load { ask, generation } => {
                let page = backend.list(&ask).await.map_err(words);
                picker::Answer::Loaded { generation, page }
            }
            picker::Effect::Refresh { ask, generation } => {
                let page = backend.list(&ask).await.map_err(words);
                picker::Answer::Refreshed { generation, page }
            }
            picker::Effect::FindFiles { generation } => {
                let files = backend.pi_files().await.map_err(words);
                picker::Answer::FoundFiles { generation, files }
            }
            picker::Effect::OpenFile { file } => {
                picker::Answer::OpenedFile { session: self.open_file(&file).await }
            }
            picker::Effect::PreviewFile { session, file } => {
                let items = match self.open_file(&file).await {
                    Ok(session) => self.newest_messages(&session).await,
                    Err(text) => Err(text),
                };
                picker::Answer::Previewed { session, items }
            }
            picker::Effect::Preview(session) => {
                let items = self.newest_messages(&session).await;
                picker::Answer::Previewed { session, items }
            }
            picker::Effect::Rename { session, title } => {
                let title = backend.rename(&session, &title).await.map(|meta| meta.title);
                picker::Answer::Renamed { session, title: title.map_err(words) }
            }
            picker::Effect::SetArchived { session, archived } => {
                let done = backend.set_archived(&session, archived).await;
                picker::Answer::Archived { session, archived, done: done.map(drop).map_err(words) }
            }
            picker::Effect::Delete(session) => {
                let done = backend.delete(&session).await.map(drop).map_err(words);
                picker::Answer::Deleted { session, done }
            }
            picker::Effect::Undelete(session) => {
                let done = backend.undelete(&session, None).await.map(drop).map_err(words);
                picker::Answer::Undeleted { done }
            }
        }
    }

    async fn newest_messages(&self, session: &SessionId) -> Result<Vec<MessageItem>, String> {
        let page = self.backend.path_page(session, None, true, PREVIEW_MESSAGES, None).await;
        page.map(|page| page.messages).map_err(words)
    }

    /// Opens a session file of pi where it is.
    async fn open_file(&self, file: &str) -> Result<SessionId, String> {
        let Backend::Local(local) = &self.backend else {
            return Err("A server does not open files of this machine".to_owned());
        };
        let served = local.serve_file(file).await.map_err(|error| command_words(&error))?;
        served.ok_or_else(|| "This data directory does not open files".to_owned())
    }

    async fn session(&self, effect: session::Effect) -> session::Answer {
        let backend = &self.backend;
        match effect {
            session::Effect::Summary(session) => {
                let summary = backend.summary(&session).await.map_err(words);
                session::Answer::Summary { session, summary }
            }
            session::Effect::Page { session, leaf, from, cursor, generation } => {
                let newest_first = from == From::Tail;
                let (leaf, cursor) = (leaf.as_ref(), cursor.as_deref());
                let page =
                    backend.path_page(&session, leaf, newest_first, TRANSCRIPT_PAGE, cursor).await;
                session::Answer::Page { session, generation, from, page: page.map_err(words) }
            }
            session::Effect::Watch { session, after, waits } => {
                let wait = if waits { EVENTS_WAIT } else { Duration::ZERO };
                let page = backend.events(&session, after.as_deref(), wait).await.map_err(words);
                session::Answer::Events { session, page }
            }
            session::Effect::Loops(session) => {
                let loops = backend.loops(&session).await.map_err(words);
                session::Answer::Loops { session, loops }
            }
        }
    }

    async fn tree(
        &self,
        effect: tree::Effect,
        edited: Option<Result<String, String>>,
    ) -> tree::Answer {
        match effect {
            tree::Effect::Load { session, cursor, generation } => {
                let page = self.backend.entries(&session, cursor.as_deref()).await;
                tree::Answer::Loaded { generation, page: page.map_err(words) }
            }
            tree::Effect::Summary { session } => {
                let found = self.backend.summary(&session).await.map_err(words);
                let gone = || format!("session {session} does not exist");
                let summary = found.and_then(|found| found.ok_or_else(gone));
                tree::Answer::Summary { session, summary }
            }
            tree::Effect::Label { session, entry, label } => {
                let done = self.backend.move_label(&session, &entry, label.as_deref()).await;
                let label = done.map(|_| label).map_err(words);
                tree::Answer::Labelled { session, entry, label }
            }
            tree::Effect::Switch(switch) => {
                let session = switch.session.clone();
                let done = self.switch(switch, edited).await;
                tree::Answer::Switched { session, done }
            }
            tree::Effect::Fork { session, entry, .. } => {
                let fork = self.fork(&session, &entry, edited).await;
                tree::Answer::Forked { session, fork }
            }
        }
    }

    /// The text of a message that is to be edited.
    pub(super) async fn text_of(&self, edited: &EditedEntry) -> Result<String, String> {
        let found = self.backend.entry(&edited.session, &edited.entry).await.map_err(words)?;
        Ok(match found {
            Some(SessionEntry::Message { message, .. }) => message.text(),
            _ => String::new(),
        })
    }

    /// Moves the leaf, appends the summary of the branch that is left, and appends the edited message, in this order.
    async fn switch(
        &self,
        switch: Switch,
        edited: Option<Result<String, String>>,
    ) -> Result<Switched, String> {
        let text = edited.transpose()?.unwrap_or_default();
        let summary = self.branch_summary(&switch).await?;
        let backend = &self.backend;
        let session = &switch.session;
        backend.set_leaf(session, switch.to.as_ref()).await.map_err(words)?;
        let mut leaf = switch.to.clone();
        if let Some(summary) = summary {
            let appended = backend.append_note(session, &summary, leaf.as_ref()).await;
            leaf = Some(appended.map_err(words)?);
        }
        let appended = !text.trim().is_empty();
        if appended {
            let entry = self.append_text(session, &text, leaf.as_ref()).await?;
            leaf = Some(entry);
        }
        Ok(Switched { leaf, appended })
    }

    async fn branch_summary(&self, switch: &Switch) -> Result<Option<Bookkeeping>, String> {
        if switch.summary == SummaryWish::None {
            return Ok(None);
        }
        let Some(from) = &switch.from else {
            return Ok(None);
        };
        let old = self.backend.path(&switch.session, Some(from)).await.map_err(words)?;
        let new: Vec<PathItem> = match &switch.to {
            Some(to) => self.backend.path(&switch.session, Some(to)).await.map_err(words)?,
            None => Vec::new(),
        };
        let kept: Vec<EntryId> = new.into_iter().map(|item| item.id).collect();
        let left = left_behind(&old, &kept);
        if !left.iter().any(|item| matches!(item.said, Canonical::Message(_))) {
            return Ok(None);
        }
        let source = self.source(&switch.summary);
        let summary =
            summarise_branch(left, &source).await.map_err(|error| command_words(&error))?;
        let from_id = from.as_str().to_owned();
        let note = BranchSummary { from_id, summary, details: None, from_hook: None };
        Ok(Some(Bookkeeping::BranchSummary(note)))
    }

    fn source(&self, wish: &SummaryWish) -> SummarySource {
        self.configured.source(match wish {
            SummaryWish::Focused(focus) => Some(focus.clone()),
            SummaryWish::None | SummaryWish::Usual => None,
        })
    }

    async fn fork(
        &self,
        session: &SessionId,
        entry: &EntryId,
        edited: Option<Result<String, String>>,
    ) -> Result<SessionId, String> {
        let text = edited.transpose()?.unwrap_or_default();
        let fork = self.backend.fork(session, entry, None).await.map_err(words)?.session_id;
        if !text.trim().is_empty() {
            let page = self.backend.path_page(&fork, None, true, 1, None).await.map_err(words)?;
            let leaf = page.messages.first().map(|item| item.entry_id.clone());
            self.append_text(&fork, &text, leaf.as_ref()).await?;
        }
        Ok(fork)
    }

    async fn append_text(
        &self,
        session: &SessionId,
        text: &str,
        leaf: Option<&EntryId>,
    ) -> Result<EntryId, String> {
        let message = AgentMessage::User(UserMessage::new(
            vec![ContentBlock::text(text.trim_end())],
            self.clock.now_ms(),
        ));
        self.backend.append_message(session, &message, leaf).await.map_err(words)
    }
}

/// An error with the next step, in one line.
fn words(error: CallError) -> String {
    command_words(&CommandError::from(error))
}

fn command_words(error: &CommandError) -> String {
    match error.hints.first() {
        Some(hint) => format!("{error}: {hint}"),
        None => error.to_string(),
    }
}
