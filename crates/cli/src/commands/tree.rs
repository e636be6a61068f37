use std::collections::HashMap;

use bough_session::EntryId;
use bough_session::tree::path_to;
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, Outline, Summary};
use crate::command_error::CommandResult;
use crate::output::{Line, Style};
use crate::resolve;
use crate::screens::{Desk, Outcome, ScreenOptions, Target, TreeFilter, tree_lines};
use crate::summarise::Configured;

/// Walk the branches of a session
///
/// On a terminal a screen opens: Enter makes the chosen entry the end of the active path (a user message is offered for
/// editing and said anew, which begins a branch), `f` forks, `l` labels. Otherwise, or with `--print`, the tree is
/// printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough tree last
  bough tree last --print
  bough tree last --print --filter user
  bough tree last --json | jq '.entries | length'")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// Print the tree instead of opening a screen
    #[arg(short = 'p', long)]
    print: bool,

    /// Which entries to print
    #[arg(long, value_name = "FILTER", default_value = "default")]
    filter: TreeFilter,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        if args.print || app.output.is_json() || !app.output.can_show_screens() {
            return print(app, backend, &session, args.filter).await;
        }
        let target = Target::Tree(session.id().clone());
        let options = ScreenOptions::new(app, backend, Configured::load(&app.globals)?);
        let shown = crate::screens::run(options, |size, now_ms| Desk::with(target, size, now_ms));
        match shown.await? {
            Outcome::Done(text) => app.output.line(text),
            Outcome::Left | Outcome::Cancelled | Outcome::Picked(_) => Ok(()),
        }
    })
    .await
}

async fn print(
    app: &App,
    backend: &Backend,
    session: &Summary,
    filter: TreeFilter,
) -> CommandResult<()> {
    let (entries, leaf) = resolve::all_entries(backend, session.id()).await?;
    if app.output.is_json() {
        let active = active_path(&entries, leaf.as_ref());
        return app.output.json(&json!({
            "session_id": session.id(), "active_leaf": leaf, "active_path": active,
            "entries": entries,
        }));
    }
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    for line in tree_lines(entries, leaf.as_ref(), filter) {
        app.output.line(line)?;
    }
    Ok(())
}

/// The ids from the root to the leaf.
fn active_path<'a>(entries: &'a [Outline], leaf: Option<&'a EntryId>) -> Vec<&'a EntryId> {
    let parents: HashMap<&EntryId, &'a EntryId> =
        entries.iter().filter_map(|entry| Some((&entry.id, entry.parent_id.as_ref()?))).collect();
    leaf.map_or_else(Vec::new, |leaf| path_to(leaf, |id| parents.get(id).copied()))
}
