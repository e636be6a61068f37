use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_migrate::{Migrator, OsV1Files};
use bough_platform::{OsDisk, Platform};
use bough_session::SessionId;
use bough_store::SalvageReport;
use serde_json::json;

use crate::app::App;
use crate::backend::Local;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::commands::export::failed;
use crate::commands::migrate::open;
use crate::commands::verify::{report_json, store_failed};
use crate::resolve;
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
        Some(text) => Some(named(app, text).await?),
        None => None,
    };
    let reports = copy(app, &from, &args.to, only.as_ref())?;
    keep_ways_back(&from, &args.to, &reports)?;
    let saved: Vec<SessionId> =
        reports.iter().map(|report| SessionId::from_stored(report.id.clone())).collect();
    let rescued = Local::open(args.to.clone()).await?;
    rescued.show(&saved).await;
    rescued.close().await?;
    report(app, &args.to, &reports)
}

/// The session that a text names. One that is too damaged to be looked at is meant by its whole id.
async fn named(app: &App, text: &str) -> CommandResult<SessionId> {
    let found = app.with_backend(async |backend| resolve::session(backend, text).await).await;
    match found {
        Ok(session) => Ok(session.id().clone()),
        Err(error) if error.kind == ErrorKind::Damaged => Ok(SessionId::from_stored(text)),
        Err(error) => Err(error),
    }
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
    .map_err(store_failed)?;
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
    format!("{}: saved {saved}, {rest}, {} places unreadable", report.id, report.damage.len())
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
