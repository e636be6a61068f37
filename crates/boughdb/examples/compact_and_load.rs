//! Lay a compaction over a long loop, load the context that an agent should read, and take the compaction off again.
//!
//! `cargo run -p boughdb --example compact_and_load`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::recording::{
    AgentEnd, AgentStart, BlockCompactionStrategy as _, CompactionConfig, DefaultBlockCompaction,
    HeuristicTokenCounter, RecordedSession, Timestamp, build_context_from_session,
};
use boughdb::{Bough, Error, assistant, user};

const LOOP: &str = "chat.main.1";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let bough = Bough::in_memory()?;
    let recorder = bough.recorder()?;
    let now = Timestamp::now();
    let messages = (0..40).flat_map(|number| {
        let text = format!("Answer {number}. {}", "It is a long one. ".repeat(20));
        [user(&format!("Question {number}?")), assistant("local", "small", &text)]
    });
    recorder.record(AgentStart::new("agent", "chat", LOOP, now)).await?;
    recorder.record(AgentEnd::new(LOOP, messages, now)).await?;
    recorder.sync().await?;
    show("before", &bough).await?;

    let config = CompactionConfig { keep_recent_turns: 4, ..CompactionConfig::default() };
    let recorded = bough.recorded("chat").await?;
    if let Some(long) = recorded.as_ref().and_then(|session| session.get_loop(LOOP)) {
        let block = DefaultBlockCompaction.compact(long, &config, true, now);
        recorder.set_compaction_block("chat", LOOP, Some(block)).await?;
        recorder.sync().await?;
    }
    show("compacted", &bough).await?;

    recorder.set_compaction_block("chat", LOOP, None).await?;
    recorder.sync().await?;
    show("restored", &bough).await
}

async fn show(when: &str, bough: &Bough) -> Result<(), Error> {
    if let Some(session) = bough.recorded("chat").await? {
        let messages = context_of(&session);
        println!("{when}: {messages} messages in the context, {} kept", kept(&session));
    }
    Ok(())
}

fn context_of(session: &RecordedSession) -> usize {
    let config = CompactionConfig::default();
    let context =
        build_context_from_session(session, LOOP, &config, 100_000, &HeuristicTokenCounter);
    context.messages.len()
}

fn kept(session: &RecordedSession) -> usize {
    session.get_loop(LOOP).map_or(0, |one| one.messages.len())
}
