use bough_service::api::MessageItem;
use serde_json::json;

use crate::app::App;
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
        let leaf = match &args.leaf {
            Some(text) => Some(resolve::entry(backend, &session, text).await?),
            None => None,
        };
        let context = backend.context(session.id(), leaf.as_ref(), args.max_tokens).await?;
        let (size, window) = (context.tokens, context.window);
        if app.output.is_json() {
            return app.output.json(&json!({
                "session_id": session.id(), "context": context, "tokens": size, "window": window,
            }));
        }
        for item in &context.messages {
            let message = Some(item.message.clone());
            let item = MessageItem { entry_id: item.entry_id.clone(), message, custom: None };
            print_item(app, &item, args.full)?;
        }
        let messages = count(context.messages.len() as u64, "message", "messages");
        let mut text = format!("{messages}, about {} tokens", tokens(size));
        if let Some(window) = window {
            text.push_str(&format!(" of {}", tokens(window)));
        }
        if context.left_out > 0 {
            text.push_str("; older ones are left out");
        }
        app.output.line(Line::of(Style::Dim, text))
    })
    .await
}
