//! Append a message in one provider's format, and read it in others.
//!
//! `cargo run -p boughdb --example any_format`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::{AppendOptions, Bough, Error, Format, MessagesOptions};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let bough = Bough::in_memory()?;
    let session = bough.create("Weather").await?;
    let message = json!({
        "role": "user",
        "content": [{ "type": "text", "text": "Rain?", "cache_control": { "type": "ephemeral" } }],
    });
    let anthropic = AppendOptions { format: Some(Format::Anthropic), ..AppendOptions::default() };
    session.append_with(message.clone(), anthropic).await?;

    let read = async |format| {
        let options = MessagesOptions { format: Some(format), ..MessagesOptions::default() };
        let mut messages = session.messages_with(options).await?;
        let message = messages.pop().and_then(|item| item.message);
        Ok::<Value, Error>(message.map(|message| message.value()).unwrap_or_default())
    };
    println!("anthropic: as it came: {}", read(Format::Anthropic).await? == message);
    println!("openai-chat: {}", read(Format::OpenaiChat).await?);
    println!("gemini: {}", read(Format::Gemini).await?);
    Ok(())
}
