//! Session files: record in memory, flush, save, load, list and delete, with hooks for billing.
//!
//! `cargo run -p boughdb --example session_files`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use boughdb::recording::{
    AgentEnd, AgentStart, FileSystemSessionStore, SessionRecorder, SessionRecorderConfig,
    SessionStore as _, Timestamp, list_session_ids, load_session, save_session,
};
use boughdb::user;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = temporary.path();
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        before_task: Some(Arc::new(|session| {
            println!("session started: {}", session.session_id);
            session.session_id != "not-paid"
        })),
        after_task: Some(Arc::new(|session| {
            println!("session ended: {} ({} loop)", session.session_id, session.loops.len());
        })),
        ..SessionRecorderConfig::default()
    });
    for session in ["paid", "not-paid"] {
        let loop_id = format!("{session}.main.1");
        let now = Timestamp::now();
        recorder.on_event(AgentStart::new("agent", session, loop_id.as_str(), now).into());
        recorder.on_event(AgentEnd::new(loop_id, [user("Hello")], now).into());
    }
    recorder.flush();
    for session in recorder.drain_completed() {
        save_session(&session, folder)?;
    }
    println!("files: {:?}", list_session_ids(folder)?);

    // What two writers change apart is refused, not lost.
    let (mut one, mut two) = (load_session("paid", folder)?, load_session("paid", folder)?);
    one.task_name = Some("greet".to_owned());
    two.task_name = Some("say hello".to_owned());
    save_session(&one, folder)?;
    println!("second writer: {}", save_session(&two, folder).is_err());

    // The same without blocking, behind a trait that other stores can implement.
    let store = FileSystemSessionStore::new(folder);
    println!("task: {:?}", store.load("paid").await?.task_name);
    store.delete("paid").await?;
    println!("left: {}", store.list_ids().await?.len());
    Ok(())
}
