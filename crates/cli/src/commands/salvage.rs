use std::path::{Path, PathBuf};

use bough_platform::{OsDisk, Platform};
use bough_session::SessionId;
use bough_store::{SalvageReport, StoreError};
use serde_json::json;

use crate::app::App;
use crate::backend::Local;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::commands::verify::{report_json, store_failed};
use crate::resolve;
use crate::text::count;

/// Copy the intact part of damaged sessions into a new data directory
///
/// The old directory is only read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough salvage --to ./rescued
  bough salvage s_4f2a91c0 --to ./rescued
  bough ls --data-dir ./rescued")]
pub(crate) struct Args {
    /// Only this session: an id or a unique beginning of one, a title, or `last` [default: all]
    session: Option<String>,

    /// The new data directory
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let from = app.globals.data_dir_only("salvage")?;
    refuse_same(&from, &args.to)?;
    // The new directory is made only when there is something to put into it.
    refuse_empty(&from)?;
    let only = match &args.session {
        Some(text) => Some(resolve::in_closed_store(app, text).await?.id),
        None => None,
    };
    let reports = copy(app, &from, &args.to, only.as_ref())?;
    let saved: Vec<SessionId> =
        reports.iter().map(|report| SessionId::from_stored(report.id.clone())).collect();
    let rescued = Local::open(args.to.clone()).await?;
    rescued.show(&saved).await;
    rescued.close().await?;
    report(app, &args.to, &reports)
}

fn copy(
    app: &App,
    from: &Path,
    to: &Path,
    only: Option<&SessionId>,
) -> CommandResult<Vec<SalvageReport>> {
    let mut bar = app.output.progress("Salvaging");
    let mut reports: Vec<SalvageReport> = Vec::new();
    let (old, new) = (Platform::system_to_look(from)?, Platform::system(to)?);
    bough_store::salvage(old, new, only, &mut |report| {
        bar.set(reports.len() as u64 + 1, 0, &report.id);
        reports.push(report);
    })
    .map_err(|error| match error {
        StoreError::Exists { .. } => store_failed(error).hint("name a new directory with --to"),
        error => store_failed(error),
    })?;
    Ok(reports)
}

fn report(app: &App, to: &Path, reports: &[SalvageReport]) -> CommandResult<()> {
    if app.output.is_json() {
        let sessions = reports.iter().map(report_json).collect::<CommandResult<Vec<_>>>()?;
        app.output.json(&json!({ "to": to, "sessions": sessions }))?;
    } else {
        reports.iter().try_for_each(|report| app.output.line(line(report)))?;
    }
    let not_saved = reports.iter().filter(|report| report.not_saved.is_some()).count();
    if not_saved == 0 {
        return Ok(());
    }
    let text = format!("{} not saved", count(not_saved as u64, "session was", "sessions were"));
    Err(CommandError::new(ErrorKind::Conflict, text).hint("name a new directory with --to"))
}

fn line(report: &SalvageReport) -> String {
    if let Some(why) = &report.not_saved {
        return format!("{}: not saved: {why}", report.id);
    }
    let saved = count(report.saved, "record", "records");
    let rest = format!("{} reparented, {} left out", report.reparented, report.left_out);
    let unreadable = count(report.damage.len() as u64, "place", "places");
    format!("{}: saved {saved}, {rest}, {unreadable} unreadable", report.id)
}

/// There must be something to copy.
fn refuse_empty(from: &Path) -> CommandResult<()> {
    let platform = Platform::system_to_look(from)?;
    if bough_store::holds_sessions(platform).map_err(store_failed)? {
        return Ok(());
    }
    Err(CommandError::not_found(format!("no sessions in {}", from.display())))
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
