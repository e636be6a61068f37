//! From what a person types to a session or an entry: an id, a unique beginning of one, a title, `last`, or a session
//! file of pi.

use std::path::Path;

use bough_service::api::MessageItem;
use bough_session::{Bookkeeping, EntryId, SessionId};

use crate::app::App;
use crate::backend::{Backend, ListRequest, Outline, Summary};
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::files;
use crate::limits::{CANDIDATES_SHOWN, TITLE_PAGE};
use crate::text::shell_word;

/// The word for the session that changed last.
const LAST: &str = "last";
/// What stands before an id that would otherwise be read as something else.
const ID_MARK: &str = "id:";
/// The word for the active leaf.
const LEAF: &str = "leaf";

/// Finds the session that an argument names.
pub(crate) async fn session(backend: &Backend, text: &str) -> CommandResult<Summary> {
    match in_store(backend, text).await? {
        Some(found) => Ok(found),
        None => in_file(backend, text).await?.ok_or_else(|| nothing(text)),
    }
}

/// Finds all sessions that arguments name, before anything is done to one of them: a wrong name must change nothing.
pub(crate) async fn sessions(backend: &Backend, names: &[String]) -> CommandResult<Vec<Summary>> {
    let mut found = Vec::new();
    for name in names {
        found.push(session(backend, name).await?);
    }
    Ok(found)
}

/// Finds the session that an argument names, for commands that show it. A person who names a file expects all of it, so
/// this warns if pi wrote to the file after it was migrated.
pub(crate) async fn session_to_show(
    app: &App,
    backend: &Backend,
    text: &str,
) -> CommandResult<Summary> {
    if let Some(found) = in_store(backend, text).await? {
        return Ok(found);
    }
    let found = in_file(backend, text).await?.ok_or_else(|| nothing(text))?;
    if let Backend::Local(local) = backend
        && local.has_grown_since(text).await
    {
        app.output.warn(&format!(
            "{text} has changed since it was brought in, and this shows the session as it is here; \
             `bough rollback {} --accept-changed` gives it back to the file",
            shell_word(found.id().as_str())
        ));
    }
    Ok(found)
}

/// The session of the store that an argument names by its id, its title, or as the last one.
async fn in_store(backend: &Backend, text: &str) -> CommandResult<Option<Summary>> {
    if let Some(id) = text.strip_prefix(ID_MARK) {
        let found = backend.summary(&SessionId::from_stored(id)).await?;
        return found.map(Some).ok_or_else(|| nothing(text));
    }
    if text == LAST {
        return last(backend).await.map(Some);
    }
    if text.is_empty() {
        return Err(CommandError::usage("SESSION is empty"));
    }
    if let Some(found) = backend.summary(&SessionId::from_stored(text)).await? {
        return Ok(Some(found));
    }
    let by_id = with_prefix(backend, text).await?;
    if let Some(found) = only(text, by_id)? {
        return Ok(Some(found));
    }
    let by_title = with_title(backend, text).await?;
    only(text, by_title)
}

/// A session by what it is called; nothing of it need be readable.
pub(crate) struct Named {
    pub(crate) id: SessionId,
    pub(crate) caption: String,
}

/// Opens the store to find the session that an argument names, and closes it before the command works on the files.
pub(crate) async fn in_closed_store(app: &App, text: &str) -> CommandResult<Named> {
    app.with_backend(async |backend| damaged_or_whole(backend, text).await).await
}

/// Finds the session that an argument names, for commands that find damage or lead out of it: one that is too damaged to be
/// read is named by its whole id.
async fn damaged_or_whole(backend: &Backend, text: &str) -> CommandResult<Named> {
    match session(backend, text).await {
        Ok(found) => Ok(Named { id: found.id().clone(), caption: found.caption().to_owned() }),
        Err(error) if error.kind == ErrorKind::Damaged => {
            let id = text.strip_prefix(ID_MARK).unwrap_or(text);
            Ok(Named { id: SessionId::from_stored(id), caption: id.to_owned() })
        }
        Err(error) => Err(error),
    }
}

/// The session of a file of pi that was not brought in: the file itself is read and written.
async fn in_file(backend: &Backend, text: &str) -> CommandResult<Option<Summary>> {
    let Backend::Local(local) = backend else { return Ok(None) };
    if !files::exists(Path::new(text)) {
        return Ok(None);
    }
    match local.serve_file(text).await? {
        Some(session) => Ok(backend.summary(&session).await?),
        None => Ok(None),
    }
}

async fn last(backend: &Backend) -> CommandResult<Summary> {
    let page = backend.list(&ListRequest::recent(1)).await?;
    let first = page.sessions.into_iter().next();
    first.ok_or_else(|| {
        CommandError::not_found("there are no sessions yet")
            .hint("`bough migrate` brings sessions in, `bough record` records one")
    })
}

async fn with_prefix(backend: &Backend, prefix: &str) -> CommandResult<Vec<Summary>> {
    let ask = ListRequest {
        id_prefix: Some(prefix.to_owned()),
        archived: "include",
        ..ListRequest::recent(CANDIDATES_SHOWN + 1)
    };
    let page = backend.list(&ask).await?;
    let fits = |found: &Summary| found.id().as_str().starts_with(prefix);
    Ok(page.sessions.into_iter().filter(fits).collect())
}

