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
        let session = resolve::session_to_show(app, backend, &args.session).await?;
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

/// The parents of all entries, in little memory: no table of ids, since a parent comes before its children and is found by
/// going backwards.
#[derive(Default)]
struct Parents {
    ids: Texts,
    /// The parent of each entry: nothing where it is the entry before, as it mostly is; its own id where it has none.
    parents: Texts,
}

impl Parents {
    fn add(&mut self, entry: &Outline) {
        let id = entry.id.as_str();
        let parent = entry.parent_id.as_ref().map_or(id, EntryId::as_str);
        let is_before = self.ids.last() == Some(parent);
        self.parents.push(if is_before { "" } else { parent });
        self.ids.push(id);
    }

    /// The ids from the root to the leaf. Each step goes back to where the parent is, so that all of them together pass
    /// over each entry once.
    fn path_to(&self, leaf: Option<&EntryId>) -> impl Iterator<Item = &str> {
        let mut at = leaf.and_then(|leaf| self.ids.last_before(self.ids.len(), leaf.as_str()));
        let mut path = Vec::new();
        while let Some(number) = at {
            path.push(number);
            at = match self.parents.get(number) {
                Some("") => number.checked_sub(1),
                Some(parent) => self.ids.last_before(number, parent),
                None => None,
            };
        }
        path.into_iter().rev().filter_map(|number| self.ids.get(number))
    }
}

/// Texts by their numbers, one after the other in one piece of memory.
#[derive(Default)]
struct Texts {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> Option<&str> {
        let start =
            number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start..*self.ends.get(number)?)
    }

    fn last(&self) -> Option<&str> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The number of the last text that is this one, among those before a number.
    fn last_before(&self, number: usize, text: &str) -> Option<usize> {
        (0..number).rev().find(|number| self.get(*number) == Some(text))
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
        add("d", Some("c"));
        add("e", Some("d"));
        let path = |leaf: &str| -> Vec<&str> {
            parents.path_to(Some(&EntryId::from_stored(leaf))).collect()
        };
        assert_eq!(path("c"), ["root", "a", "c"]);
        assert_eq!(path("b"), ["root", "b"]);
        assert_eq!(path("e"), ["root", "a", "c", "d", "e"]);
        assert_eq!(path("orphan"), ["orphan"]);
        assert_eq!(path("gone"), Vec::<&str>::new());
        assert_eq!(parents.path_to(None).count(), 0);
    }
}
