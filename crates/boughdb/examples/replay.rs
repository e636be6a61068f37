//! Play a recorded session back as the events that made it, and record it a second time elsewhere.
//!
//! `cargo run -p boughdb --example replay`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::recording::{AgentEnd, AgentStart, Pace, Timestamp};
use boughdb::{Bough, Error, user};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let bough = Bough::in_memory()?;
    let recorder = bough.recorder()?;
    for number in 1..=2 {
        let loop_id = format!("chat.main.{number}");
        let at = Timestamp::from_unix_ms(number * 1000);
        recorder.record(AgentStart::new("agent", "chat", loop_id.as_str(), at)).await?;
        let messages = [user(&format!("Question {number}"))];
        recorder.record(AgentEnd::new(loop_id, messages, at)).await?;
    }
    recorder.finish().await?;

    let copy = Bough::in_memory()?;
    let again = copy.recorder()?;
    if let Some(replay) = bough.replay("chat").await? {
        for step in replay.steps(Pace::Recorded) {
            println!("after {:?}: {}", step.after, step.event.type_name());
            again.record(step.event).await?;
        }
    }
    again.finish().await?;
    println!("equal: {}", copy.recorded("chat").await? == bough.recorded("chat").await?);
    Ok(())
}
