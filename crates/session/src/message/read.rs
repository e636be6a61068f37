//! Reading messages and blocks, with their unknown members.

use std::fmt;

use serde::de::value::{SeqAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, ErrorKind, FunctionCallBlock,
    FunctionResultBlock, FunctionResultMessage, ImageBlock, StopReason, TextBlock, ThinkingBlock,
    Usage, UserMessage,
};
use crate::json::RawJson;
use crate::members::{Draft, UnknownMembers, read_draft};

/// A message as a caller gives it. It may leave out what a stored message has:
///
/// - `content` may be one text;
/// - `timestamp` may be absent: [`NewMessage::into_message`] takes the clock's;
/// - `role` may be `system`, which is stored as a custom message of the type [`CustomMessage::SYSTEM`];
/// - a message of the model may have no `model`, `provider` (both empty then) and `stop_reason` (`end` then),
///   because they are not known before the reply is complete;
/// - of these, `null` counts as absent.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    message: AgentMessage,
    has_timestamp: bool,
}

impl NewMessage {
    /// The message, at `now_ms` where the caller named no time.
    #[must_use]
    pub fn into_message(mut self, now_ms: i64) -> AgentMessage {
        if !self.has_timestamp {
            match &mut self.message {
                AgentMessage::User(message) => message.timestamp = now_ms,
                AgentMessage::Assistant(message) => message.timestamp = now_ms,
                AgentMessage::FunctionResult(message) => message.timestamp = now_ms,
                AgentMessage::Custom(message) => message.timestamp = now_ms,
            }
        }
        self.message
    }
}

impl From<AgentMessage> for NewMessage {
    fn from(message: AgentMessage) -> Self {
        Self { message, has_timestamp: true }
    }
}

impl<'de> Deserialize<'de> for NewMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let draft: MessageDraft<true> = read_draft(deserializer)?;
        let has_timestamp = draft.timestamp.is_some();
        let message = draft.forgive().finish()?;
        Ok(Self { message, has_timestamp })
    }
}

impl<'de> Deserialize<'de> for AgentMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let draft: MessageDraft<false> = read_draft(deserializer)?;
        draft.finish()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum RoleWord {
    User,
    Assistant,
    FunctionResult,
    Custom,
    System,
}

const ROLES: &[&str] = &["user", "assistant", "function_result", "custom"];

/// The members of a message of any role. Its content may be one text only where `TAKES_TEXT`; elsewhere a text is refused
/// where it stands, so that the error names its place.
#[derive(Default)]
struct MessageDraft<const TAKES_TEXT: bool> {
    role: Option<RoleWord>,
    content: Option<Vec<ContentBlock>>,
    timestamp: Option<i64>,
    stop_reason: Option<StopReason>,
    native_stop_reason: Option<String>,
    error_message: Option<String>,
    error_kind: Option<ErrorKind>,
    warnings: Option<Vec<String>>,
    usage: Option<Usage>,
    model: Option<String>,
    provider: Option<String>,
    function_call_id: Option<String>,
    function_id: Option<String>,
    details: Option<RawJson>,
    is_error: bool,
    custom_type: Option<String>,
    display: Option<String>,
    unknown: UnknownMembers,
}

impl<const TAKES_TEXT: bool> Draft for MessageDraft<TAKES_TEXT> {
    const TAG: Option<&'static str> = Some("role");
    const EXPECTED: &'static str = "a message";

    fn has_tag(&self) -> bool {
        self.role.is_some()
    }

