//! Write a turn and the state of an agent in one batch, find it again by key, and keep a second writer from overtaking.
//!
//! `cargo run -p boughdb --example batches_and_keys`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::{BatchEntry, BatchOptions, Bough, EntriesOptions, EntryOrder, Error};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let bough = Bough::in_memory()?;
    let session = bough.session("thread-7");
    let turn = [
        BatchEntry::from("Book a train").with_id("q-1"),
        BatchEntry::custom("state", json!({ "step": 1 })).with_id("state-1"),
        BatchEntry::custom("state", json!({ "step": 2 })).with_id("state-2"),
    ];
    let create = BatchOptions { create: true, ..BatchOptions::default() };
    let made = session.append_many_with(turn, create).await?;
    println!("made with {} entries", made.len());

    let newest = EntriesOptions {
        custom_type: Some("state".to_owned()),
        order: EntryOrder::Newest,
        limit: Some(1),
        ..EntriesOptions::default()
    };
    for entry in session.entries(newest).await?.entries {
        println!("newest state: {}", entry.custom.map(|custom| custom.data).unwrap_or_default());
    }
    let by_prefix =
        EntriesOptions { id_prefix: Some("state-".to_owned()), ..EntriesOptions::default() };
    println!("by prefix: {}", session.entries(by_prefix).await?.entries.len());

    // Who read the session before that batch does not write behind it.
    let stale = BatchOptions { expected_leaf: Some("q-1".to_owned()), ..BatchOptions::default() };
    if let Err(error) = session.append_many_with(["Never mind"], stale).await {
        println!("a second writer: {}", error.code().unwrap_or_default());
    }

    let hidden = session.hide(made.into_iter().take(1).map(|entry| entry.entry_id)).await?;
    println!("hidden: {hidden}, left: {} messages", session.messages().await?.len());
    Ok(())
}
