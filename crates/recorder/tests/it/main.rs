//! The recorder against phi-core's sessions, its own rules, and any stream of events.

mod conformance;
mod drained;
mod durable;
mod files;
mod links;
mod properties;
mod recorder;
mod repeats;
mod replays;
mod support;
mod turns;
mod verbatim;
