use serde_json::json;

use crate::app::App;
use crate::command_error::CommandResult;
use crate::demo::Demo;

/// Write example sessions of an agent at work
///
/// Each run writes new sessions: tools and diffs, branches, a failure, a compaction, a long session, and an agent that was recorded
/// with its sub-agents, a parallel group and a rerun. With `--live` two more are then written as slowly as an agent would, so that
/// they can be watched. `bough serve --demo` does both in a temporary directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough demo --data-dir /tmp/demo
  bough demo --live --server http://127.0.0.1:7717")]
pub(crate) struct Args {
    /// Write more sessions afterwards, slowly
    #[arg(long)]
    live: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let demo = Demo::read()?;
    app.with_backend(async |backend| {
        let mut sessions = demo.fill(app, backend).await?;
        if args.live {
            sessions.extend(demo.play_live(app, backend).await?);
        }
        let text = format!("{} sessions were written; `bough ls` lists them", sessions.len());
        app.output.answer(&json!({ "session_ids": sessions }), || app.output.line(text))
    })
    .await
}
