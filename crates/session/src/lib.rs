//! What a session is: ids, records, messages, the tree and the folds over it.
//!
//! A session is one ordered log of [`Record`]s, and everything else is a fold over that log. This crate holds the
//! records, their form in the log ([`codec`]), the state that a fold builds ([`SessionState`]), and pure functions over
//! paths of entries.
//!
//! Invariants:
//! - Nothing here knows a disk, a network, a clock or async: every function is pure.
//! - The JSON of messages, entries and metas is published; tests check its shape.
//! - Stored data that this version does not understand is kept as it came ([`Record::Unknown`], [`Record::Newer`],
//!   [`ForeignBody`]), and reading never fails on it.
//! - Every bound is in [`limits`], and a [`SessionState`] stays small whatever the session's length.

pub mod codec;
pub mod limits;
pub mod text;
pub mod tree;

mod bookkeeping;
mod context;
mod context_outline;
mod diff;
mod entry;
mod fold;
mod formats;
mod id_table;
mod ids;
mod json;
mod lossy_json;
mod members;
mod message;
mod meta;
mod percent;
mod record;
mod revision;
mod usage;

pub use bookkeeping::{
    Bookkeeping, BranchSummary, Compaction, Label, ModelChange, RESERVED_PREFIX, SessionInfo,
    ThinkingLevelChange,
};
pub use bough_record::{Incarnation, IncarnationError, hex, unhex};
pub use context::{
    ContextItem, ContextKind, ContextView, context_view, estimate_text_tokens, estimate_tokens,
};
pub use context_outline::ContextOutline;
pub use diff::{BlockEdit, ContentChange, DiffError, TextAppend, TextSplice};
pub use entry::{
    Canonical, CustomPayload, Entry, EntryBody, EntryMarks, OpaqueBody, RequestDigest, SessionEntry,
};
pub use fold::{
    CustomTypes, Fork, Forks, Labels, LoopTally, NewestOf, SessionState, StreamTally, UsageByDay,
    UsageKey, UsageOf, Used,
};
pub use formats::{
    Conversation, FORMAT_PHI, FORMAT_PI, FORMAT_SESSION_MANAGER, ForeignBody, Format, FormatError,
    Loss, LossReason, Mapped, Replaced, compacted_system_prompt, context_to_format,
    conversation_to_format, entry_to_format, phi_stop_reason, pi_message_in_short, unfinished_json,
    unfinished_to_format,
};
pub use id_table::{IdNumber, IdTable};
pub use ids::{EntryId, LoopId, SessionId};
pub use json::{JsonMap, RawJson, json_bytes, json_depth, json_without_space, metadata_matches};
pub use limits::LimitError;
pub use lossy_json::{Unseen, lossy_json};
pub use members::{UnknownMembers, raw_members};
pub use message::{
    AgentMessage, AssistantMessage, ContentBlock, ContentOrText, CustomMessage, ErrorKind,
    FunctionCallBlock, FunctionResultBlock, FunctionResultMessage, ImageBlock, NewMessage, Role,
    StopReason, TextBlock, ThinkingBlock, Usage, UserMessage,
};
pub use meta::{
    ModelName, SessionDetails, SessionMeta, SessionStatus, TaskStatus, agent_of, project_of,
    tenant_of,
};
pub use percent::{percent_decode, percent_encode};
pub use record::{
    DocumentRecord, KIND_DOCUMENTS, LoopEvent, LoopPhase, MetaChange, NewRecord, Record, Removal,
    StatusChange,
};
pub use revision::{Delta, Finish, Revision, RevisionError, UsageChange, settle};
pub use tree::BranchHead;
pub use usage::{UsageByModel, UsageTotals};
