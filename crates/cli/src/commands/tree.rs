use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bough_session::EntryId;

use crate::app::App;
use crate::backend::{Backend, Outline, Summary};
use crate::command_error::CommandResult;
use crate::output::{Line, Style};
use crate::resolve;
use crate::screens::{Outcome, ScreenOptions, ScreenStack, Target, TreeFilter, tree_lines};
use crate::summarise::Configured;

/// Walk the branches of a session
///
/// On a terminal this opens a screen. Enter switches to the chosen entry: the session goes on from there. A user message
/// opens in the editor first and is sent again, which begins a new branch. `f` forks, `l` labels, F1 shows all keys. With
/// `--print`, or without a terminal, the tree is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough tree last
  bough tree last --print
  bough tree last --print --filter user
  bough tree last --json | jq '.entries | length'")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
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
        let shown =
            crate::screens::run(options, |size, now_ms| ScreenStack::with(target, size, now_ms));
        match shown.await? {
            Outcome::Done(text) => app.output.line(text),
            _ => Ok(()),
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
    if app.output.is_json() {
        return print_json(app, backend, session).await;
    }
    let (entries, leaf) = resolve::all_entries(backend, session.id()).await?;
    app.output.line(Line::of(Style::Strong, session.caption()))?;
    for line in tree_lines(entries, leaf.as_ref(), filter, app.output.columns()) {
        app.output.line(line)?;
    }
    Ok(())
}

/// Prints the entries as they are read: of a session of any length only a page is in memory, and what is needed to
/// follow its active path.
async fn print_json(app: &App, backend: &Backend, session: &Summary) -> CommandResult<()> {
    let mut out = app.output.json_members();
    out.member("session_id", session.id())?;
    out.begin_list("entries")?;
    let mut parents = Parents::default();
    let mut cursor: Option<String> = None;
    let leaf = loop {
        let page = backend.entries(session.id(), cursor.as_deref()).await?;
        for entry in &page.entries {
            out.item(entry)?;
            parents.add(entry);
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break page.active_leaf,
        }
    };
    out.end_list()?;
    out.member("active_leaf", &leaf)?;
    out.begin_list("active_path")?;
    for id in parents.path_to(leaf.as_ref()) {
        out.item(&id)?;
    }
    out.end_list()?;
    out.finish()
}

/// The parents of all entries, in little room: ids one after the other, and numbers in the place of pointers.
#[derive(Default)]
struct Parents {
    ids: String,
    /// Where each id ends.
    ends: Vec<usize>,
    /// The number of each entry's parent; its own where it has none.
    parents: Vec<u32>,
    /// The newest entry of each hash of an id.
    newest: HashMap<u64, u32>,
    hasher: RandomState,
}

impl Parents {
    fn add(&mut self, entry: &Outline) {
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let parent = entry.parent_id.as_ref().and_then(|id| self.number_of(id.as_str()));
        self.parents.push(parent.unwrap_or(number));
        self.ids.push_str(entry.id.as_str());
        self.ends.push(self.ids.len());
        self.newest.insert(self.hasher.hash_one(entry.id.as_str()), number);
    }

    fn id(&self, number: u32) -> Option<&str> {
        let at = usize::try_from(number).ok()?;
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.ids.get(start..*self.ends.get(at)?)
    }

    fn number_of(&self, id: &str) -> Option<u32> {
        let number = *self.newest.get(&self.hasher.hash_one(id))?;
        self.id(number).filter(|found| *found == id).map(|_| number)
    }

    /// The ids from the root to the leaf. A parent comes before its children, so this ends.
    fn path_to(&self, leaf: Option<&EntryId>) -> Vec<&str> {
        let mut at = leaf.and_then(|leaf| self.number_of(leaf.as_str()));
        let mut path = Vec::new();
        while let Some(number) = at {
            path.extend(self.id(number));
            let parent = usize::try_from(number).ok().and_then(|at| self.parents.get(at).copied());
            at = parent.filter(|parent| *parent < number);
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bough_session::Role;

    #[test]
    fn the_active_path_is_followed_through_parents() {
        let mut parents = Parents::default();
        let mut add = |id: &str, parent: Option<&str>| {
            parents.add(&crate::screens::testing::entry(id, parent, Role::User, ""));
        };
        add("root", None);
        add("a", Some("root"));
        add("b", Some("root"));
        add("c", Some("a"));
        add("orphan", Some("gone"));
        let path = |leaf: &str| parents.path_to(Some(&EntryId::from_stored(leaf)));
        assert_eq!(path("c"), ["root", "a", "c"]);
        assert_eq!(path("b"), ["root", "b"]);
        assert_eq!(path("orphan"), ["orphan"]);
        assert_eq!(path("gone"), Vec::<&str>::new());
        assert_eq!(parents.path_to(None), Vec::<&str>::new());
    }
}
