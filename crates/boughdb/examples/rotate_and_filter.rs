//! An agent that begins a new session after a pause, and refuses what it must not read.
//!
//! `cargo run -p boughdb --example rotate_and_filter`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use boughdb::recording::{
    AgentEnd, AgentHandle, AgentStart, FilterResult, InputFilters, SessionFormation,
    SessionRecorder, SessionRecorderConfig, Timestamp,
};
use boughdb::{Platform, user};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let platform = Platform::system(temporary.path())?;
    let mut agent = AgentHandle::new("agent", &platform)?;
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    let filters = InputFilters::default()
        .with(|text: &str| match text.contains("password") {
            true => FilterResult::Reject("it holds a password".to_owned()),
            false => FilterResult::Pass,
        })
        .with(|text: &str| match text.len() > 20 {
            true => FilterResult::Warn("that is long".to_owned()),
            false => FilterResult::Pass,
        });

    for text in ["My password is 1234", "Tell me all about hazel trees"] {
        // After a pause the agent begins a new session. Here each moment is a pause.
        platform.clock.sleep(Duration::from_millis(5));
        if let Some(rotation) = agent.check_and_rotate(Duration::from_millis(1))? {
            recorder.announce_session(rotation.session_id.clone(), rotation.formation());
        }
        agent.touch();
        let loop_id = agent.next_loop_id("main");
        let now = Timestamp::now();
        let start = AgentStart::new(agent.agent_id(), agent.session_id(), loop_id.as_str(), now);
        recorder.on_event(start.into());
        match filters.admit(&loop_id, [user(text)]) {
            Ok(messages) => drop(recorder.on_event(AgentEnd::new(loop_id, messages, now).into())),
            Err(refused) => {
                for event in refused.events(now) {
                    recorder.on_event(event);
                }
            }
        }
    }
    recorder.flush();
    for session in recorder.drain_completed() {
        let rotated = matches!(session.formation, SessionFormation::InactivityTimeout { .. });
        for one in &session.loops {
            let texts: Vec<String> =
                one.canonical_messages().map(|message| message.text()).collect();
            println!("after a pause: {rotated}, {:?} {:?} {texts:?}", one.status, one.rejection);
        }
    }
    Ok(())
}
