//! Ask one question twice, on two branches, and compare what came of it.
//!
//! `cargo run -p boughdb --example branch_and_compare`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::{AgentMessage, Bough, Error, Usage, assistant, user};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let temporary = tempfile::tempdir()?;
    let bough = Bough::open(temporary.path()).await?;
    let session = bough.create("Which model?").await?;
    let question = session.append(user("Name a tree with edible nuts.")).await?;

    let small = session.append_to(&question, answer("small", "Oak?", 40, 0.001)).await?;
    session.label(&small, Some("small model")).await?;
    let large = session.append_to(&question, answer("large", "Hazel.", 400, 0.02)).await?;
    session.label(&large, Some("large model")).await?;

    for branch in session.branches().await? {
        session.switch_to(&branch.entry_id).await?;
        let usage = session.usage().await?.branch.total;
        let last = session.messages().await?.pop().map(|message| message.text());
        println!(
            "{:12} {:?}: {} tokens, ${}",
            branch.label.unwrap_or_default(),
            last.unwrap_or_default(),
            usage.output,
            usage.cost_usd
        );
    }

    // The better one goes on in a session of its own.
    let winner = session.fork(&large).await?;
    winner.append(user("And how long until it bears?")).await?;
    println!("{} goes on from {:?}", winner.id(), winner.meta().await?.forked_from);
    println!("whole session: {:?}", session.usage().await?.session.total);
    bough.close().await
}

fn answer(model: &str, text: &str, output: u64, cost_usd: f64) -> AgentMessage {
    let mut message = assistant("local", model, text);
    if let AgentMessage::Assistant(reply) = &mut message {
        reply.usage =
            Some(Usage { output: Some(output), cost_usd: Some(cost_usd), ..Usage::default() });
    }
    message
}
