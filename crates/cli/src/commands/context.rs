use bough_service::api::{ContextItem, MessageItem};
use bough_service::compaction::ContextStream;
use bough_session::{EntryId, SessionId};
use serde_json::json;

use crate::app::App;
use crate::backend::{Backend, service_failed};
use crate::command_error::CommandResult;
use crate::commands::print::print_item;
use crate::output::{Line, Style};
use crate::resolve;
use crate::summarise::Configured;
use crate::text::{count, tokens};

/// Show what a model would be sent
///
/// Prints the active path; a summary replaces the messages that it covers. The tokens are those that the newest answer
/// reported, and estimates (a quarter of the characters) for the messages after it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough context last
  bough context last --max-tokens 8000
  bough context last --json > context.json")]
pub(crate) struct Args {
    /// The session: an id or a unique beginning of one, a title, `last`, or the path of a pi session file
    session: String,

    /// The end of the path [default: the active leaf]
    #[arg(long, value_name = "ENTRY")]
    leaf: Option<String>,

    /// Leave out the oldest messages until the rest fits
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<u64>,

    /// Show thinking, tool arguments and tool results in full
    #[arg(long)]
    full: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    let configured = Configured::load(&app.globals)?;
    app.with_backend(async |backend| {
        backend.set_compaction(&configured.settings);
        let session = resolve::session_to_show(app, backend, &args.session).await?;
        let leaf = resolve::branch_end(backend, &session, args.leaf.as_deref()).await?;
        let shown = Shown { app, backend, session: session.id(), leaf: leaf.as_ref() };
        if args.max_tokens.is_none()
            && let Some(stream) = backend.context_stream(session.id(), leaf.as_ref()).await?
        {
            return if app.output.is_json() {
                shown.stream_json(stream).await
            } else {
                shown.stream(stream, args.full).await
            };
        }
        shown.within_budget(args.max_tokens, args.full).await
    })
    .await
}

/// The context that is shown.
struct Shown<'a> {
    app: &'a App,
    backend: &'a Backend,
    session: &'a SessionId,
    leaf: Option<&'a EntryId>,
}

impl Shown<'_> {
    /// Shows as many of the newest messages as fit; of a recorded session with compactions, all of them.
    async fn within_budget(&self, max_tokens: Option<u64>, full: bool) -> CommandResult<()> {
        let context = self.backend.context(self.session, self.leaf, max_tokens).await?;
        let (tokens, window) = (context.tokens, context.window);
        if self.app.output.is_json() {
            return self.app.output.json(&json!({
                "session_id": self.session, "context": context, "tokens": tokens, "window": window,
            }));
        }
        context.messages.iter().try_for_each(|item| self.print(item, full))?;
        let size = Size { messages: context.messages.len() as u64, tokens, window };
        self.end(size, context.left_out > 0)
    }

    /// Prints the messages as they are read, so that a context of any length needs little memory.
    async fn stream(&self, mut stream: ContextStream, full: bool) -> CommandResult<()> {
        let mut messages = 0;
        while let Some(items) = stream.next().await.map_err(service_failed)? {
            messages += items.len() as u64;
            items.iter().try_for_each(|item| self.print(item, full))?;
        }
        let size = Size { messages, tokens: stream.tokens(), window: self.window().await? };
        self.end(size, false)
    }

    /// The same as JSON, with the members that [`ContextResponse`](bough_service::api::ContextResponse) has.
    async fn stream_json(&self, mut stream: ContextStream) -> CommandResult<()> {
        let window = self.window().await?;
        let mut out = self.app.output.json_members();
        out.member("session_id", self.session)?;
        out.begin_object("context")?;
        out.begin_list("messages")?;
        while let Some(items) = stream.next().await.map_err(service_failed)? {
            items.iter().try_for_each(|item| out.item(item))?;
        }
        out.end_list()?;
        out.member("estimated_tokens", &stream.estimated_tokens())?;
        out.member("tokens", &stream.tokens())?;
        if let Some(window) = window {
            out.member("window", &window)?;
        }
        out.member("left_out", &0)?;
        out.end_object()?;
        out.member("tokens", &stream.tokens())?;
        out.member("window", &window)?;
        out.finish()
    }

    /// The window of the session's model, as the service knows it: the least of the context names it too.
    async fn window(&self) -> CommandResult<Option<u64>> {
        Ok(self.backend.context(self.session, self.leaf, Some(0)).await?.window)
    }

    fn print(&self, item: &ContextItem, full: bool) -> CommandResult<()> {
        let message = Some(item.message.clone());
        let item = MessageItem { entry_id: item.entry_id.clone(), message, custom: None };
        print_item(self.app, &item, full)
    }

    fn end(&self, size: Size, leaves_out: bool) -> CommandResult<()> {
        let messages = count(size.messages, "message", "messages");
        let mut text = format!("{messages}, about {} tokens", tokens(size.tokens));
        if let Some(window) = size.window {
            text.push_str(&format!(" of {}", tokens(window)));
        }
        if leaves_out {
            text.push_str("; older ones are left out");
        }
        self.app.output.line(Line::of(Style::Dim, text))
    }
}

/// How large a context is.
struct Size {
    messages: u64,
    tokens: u64,
    window: Option<u64>,
}
