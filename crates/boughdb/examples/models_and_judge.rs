//! Run one question with two models side by side, have a judge choose, and see what each part cost.
//!
//! `cargo run -p boughdb --example models_and_judge`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use boughdb::recording::{
    AgentEnd, AgentStart, LoopConfigSnapshot, ParallelLoopEnd, ParallelLoopStart, SessionRecorder,
    SessionRecorderConfig, Timestamp, total_tokens,
};
use boughdb::{Usage, assistant};

fn main() {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    let now = Timestamp::now();
    let candidates = [("s.small.1", "small", 20), ("s.large.2", "large", 300)];
    let ids = candidates.map(|(loop_id, ..)| loop_id);
    recorder.on_event(ParallelLoopStart::new("s", ids, now).into());
    for (loop_id, model, output) in candidates {
        // The configuration that a loop runs with is kept with it.
        let config = LoopConfigSnapshot {
            model: model.to_owned(),
            provider: "local".to_owned(),
            config_id: Some(format!("{model}-default")),
            temperature: Some(0.2),
            ..LoopConfigSnapshot::default()
        };
        recorder.on_event(AgentStart::new("agent", "s", loop_id, now).with_config(config).into());
        let usage = Usage { input: Some(10), output: Some(output), ..Usage::default() };
        let answer = assistant("local", model, "Hazel.").with_usage(usage);
        recorder.on_event(AgentEnd::new(loop_id, [answer], now).into());
    }
    // The judge is a model too: its tokens count for the choice, not for a loop.
    let judged = Usage { input: Some(45), output: Some(5), ..Usage::default() };
    let choice = ParallelLoopEnd::new("s", "s.small.1", 0, now).with_usage(judged);
    recorder.on_event(choice.into());
    recorder.flush();

    for session in recorder.drain_completed() {
        for one in &session.loops {
            let Some(config) = &one.config else { continue };
            let chosen = one.parallel_group.as_ref().is_some_and(|group| group.is_selected);
            println!(
                "{} ({}): {} tokens written, chosen: {chosen}",
                config.model,
                config.config_id.as_deref().unwrap_or_default(),
                one.usage.output.unwrap_or(0),
            );
        }
        println!("all loops wrote {} tokens", session.total_usage().output.unwrap_or(0));
        println!("the judge took {}", total_tokens(&session.evaluation_usage()));
    }
}
