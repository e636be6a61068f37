//! Formats as codecs: the messages of other systems and APIs, in and out.
//!
//! A message in a format is stored as it came, with the name of its format. The canonical message is a pure and
//! total function of it, computed when it is read: nothing is stored twice, the format gets back the same bytes, and a
//! better mapping later improves old sessions too. Members that the canonical message does not have are kept with it
//! under the format's name, and are written again with the message in that format.
//!
//! One stored entry is one message as it came, and its canonical view is one message. A whole conversation is mapped
//! by [`conversation_to_format`], which puts the results of calls where the format wants them.
//!
//! A delta, an update or the end of a stream changes the canonical view of a message, also of one that came in another
//! format: block `n` is the block `n` of its canonical content. From then on the message is written from that view
//! ([`Replaced`]); what the format had beside it is kept.

mod ai_sdk;
mod anthropic;
mod block;
mod bough;
mod check;
mod conversation;
mod gemini;
mod gemini_results;
mod gemini_usage;
mod input;
mod openai_chat;
mod openai_parts;
mod openai_responses;
mod openai_usage;
mod phi;
mod pi;
mod pi_lines;
mod pi_short;
mod read;
mod response;
mod write;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use check::FormatError;
pub use conversation::{Conversation, context_to_format, conversation_to_format};
pub use phi::phi_stop_reason;
pub(crate) use pi_lines::compacted_system_message;
pub use pi_lines::compacted_system_prompt;
pub use pi_short::pi_message_in_short;

use crate::lossy_json::lossy_json;
use crate::revision::Finish;
use crate::usage::USAGE_TOOLS_AND_SUMMARIES;
use crate::{
    AgentMessage, Canonical, ContentBlock, CustomPayload, Entry, EntryBody, EntryId, RawJson, Usage,
};
use check::Check;
use write::Mapping;

/// A line of a pi session file, or a message of one.
pub const FORMAT_PI: &str = "pi";
/// A message of a phi session.
pub const FORMAT_PHI: &str = "phi";
/// A message of a session-manager that knows more than the published shapes: the format `bough` by the name that older
/// logs have.
pub const FORMAT_SESSION_MANAGER: &str = "session-manager";

/// A format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The canonical message.
    Bough,
    /// The Anthropic Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API.
    OpenaiChat,
    /// OpenAI's Responses API.
    OpenaiResponses,
    /// The Gemini API.
    Gemini,
    /// `UIMessage`s of the AI SDK.
    AiSdk,
    /// pi session files.
    Pi,
    /// phi sessions.
    Phi,
}

/// Another system's JSON, as it came, with the name of its format.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignBody {
    /// Which format's. A name that this version does not know is kept.
    pub format: String,
    /// Its JSON.
    pub json: RawJson,
    /// What later changes replaced in it.
    pub replaced: Option<Replaced>,
}

/// The parts of a foreign message that later changes replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replaced {
    /// The content.
    pub content: Vec<ContentBlock>,
    /// The details, where they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<RawJson>,
    /// How the model's message ended, if that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Box<Finish>>,
}

/// Something that a mapping could not carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The entry whose message it is about, where several are mapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// What, as a JSON pointer into the canonical message.
    pub pointer: String,
    /// Why.
    pub reason: LossReason,
}

/// Why a mapping could not carry something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// The format has no member for it.
    NoPlace,
    /// The format expresses it in another way, which does not carry all of it.
    Changed,
    /// The format has it in replies, and takes it in no request.
    NotInput,
}

/// A message in a format.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// The message: one JSON value, or several if the format needs several messages for it.
    pub messages: Vec<RawJson>,
    /// What could not be expressed.
    pub losses: Vec<Loss>,
}

