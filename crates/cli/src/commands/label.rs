use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::resolve;

/// Name an entry, or take its name away
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough label last e_91c before-refactor
  bough label last leaf good-state
  bough label last good-state --clear")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// The entry: an id, a beginning of one, its label, or `leaf`
    entry: String,

    /// The name
    label: Option<String>,

    /// Take the name away
    #[arg(long, conflicts_with = "label")]
    clear: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    if args.label.is_none() && !args.clear {
        return Err(CommandError::usage("there is no label").hint("name one, or pass --clear"));
    }
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        let entry = resolve::entry(backend, &session, &args.entry).await?;
        backend.set_label(session.id(), &entry, args.label.as_deref()).await?;
        if app.output.is_json() {
            return app.output.json(&json!({
                "session_id": session.id(), "entry_id": entry, "label": args.label,
            }));
        }
        match &args.label {
            Some(label) => app.output.line(format!("{entry} is now {label:?}")),
            None => app.output.line(format!("{entry} has no label now")),
        }
    })
    .await
}
