use bough_recorder::{Pace, Replay};

use crate::app::App;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};
use crate::resolve;

/// Play a recorded session back as the events that made it, one JSON object a line
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough replay last
  bough replay last --speed recorded
  bough replay last --loop main-1 --from 12
  bough replay last | bough record --data-dir ./copy")]
pub(crate) struct Args {
    /// The session
    session: String,

    /// Only the events of this loop
    #[arg(long = "loop", value_name = "LOOP")]
    only: Option<String>,

    /// Only from this event of the loop on
    #[arg(long, value_name = "NUMBER", requires = "only")]
    from: Option<u64>,

    /// How fast
    #[arg(long, value_name = "SPEED", default_value = "at-once")]
    speed: Speed,

    /// Leave out what only Bough understands
    #[arg(long)]
    events_only: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Speed {
    /// As fast as it was
    Recorded,
    /// Without waiting
    AtOnce,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.globals.data_dir_only("replay")?;
    app.with_backend(async |backend| {
        let Backend::Local(local) = backend else {
            return Err(CommandError::usage("replaying works on a data directory"));
        };
        let session = resolve::session(backend, &args.session).await?;
        let fold = local.fold(session.id()).await?;
        let recorded = fold.session().ok_or_else(|| {
            CommandError::not_found(format!("{} was not recorded from events", session.caption()))
                .hint("`bough export` writes it in other formats")
        })?;
        let mut replay = Replay::of(recorded);
        if let Some(from) = args.from {
            replay = replay.from_event(args.only.as_deref().unwrap_or_default(), from);
        } else if let Some(only) = &args.only {
            replay = replay.only_loop(only);
        }
        if args.events_only {
            replay = replay.without_facts();
        }
        let pace = match args.speed {
            Speed::Recorded => Pace::Recorded,
            Speed::AtOnce => Pace::AtOnce,
        };
        for step in replay.steps(pace) {
            if !step.after.is_zero() {
                app.output.flush()?;
                tokio::time::sleep(step.after).await;
            }
            app.output.json_line(&step.event)?;
        }
        Ok(())
    })
    .await
}