/// One format's mapping, both ways.
trait Codec: Sync {
    /// Checks whether a JSON value is a message of the format, as far as the mapping needs it.
    fn check(&self, check: &Check<'_>) -> Result<(), FormatError>;

    /// The canonical view of a message; `None` if the text is not a message.
    fn to_canonical(&self, text: &str, entry_time: i64) -> Option<Canonical>;

    /// Writes the message in the format, with everything that the format can express. Results are not blocks of it,
    /// unless the format wants them there.
    fn write(&self, message: &AgentMessage, mapping: &mut Mapping) -> Vec<RawJson>;

    /// The part of a message that a request may have.
    fn input(&self, json: RawJson, _mapping: &mut Mapping) -> Vec<RawJson> {
        vec![json]
    }

    /// Whether results are messages of their own, and never blocks of a message of the model.
    fn splits_results(&self) -> bool {
        true
    }

    /// Whether the results of one turn are one message.
    fn joins_results(&self) -> bool {
        false
    }

    /// Whether all calls that wait for results are in one message of the model.
    fn joins_calls(&self) -> bool {
        false
    }

    /// Whether everything that the model does between two messages of the user is one message.
    fn merges_steps(&self) -> bool {
        false
    }

    /// The member for system messages, if the format takes them beside the messages.
    fn system_list(&self) -> Option<&'static str> {
        None
    }
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 8] = [
        Self::Bough,
        Self::Anthropic,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Gemini,
        Self::AiSdk,
        Self::Pi,
        Self::Phi,
    ];

    /// The name by which the API and the log know the format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bough => "bough",
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai-sdk",
            Self::Pi => FORMAT_PI,
            Self::Phi => FORMAT_PHI,
        }
    }

    /// The format with this name; names in older logs are accepted too.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == FORMAT_SESSION_MANAGER {
            return Some(Self::Bough);
        }
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    fn codec(self) -> &'static dyn Codec {
        match self {
            Self::Bough => &bough::Bough,
            Self::Anthropic => &anthropic::Anthropic,
            Self::OpenaiChat => &openai_chat::OpenaiChat,
            Self::OpenaiResponses => &openai_responses::OpenaiResponses,
            Self::Gemini => &gemini::Gemini,
            Self::AiSdk => &ai_sdk::AiSdk,
            Self::Pi => &pi::Pi,
            Self::Phi => &phi::Phi,
        }
    }

    /// Whether a JSON is a message of the format, as far as the mapping needs it.
    pub fn check(self, json: &RawJson) -> Result<(), FormatError> {
        let text = lossy_json(json.get());
        self.codec().check(&Check::message(self, &text)?)
    }

    /// The body of an entry that was given in the format: the JSON as it came, or a canonical message if it is one in
    /// its usual spelling.
    pub fn body(self, json: RawJson) -> Result<EntryBody, FormatError> {
        self.check(&json)?;
        if self == Self::Bough
            && let Ok(message) = serde_json::from_str::<AgentMessage>(json.get())
            && RawJson::of(&message).is_ok_and(|usual| usual == json)
        {
            return Ok(EntryBody::Message(message.into()));
        }
        Ok(EntryBody::Foreign(ForeignBody::new(self.name(), json)))
    }

    /// The canonical view of JSON in the format. Never fails: JSON that is not a message becomes bookkeeping that shows
    /// it.
    #[must_use]
    pub fn to_canonical(self, json: &RawJson, entry_time: i64) -> Canonical {
        canonical_json(Some(self), self.name(), json, entry_time)
    }

    /// A canonical message in the format.
    #[must_use]
    pub fn from_canonical(self, message: &AgentMessage) -> Mapped {
        conversation::write_message(message, self, false)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ForeignBody {
    /// A body as it came.
    pub fn new(format: impl Into<String>, json: RawJson) -> Self {
        Self { format: format.into(), json, replaced: None }
    }

    /// The JSON, if it came in this format and was not changed since.
    #[must_use]
    pub fn as_it_came(&self, format: Format) -> Option<&RawJson> {
        let same = Format::named(&self.format) == Some(format) && self.replaced.is_none();
        same.then_some(&self.json)
    }
}

/// The message of an entry in a format: the original bytes if it came in that format, mapped otherwise. `None` if the
/// entry is not a message.
#[must_use]
pub fn entry_to_format(entry: &Entry, format: Format) -> Option<Mapped> {
    in_format(entry, format, false)
}

/// The same for a message that still streams: it has no stop reason yet. The member is absent in `bough`,
/// `ai-sdk`, `pi` and `phi`, null in `anthropic`, `openai-chat` and `gemini`, and `in_progress` in `openai-responses`.
#[must_use]
pub fn unfinished_to_format(entry: &Entry, format: Format) -> Option<Mapped> {
    in_format(entry, format, true)
}

/// The JSON of a canonical message that still streams: without its stop reason, which it does not know yet.
#[must_use]
pub fn unfinished_json(message: &AgentMessage) -> RawJson {
    let mut members = write::members_of(&write::to_json(message));
    members.remove("stop_reason");
    members.remove("native_stop_reason");
    write::to_json(&members)
}

fn in_format(entry: &Entry, format: Format, is_unfinished: bool) -> Option<Mapped> {
    let message = entry.message()?;
    if let EntryBody::Foreign(body) = &entry.body
        && let Some(json) = body.as_it_came(format)
    {
        return Some(Mapped { messages: vec![json.clone()], losses: Vec::new() });
    }
    Some(conversation::write_message(&message, format, is_unfinished))
}

/// Usage that an entry of another system reports outside of a message: the model, and its usage.
pub(crate) fn usage_of(custom: &CustomPayload) -> Option<(String, Usage)> {
    if custom.custom_type == pi_lines::USAGE {
        return pi_lines::usage_line(&custom.data);
    }
    pi_lines::usage_beside(&custom.data).map(without_model)
}

/// Usage in the details of a tool's result, which names no model.
pub(crate) fn usage_in(details: &RawJson) -> Option<(String, Usage)> {
    // Details are long and rarely contain it.
    let may_report = details.get().contains(pi_lines::USAGE);
    may_report.then(|| pi_lines::usage_beside(&details.value()))?.map(without_model)
}

fn without_model(usage: Usage) -> (String, Usage) {
    (USAGE_TOOLS_AND_SUMMARIES.to_owned(), usage)
}

/// The content that an entry of another system sends instead of an earlier entry; `None` leaves that entry out.
pub(crate) fn context_edit_of(
    custom: &CustomPayload,
) -> Option<(EntryId, Option<Vec<ContentBlock>>)> {
    if custom.custom_type != pi_lines::CONTEXT_EDIT {
        return None;
    }
    pi_lines::context_edit(&custom.data)
}

/// The content of a foreign body in canonical terms. `timestamp` is the entry's, for messages without one.
pub(crate) fn canonical(body: &ForeignBody, timestamp: i64) -> Canonical {
    let mapped = canonical_json(Format::named(&body.format), &body.format, &body.json, timestamp);
    with_replaced(mapped, &body.format, body.replaced.as_ref())
}

fn canonical_json(format: Option<Format>, name: &str, json: &RawJson, timestamp: i64) -> Canonical {
    let text = lossy_json(json.get());
    let mapped = format.and_then(|format| format.codec().to_canonical(&text, timestamp));
    mapped.unwrap_or_else(|| unknown(name, json.value()))
}

fn with_replaced(mapped: Canonical, format: &str, replaced: Option<&Replaced>) -> Canonical {
    match (mapped, replaced) {
        (Canonical::Message(mut shared), Some(replaced)) => {
            let message = Arc::make_mut(&mut shared);
            message.content_mut().clone_from(&replaced.content);
            if let Some(details) = &replaced.details {
                message.set_details(details.clone());
            }
            if let (Some(finish), AgentMessage::Assistant(reply)) = (&replaced.finish, message) {
                finish.apply_to(reply);
                let blocks = reply.content.iter_mut().map(ContentBlock::unknown_mut);
                for unknown in blocks.chain([&mut reply.unknown]) {
                    write::drop_open_ends(unknown, format);
                }
            }
            Canonical::Message(shared)
        }
        (mapped, _) => mapped,
    }
}

fn unknown(format: &str, value: Value) -> Canonical {
    let word = value.get("type").and_then(Value::as_str);
    let custom_type = match word {
        Some(word) => format!("{format}.{word}"),
        None => format.to_owned(),
    };
    Canonical::Custom(CustomPayload { custom_type, data: value })
}
