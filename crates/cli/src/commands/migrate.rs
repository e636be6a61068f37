use std::path::{Path, PathBuf};
use std::sync::Arc;

use bough_migrate::{FileResult, Migrator, OsV1Files, Outcome, Plan, Progress, Standing};
use bough_platform::{Platform, follow};
use serde_json::json;

use crate::app::App;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::commands::export::failed;
use crate::limits::PASSED_OVER_TOLD;
use crate::output::{Cell, Line, Style, Table};
use crate::text::{bytes, count};

/// Bring in sessions of pi: a file, or all below a directory
///
/// The files are only read. Each file becomes a session of its own, which is compared with the file before it is used
/// and can be rolled back. A file that was brought in before is skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough migrate ~/.pi/agent/sessions --dry-run
  bough migrate ~/.pi/agent/sessions
  bough migrate session.jsonl --json
  bough import session.jsonl       the same")]
pub(crate) struct Args {
    /// A session file, or a directory
    source: PathBuf,

    /// Show what would be done, and do nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let data_dir = app.globals.data_dir_only("migrate")?;
    let source =
        args.source.to_str().map(str::to_owned).ok_or_else(|| {
            CommandError::usage(format!("{} is not UTF-8", args.source.display()))
        })?;
    // Follow the path instead of reading its name: `.` and `..` have none.
    if follow(&args.source)?.is_none() {
        return Err(CommandError::not_found(format!("there is nothing at {source}"))
            .hint("give a session file of pi, or a directory such as ~/.pi/agent/sessions"));
    }
    if args.dry_run {
        let platform = Platform::system_to_look(&data_dir)?;
        let migrator = Migrator::open_to_look(platform, Arc::new(OsV1Files));
        return plan(app, &migrator, &source);
    }
    let results = carry_out(app, &open(&data_dir)?, &source)?;
    // Opening the directory adds migrated sessions to its lists, also for programs that have it
    // open.
    app.with_backend(async |_| Ok(())).await?;
    finish(app, &source, &results)
}

/// The migrator of a data directory.
pub(crate) fn open(data_dir: &Path) -> CommandResult<Migrator> {
    let platform = Platform::system(data_dir)?;
    Migrator::open(platform, Arc::new(OsV1Files)).map_err(failed)
}

fn plan(app: &App, migrator: &Migrator, source: &str) -> CommandResult<()> {
    let found = migrator.find(source).map_err(failed)?;
    let mut plans = Vec::new();
    let closed = found.unreadable.into_iter();
    let mut refused: Vec<(String, String)> =
        closed.map(|folder| (folder.address, folder.error.unwrap_or_default())).collect();
    let mut bar = app.output.progress("Reading");
    let total = found.files.len() as u64;
    for (at, file) in found.files.into_iter().enumerate() {
        bar.set(at as u64, total, &file);
        match migrator.plan(&file, &mut |_| {}) {
            Ok(plan) => plans.push(after(&plans, plan)),
            Err(error) => refused.push((file, error.to_string())),
        }
    }
    drop(bar);
    if app.output.is_json() {
        let refused: Vec<_> = refused
            .iter()
            .map(|(file, error)| json!({ "address": file, "error": error }))
            .collect();
        return app.output.json(&json!({ "dry_run": true, "plans": plans, "refused": refused }));
    }
    app.output.table(&table_of(&plans))?;
    for plan in plans.iter().filter(|plan| !plan.report.is_well()) {
        app.output.warn(&findings(plan));
    }
    for (file, error) in refused {
        app.output.warn(&naming(&file, &error));
    }
    app.output.note(Line::of(Style::Dim, "nothing was written (--dry-run)"));
    Ok(())
}

/// A plan as it is after the files before it were migrated: one of them may have the same session
/// id.
fn after(before: &[Plan], mut plan: Plan) -> Plan {
    if let Some(first) = before.iter().find(|other| other.session_id == plan.session_id) {
        let is_copy = first.snapshot_id == plan.snapshot_id;
        plan.standing = if is_copy { Standing::Migrated } else { Standing::Taken };
    }
    plan
}

