use std::collections::HashSet;

use bough_service::api::MessageItem;
use bough_session::EntryId;
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, SessionEvent, Summary};
use crate::command_error::CommandResult;
use crate::commands::print::{heading, print_block};
use crate::commands::show::newest;
use crate::limits::{EVENTS_WAIT, LINE_REST};
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::Flow;
use crate::transcript::{Block, BlockKind, Shown, shown};

/// Show the newest messages of a session, and follow it
///
/// With `-f` it keeps printing what any process adds to the session, until Ctrl-C or until the session is deleted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough tail last
  bough tail -f last
  bough tail -f last --json | jq .payload")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
    session: String,

    /// Keep printing new messages as they arrive
    #[arg(short = 'f', long)]
    follow: bool,

    /// How many of the newest messages to print first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10)]
    limit: usize,

    /// Show thinking, tool arguments and tool results in full
    #[arg(long)]
    full: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session_to_show(app, backend, &args.session).await?;
        // Ask for the cursor of the events first: an entry in between then arrives twice, and is never missed.
        let start = match args.follow {
            true => Some(backend.events(session.id(), None, EVENTS_WAIT).await?.next),
            false => None,
        };
        let (items, _) = newest(backend, &session, None, args.limit).await?;
        let mut follower = Follower { app, full: args.full, shown: HashSet::new(), last: None };
        for item in items {
            follower.show(item)?;
        }
        follower.show_all()?;
        match start {
            Some(start) => follow(backend, &session, start, &mut follower).await,
            None => follower.close(),
        }
    })
    .await
}

async fn follow(
    backend: &Backend,
    session: &Summary,
    start: String,
    follower: &mut Follower<'_>,
) -> CommandResult<()> {
    let mut after = start;
    // One future for the whole loop: a Ctrl-C between two of them would be lost.
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let page = {
            let mut asked = std::pin::pin!(backend.events(session.id(), Some(&after), EVENTS_WAIT));
            loop {
                tokio::select! {
                    page = &mut asked => break page?,
                    () = tokio::time::sleep(LINE_REST), if follower.keeps_program_waiting() => {
                        follower.end_line()?;
                        follower.show_all()?;
                    }
                    stopped = &mut stop => {
                        follower.close()?;
                        return Ok(stopped?);
                    }
                }
            }
        };
        if page.gap {
            follower.app.output.warn("some events are missing here: they are no longer kept");
        }
        for event in &page.events {
            follower.on_event(event)?;
            if event.kind == "session::deleted" {
                return Ok(());
            }
        }
        follower.show_all()?;
        after = page.next;
    }
}

/// What was printed, so that nothing is printed twice.
struct Follower<'a> {
    app: &'a App,
    full: bool,
    shown: HashSet<EntryId>,
    last: Option<Last>,
}

/// The entry that was printed last, as far as it was printed: a stream adds to it.
struct Last {
    entry: EntryId,
    blocks: Vec<Block>,
    /// Where the printing of its last text stands.
    flow: Flow,
}

