//! Keep the pieces of streamed messages among the events of a loop, or leave them out.
//!
//! `cargo run -p boughdb --example streaming_events`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::assistant;
use boughdb::recording::{
    AgentEnd, AgentEvent, AgentStart, MessageEnd, MessageUpdate, SessionRecorder,
    SessionRecorderConfig, StreamDelta, Timestamp,
};

fn main() {
    for include_streaming_events in [false, true] {
        let config =
            SessionRecorderConfig { include_streaming_events, ..SessionRecorderConfig::default() };
        let mut recorder = SessionRecorder::new(config);
        for event in reply_in_pieces("s.main.1", &["Hazel", " and", " oak."]) {
            recorder.on_event(event);
        }
        recorder.flush();
        for session in recorder.drain_completed() {
            for one in &session.loops {
                let pieces: Vec<&str> =
                    one.events.iter().filter_map(|kept| piece(&kept.event)).collect();
                // The message itself is there in both cases.
                let texts: Vec<String> =
                    one.canonical_messages().map(|message| message.text()).collect();
                println!("pieces kept: {include_streaming_events}, {pieces:?} of {texts:?}");
            }
        }
    }
}

/// The text that an event adds to a message.
fn piece(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::MessageUpdate(update) => match &update.delta {
            StreamDelta::Text { delta } => Some(delta),
            _ => None,
        },
        _ => None,
    }
}

/// What an agent says while a reply arrives.
fn reply_in_pieces(loop_id: &str, pieces: &[&str]) -> Vec<AgentEvent> {
    let now = Timestamp::now();
    let mut events: Vec<AgentEvent> = vec![AgentStart::new("agent", "s", loop_id, now).into()];
    let mut text = String::new();
    for piece in pieces {
        text.push_str(piece);
        let message = assistant("local", "small", text.as_str()).into();
        let delta = StreamDelta::Text { delta: (*piece).into() };
        events.push(MessageUpdate { loop_id: loop_id.to_owned(), message, delta }.into());
    }
    let whole = assistant("local", "small", text.as_str());
    events.push(MessageEnd::new(loop_id, whole.clone()).into());
    events.push(AgentEnd::new(loop_id, [whole], now).into());
    events
}