/// An error with the name of its file.
fn naming(file: &str, error: &str) -> String {
    if error.contains(file) { error.to_owned() } else { format!("{file}: {error}") }
}

fn table_of(plans: &[Plan]) -> Table {
    let headings = ["SESSION", "FILE", "ENTRIES", "SIZE", "WOULD BE"];
    // The file is what the user named; its session has no name yet.
    let mut table = Table::new(&headings, Some(1)).with_optional(&[3, 2, 0]);
    plans.iter().for_each(|plan| table.row(plan_row(plan)));
    table
}

fn plan_row(plan: &Plan) -> Vec<Cell> {
    let standing = match plan.standing {
        Standing::New => "brought in",
        Standing::Migrated => "left alone: it is here already",
        Standing::MigratedThenChanged => "refused: it was changed since",
        Standing::ServedFromFile => "brought in again",
        Standing::Taken => "refused: another session has the id",
    };
    vec![
        Cell::new(plan.session_id.as_str()),
        Cell::new(&plan.address).keeping_end(),
        Cell::new(plan.report.entries.to_string()).right(),
        Cell::new(bytes(plan.bytes)).right(),
        Cell::new(standing),
    ]
}

fn carry_out(app: &App, migrator: &Migrator, source: &str) -> CommandResult<Vec<FileResult>> {
    let mut bar = app.output.progress("Migrating");
    migrator
        .migrate_all(
            source,
            &mut |file: &str, at: Progress| bar.set(at.done_bytes, at.total_bytes, file),
            &mut |_| {},
        )
        .map_err(failed)
}

fn finish(app: &App, source: &str, results: &[FileResult]) -> CommandResult<()> {
    if results.is_empty() {
        return Err(CommandError::not_found(format!("there are no session files in {source}"))
            .hint("they end in .jsonl or .sqlite"));
    }
    // A file that was named must be a session; among many files, others may be present.
    let named = results.len() == 1;
    let is_wrong = |result: &&FileResult| result.error.is_some() && (named || !result.skipped);
    let wrong = results.iter().filter(is_wrong).count();
    if app.output.is_json() {
        app.output.json(&json!({ "files": results, "failed": wrong }))?;
    } else {
        report(app, results)?;
    }
    if wrong > 0 {
        let text = format!("{} could not be brought in", count(wrong as u64, "file", "files"));
        let error = CommandError::new(ErrorKind::Failed, text);
        return Err(error.hint("each is listed above with its fault; the others are not affected"));
    }
    Ok(())
}

fn report(app: &App, results: &[FileResult]) -> CommandResult<()> {
    let (mut migrated, mut already, mut skipped) = (0_u64, 0_u64, 0_u64);
    for result in results {
        match (&result.summary, &result.error) {
            (Some(summary), _) => {
                match summary.outcome {
                    Outcome::Migrated => migrated += 1,
                    Outcome::AlreadyMigrated => already += 1,
                }
                if !summary.plan.report.is_well() {
                    app.output.warn(&findings(&summary.plan));
                }
            }
            (None, error) => {
                let passed_over = result.skipped && results.len() > 1;
                skipped += u64::from(passed_over);
                if !passed_over || skipped <= PASSED_OVER_TOLD {
                    app.output.warn(&naming(&result.address, error.as_deref().unwrap_or_default()));
                }
            }
        }
    }
    let sessions = count(migrated, "session", "sessions");
    let mut text = format!("brought in {sessions}");
    if already > 0 {
        let were = if already == 1 { "was" } else { "were" };
        text.push_str(&format!(", {already} {were} here already"));
    }
    if skipped > 0 {
        let files = count(skipped, "file is no session", "files are no sessions");
        text.push_str(&format!(", {files}"));
    }
    app.output.line(text)
}

/// Irregularities of a file. None of them leaves anything out.
fn findings(plan: &Plan) -> String {
    let counts = plan.report.counts.iter().map(|(kind, number)| {
        let word = serde_json::to_value(kind).ok();
        let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or("odd").replace('_', " ");
        format!("{number} {word}")
    });
    format!("{}: {} (kept)", plan.address, counts.collect::<Vec<_>>().join(", "))
}
