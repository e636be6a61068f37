use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_migrate::{Migrator, OsV1Files};
use bough_platform::{OsDisk, Platform};
use bough_session::SessionId;
use bough_store::SalvageReport;
use serde_json::json;

use crate::app::App;
use crate::backend::Local;
use crate::command_error::{CommandError, CommandResult};
use crate::commands::export::failed;
use crate::commands::migrate::open;
use crate::commands::verify::store_failed;
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
    refuse_same(&from, &args.to)?;
    let only = args.session.map(SessionId::from_stored);
    let mut bar = app.output.progress("Salvaging");
    let mut reports: Vec<SalvageReport> = Vec::new();
    let (old, new) = (Platform::system(&from)?, Platform::system(&args.to)?);
    bough_store::salvage(old, new, only.as_ref(), &mut |report| {
        bar.set(reports.len() as u64 + 1, 0, &report.id);
        reports.push(report);
    })
    .map_err(|error| store_failed(error).hint("give the whole id; `bough verify` lists them"))?;
    drop(bar);
    keep_ways_back(&from, &args.to, &reports)?;
    let saved: Vec<SessionId> =
        reports.iter().map(|report| SessionId::from_stored(report.id.clone())).collect();
    let rescued = Local::open(args.to.clone()).await?;
    rescued.show(&saved).await;
    rescued.close().await?;
    if reports.is_empty() {
        return Err(CommandError::not_found(format!("no sessions in {}", from.display())));
    }
    if app.output.is_json() {
        return app.output.json(&json!({ "to": args.to, "sessions": reports }));
    }
    for report in &reports {
        let saved = count(report.saved, "record", "records");
        let lost = report.damage.len();
        let rest = format!("{} reparented, {} left out", report.reparented, report.left_out);
        app.output
            .line(format!("{}: saved {saved}, {rest}, {lost} places unreadable", report.id))?;
    }
    Ok(())
}

/// A session that came from a file of pi can be given back to it from the new directory too.
fn keep_ways_back(from: &Path, to: &Path, reports: &[SalvageReport]) -> CommandResult<()> {
    let old = Migrator::open_to_look(Platform::system_to_look(from)?, Arc::new(OsV1Files));
    let new = open(to)?;
    for report in reports.iter().filter(|report| report.saved > 0) {
        new.keep_way_back(&old, &report.id).map_err(failed)?;
    }
    Ok(())
}

/// Copying a directory into itself would find every session there already.
fn refuse_same(from: &Path, to: &Path) -> CommandResult<()> {
    let place = |path: &Path| OsDisk::open(path).ok().map(|disk| disk.root().to_owned());
    if place(from).is_none_or(|from| place(to) != Some(from)) {
        return Ok(());
    }
    let text = format!("{} is the data directory itself", to.display());
    Err(CommandError::usage(text).hint("name a new directory with --to"))
}
