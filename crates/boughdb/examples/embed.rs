//! A store inside a program: make a session, append, read it back after a restart.
//!
//! `cargo run -p boughdb --example embed [FOLDER]`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::{Bough, Error, assistant, user};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let temporary = tempfile::tempdir()?;
    let folder = std::env::args().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into);

    let bough = Bough::open(&folder).await?;
    let session = bough.create("Weather question").await?;
    session.append(user("What's the weather in Porto?")).await?;
    session.append(assistant("local", "small", "Sunny, 24 degrees.")).await?;
    println!("appended to {}", session.id());
    bough.close().await?;

    let again = Bough::open(&folder).await?;
    for meta in again.list().await? {
        println!("{}: {:?}, {} messages", meta.session_id, meta.title, meta.message_count);
        for item in again.session(meta.session_id.as_str()).messages().await? {
            println!("  {}: {}", item.message.role().as_str(), item.text());
        }
    }
    again.close().await
}
