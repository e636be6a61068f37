use serde_json::json;

use crate::app::App;
use crate::command_error::CommandResult;
use crate::resolve;

/// Give a session another title
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough rename last 'Fix the date parser'
  bough rename s_4f2a ''                    take the title away")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// The new title
    title: String,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        let meta = backend.rename(session.id(), &args.title).await?;
        if app.output.is_json() {
            return app.output.json(&json!({ "meta": meta, "previous_title": session.meta.title }));
        }
        app.output.line(format!("{} is now called {:?}", session.id(), meta.title))
    })
    .await
}
