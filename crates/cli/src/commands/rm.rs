use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, Summary};
use crate::command_error::{CommandError, CommandResult};
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::count;

/// Delete sessions; they can be brought back for a while
///
/// Deleted sessions wait in the trash until their retention ends (30 days unless configured otherwise).
/// `bough restore` brings them back.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough rm s_4f2a
  bough rm s_4f2a s_77b1 --yes
  bough restore                    bring back what was deleted last")]
pub(crate) struct Args {
    /// The sessions, each by its id, a unique beginning of it, its title, or `last`
    #[arg(required = true)]
    sessions: Vec<String>,

    /// Do not ask
    #[arg(short = 'y', long)]
    yes: bool,

    /// Remove them for good at once; they cannot be brought back
    #[arg(long)]
    purge: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let mut sessions = Vec::new();
        for name in &args.sessions {
            sessions.push(resolve::session(backend, name).await?);
        }
        if !args.yes && !app.output.confirm(&question(&sessions, args.purge), "--yes")? {
            return Err(CommandError::cancelled());
        }
        for session in &sessions {
            delete(backend, session, args.purge).await?;
        }
        report(app, &sessions, args.purge)
    })
    .await
}

fn question(sessions: &[Summary], purge: bool) -> String {
    let how = if purge { "for good" } else { "(it can be brought back)" };
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
        return Err(CommandError::not_found(format!("{} is gone already", session.id())));
    }
    if purge {
        let (newest, _) = backend.trash(1, None).await?;
        let found = newest.into_iter().find(|item| item.meta.session_id == *session.id());
        if let Some(item) = found {
            backend.purge(session.id(), &item.incarnation).await?;
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
            let hint = format!("bring it back with `bough restore {}`", session.id());
            app.output.note(Line::of(Style::Dim, hint));
        }
    }
    Ok(())
}
