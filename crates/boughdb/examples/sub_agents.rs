//! An agent whose tool runs another agent: two sessions that know each other.
//!
//! `cargo run -p boughdb --example sub_agents`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::recording::{
    AgentEnd, AgentEvent, AgentStart, SpawnGraph, Timestamp, ToolExecutionEnd, ToolExecutionStart,
    ToolResult, usage_with_sub_agents,
};
use boughdb::{Bough, Error, Usage, assistant};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let bough = Bough::in_memory()?;
    let recorder = bough.recorder()?;
    let now = Timestamp::now();
    let answer = |text: &str, input: u64| {
        let usage = Usage { input: Some(input), ..Usage::default() };
        [assistant("local", "small", text).with_usage(usage)]
    };
    let result = ToolResult::text("42").from_sub_agent("child.main.1");
    let events: Vec<AgentEvent> = vec![
        AgentStart::new("boss", "parent", "parent.main.1", now).into(),
        ToolExecutionStart::new("parent.main.1", "call-1", "sub_agent", serde_json::json!({}))
            .into(),
        AgentStart::new("helper", "child", "child.main.1", now).spawned_by("parent.main.1").into(),
        AgentEnd::new("child.main.1", answer("42", 100), now).into(),
        ToolExecutionEnd::new("parent.main.1", "call-1", "sub_agent", result).into(),
        AgentEnd::new("parent.main.1", answer("It is 42.", 10), now).into(),
    ];
    for event in events {
        recorder.record(event).await?;
    }
    let sessions = recorder.finish().await?.sessions;

    for session in &sessions {
        for one in &session.loops {
            for child in &one.child_loop_refs {
                println!("{}: {} spawned {}", one.loop_id, child.tool_name, child.child_loop_id);
            }
        }
        if let Some(spawned) = &session.parent_spawn_ref {
            println!("{} was spawned by {}", session.session_id, spawned.parent_session_id);
        }
    }
    let graph = SpawnGraph::new(&sessions);
    println!("the family: {}", graph.family_of("parent").join(", "));
    let usage = usage_with_sub_agents("parent", &sessions);
    println!("all of it read {} tokens", usage.input.unwrap_or(0));
    Ok(())
}
