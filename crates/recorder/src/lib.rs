//! Agent events in, sessions of loops out: in memory, as files, and as records of a log.
//!
//! Invariants:
//! - The recorder has no clock: every time in a session comes from an event.
//! - The same events in the same order give the same sessions, and nothing of an event is left out without a notice.
//! - A session's messages never change: a compaction is an overlay.
//! - This crate knows no storage format but phi-core's session files.
//! - Whether a loop's parent is in its own session is looked up, never guessed from the text of an id.

mod announced;
mod compaction;
mod context;
mod durable;
mod event;
mod events;
mod fact;
mod files;
mod filter;
mod graph;
mod identity;
mod limits;
mod lineage;
mod loops;
mod message;
mod model;
mod open_enums;
mod query;
mod recorder;
mod replay;
mod time;
mod translate;
mod usage;
mod verbatim;

pub use compaction::{BlockCompactionStrategy, DefaultBlockCompaction, Split, TurnMap};
pub use context::{
    CompactionConfig, CompactionScope, HeuristicTokenCounter, LoadedContext, TokenCounter,
    build_context_from_session, compact_session_loops,
};
pub use durable::{DurableError, DurableOptions, DurableRecorder, NoticeFn, RecordSink, Recording};
pub use event::*;
pub use events::Events;
pub use fact::{Fact, SessionFact};
pub use files::{
    AgentSessions, FileSystemSessionStore, MemorySessionStore, SessionError, SessionFolder,
    SessionStore, delete_session, list_session_ids, load_session, load_sessions_for_agent,
    save_session,
};
pub use filter::{FilterResult, InputFilter, InputFilters, RejectedInput};
pub use graph::{Spawn, SpawnGraph, usage_with_sub_agents};
pub use identity::{AgentHandle, Rotation, config_segment};
pub use limits::*;
pub use loops::{DuplicateLoop, Iter, Loops};
pub use message::{RecordedMessage, TurnId};
pub use model::*;
pub use open_enums::{ApiProtocol, ThinkingLevel, TurnTrigger};
pub use query::LoopSettings;
pub use recorder::{
    AfterTaskFn, BeforeTaskFn, Notice, Report, SessionRecorder, SessionRecorderConfig,
};
pub use replay::{Pace, Replay, ReplayStep};
pub use time::{Timestamp, TimestampError};
pub use translate::{
    RecordBatch, RecordFold, Translation, Translator, events_of_records, fold_records,
};
pub use usage::total_tokens;
pub use verbatim::Verbatim;
