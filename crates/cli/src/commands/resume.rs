use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::commands::ls::current_dir;
use crate::screens::{Outcome, PickerOptions, PickerScope, ScreenOptions, ScreenStack};
use crate::summarise::Configured;

/// Pick a session to resume
///
/// Type to search titles, first messages, folders and models. Session files of pi that were not brought in are listed
/// too, marked `[pi file]`. Enter opens the session; with `--print-id` its id, or the path of its file, is printed
/// instead, for scripts: the screen is drawn on standard error.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  bough resume
  bough -r
  my-agent --session \"$(bough resume --print-id)\"
  bough resume --here              only sessions of this folder")]
pub(crate) struct Args {
    /// Print the id of the chosen session and exit
    #[arg(long)]
    print_id: bool,

    /// Begin with the sessions of the current folder
    #[arg(long)]
    here: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    if !app.output.can_show_screens() {
        return Err(no_terminal());
    }
    let project = current_dir().ok();
    let scope = if args.here { PickerScope::Project } else { PickerScope::All };
    let only_pick = args.print_id || app.output.is_json();
    app.with_backend(async |backend| {
        let options = ScreenOptions::new(app, backend, Configured::load(&app.globals)?);
        let outcome = crate::screens::run(options, |size, now_ms| {
            ScreenStack::with_picker(PickerOptions { size, now_ms, project, scope, only_pick })
        })
        .await?;
        match outcome {
            Outcome::Picked(session) => {
                let answer = json!({ "session_id": session });
                app.output.answer(&answer, || app.output.line(session.as_str()))
            }
            Outcome::PickedFile(file) => {
                app.output.answer(&json!({ "file": file }), || app.output.line(&*file))
            }
            Outcome::Cancelled if only_pick => Err(CommandError::cancelled()),
            Outcome::Cancelled | Outcome::Left => Ok(()),
            Outcome::Done(text) => app.output.line(text),
        }
    })
    .await
}

fn no_terminal() -> CommandError {
    CommandError::usage("picking a session needs a terminal")
        .hint("`bough ls` lists sessions, `bough ls --json` for programs")
}
