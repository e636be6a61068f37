use serde_json::json;

use crate::app::App;
use crate::backend::Summary;
use crate::command_error::CommandResult;
use crate::resolve;

/// Archive sessions: lists leave them out, nothing is deleted
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough archive last
  bough archive s_4f2a s_77b1
  bough ls --archived              the archived sessions")]
pub(crate) struct ArchiveArgs {
    /// The sessions: ids or unique beginnings of ids, titles, or `last`
    #[arg(required = true)]
    sessions: Vec<String>,
}

/// Unarchive sessions: lists show them again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough unarchive s_4f2a
  bough unarchive 'Fix the parser'")]
pub(crate) struct UnarchiveArgs {
    /// The sessions: ids or unique beginnings of ids, titles, or `last`
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
        let sessions = resolve::sessions(backend, names).await?;
        let (mut done, mut failed) = (Vec::new(), None);
        for session in sessions {
            match backend.set_archived(session.id(), archived).await {
                Ok(changed) => done.push((session, changed)),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        report(app, &done, archived)?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    })
    .await
}

/// Reports what was done, also if a later step failed.
fn report(app: &App, done: &[(Summary, bool)], archived: bool) -> CommandResult<()> {
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
            (true, false) => "was already archived",
            (false, true) => "is no longer archived",
            (false, false) => "was not archived",
        };
        app.output.line(format!("{} {words}", session.caption()))?;
    }
    Ok(())
}
