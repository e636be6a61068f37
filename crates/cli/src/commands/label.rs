use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::resolve;

/// Label an entry, or remove its label
///
/// A label names one entry. If another entry has the label, it loses it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough label last e_91c before-refactor
  bough label last leaf good-state
  bough label last good-state --clear")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
    session: String,

    /// The entry: an id, a beginning of one, its label, or `leaf` for the newest one of the active path
    entry: String,

    /// The label
    label: Option<String>,

    /// Remove the label
    #[arg(long, conflicts_with = "label")]
    clear: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    if args.label.is_none() && !args.clear {
        return Err(
            CommandError::usage("LABEL is missing").hint("give a label, or --clear to remove one")
        );
    }
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        let entry = resolve::entry_to_label(backend, &session, &args.entry).await?;
        let label = args.label.as_deref();
        let moved_from = backend.move_label(session.id(), &entry, label).await?;
        if app.output.is_json() {
            return app.output.json(&json!({
                "session_id": session.id(), "entry_id": entry, "label": label,
                "moved_from": moved_from,
            }));
        }
        match label {
            Some(label) => {
                app.output.line(format!("{entry} is now labelled {label:?}"))?;
                let lost =
                    |other| app.output.line(format!("{other} is no longer labelled {label:?}"));
                moved_from.iter().try_for_each(lost)
            }
            None => app.output.line(format!("{entry} has no label now")),
        }
    })
    .await
}
