use bough_service::api::MessageItem;
use serde_json::json;

use crate::app::App;
use crate::command_error::CommandResult;
use crate::commands::print::print_item;
use crate::output::{Line, Style};
use crate::resolve;
use crate::text::{count, tokens};

/// Show what a model would be sent
///
/// The active path with compactions and branch summaries in the place of what they stand for. Tokens are
/// estimated as a quarter of the characters.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bough context last
  bough context last --max-tokens 8000
  bough context last --json > context.json")]
pub(crate) struct Args {
    /// The session: its id, a unique beginning of it, its title, `last`, or a session file of pi
    session: String,

    /// The end of the path [default: the active leaf]
    #[arg(long, value_name = "ENTRY")]
    leaf: Option<String>,

    /// Leave out the oldest messages until the rest fits
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<u64>,

    /// Show thoughts, arguments and results in full
    #[arg(long)]
    full: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> CommandResult<()> {
    app.with_backend(async |backend| {
        let session = resolve::session(backend, &args.session).await?;
        let leaf = match &args.leaf {
            Some(text) => Some(resolve::entry(backend, &session, text).await?),
            None => None,
        };
        let context = backend.context(session.id(), leaf.as_ref(), args.max_tokens).await?;
        if app.output.is_json() {
            return app.output.json(&json!({ "session_id": session.id(), "context": context }));
        }
        for item in &context.messages {
            let message = Some(item.message.clone());
            let item = MessageItem { entry_id: item.entry_id.clone(), message, custom: None };
            print_item(app, &item, args.full)?;
        }
        let messages = count(context.messages.len() as u64, "message", "messages");
        let mut text = format!("{messages}, about {} tokens", tokens(context.estimated_tokens));
        if let Some(window) = session.details.context_window {
            text.push_str(&format!(" of {}", tokens(window)));
        }
        if context.left_out > 0 {
            text.push_str(&format!(", {} left out", context.left_out));
        }
        app.output.line(Line::of(Style::Dim, text))
    })
    .await
}
