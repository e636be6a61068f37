//! The configuration file as types.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use bough_service::compaction::{CompactionSettings, ModelWindows};
use bough_service::limits::{IDEMPOTENCY_KEYS, STREAM_ABANDONED_AFTER};
use bough_session::limits::{PAGE_DEFAULT, PAGE_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::Span;
use crate::limits;

/// The whole configuration. Every field has a default; unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the data is. The user's data directory when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<String>,
    /// Where HTTP is served: `HOST:PORT`. Other than loopback needs tokens.
    pub listen: String,
    /// Where the bus is served: `HOST:PORT`, or `off`.
    pub bus: String,
    /// An iii engine to attach to as a worker, such as `ws://127.0.0.1:49134`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Where sessions are stored.
    pub adapter: AdapterConfig,
    /// Page size when a caller does not say.
    pub default_list_limit: usize,
    /// Largest page.
    pub max_list_limit: usize,
    /// When the native adapter acknowledges an append.
    pub durability: Durability,
    /// How long things are kept.
    pub retention: RetentionConfig,
    /// Messages that stream.
    pub streaming: StreamingConfig,
    /// Bounds of the server.
    pub limits: LimitsConfig,
    /// Whose requests are answered.
    pub allow: AllowConfig,
    /// Bearer tokens.
    pub tokens: TokensConfig,
    /// When and how sessions are summarised.
    pub compaction: CompactionConfig,
    /// What recorded sessions say of themselves; read by the command line.
    pub session: SessionConfig,
    /// What the server says of itself.
    pub log: LogConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: None,
            listen: "127.0.0.1:7717".to_owned(),
            bus: "127.0.0.1:49134".to_owned(),
            engine: None,
            adapter: AdapterConfig::default(),
            default_list_limit: PAGE_DEFAULT,
            max_list_limit: PAGE_MAX,
            durability: Durability::default(),
            retention: RetentionConfig::default(),
            streaming: StreamingConfig::default(),
            limits: LimitsConfig::default(),
            allow: AllowConfig::default(),
            tokens: TokensConfig::default(),
            compaction: CompactionConfig::default(),
            session: SessionConfig::default(),
            log: LogConfig::default(),
        }
    }
}

/// Where sessions are stored: the name of an adapter, and its own settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", content = "config", rename_all = "snake_case", deny_unknown_fields)]
pub enum AdapterConfig {
    /// Bough's own log: durable, checked, for one machine. The default.
    Native(NativeConfig),
    /// One JSONL file per session, as session-manager 1.0.0 writes them.
    Fs(FsConfig),
    /// Nothing is kept. For tests.
    Memory(MemoryConfig),
    /// A main instance elsewhere, through the store protocol on its bus or engine.
    Bridge(BridgeConfig),
}

impl Default for AdapterConfig {
    fn default() -> Self {
        Self::Native(NativeConfig::default())
    }
}

impl AdapterConfig {
    /// The adapter's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Fs(_) => "fs",
            Self::Memory(_) => "memory",
            Self::Bridge(_) => "bridge",
        }
    }
}

/// Settings of the native adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NativeConfig {
    /// Where the sessions are; the server's data directory when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<String>,
}

/// Settings of the fs adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FsConfig {
    /// Where the files are.
    pub data_dir: String,
}

impl Default for FsConfig {
    fn default() -> Self {
        Self { data_dir: "~/.iii/data/session-manager".to_owned() }
    }
}

/// Settings of the memory adapter: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {}

/// Settings of the bridge adapter.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BridgeConfig {
    /// The main instance's bus, or the engine that it is attached to: `ws://HOST:PORT`, port 80 when it names none.
    pub url: String,
    /// How long one call may take, milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// A bearer token with the right `bridge`, when the main asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

const fn default_timeout_ms() -> u64 {
    5000
}

impl std::fmt::Debug for BridgeConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BridgeConfig")
            .field("url", &self.url)
            .field("timeout_ms", &self.timeout_ms)
            .field("token", &self.token.as_ref().map(|_| "..."))
            .finish()
    }
}

/// When an append is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// After its bytes are on the disk.
    #[default]
    Synced,
    /// After its bytes are with the operating system: a power cut may lose the newest appends.
    MayLoseNewestOnPowerCut,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Deleted sessions, before they are removed for good: a length of time such as `30d`, or `forever`.
    pub trash: Span,
    /// Idempotency keys: how long the same key means the same request, from its first use on. A change of this forgets the keys from
    /// before it.
    pub idempotency_keys: Span,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            trash: Span::For(Duration::from_secs(30 * 86_400)),
            idempotency_keys: Span::For(IDEMPOTENCY_KEYS),
        }
    }
}

/// Messages that stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamingConfig {
    /// How long a message that streams may stand still before it is closed as aborted: a length of time, or `forever`.
    pub abandoned_after: Span,
}

