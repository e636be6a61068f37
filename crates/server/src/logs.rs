//! Log lines of the server, as text or as JSON.
//!
//! They never contain text that callers sent: messages are constants, and fields are numbers, names of our own and ids
//! that we made.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tracing::{Level, Metadata};
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{LogConfig, LogFormat, LogLevel};

/// The level; it can be changed while the server runs.
static LEVEL: AtomicU8 = AtomicU8::new(2);
/// Whether lines are JSON; can be changed while the server runs.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Starts to write log lines to standard error. Does nothing if the process already has a log.
pub fn start_log(config: LogConfig) {
    change_log(config);
    let text = fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    let json = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let started = tracing_subscriber::registry()
        .with(text.with_filter(FilterFn::new(|metadata| !is_json() && is_wanted(metadata))))
        .with(
            json.json()
                .flatten_event(true)
                .with_filter(FilterFn::new(|metadata| is_json() && is_wanted(metadata))),
        )
        .try_init();
    // A host program may have its own log; then our lines go there.
    let _ = started.is_ok();
}

/// Changes the level and the format.
pub(crate) fn change_log(config: LogConfig) {
    let number = match config.level {
        LogLevel::Error => 0,
        LogLevel::Warn => 1,
        LogLevel::Info => 2,
        LogLevel::Debug => 3,
        LogLevel::Trace => 4,
    };
    LEVEL.store(number, Ordering::Relaxed);
    IS_JSON.store(config.format == LogFormat::Json, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
}

/// Libraries log bytes on the wire at their lower levels; those lines are dropped.
fn is_wanted(metadata: &Metadata<'_>) -> bool {
    let is_ours = metadata.target().starts_with("bough");
    let level = if is_ours { level() } else { Level::WARN };
    *metadata.level() <= level
}

fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        0 => Level::ERROR,
        1 => Level::WARN,
        2 => Level::INFO,
        3 => Level::DEBUG,
        _ => Level::TRACE,
    }
}
