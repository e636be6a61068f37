use std::collections::HashSet;

use bough_service::api::MessageItem;
use bough_session::EntryId;
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, Happening, Summary};
use crate::command_error::CommandResult;
use crate::commands::print::print_item;
use crate::commands::show::newest;
use crate::output::{Line, Style};
use crate::resolve;

/// Show the newest messages of a session, and follow it
///
/// With `-f` it goes on while the session is written, by this or another process, until Ctrl-C or until the
/// session is deleted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough tail last
  bough tail -f last
  bough tail -f last --json | jq .payload")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// Go on as it is written
    #[arg(short = 'f', long)]
    follow: bool,

    /// How many of the newest messages to begin with
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10)]
    limit: usize,

    /// Show thoughts, arguments and results in full
    #[arg(long)]
    full: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        // Where to go on is asked for first: what comes in between is then told twice, never not at all.
        let start = match args.follow {
            true => Some(backend.news(session.id(), None).await?.next),
            false => None,
        };
        let (items, _) = newest(backend, &session, None, args.limit).await?;
        let mut follower = Follower { app, full: args.full, shown: HashSet::new(), last: None };
        for item in items {
            follower.show(item)?;
        }
        app.output.flush()?;
        match start {
            Some(start) => follow(backend, &session, start, &mut follower).await,
            None => Ok(()),
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
    loop {
        let news = tokio::select! {
            news = backend.news(session.id(), Some(&after)) => news?,
            stopped = tokio::signal::ctrl_c() => return Ok(stopped?),
        };
        if news.gap {
            follower.app.output.warn("some of what happened in between is missing here");
        }
        for happening in &news.events {
            follower.hear(happening)?;
            if happening.kind == "session::deleted" {
                return Ok(());
            }
        }
        follower.app.output.flush()?;
        after = news.next;
    }
}

/// What was printed, so that nothing is printed twice.
struct Follower<'a> {
    app: &'a App,
    full: bool,
    shown: HashSet<EntryId>,
    /// The entry that was printed last, and its text so far: a stream adds to it.
    last: Option<(EntryId, String)>,
}

impl Follower<'_> {
    fn show(&mut self, item: MessageItem) -> CommandResult<()> {
        if !self.shown.insert(item.entry_id.clone()) {
            return Ok(());
        }
        if self.app.output.is_json() {
            return self.app.output.json_line(&json!({ "type": "message", "payload": item }));
        }
        print_item(self.app, &item, self.full)?;
        let text = item.message.map(|message| message.text()).unwrap_or_default();
        self.last = Some((item.entry_id, text));
        Ok(())
    }

    fn hear(&mut self, happening: &Happening) -> CommandResult<()> {
        if self.app.output.is_json() {
            return self.app.output.json_line(happening);
        }
        match happening.kind.as_str() {
            "session::message-added" => {
                let item = serde_json::from_value(happening.payload.clone())?;
                self.show(item)
            }
            "session::message-updated" => {
                let item = serde_json::from_value(happening.payload.clone())?;
                self.update(item)
            }
            _ => self.remark(happening),
        }
    }

    /// A message grew: only what is new is printed, if it was the last one printed.
    fn update(&mut self, item: MessageItem) -> CommandResult<()> {
        let text = item.message.as_ref().map(|message| message.text()).unwrap_or_default();
        if let Some((entry, so_far)) = &mut self.last
            && *entry == item.entry_id
            && let Some(more) = text.strip_prefix(so_far.as_str())
        {
            if more.is_empty() {
                return Ok(());
            }
            let more = more.to_owned();
            *so_far = text;
            return self.app.output.text(&more);
        }
        self.shown.remove(&item.entry_id);
        self.app.output.line(Line::of(Style::Dim, "(changed)"))?;
        self.show(item)
    }

    /// What is not a message: one dim line.
    fn remark(&self, happening: &Happening) -> CommandResult<()> {
        let text = |field: &str| happening.payload.get(field).and_then(|value| value.as_str());
        let remark = match happening.kind.as_str() {
            "session::status-changed" => format!("status: {}", text("status").unwrap_or("?")),
            "session::leaf-moved" => format!("leaf: {}", text("entry_id").unwrap_or("(start)")),
            "session::deleted" => "the session was deleted".to_owned(),
            "session::meta-updated" => format!("title: {}", text("title").unwrap_or_default()),
            "session::label-changed" => {
                let label = text("label").unwrap_or("(none)");
                format!("label of {}: {label}", text("entry_id").unwrap_or("?"))
            }
            _ => return Ok(()),
        };
        self.app.output.line(Line::of(Style::Dim, format!("-- {remark}")))
    }
}
