use std::path::{Path, PathBuf};

use bough_session::EntryId;
use serde_json::json;

use crate::app::App;
use crate::backend::Summary;
use crate::command_error::{CommandError, CommandResult};
use crate::files;
use crate::fork_file::{ForkedFile, fork_to_file};
use crate::output::{Line, Style};
use crate::resolve;

/// Copy a session up to an entry into a new session
///
/// The old session stays as it is; the new one has copies of its entries.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough fork last                        up to where it is now
  bough fork last e_91c --title 'Plan B'
  bough fork last e_91c --before         up to the entry before that one
  bough fork session.jsonl --pi-file .   a session file of pi as another one")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
    session: String,

    /// The last entry to copy: an id, a beginning of one, or a label [default: the active leaf]
    entry: Option<String>,

    /// The title of the new session [default: the old one's]
    #[arg(short = 't', long)]
    title: Option<String>,

    /// Copy up to the entry before ENTRY, so that you can write another message there
    #[arg(long, requires = "entry")]
    before: bool,

    /// Write the fork as a session file of pi instead: this file, or a new one in this directory
    #[arg(long, value_name = "PATH", conflicts_with = "title")]
    pi_file: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session_to_show(app, backend, &args.session).await?;
        let named = args.entry.as_deref().unwrap_or("leaf");
        let mut entry = resolve::entry(backend, &session, named).await?;
        if args.before {
            let page = backend.path_page(session.id(), Some(&entry), true, 2, None).await?;
            let parent = page.messages.into_iter().nth(1).map(|item| item.entry_id);
            entry = parent.ok_or_else(|| {
                CommandError::usage("that is the first entry; there is none before it")
            })?;
        }
        if let Some(to) = &args.pi_file {
            let parent = Path::new(&args.session);
            let parent = Some(parent).filter(|path| files::exists(path));
            let made = fork_to_file(app, backend, (session.id(), &entry), to, parent).await?;
            return report_file(app, &session, &entry, &made);
        }
        let fork = backend.fork(session.id(), &entry, args.title.as_deref()).await?;
        if app.output.is_json() {
            return app.output.json(&json!({
                "session_id": fork.session_id, "forked_from": session.id(), "entry_id": entry,
                "meta": fork,
            }));
        }
        app.output.line(fork.session_id.as_str())?;
        let note = format!("forked from {} at {entry}", session.caption());
        app.output.note(Line::of(Style::Dim, note));
        Ok(())
    })
    .await
}

fn report_file(
    app: &App,
    session: &Summary,
    entry: &EntryId,
    made: &ForkedFile,
) -> CommandResult<()> {
    if app.output.is_json() {
        return app.output.json(&json!({
            "session_id": made.session_id, "forked_from": session.id(), "entry_id": entry,
            "file": made.path,
        }));
    }
    app.output.line(made.path.display().to_string())?;
    let note = format!("forked from {} at {entry}", session.caption());
    app.output.note(Line::of(Style::Dim, note));
    Ok(())
}