impl Default for StreamingConfig {
    fn default() -> Self {
        Self { abandoned_after: STREAM_ABANDONED_AFTER.into() }
    }
}

/// Bounds of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Largest body of a request, in bytes.
    pub body_bytes: usize,
    /// Largest message on the bus, in bytes.
    pub bus_message_bytes: usize,
    /// Most open connections of each listener.
    pub connections: usize,
    /// Most requests that are worked on at once.
    pub requests: usize,
    /// Most live streams at once.
    pub streams: usize,
    /// Most bytes of large events that the live streams of one token hold for their readers.
    pub stream_bytes_per_token: usize,
    /// How long the headers of a request may take, and a connection may be idle.
    pub header_timeout: Span,
    /// How long a request may take.
    pub request_timeout: Span,
    /// How long a peer may take nothing before it is disconnected.
    pub write_stall_timeout: Span,
    /// How often a quiet stream shows that it lives.
    pub heartbeat: Span,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            body_bytes: limits::BODY_BYTES,
            bus_message_bytes: limits::BUS_MESSAGE_BYTES,
            connections: limits::CONNECTIONS,
            requests: limits::REQUESTS,
            streams: limits::STREAMS,
            stream_bytes_per_token: limits::STREAM_BYTES_PER_TOKEN,
            header_timeout: limits::HEADER_TIMEOUT.into(),
            request_timeout: limits::REQUEST_TIMEOUT.into(),
            write_stall_timeout: limits::WRITE_STALL_TIMEOUT.into(),
            heartbeat: limits::HEARTBEAT.into(),
        }
    }
}

/// Whose requests are answered. Loopback names and the listening address itself always are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllowConfig {
    /// Names that a request's `Host` may have, without port.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, such as `https://console.example`.
    pub origins: Vec<String>,
    /// Addresses of proxies, such as `127.0.0.1`, that may pass requests on while no token is asked for. Whoever reaches such a proxy
    /// may do everything.
    pub proxies: Vec<IpAddr>,
}

/// Bearer tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokensConfig {
    /// Ask for a token even on loopback and even when none was made yet.
    pub required: bool,
}

/// When and how sessions are summarised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionConfig {
    /// Whether sessions are summarised by themselves when they get too long for their model.
    pub enabled: bool,
    /// Tokens of the model's window that are kept free for its answer.
    #[serde(alias = "reserveTokens")]
    pub reserve_tokens: u64,
    /// Newest tokens that are left as they are.
    #[serde(alias = "keepRecentTokens")]
    pub keep_recent_tokens: u64,
    /// The program that writes a summary, with its arguments: the conversation goes in, the summary comes out.
    pub command: Vec<String>,
    /// Tokens that models read at most, by the beginning of their names; added to the windows that are known.
    pub windows: BTreeMap<String, u64>,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            command: Vec::new(),
            windows: BTreeMap::new(),
        }
    }
}

impl CompactionConfig {
    /// The settings of the service that this asks for.
    #[must_use]
    pub fn settings(&self) -> CompactionSettings {
        CompactionSettings {
            enabled: self.enabled,
            reserve_tokens: self.reserve_tokens,
            keep_recent_tokens: self.keep_recent_tokens,
            windows: ModelWindows::with(&self.windows),
        }
    }
}

/// What recorded sessions say of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// Whether an agent's application is to keep them. The store keeps every session either way.
    pub scope: SessionScope,
}

/// Whether a session is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionScope {
    /// It may be forgotten.
    #[default]
    Ephemeral,
    /// It is to be kept.
    Persistent,
}

/// What the server says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// How log lines look.
    pub format: LogFormat,
    /// How much is said.
    pub level: LogLevel,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What failed.
    Error,
    /// And what is about to.
    Warn,
    /// And what happened.
    #[default]
    Info,
    /// And each request.
    Debug,
    /// And everything else.
    Trace,
}

/// The part of the configuration that an engine's configuration worker holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Where sessions are stored.
    pub adapter: AdapterConfig,
    /// Page size when list/messages omit `limit`.
    pub default_list_limit: usize,
    /// Hard cap on any requested `limit`.
    pub max_list_limit: usize,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Config::default().worker()
    }
}

impl Config {
    /// The part that an engine's configuration worker holds.
    #[must_use]
    pub fn worker(&self) -> WorkerConfig {
        WorkerConfig {
            adapter: self.adapter.clone(),
            default_list_limit: self.default_list_limit,
            max_list_limit: self.max_list_limit,
        }
    }

    /// This configuration with that part replaced.
    #[must_use]
    pub fn with_worker(mut self, worker: WorkerConfig) -> Self {
        self.adapter = worker.adapter;
        self.default_list_limit = worker.default_list_limit;
        self.max_list_limit = worker.max_list_limit;
        self
    }
}
