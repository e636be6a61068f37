use std::path::Path;

use bough_migrate::{MigrateError, RollbackOptions};

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::commands::export::failed;
use crate::commands::migrate::open;
use crate::files;
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::{count, shell_word};

/// Return a session that was brought in to its file
///
/// Entries that were written since are added to the file, and the file is verified. From then on the session is read
/// from the file and written to it again. If the file cannot hold everything, the command lists what would be lost and
/// changes nothing, unless `--accept-loss` is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough rollback last
  bough rollback s_4f2a --yes --reason 'back to pi'
  bough rollback s_4f2a --accept-loss")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// The reason, which the ledger keeps
    #[arg(long, default_value = "asked for")]
    reason: String,

    /// Go back even if the file cannot hold everything
    #[arg(long)]
    accept_loss: bool,

    /// Go back even if another program wrote to the file
    #[arg(long)]
    accept_changed: bool,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let data_dir = app.globals.data_dir_only("rollback")?;
    let session = resolve::in_closed_store(app, &args.session).await?;
    let migrator = open(&data_dir)?;
    let file = migrator
        .file_behind(&session.id)
        .map_err(|error| never_brought_in(&args.session, error))?;
    let question = format!("Return {:?} to {file}?", session.caption);
    if !args.yes && !app.output.confirm(&question, "--yes")? {
        return Err(CommandError::cancelled());
    }
    let options = RollbackOptions {
        reason: args.reason,
        accept_loss: args.accept_loss,
        accept_changed_target: args.accept_changed,
    };
    let done = migrator.rollback(&session.id, &options).map_err(failed)?;
    if done.has_late_writer {
        app.output.warn(&format!(
            "another program still has the file open that {} replaced; what it writes there is lost",
            done.address
        ));
    }
    // Opening the directory lists the session as its file shows it.
    app.with_backend(async |_| Ok(())).await?;
    if app.output.is_json() {
        return app.output.json(&done);
    }
    if done.already {
        return app.output.line(format!("the session was read from {} already", done.address));
    }
    app.output.line(format!("the session is read from {} again", done.address))?;
    let lines = count(done.exported, "line was", "lines were");
    app.output.note(Line::of(Style::Dim, format!("{lines} added to it")));
    Ok(())
}

/// A file that is served as it is has nothing to go back to: it is the store already.
fn never_brought_in(argument: &str, error: MigrateError) -> CommandError {
    let nothing = matches!(error, MigrateError::NothingToRollBackTo { .. });
    if !nothing || !files::exists(Path::new(argument)) {
        return failed(error);
    }
    CommandError::not_found(format!("{argument} was not brought in, so there is nothing to return"))
        .hint(format!("`bough migrate {}` would bring it in", shell_word(argument)))
}
