use std::path::PathBuf;

use bough_log::{LogStore, Options, SalvageReport};
use bough_platform::Platform;
use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult};
use crate::commands::verify::log_failed;
use crate::text::count;

/// Copy what is whole of damaged sessions into a new data directory
///
/// The old one is only read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough salvage --to ./rescued
  bough salvage s_4f2a91c0 --to ./rescued
  bough ls --data-dir ./rescued")]
pub(crate) struct Args {
    /// Only the session with this id [default: all]
    session: Option<String>,

    /// The new data directory
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let from = app.globals.data_dir_only("salvage")?;
    let old = LogStore::open_to_look(Platform::system(&from)?, Options::default());
    let new = LogStore::open(Platform::system(&args.to)?, Options::default()).map_err(log_failed)?;
    let ids = match args.session {
        Some(id) => vec![id],
        None => all(&old)?,
    };
    if ids.is_empty() {
        return Err(CommandError::not_found(format!("no sessions in {}", from.display())));
    }
    let mut bar = app.output.progress("Salvaging");
    let mut reports: Vec<SalvageReport> = Vec::new();
    for (at, id) in ids.iter().enumerate() {
        bar.set(at as u64, ids.len() as u64, id);
        reports.push(old.salvage(id, &new).map_err(log_failed)?);
    }
    drop(bar);
    new.close_all().map_err(log_failed)?;
    if app.output.is_json() {
        return app.output.json(&json!({ "to": args.to, "sessions": reports }));
    }
    for report in &reports {
        let saved = count(report.saved, "record", "records");
        let lost = report.damage.len();
        let rest = format!("{} reparented, {} left out", report.reparented, report.left_out);
        app.output.line(format!("{}: saved {saved}, {rest}, {lost} places unreadable", report.id))?;
    }
    Ok(())
}

fn all(log: &LogStore) -> CommandResult<Vec<String>> {
    let mut ids = Vec::new();
    log.visit(&mut |listed| ids.extend(listed.ok().map(|listed| listed.id))).map_err(log_failed)?;
    Ok(ids)
}
