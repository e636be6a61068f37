use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, TrashedSession};
use crate::command_error::{CommandError, CommandResult};
use crate::limits::{CANDIDATES_SHOWN, ENTRIES_PAGE};
use crate::output::{Cell, Style, Table};
use crate::text::{age, stamp, unique_ids};

/// Restore a deleted session
///
/// Without SESSION, the one that was deleted last.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough restore                    the session that was deleted last
  bough restore s_4f2a
  bough restore --list             list the sessions in the trash
  bough undo                       the same as `bough restore`")]
pub(crate) struct Args {
    /// The session: an id, a unique beginning of one, or its title
    session: Option<String>,

    /// List the sessions in the trash
    #[arg(short = 'l', long, conflicts_with = "session")]
    list: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let trash = all(backend).await?;
        if args.list {
            return list(app, &trash);
        }
        let chosen = choose(&trash, args.session.as_deref())?;
        let id = &chosen.meta.session_id;
        let meta = backend.undelete(id, Some(&chosen.incarnation)).await?;
        let text = format!("restored {} ({id})", named(chosen));
        app.output.answer(&json!({ "meta": meta }), || app.output.line(text))
    })
    .await
}

async fn all(backend: &Backend) -> CommandResult<Vec<TrashedSession>> {
    let mut trash = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = backend.trash(ENTRIES_PAGE, cursor.as_deref()).await?;
        trash.extend(page.sessions);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(trash),
        }
    }
}

fn list(app: &App, trash: &[TrashedSession]) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(&json!({ "sessions": trash }));
    }
    if trash.is_empty() {
        app.output.note("the trash is empty");
        return Ok(());
    }
    let now = app.now_ms();
    let headings = ["ID", "TITLE", "MSGS", "DELETED", "KEPT UNTIL"];
    let mut table = Table::new(&headings, Some(1)).with_optional(&[2, 3]);
    let ids: Vec<&str> = trash.iter().map(|item| item.meta.session_id.as_str()).collect();
    for (item, id) in trash.iter().zip(unique_ids(&ids)) {
        table.row(vec![
            Cell::of(Style::Dim, id),
            Cell::new(named(item)),
            Cell::new(item.meta.message_count.to_string()).right(),
            Cell::new(age(now, item.deleted_at)).right(),
            Cell::new(item.expires_at.map_or_else(|| "purged".to_owned(), stamp)),
        ]);
    }
    app.output.table(&table)
}

/// The last deleted incarnation of the session that is meant. The trash is in that order.
fn choose<'a>(
    trash: &'a [TrashedSession],
    text: Option<&str>,
) -> CommandResult<&'a TrashedSession> {
    let Some(text) = text else {
        return trash.first().ok_or_else(|| {
            CommandError::not_found("the trash is empty")
                .hint("`bough ls --all` lists the sessions that are there")
        });
    };
    let exact = trash.iter().find(|item| item.meta.session_id.as_str() == text);
    if let Some(found) = exact {
        return Ok(found);
    }
    let mut found: Vec<&TrashedSession> = Vec::new();
    for item in trash {
        let fits = item.meta.session_id.as_str().starts_with(text)
            || called(item).is_some_and(|name| name.to_lowercase() == text.to_lowercase());
        let known = found.iter().any(|other| other.meta.session_id == item.meta.session_id);
        if fits && !known {
            found.push(item);
        }
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(CommandError::not_found(format!("no deleted session matches {text:?}"))
            .hint("`bough restore --list` lists the sessions in the trash")),
        many => {
            let error =
                CommandError::usage(format!("{text:?} matches more than one deleted session"));
            let named =
                |item: &&TrashedSession| format!("{}  {}", item.meta.session_id, named(item));
            Err(many.iter().take(CANDIDATES_SHOWN).map(named).fold(error, CommandError::hint))
        }
    }
}

/// Its caption in lists: its title, the name from an entry, or its first message.
fn called(item: &TrashedSession) -> Option<&str> {
    let names = [Some(item.meta.title.as_str()), item.name.as_deref(), item.preview.as_deref()];
    names.into_iter().flatten().find(|name| !name.trim().is_empty())
}

fn named(item: &TrashedSession) -> String {
    called(item).unwrap_or("(empty)").to_owned()
}
