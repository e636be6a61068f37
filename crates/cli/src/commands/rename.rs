use serde_json::json;

use crate::app::App;
use crate::command_error::CommandResult;
use crate::resolve;

/// Change the title of a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough rename last 'Fix the date parser'
  bough rename s_4f2a ''                    remove the title")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
    session: String,

    /// The new title
    title: String,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        let meta = backend.rename(session.id(), &args.title).await?;
        let text = format!("{} is now called {:?}", session.id(), meta.title);
        let answer = json!({ "meta": meta, "previous_title": session.meta.title });
        app.output.answer(&answer, || app.output.line(text))
    })
    .await
}
