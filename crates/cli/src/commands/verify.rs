use std::ops::ControlFlow;

use bough_platform::Platform;
use bough_store::{StoreError, VerifyReport};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::backend::describe_damage;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::{bytes, count};

/// Check every stored byte, without changing anything
///
/// The exit code is 0 only when there is no damage.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough verify
  bough verify last
  bough verify --json | jq '.sessions[] | select(.damage != [])'")]
pub(crate) struct Args {
    /// Only this session [default: all, deleted ones too]
    session: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let data_dir = app.globals.data_dir_only("verify")?;
    let session = match &args.session {
        Some(text) => Some(resolve::in_closed_store(app, text).await?.id),
        None => None,
    };
    let mut bar = app.output.progress("Checking");
    let mut reports: Vec<VerifyReport> = Vec::new();
    bough_store::verify(Platform::system(&data_dir)?, session.as_ref(), &mut |report| {
        bar.set(reports.len() as u64 + 1, 0, &report.id);
        reports.push(report);
        ControlFlow::Continue(())
    })
    .map_err(store_failed)?;
    drop(bar);
    report(app, &reports)
}

fn report(app: &App, reports: &[VerifyReport]) -> CommandResult<()> {
    let damaged = reports.iter().filter(|report| !report.is_well()).count();
    if app.output.is_json() {
        let sessions = reports.iter().map(report_json).collect::<CommandResult<Vec<_>>>()?;
        app.output.json(&json!({ "ok": damaged == 0, "sessions": sessions }))?;
    } else {
        for report in reports.iter().filter(|report| !report.is_well()) {
            app.output.line(Line::of(Style::Error, format!("damaged: {}", report.id)))?;
            for damage in &report.damage {
                app.output.line(format!("  {damage}"))?;
            }
        }
        let size = bytes(reports.iter().map(|report| report.bytes).sum());
        let sessions = count(reports.len() as u64, "session", "sessions");
        app.output.line(format!("checked {sessions}, {size}: {damaged} damaged"))?;
    }
    if damaged == 0 {
        return Ok(());
    }
    let text = format!("{} damaged", count(damaged as u64, "session is", "sessions are"));
    Err(CommandError::new(ErrorKind::Damaged, text).hint(next_step(reports)))
}

/// The next step where records are damaged.
const SALVAGE: &str = "`bough salvage --to DIR` copies the intact part into a new data directory";

fn next_step(reports: &[VerifyReport]) -> &'static str {
    if reports.iter().all(VerifyReport::lost_nothing) {
        return "no record is damaged: the files are made again when the session is next changed";
    }
    SALVAGE
}

/// A report with the session's id under the name that it has in every other answer.
pub(crate) fn report_json(report: &impl Serialize) -> CommandResult<Value> {
    let mut value = serde_json::to_value(report)?;
    if let Some(fields) = value.as_object_mut()
        && let Some(id) = fields.remove("id")
    {
        fields.insert("session_id".to_owned(), id);
    }
    Ok(value)
}

/// A failure of the store, by what a person can do about it.
pub(crate) fn store_failed(error: StoreError) -> CommandError {
    if let StoreError::Corrupt { what, place } = &error {
        return CommandError::new(ErrorKind::Damaged, describe_damage(what, place)).hint(SALVAGE);
    }
    let kind = match &error {
        StoreError::NotFound { .. } => ErrorKind::NotFound,
        StoreError::Locked { .. } | StoreError::Conflict { .. } | StoreError::Exists { .. } => {
            ErrorKind::Conflict
        }
        StoreError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            ErrorKind::NotFound
        }
        _ => ErrorKind::Failed,
    };
    CommandError::new(kind, error)
}
