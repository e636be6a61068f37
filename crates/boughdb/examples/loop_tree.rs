//! Loops that go on, try again, branch off and run side by side, and how to walk them.
//!
//! `cargo run -p boughdb --example loop_tree`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::recording::{
    AgentEnd, AgentStart, ParallelLoopEnd, ParallelLoopStart, RecordedSession, SessionRecorder,
    SessionRecorderConfig, Timestamp,
};

fn main() {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    let at = |second: i64| Timestamp::from_unix_ms(second * 1000);
    let start = |id: &str, second: i64| AgentStart::new("agent", "s", id, at(second));
    recorder.on_event(start("s.a.1", 1).into());
    recorder.on_event(AgentEnd::without_messages("s.a.1", at(2)).into());
    recorder.on_event(start("s.a.2", 3).continuing("s.a.1").into());
    recorder.on_event(AgentEnd::rejected("s.a.2", "the network is down", at(4)).into());
    recorder.on_event(start("s.a.3", 5).rerunning("s.a.2", "again").into());
    recorder.on_event(AgentEnd::without_messages("s.a.3", at(6)).into());
    recorder.on_event(start("s.a.4", 7).branching("s.a.1", "what if").into());
    recorder.on_event(AgentEnd::without_messages("s.a.4", at(8)).into());

    let both = ["s.haiku.1", "s.opus.2"];
    recorder.on_event(ParallelLoopStart::new("s", both, at(9)).into());
    for id in both {
        recorder.on_event(start(id, 10).continuing("s.a.3").into());
        recorder.on_event(AgentEnd::without_messages(id, at(11)).into());
    }
    recorder.on_event(ParallelLoopEnd::new("s", "s.opus.2", 1, at(12)).into());
    recorder.flush();

    for session in recorder.drain_completed() {
        for root in session.root_loops() {
            print_thread(&session, &root.loop_id, 0);
        }
        println!("the way to the winner: {}", session.loop_chain_to("s.opus.2").join(" > "));
        let chosen = |one: &&_| is_chosen(one);
        let winner = session.parallel_siblings("s.haiku.1").find(chosen);
        println!("winner: {}", winner.map_or("", |one| &one.loop_id));
    }
}

fn is_chosen(one: &boughdb::recording::LoopRecord) -> bool {
    one.parallel_group.as_ref().is_some_and(|group| group.is_selected)
}

fn print_thread(session: &RecordedSession, loop_id: &str, indent: usize) {
    if let Some(one) = session.get_loop(loop_id) {
        println!("{:indent$}{loop_id}: {:?}, {:?}", "", one.status, one.continuation_kind);
        for child in session.children_of(loop_id) {
            print_thread(session, &child.loop_id, indent + 2);
        }
    }
}
