use bough_recorder::{Pace, RecordFold, RecordedSession, Replay};

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::resolve;

/// Replay a recorded session as its events, one JSON object a line
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

    /// Only from this event on, counted from 0; with --loop, among the events of that loop
    #[arg(long, value_name = "NUMBER")]
    from: Option<usize>,

    /// The speed
    #[arg(long, value_name = "SPEED", default_value = "at-once")]
    speed: Speed,

    /// Leave out events that only Bough understands
    #[arg(long)]
    events_only: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Speed {
    /// As it was recorded
    Recorded,
    /// Without waiting
    AtOnce,
}

/// The part of a replay that was asked for.
fn part(mut replay: Replay, recorded: &RecordedSession, args: &Args) -> CommandResult<Replay> {
    if let Some(only) = &args.only {
        if recorded.get_loop(only).is_none() {
            let text = format!("the session has no loop {only:?}");
            return Err(
                CommandError::not_found(text).hint("`bough show SESSION --loops` lists them")
            );
        }
        replay = replay.only_loop(only);
    }
    if args.events_only {
        replay = replay.without_facts();
    }
    let Some(from) = args.from else {
        return Ok(replay);
    };
    if from >= replay.len() {
        let text = format!("there is no event {from}: there are {}, from 0", replay.len());
        return Err(CommandError::not_found(text));
    }
    Ok(replay.from_number(from))
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session_to_show(app, backend, &args.session).await?;
        let fold = RecordFold::to_replay(session.id().as_str());
        let fold = backend.fold(session.id(), fold).await?;
        let (Some(recorded), Some(replay)) = (fold.session(), fold.replay()) else {
            let text = format!("{} was not recorded from events", session.caption());
            return Err(
                CommandError::not_found(text).hint("`bough export` writes it in other formats")
            );
        };
        let replay = part(replay, recorded, &args)?;
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
