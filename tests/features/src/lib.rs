//! Runs the feature files beside it: the behaviour of the session functions as scenarios that users can read.
//!
//! Invariants: a scenario that has a step without code fails, and so does a file without a scenario. Nothing waits for a
//! clock: that an event is not sent shows in what is heard next.
#![allow(clippy::disallowed_methods, reason = "nothing but tests")]

mod bus;
mod instance;
mod matching;
mod steps;
mod world;

use std::path::Path;

use cucumber::{World as _, writer::Stats as _};

pub use instance::Surface;
use world::World;

/// Runs the scenarios of a file that apply to a surface.
///
/// The tag `@bus` marks what only the bus has, and `@service` what needs the clock of a test.
pub async fn run_feature(name: &str, surface: Surface) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}.feature"));
    let skipped_tag = if surface == Surface::Bus { "service" } else { "bus" };
    let outcome = World::cucumber()
        .max_concurrent_scenarios(1)
        .fail_on_skipped()
        .with_default_cli()
        .before(move |_, _, _, world| {
            Box::pin(async move {
                world.surface = surface;
            })
        })
        .filter_run(path, move |feature, _, scenario| {
            !feature.tags.iter().chain(&scenario.tags).any(|tag| tag == skipped_tag)
        })
        .await;
    assert!(!outcome.execution_has_failed(), "{name}: the report above says which step failed");
    assert!(outcome.passed_steps() > 0, "{name} has no scenario for this surface");
}
