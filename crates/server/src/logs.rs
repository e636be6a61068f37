//! Log lines: what the server says of itself, as text or as JSON.
//!
//! No text that callers sent is ever in them: messages are constants, and fields are numbers, names of our own and ids that
//! we made.

use std::sync::atomic::{AtomicU8, Ordering};

use tracing::Level;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{LogConfig, LogFormat, LogLevel};

/// How much is said; can be changed while the server runs.
static LEVEL: AtomicU8 = AtomicU8::new(2);

/// Begins to write log lines to standard error. Does nothing when the process already has a log.
pub fn start_log(config: LogConfig) {
    set_level(config.level);
    // Libraries below us speak of bytes on the wire at their lower levels: those are not for a log.
    let wanted = FilterFn::new(|metadata| {
        let is_ours = metadata.target().starts_with("bough");
        let level = if is_ours { level() } else { Level::WARN };
        *metadata.level() <= level
    });
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let registry = tracing_subscriber::registry();
    let started = match config.format {
        LogFormat::Json => {
            registry.with(lines.json().flatten_event(true).with_filter(wanted)).try_init()
        }
        LogFormat::Text => registry.with(lines.with_ansi(false).with_filter(wanted)).try_init(),
    };
    // A host program may have its own log; then ours goes there.
    let _ = started.is_ok();
}

/// Changes how much is said.
pub(crate) fn set_level(level: LogLevel) {
    let number = match level {
        LogLevel::Error => 0,
        LogLevel::Warn => 1,
        LogLevel::Info => 2,
        LogLevel::Debug => 3,
        LogLevel::Trace => 4,
    };
    LEVEL.store(number, Ordering::Relaxed);
    tracing::callsite::rebuild_interest_cache();
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
