//! The configuration: one file, environment variables and flags, checked before anything is built from it.

mod check;
mod error;
mod load;
mod model;
mod placeholders;
mod show;
mod span;
mod yaml;

#[cfg(test)]
mod tests;

pub use check::{Address, WsUrl};
pub use error::ConfigError;
pub use load::{CONFIG_FILE, Loaded, Overrides, expand_home, load, parse, parse_worker};
pub use model::{
    AdapterConfig, AllowConfig, BridgeConfig, CompactionConfig, Config, Durability, FsConfig,
    LimitsConfig, LogConfig, LogFormat, LogLevel, MemoryConfig, NativeConfig, RetentionConfig,
    SessionConfig, SessionScope, StreamingConfig, TokensConfig, WorkerConfig,
};
pub use placeholders::{Lookup, PlaceholderError};
pub use show::{DOCUMENTED_FILE, hide_secrets, show};
pub use span::{Span, SpanError};

pub(crate) use check::{ends, is_loopback_host, without_password};
pub(crate) use load::beside;