/// Sessions that are called so; failing that, those whose caption has it in it.
async fn with_title(backend: &Backend, title: &str) -> CommandResult<Vec<Summary>> {
    let ask = ListRequest {
        query: Some(title.to_owned()),
        archived: "include",
        ..ListRequest::recent(TITLE_PAGE)
    };
    let page = backend.list(&ask).await?;
    let wanted = title.to_lowercase();
    let (mut equal, mut within) = (Vec::new(), Vec::new());
    for found in page.sessions {
        let name = found.details.name.as_deref().unwrap_or_default();
        if found.meta.title.to_lowercase() == wanted || name.to_lowercase() == wanted {
            equal.push(found);
        } else if found.caption().to_lowercase().contains(&wanted) {
            within.push(found);
        }
    }
    Ok(if equal.is_empty() { within } else { equal })
}

/// The one session that fits; an error that names them when there are several.
fn only(text: &str, mut found: Vec<Summary>) -> CommandResult<Option<Summary>> {
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let more = found.len() > CANDIDATES_SHOWN;
    let mut error = CommandError::usage(format!("{text:?} matches more than one session"));
    for candidate in found.iter().take(CANDIDATES_SHOWN) {
        error = error.hint(format!("{}  {}", candidate.id(), candidate.caption()));
    }
    Err(if more { error.hint("and others") } else { error })
}

fn nothing(text: &str) -> CommandError {
    CommandError::not_found(format!("no session matches {text:?}"))
        .hint("`bough ls --all` lists the sessions, `bough restore --list` the deleted ones")
}

/// Finds the entry that an argument names: an id, a label, a unique beginning of an id, or `leaf`.
pub(crate) async fn entry(
    backend: &Backend,
    session: &Summary,
    text: &str,
) -> CommandResult<EntryId> {
    if text == LEAF {
        let empty = || CommandError::not_found("the session has no entries");
        return leaf(backend, session).await?.ok_or_else(empty);
    }
    let exact = EntryId::from_stored(text);
    if backend.entry(session.id(), &exact).await?.is_some() {
        return Ok(exact);
    }
    // Where another program gave one label to two entries, the last one that got it is meant.
    if let Some(newest) = backend.labelled(session.id(), Some(text)).await?.pop() {
        return Ok(newest);
    }
    let tree = all_entries(backend, session.id()).await?.0;
    let mut labelled: Vec<EntryId> = Vec::new();
    labelled.extend(
        labels(&tree).into_iter().filter(|(_, label)| *label == text).map(|(id, _)| id.clone()),
    );
    let fits = |entry: &&Outline| entry.id.as_str().starts_with(text);
    let found: Vec<EntryId> = match labelled.pop() {
        Some(newest) => vec![newest],
        None => tree.iter().filter(fits).map(|entry| entry.id.clone()).collect(),
    };
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(CommandError::not_found(format!("no entry or label matches {text:?}"))
            .hint("`bough tree SESSION --print` shows the entries with their ids")),
        _ => {
            let error = CommandError::usage(format!("{text:?} matches more than one entry"));
            Err(found
                .iter()
                .take(CANDIDATES_SHOWN)
                .fold(error, |error, id| error.hint(id.as_str())))
        }
    }
}

/// Finds the end of a branch that an argument names. `None` means the active leaf.
pub(crate) async fn branch_end(
    backend: &Backend,
    session: &Summary,
    named: Option<&str>,
) -> CommandResult<Option<EntryId>> {
    match named {
        Some(text) => entry(backend, session, text).await.map(Some),
        None => Ok(None),
    }
}

/// Finds the entry that is to be labelled. `leaf` is the newest entry of the active path that is no label itself.
pub(crate) async fn entry_to_label(
    backend: &Backend,
    session: &Summary,
    text: &str,
) -> CommandResult<EntryId> {
    if text != LEAF {
        let found = entry(backend, session, text).await?;
        let page = backend.path_page(session.id(), Some(&found), true, 1, None).await?;
        if page.messages.first().is_some_and(is_label) {
            let error = CommandError::usage(format!("{found} is a label itself"));
            return Err(error.hint("name the entry that it labels"));
        }
        return Ok(found);
    }
    let mut cursor: Option<String> = None;
    loop {
        let page =
            backend.path_page(session.id(), None, true, TITLE_PAGE, cursor.as_deref()).await?;
        if let Some(item) = page.messages.iter().find(|item| !is_label(item)) {
            return Ok(item.entry_id.clone());
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Err(CommandError::not_found("the session has no entry that can be labelled"));
        }
    }
}

fn is_label(item: &MessageItem) -> bool {
    let note = item.custom.as_ref().and_then(Bookkeeping::from_payload);
    matches!(note, Some(Bookkeeping::Label(_)))
}

/// The active leaf of a session.
pub(crate) async fn leaf(backend: &Backend, session: &Summary) -> CommandResult<Option<EntryId>> {
    if session.active_leaf.is_some() {
        return Ok(session.active_leaf.clone());
    }
    let page = backend.path_page(session.id(), None, true, 1, None).await?;
    Ok(page.messages.into_iter().next().map(|item| item.entry_id))
}

/// All entries of a session and its active leaf.
pub(crate) async fn all_entries(
    backend: &Backend,
    session: &SessionId,
) -> CommandResult<(Vec<Outline>, Option<EntryId>)> {
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = backend.entries(session, cursor.as_deref()).await?;
        entries.extend(page.entries);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok((entries, page.active_leaf)),
        }
    }
}

/// The labels that stand at the end: the last one given to each entry.
fn labels(entries: &[Outline]) -> Vec<(&EntryId, &str)> {
    let mut standing: Vec<(&EntryId, &str)> = Vec::new();
    for entry in entries {
        if let Some(target) = &entry.label_target {
            standing.retain(|(labelled, _)| *labelled != target);
            standing.extend(entry.label.as_deref().map(|label| (target, label)));
        }
    }
    standing
}
