use serde_json::json;

use crate::app::App;
use crate::command_error::CommandResult;
use crate::resolve;

/// Put sessions away: lists leave them out, nothing is lost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough archive last
  bough archive s_4f2a s_77b1
  bough ls --archived              what was put away")]
pub(crate) struct ArchiveArgs {
    /// The sessions, each by its id, a unique beginning of it, its title, or `last`
    #[arg(required = true)]
    sessions: Vec<String>,
}

/// Take archived sessions back
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough unarchive s_4f2a
  bough unarchive 'Fix the parser'")]
pub(crate) struct UnarchiveArgs {
    /// The sessions, each by its id, a unique beginning of it, its title, or `last`
    #[arg(required = true)]
    sessions: Vec<String>,
}

pub(crate) async fn archive(app: &App, args: ArchiveArgs) -> CommandResult<()> {
    set(app, &args.sessions, true).await
}

pub(crate) async fn unarchive(app: &App, args: UnarchiveArgs) -> CommandResult<()> {
    set(app, &args.sessions, false).await
}

async fn set(app: &App, names: &[String], archived: bool) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let mut done = Vec::new();
        for name in names {
            let session = resolve::session(backend, name).await?;
            let changed = backend.set_archived(session.id(), archived).await?;
            done.push((session, changed));
        }
        if app.output.is_json() {
            let sessions: Vec<_> = done
                .iter()
                .map(|(session, changed)| {
                    json!({ "session_id": session.id(), "archived": archived, "changed": changed })
                })
                .collect();
            return app.output.json(&json!({ "sessions": sessions }));
        }
        for (session, changed) in done {
            let words = match (archived, changed) {
                (true, true) => "is archived",
                (true, false) => "was archived already",
                (false, true) => "is no longer archived",
                (false, false) => "was not archived",
            };
            app.output.line(format!("{} {words}", session.caption()))?;
        }
        Ok(())
    })
    .await
}