    fn set_tag<E: Error>(&mut self, word: &str) -> Result<(), E> {
        self.role = Some(match word {
            "user" => RoleWord::User,
            "assistant" => RoleWord::Assistant,
            "function_result" => RoleWord::FunctionResult,
            "custom" => RoleWord::Custom,
            "system" => RoleWord::System,
            _ => return Err(E::unknown_variant(word, ROLES)),
        });
        Ok(())
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        use RoleWord::{Assistant, Custom, FunctionResult, System};
        match (self.role, key) {
            (_, "content") if TAKES_TEXT => {
                self.content = Some(map.next_value::<ContentOrText>()?.0);
            }
            (_, "content") => self.content = Some(map.next_value()?),
            (_, "timestamp") => self.timestamp = map.next_value()?,
            (Some(Assistant), _) => return self.read_assistant(key, map),
            (Some(FunctionResult), "function_call_id") => {
                self.function_call_id = Some(map.next_value()?);
            }
            (Some(FunctionResult), "function_id") => self.function_id = Some(map.next_value()?),
            (Some(FunctionResult), "is_error") => self.is_error = map.next_value()?,
            (Some(FunctionResult), "details") => self.details = Some(map.next_value()?),
            (Some(Custom), "custom_type") => self.custom_type = Some(map.next_value()?),
            (Some(Custom | System), "display") => self.display = map.next_value()?,
            (Some(Custom | System), "details") => {
                self.details = Some(map.next_value::<RawJson>()?).filter(|raw| !raw.is_null());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn keep(&mut self, unknown: UnknownMembers) {
        self.unknown = unknown;
    }
}

impl<const TAKES_TEXT: bool> MessageDraft<TAKES_TEXT> {
    fn read_assistant<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<bool, A::Error> {
        match key {
            "stop_reason" => self.stop_reason = map.next_value()?,
            "native_stop_reason" => self.native_stop_reason = map.next_value()?,
            "error_message" => self.error_message = map.next_value()?,
            "error_kind" => self.error_kind = map.next_value()?,
            "warnings" => self.warnings = map.next_value()?,
            "usage" => self.usage = map.next_value()?,
            "model" => self.model = map.next_value()?,
            "provider" => self.provider = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fills in the members that a caller may leave out.
    fn forgive(mut self) -> Self {
        self.timestamp.get_or_insert(0);
        self.stop_reason.get_or_insert(StopReason::End);
        self.model.get_or_insert_default();
        self.provider.get_or_insert_default();
        if self.role == Some(RoleWord::System) {
            self.role = Some(RoleWord::Custom);
            self.custom_type = Some(CustomMessage::SYSTEM.to_owned());
        }
        self
    }

    fn finish<E: Error>(self) -> Result<AgentMessage, E> {
        let content = need(self.content, "content")?;
        let timestamp = need(self.timestamp, "timestamp")?;
        let unknown = self.unknown;
        Ok(match need(self.role, "role")? {
            RoleWord::User => AgentMessage::User(UserMessage { content, timestamp, unknown }),
            RoleWord::Assistant => AgentMessage::Assistant(AssistantMessage {
                content,
                stop_reason: need(self.stop_reason, "stop_reason")?,
                native_stop_reason: self.native_stop_reason,
                error_message: self.error_message,
                error_kind: self.error_kind,
                warnings: self.warnings,
                usage: self.usage,
                model: need(self.model, "model")?,
                provider: need(self.provider, "provider")?,
                timestamp,
                unknown,
            }),
            RoleWord::FunctionResult => AgentMessage::FunctionResult(FunctionResultMessage {
                function_call_id: need(self.function_call_id, "function_call_id")?,
                function_id: need(self.function_id, "function_id")?,
                content,
                details: self.details.unwrap_or_default(),
                is_error: self.is_error,
                timestamp,
                unknown,
            }),
            RoleWord::Custom => AgentMessage::Custom(CustomMessage {
                custom_type: need(self.custom_type, "custom_type")?,
                content,
                display: self.display,
                details: self.details,
                timestamp,
                unknown,
            }),
            RoleWord::System => return Err(E::unknown_variant("system", ROLES)),
        })
    }
}

fn need<T, E: Error>(value: Option<T>, name: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(name))
}

/// A list of blocks, or one text in place of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentOrText(pub Vec<ContentBlock>);

impl<'de> Deserialize<'de> for ContentOrText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = ContentOrText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ContentOrText, E> {
        Ok(ContentOrText(vec![ContentBlock::text(text)]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ContentOrText, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(ContentOrText)
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockWord {
    Text,
    Image,
    Thinking,
    FunctionCall,
    FunctionResult,
}

/// The members of a block of any type.
#[derive(Default)]
struct BlockDraft {
    word: Option<BlockWord>,
    text: Option<String>,
    mime: Option<String>,
    data: Option<String>,
    signature: Option<String>,
    id: Option<String>,
    function_id: Option<String>,
    function_call_id: Option<String>,
    arguments: RawJson,
    content: Option<Vec<ContentBlock>>,
    is_error: Option<bool>,
    unknown: UnknownMembers,
}

impl Draft for BlockDraft {
    const TAG: Option<&'static str> = Some("type");
    const EXPECTED: &'static str = "a content block";

    fn has_tag(&self) -> bool {
        self.word.is_some()
    }

    fn set_tag<E: Error>(&mut self, word: &str) -> Result<(), E> {
        self.word = Some(BlockWord::deserialize(StrDeserializer::new(word))?);
        Ok(())
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        use BlockWord::{FunctionCall, FunctionResult, Image, Text, Thinking};
        let Some(word) = self.word else { return Ok(false) };
        match (word, key) {
            (Text | Thinking, "text") => self.text = Some(map.next_value()?),
            (Thinking, "signature") => self.signature = map.next_value()?,
            (Image, "mime") => self.mime = Some(map.next_value()?),
            (Image, "data") => self.data = Some(map.next_value()?),
            (FunctionCall, "id") => self.id = Some(map.next_value()?),
            (FunctionCall, "function_id") => self.function_id = Some(map.next_value()?),
            (FunctionCall, "arguments") => self.arguments = map.next_value()?,
            (FunctionResult, "function_call_id") => {
                self.function_call_id = Some(map.next_value()?);
            }
            (FunctionResult, "content") => self.content = Some(map.next_value()?),
            (FunctionResult, "is_error") => self.is_error = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn keep(&mut self, unknown: UnknownMembers) {
        self.unknown = unknown;
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let draft: BlockDraft = read_draft(deserializer)?;
        let unknown = draft.unknown;
        Ok(match need(draft.word, "type")? {
            BlockWord::Text => Self::Text(TextBlock { text: need(draft.text, "text")?, unknown }),
            BlockWord::Image => Self::Image(ImageBlock {
                mime: need(draft.mime, "mime")?,
                data: need(draft.data, "data")?,
                unknown,
            }),
            BlockWord::Thinking => Self::Thinking(ThinkingBlock {
                text: need(draft.text, "text")?,
                signature: draft.signature,
                unknown,
            }),
            BlockWord::FunctionCall => Self::FunctionCall(FunctionCallBlock {
                id: need(draft.id, "id")?,
                function_id: need(draft.function_id, "function_id")?,
                arguments: draft.arguments,
                unknown,
            }),
            BlockWord::FunctionResult => Self::FunctionResult(FunctionResultBlock {
                function_call_id: need(draft.function_call_id, "function_call_id")?,
                content: need(draft.content, "content")?,
                is_error: draft.is_error,
                unknown,
            }),
        })
    }
}

impl Draft for Usage {
    const TAG: Option<&'static str> = None;
    const EXPECTED: &'static str = "a report of usage";

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "input" => self.input = map.next_value()?,
            "output" => self.output = map.next_value()?,
            "cache_read" => self.cache_read = map.next_value()?,
            "cache_write" => self.cache_write = map.next_value()?,
            "reasoning" => self.reasoning = map.next_value()?,
            "cost_usd" => self.cost_usd = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn keep(&mut self, unknown: UnknownMembers) {
        self.unknown = unknown;
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_draft(deserializer)
    }
}