impl Follower<'_> {
    fn show(&mut self, item: MessageItem) -> CommandResult<()> {
        if !self.shown.insert(item.entry_id.clone()) {
            return Ok(());
        }
        if self.app.output.is_json() {
            return self.app.output.json_line(&json!({ "type": "message", "payload": item }));
        }
        self.close()?;
        let shown = shown(&item);
        self.app.output.line(heading(&shown, item.entry_id.as_str()))?;
        let Shown { blocks, .. } = shown;
        let flow = self.app.output.flow();
        self.last = Some(Last { entry: item.entry_id, blocks: blocks.clone(), flow });
        blocks.iter().try_for_each(|block| self.print(block))
    }

    /// Ends the last entry, because something else follows.
    fn close(&mut self) -> CommandResult<()> {
        self.end_line()?;
        match self.last.take() {
            Some(_) => self.app.output.line(""),
            None => Ok(()),
        }
    }

    fn end_line(&mut self) -> CommandResult<()> {
        match &mut self.last {
            Some(last) => self.app.output.finish(&mut last.flow),
            None => Ok(()),
        }
    }

    fn keeps_program_waiting(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.flow.keeps_program_waiting())
    }

    /// Flushes everything so far. A line that still grows is not ended, also if a program reads it.
    fn show_all(&mut self) -> CommandResult<()> {
        self.app.output.flush()
    }

    fn on_event(&mut self, event: &SessionEvent) -> CommandResult<()> {
        if self.app.output.is_json() {
            return self.app.output.json_line(event);
        }
        match event.kind.as_str() {
            "session::message-added" => {
                let item = serde_json::from_value(event.payload.clone())?;
                self.show(item)
            }
            "session::message-updated" => {
                let item = serde_json::from_value(event.payload.clone())?;
                self.update(item)
            }
            _ => self.remark(event),
        }
    }

    /// A message changed: if it was printed last and grew, only the new part is printed.
    fn update(&mut self, item: MessageItem) -> CommandResult<()> {
        let blocks = shown(&item).blocks;
        let last = self.last.as_ref().filter(|last| last.entry == item.entry_id);
        if let Some(more) = last.and_then(|last| added(&last.blocks, &blocks)) {
            return self.grow(&more, blocks);
        }
        self.shown.remove(&item.entry_id);
        self.close()?;
        self.app.output.line(Line::of(Style::Dim, "(changed)"))?;
        self.show(item)
    }

    fn grow(&mut self, more: &Added, blocks: Vec<Block>) -> CommandResult<()> {
        let Some(last) = &mut self.last else { return Ok(()) };
        let streams = last.blocks.last().is_some_and(|block| is_open(block, self.full));
        last.blocks.clone_from(&blocks);
        if streams && !more.text.is_empty() {
            self.add_text(&more.text)?;
        }
        blocks.iter().skip(more.from).try_for_each(|block| self.print(block))
    }

    /// Prints a block. The last line of a text stays open, because a stream may add to it.
    fn print(&mut self, block: &Block) -> CommandResult<()> {
        self.end_line()?;
        match block.kind {
            BlockKind::Text => self.add_text(&block.body),
            BlockKind::Thinking if self.full => {
                let title = Block { body: String::new(), ..block.clone() };
                print_block(self.app, &title, self.full)?;
                self.add_text(&block.body)
            }
            _ => print_block(self.app, block, self.full),
        }
    }

    /// Adds to the line that is being written, or begins one.
    fn add_text(&mut self, text: &str) -> CommandResult<()> {
        match &mut self.last {
            Some(last) => self.app.output.add_to(&mut last.flow, text),
            None => Ok(()),
        }
    }

    /// Prints an event that is not a message, as one dim line.
    fn remark(&mut self, event: &SessionEvent) -> CommandResult<()> {
        let text = |field: &str| event.payload.get(field).and_then(|value| value.as_str());
        let remark = match event.kind.as_str() {
            "session::status-changed" => format!("status: {}", text("status").unwrap_or("?")),
            "session::leaf-moved" => format!("leaf: {}", text("entry_id").unwrap_or("(start)")),
            "session::deleted" => "the session was deleted".to_owned(),
            "session::meta-updated" => format!("title: {}", text("title").unwrap_or_default()),
            // A label is an entry too, and is printed as one.
            _ => return Ok(()),
        };
        self.close()?;
        self.app.output.line(Line::of(Style::Dim, format!("-- {remark}")))
    }
}

/// What a message has beyond its printed part.
#[derive(Debug, PartialEq, Eq)]
struct Added {
    /// At the end of the last block that was printed.
    text: String,
    /// The first block that is new.
    from: usize,
}

/// What was added to a message; `None` if it changed in another way.
fn added(old: &[Block], new: &[Block]) -> Option<Added> {
    let Some((last, before)) = old.split_last() else {
        return Some(Added { text: String::new(), from: 0 });
    };
    let grown = new.get(before.len())?;
    let is_same = new.get(..before.len()) == Some(before) && grown.kind == last.kind;
    let text = grown.body.strip_prefix(last.body.as_str()).filter(|_| is_same)?;
    Some(Added { text: text.to_owned(), from: old.len() })
}

/// Whether the text of a block was printed, so that more of it can be.
fn is_open(block: &Block, full: bool) -> bool {
    block.kind == BlockKind::Text || full && block.kind == BlockKind::Thinking
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> Block {
        Block { kind: BlockKind::Text, title: String::new(), body: body.to_owned() }
    }

    fn call(body: &str) -> Block {
        Block { kind: BlockKind::Call, title: "f".to_owned(), body: body.to_owned() }
    }

    #[test]
    fn what_a_message_grew_by_is_told_apart_from_other_changes() {
        let check = |old: &[Block], new: &[Block], expected: Option<(&str, usize)>| {
            let found = added(old, new);
            let found = found.as_ref().map(|more| (more.text.as_str(), more.from));
            assert_eq!(found, expected, "{old:?} {new:?}");
        };
        check(&[], &[text("a")], Some(("", 0)));
        check(&[text("a")], &[text("ab")], Some(("b", 1)));
        check(&[text("a")], &[text("a"), call("{}")], Some(("", 1)));
        check(&[text("a"), text("b")], &[text("a"), text("bc"), call("{}")], Some(("c", 2)));
        check(&[text("a")], &[text("b")], None);
        check(&[text("a")], &[call("a")], None);
        check(&[text("a"), text("b")], &[text("x"), text("b")], None);
        check(&[text("a"), text("b")], &[text("a")], None);
    }
}
