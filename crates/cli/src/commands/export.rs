use std::io::BufWriter;
use std::path::PathBuf;

use bough_migrate::{ExportFormat, ExportOptions, Exported, LostKind, MigrateError, export};
use bough_session::Format as MessageFormat;
use serde_json::json;

use crate::app::App;
use crate::backend::store_failed;
use crate::command_error::{CommandError, CommandResult, ErrorKind};
use crate::files::{self, NewFile};
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::count;

/// Export a session in a format that other programs read
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough export last --format md -o session.md
  bough export last --format pi -o session.jsonl
  bough export last --format json | jq .session
  bough export last --format jsonl --leaf plan-b
  bough export last --format anthropic | jq .messages")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// pi: a session file of pi; jsonl: one entry a line; json: one document; md: for people; the others: the messages of the
    /// branch as that API takes them, and what it could not carry
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "jsonl")]
    format: Format,

    /// Write to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Only the branch that ends at this entry
    #[arg(long, value_name = "ENTRY")]
    leaf: Option<String>,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Pi,
    Jsonl,
    Json,
    Md,
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
    AiSdk,
    Phi,
}

impl From<Format> for ExportFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Pi => Self::Pi,
            Format::Jsonl => Self::Jsonl,
            Format::Json => Self::Json,
            Format::Md => Self::Md,
            Format::Anthropic => Self::Conversation(MessageFormat::Anthropic),
            Format::OpenaiChat => Self::Conversation(MessageFormat::OpenaiChat),
            Format::OpenaiResponses => Self::Conversation(MessageFormat::OpenaiResponses),
            Format::Gemini => Self::Conversation(MessageFormat::Gemini),
            Format::AiSdk => Self::Conversation(MessageFormat::AiSdk),
            Format::Phi => Self::Conversation(MessageFormat::Phi),
        }
    }
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    if let Some(path) = args.output.as_ref().filter(|_| !args.force) {
        files::refuse_existing(path, "name another file, or pass --force to write over it")?;
    }
    app.with_backend(async |backend| {
        let session = resolve::session_to_show(app, backend, &args.session).await?;
        let leaf = resolve::branch_end(backend, &session, args.leaf.as_deref()).await?;
        let options = ExportOptions { format: args.format.into(), leaf, cwd: None };
        let store = backend.reads();
        let Some(path) = &args.output else {
            let mut out = app.output.writer();
            let written = export(&*store, session.id(), &options, &mut out).await;
            note_losses(app, written.map_err(failed)?);
            return Ok(());
        };
        let mut file = BufWriter::new(NewFile::begin(path)?);
        let written = export(&*store, session.id(), &options, &mut file).await;
        let file = file.into_inner().map_err(|error| CommandError::from(error.into_error()))?;
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                file.discard();
                return Err(failed(error));
            }
        };
        file.finish()?;
        if app.output.is_json() {
            return app.output.json(&json!({
                "session_id": session.id(), "file": args.output, "written": written,
            }));
        }
        let entries = count(written.entries, "entry", "entries");
        app.output.note(Line::of(Style::Dim, format!("wrote {entries}")));
        note_losses(app, written);
        Ok(())
    })
    .await
}

/// Warns that the format could not express everything.
fn note_losses(app: &App, written: Exported) {
    if written.losses > 0 {
        let things = count(written.losses, "thing", "things");
        let text =
            format!("the format has no place for {things}: see `losses` in what was written");
        app.output.note(Line::of(Style::Dim, text));
    }
}

/// An error of migrating, rolling back or exporting, by what a person can do about it.
pub(crate) fn failed(error: MigrateError) -> CommandError {
    // A closed pipe is not a failure, and errors of the disk explain themselves.
    let error = match error {
        MigrateError::Io(error) => return CommandError::from(error),
        MigrateError::Store(error) => return store_failed(error).into(),
        other => other,
    };
    let (kind, hint) = match &error {
        MigrateError::Missing { .. } => (ErrorKind::NotFound, None),
        MigrateError::NotASession { .. } => {
            (ErrorKind::NotFound, Some("a session file of pi is JSON lines, or its SQLite form"))
        }
        MigrateError::NothingToRollBackTo { .. } => (
            ErrorKind::NotFound,
            Some("it was not brought in from a file; `bough export SESSION --format pi` makes one"),
        ),
        MigrateError::Exists { .. } => {
            (ErrorKind::Conflict, Some("`bough export` it and `bough rm` it, then migrate again"))
        }
        // Its message has the next step.
        MigrateError::ChangedSince { .. } => (ErrorKind::Conflict, None),
        MigrateError::SourceChanged { .. }
        | MigrateError::Locked { .. }
        | MigrateError::Contended { .. } => {
            (ErrorKind::Conflict, Some("run the command again when the file is quiet"))
        }
        MigrateError::SessionLocked { .. } => (
            ErrorKind::Conflict,
            Some("a server releases a session that nobody uses, and all of them when it stops"),
        ),
        // What cannot be read cannot be exported either.
        MigrateError::WouldLose { lost }
            if lost.iter().any(|one| one.kind == LostKind::Damaged) =>
        {
            let way_out =
                "`bough salvage SESSION --to DIR` copies what is whole, or pass --accept-loss";
            (ErrorKind::Conflict, Some(way_out))
        }
        MigrateError::WouldLose { .. } => {
            (ErrorKind::Conflict, Some("`bough export SESSION`, or pass --accept-loss"))
        }
        MigrateError::TargetChanged { .. } => {
            (ErrorKind::Conflict, Some("`bough export SESSION`, or pass --accept-changed"))
        }
        MigrateError::VerificationFailed { .. } | MigrateError::NeedsOperator { .. } => {
            (ErrorKind::Damaged, None)
        }
        error if error.is_damage() => (ErrorKind::Damaged, None),
        _ => (ErrorKind::Failed, None),
    };
    CommandError::new(kind, error).maybe_hint(hint)
}
