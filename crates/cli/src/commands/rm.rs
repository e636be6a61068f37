use bough_service::api::PurgeResponse;
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, Summary};
use crate::command_error::{CommandError, CommandResult};
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::{count, shell_word};

/// Move sessions to the trash
///
/// `bough restore` brings them back until their retention ends: 30 days, unless the configuration says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough rm s_4f2a
  bough rm s_4f2a s_77b1 --yes
  bough restore                    restore the session that was deleted last")]
pub(crate) struct Args {
    /// The sessions: ids or unique beginnings of ids, titles, or `last`
    #[arg(required = true)]
    sessions: Vec<String>,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    yes: bool,

    /// Delete them for good; they cannot be restored
    #[arg(long)]
    purge: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let sessions = resolve::sessions(backend, &args.sessions).await?;
        if !args.yes && !app.output.confirm(&question(&sessions, args.purge), "--yes")? {
            return Err(CommandError::cancelled());
        }
        let (mut done, mut failed) = (0, None);
        for session in &sessions {
            match delete(backend, session, args.purge).await {
                Ok(()) => done += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        // Report what was deleted, also if a later step failed.
        report(app, sessions.get(..done).unwrap_or_default(), args.purge)?;
        failed.map_or(Ok(()), Err)
    })
    .await
}

fn question(sessions: &[Summary], purge: bool) -> String {
    let how = if purge { "for good" } else { "(`bough restore` brings it back)" };
    match sessions {
        [one] => {
            let messages = count(one.meta.message_count, "message", "messages");
            format!("Delete {:?} with {messages} {how}?", one.caption())
        }
        many => format!("Delete {} sessions {how}?", many.len()),
    }
}

async fn delete(backend: &Backend, session: &Summary, purge: bool) -> CommandResult<()> {
    let deleted = backend.delete(session.id()).await?;
    if !deleted {
        return Err(CommandError::not_found(format!("{} no longer exists", session.id())));
    }
    if purge {
        let newest = backend.trash(1, None).await?.sessions;
        let found = newest.into_iter().find(|item| item.meta.session_id == *session.id());
        if let Some(item) = found {
            let request = json!({ "session_id": session.id(), "incarnation": item.incarnation });
            let _purged: PurgeResponse = backend.call("session::purge", &request).await?;
        }
    }
    Ok(())
}

fn report(app: &App, sessions: &[Summary], purge: bool) -> CommandResult<()> {
    if app.output.is_json() {
        let ids: Vec<_> = sessions.iter().map(Summary::id).collect();
        return app.output.json(&json!({ "deleted": ids, "purged": purge }));
    }
    for session in sessions {
        app.output.line(format!("deleted {} ({})", session.caption(), session.id()))?;
        if !purge {
            let id = shell_word(session.id().as_str());
            let hint = format!("restore it with `bough restore {id}`");
            app.output.note(Line::of(Style::Dim, hint));
        }
    }
    Ok(())
}
