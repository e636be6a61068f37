//! Record an agent while it works, and find its session in the store: durable, listed, with its loops.
//!
//! `cargo run -p boughdb --example record_agent`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::recording::{
    AgentEnd, AgentEvent, AgentStart, MessageEnd, Timestamp, TurnEnd, TurnStart, total_tokens,
};
use boughdb::{Bough, Error, Usage, assistant, user};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let temporary = tempfile::tempdir()?;
    let bough = Bough::open(temporary.path()).await?;
    let recorder = bough.recorder()?;

    // The agent sends its events to a channel, as agents do.
    let (events, mut inbox) = mpsc::unbounded_channel();
    let agent = tokio::spawn(async move {
        for event in run_once("chat-1", "chat-1.small.1", "Name a tree.", "Hazel.") {
            if events.send(event).is_err() {
                break;
            }
        }
    });
    while let Some(event) = inbox.recv().await {
        recorder.record(event).await?;
    }
    agent.await.map_err(std::io::Error::other)?;
    let recording = recorder.finish().await?;
    println!("{} session, {} not stored", recording.sessions.len(), recording.events_not_stored);

    // The same session, as a conversation and as loops.
    for item in bough.session("chat-1").messages().await? {
        println!("{}: {}", item.message.role().as_str(), item.text());
    }
    if let Some(recorded) = bough.recorded("chat-1").await? {
        for one in &recorded.loops {
            let tokens = total_tokens(&one.usage);
            println!("{}: {:?}, {} turn", one.loop_id, one.status, one.turns.len());
            for message in one.canonical_messages() {
                let written = message.usage().and_then(|usage| usage.output).unwrap_or(0);
                println!("  {} ({written} of {tokens} tokens)", message.text());
            }
        }
    }
    bough.close().await
}

/// What an agent says in a loop of one turn.
fn run_once(session: &str, loop_id: &str, question: &str, answer: &str) -> Vec<AgentEvent> {
    let now = Timestamp::now();
    let usage = Usage { input: Some(12), output: Some(3), ..Usage::default() };
    let asked = user(question);
    let answered = assistant("local", "small", answer).with_usage(usage);
    vec![
        AgentStart::new("agent", session, loop_id, now).into(),
        TurnStart::new(loop_id, 0, now).into(),
        MessageEnd::new(loop_id, asked.clone()).into(),
        MessageEnd::new(loop_id, answered.clone()).into(),
        TurnEnd::new(loop_id, answered.clone(), now).into(),
        AgentEnd::new(loop_id, [asked, answered], now).into(),
    ]
}
