use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::output::{Line, Style};
use crate::resolve;

/// Copy a session up to an entry into a new session
///
/// The new session has entries of its own; the old one stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough fork last                        up to where it is now
  bough fork last e_91c --title 'Plan B'
  bough fork last e_91c --before         up to the entry before that one")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// The last entry to copy: an id, a beginning of one, or a label [default: the active leaf]
    entry: Option<String>,

    /// The title of the new session [default: the old one's]
    #[arg(short = 't', long)]
    title: Option<String>,

    /// Copy up to the entry before that one, to answer differently
    #[arg(long, requires = "entry")]
    before: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        let named = args.entry.as_deref().unwrap_or("leaf");
        let mut entry = resolve::entry(backend, &session, named).await?;
        if args.before {
            let path = backend.path(session.id(), Some(&entry)).await?;
            let parent = path.iter().rev().nth(1).map(|item| item.id.clone());
            entry = parent.ok_or_else(|| {
                CommandError::usage("that entry is the first one; nothing comes before it")
            })?;
        }
        let fork = backend.fork(session.id(), &entry, args.title.as_deref()).await?;
        if app.output.is_json() {
            return app.output.json(&json!({
                "session_id": fork.session_id, "forked_from": session.id(), "entry_id": entry,
                "meta": fork,
            }));
        }
        app.output.line(fork.session_id.as_str())?;
        let note = format!("forked from {} at {entry}", session.caption());
        app.output.note(Line::of(Style::Dim, note));
        Ok(())
    })
    .await
}
