//! What is searched of a session: one document for each entry, and one for the session itself.

use std::borrow::Cow;

use bough_session::{
    AgentMessage, Bookkeeping, Canonical, ContentBlock, CustomPayload, Entry, EntryId, Role,
    SessionState, UnknownMembers, agent_of, project_of,
};
use serde_json::Value;

use crate::tokens::is_of_word;

/// What a piece of text is; `is:thinking` asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldKind {
    /// The text of a message.
    Text,
    /// The thinking of a model.
    Thinking,
    /// A call of a tool: its name and its arguments.
    Call,
    /// The result of a tool.
    Result,
    /// An error message.
    Error,
    /// A summary of what came before, or of a branch.
    Summary,
    /// The label of an entry.
    Label,
    /// The title or the name of a session.
    Title,
    /// Other facts about a session: description, task, working directory, why it failed.
    About,
    /// Data of an application.
    Data,
}

impl FieldKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Thinking,
        Self::Call,
        Self::Result,
        Self::Error,
        Self::Summary,
        Self::Label,
        Self::Title,
        Self::About,
        Self::Data,
    ];

    /// The kind's name in queries and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Call => "call",
            Self::Result => "result",
            Self::Error => "error",
            Self::Summary => "summary",
            Self::Label => "label",
            Self::Title => "title",
            Self::About => "about",
            Self::Data => "data",
        }
    }
}

/// A piece of text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The kind of the text.
    pub kind: FieldKind,
    /// The text.
    pub text: String,
}

/// What is searched of one entry, or of the session itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The number of the record that added the entry; 0 is the session itself.
    pub seq: u64,
    /// The revision of the entry that this document shows, if it is not the newest one.
    pub old_revision: Option<u64>,
    /// When the entry was made, milliseconds since the epoch.
    pub at_ms: i64,
    /// Who speaks, if the entry is a message.
    pub role: Option<Role>,
    /// The tools that it calls, or whose result it is.
    pub tools: Vec<String>,
    /// The model that wrote it, and its provider.
    pub model: Option<String>,
    /// The agent that wrote it.
    pub agent: Option<String>,
    /// The entry that a label is about.
    pub label_of: Option<EntryId>,
    /// Its texts.
    pub fields: Vec<Field>,
}

impl Document {
    /// The document of an entry; `None` if the entry has nothing to search.
    #[must_use]
    pub fn of_entry(seq: u64, entry: &Entry, state_agent: Option<&str>) -> Option<Self> {
        if entry.is_hidden() {
            return None;
        }
        let mut document = Self { seq, at_ms: entry.timestamp, ..Self::default() };
        match entry.canonical() {
            Canonical::Message(message) => document.add_message(&message),
            Canonical::Custom(custom) => document.add_custom(&custom),
        }
        let own = entry.origin.as_ref().and_then(agent_of);
        document.agent = own.or_else(|| state_agent.map(str::to_owned));
        (!document.fields.is_empty()).then_some(document)
    }

    /// The document of the session itself.
    #[must_use]
    pub fn of_session(state: &SessionState) -> Self {
        // The time of its last change moves with every entry, so it would make every document
        // differ.
        let mut document = Self { at_ms: state.meta.created_at, ..Self::default() };
        document.add(FieldKind::Title, &state.meta.title);
        document.add(FieldKind::Title, state.name.as_deref().unwrap_or_default());
        document.add(FieldKind::About, &state.meta.description);
        document.add(FieldKind::About, state.task_name.as_deref().unwrap_or_default());
        document
            .add(FieldKind::About, project_of(state.meta.metadata.as_ref()).unwrap_or_default());
        document.add(FieldKind::Error, state.meta.status_reason.as_deref().unwrap_or_default());
        document.agent = state.meta.metadata.as_ref().and_then(agent_of);
        document
    }

    fn add(&mut self, kind: FieldKind, text: &str) {
        if !text.trim().is_empty() {
            self.fields.push(Field { kind, text: text.to_owned() });
        }
    }

    fn add_message(&mut self, message: &AgentMessage) {
        self.role = Some(message.role());
        let mut result = FieldKind::Text;
        match message {
            AgentMessage::Assistant(reply) => {
                self.model = Some(format!("{} {}", reply.provider, reply.model));
                self.add(FieldKind::Error, reply.error_message.as_deref().unwrap_or_default());
                for warning in reply.warnings.iter().flatten() {
                    self.add(FieldKind::Error, warning);
                }
            }
            AgentMessage::FunctionResult(given) => {
                self.tools.push(given.function_id.clone());
                result = if given.is_error { FieldKind::Error } else { FieldKind::Result };
            }
            AgentMessage::Custom(custom) => {
                self.add(FieldKind::Text, custom.display.as_deref().unwrap_or_default());
            }
            AgentMessage::User(_) => {}
        }
        self.add_blocks(message.content(), result);
        if let Some(details) = message.details() {
            self.add_details(&details.value(), result);
        }
        self.add_members(message.unknown());
    }

    /// Details often repeat the rendered text; only strings that the text does not contain are
    /// kept.
    fn add_details(&mut self, details: &Value, kind: FieldKind) {
        let text = strings_of(details, |_, text| !self.contains(text));
        let kind = if kind == FieldKind::Text { FieldKind::Data } else { kind };
        self.add(kind, &text);
    }

    /// Whether a field has a text, and not only inside of other words: `cat` is not in `concatenate`.
    fn contains(&self, text: &str) -> bool {
        let (first, last) = (text.chars().next(), text.chars().next_back());
        self.fields.iter().any(|field| {
            field.text.match_indices(text).any(|(at, _)| {
                let (before, rest) = field.text.split_at(at);
                let after = rest.get(text.len()..).unwrap_or_default();
                !is_one_word(before.chars().next_back(), first)
                    && !is_one_word(last, after.chars().next())
            })
        })
    }

    /// The members that a provider's format has beside the canonical message: documents, citations, code that was run,
    /// results of the provider's own tools. Only their prose is kept, not ids and other names of the format.
    fn add_members(&mut self, members: &UnknownMembers) {
        for (_, value) in members.iter() {
            let is_prose = |key: &str, text: &str| {
                !is_structural(key) && !is_opaque(text) && !self.contains(text)
            };
            let text = strings_of(&value.value(), is_prose);
            self.add(FieldKind::Data, &text);
        }
    }

    fn add_blocks(&mut self, blocks: &[ContentBlock], text: FieldKind) {
        for block in blocks {
            match block {
                ContentBlock::Text(words) => self.add(text, &words.text),
                ContentBlock::Thinking(thought) => self.add(FieldKind::Thinking, &thought.text),
                ContentBlock::FunctionCall(call) => {
                    self.tools.push(call.function_id.clone());
                    let arguments = strings_of(&call.arguments.value(), |_, _| true);
                    self.add(FieldKind::Call, &format!("{} {arguments}", call.function_id));
                }
                ContentBlock::FunctionResult(given) => {
                    let failed = given.is_error.unwrap_or_default();
                    let kind = if failed { FieldKind::Error } else { FieldKind::Result };
                    self.add_blocks(&given.content, kind);
                }
                ContentBlock::Image(_) => {}
            }
            self.add_members(block.unknown());
        }
    }

    fn add_custom(&mut self, custom: &CustomPayload) {
        match Bookkeeping::from_payload(custom) {
            Some(Bookkeeping::Compaction(done)) => self.add(FieldKind::Summary, &done.summary),
            Some(Bookkeeping::BranchSummary(left)) => self.add(FieldKind::Summary, &left.summary),
            Some(Bookkeeping::Label(label)) => {
                self.add(FieldKind::Label, label.label.as_deref().unwrap_or_default());
                self.label_of = Some(label.target_id);
            }
            Some(Bookkeeping::ModelChange(to)) => {
                self.model = Some(format!("{} {}", to.provider, to.model_id));
                self.add(FieldKind::Data, &format!("{} {}", to.provider, to.model_id));
            }
            // The name is the session's.
            Some(Bookkeeping::SessionInfo(_) | Bookkeeping::ThinkingLevelChange(_)) => {}
            None => {
                let data = strings_of(&custom.data, |_, _| true);
                self.add(FieldKind::Data, &format!("{} {data}", custom.custom_type));
            }
        }
    }
}

/// Whether two characters that follow each other are in one word.
fn is_one_word(left: Option<char>, right: Option<char>) -> bool {
    left.is_some_and(is_of_word) && right.is_some_and(is_of_word)
}

/// Whether a member of a provider's format names or numbers something instead of saying it.
fn is_structural(key: &str) -> bool {
    const NAMES: [&str; 14] = [
        "encrypted_content",
        "encrypted_index",
        "id",
        "media_type",
        "mediaType",
        "mime",
        "mimeType",
        "object",
        "role",
        "signature",
        "state",
        "status",
        "thoughtSignature",
        "type",
    ];
    NAMES.contains(&key) || key.ends_with("_id") || key.ends_with("Id") || key.starts_with('$')
}

/// Whether a text is no prose: a number, or bytes as base64.
fn is_opaque(text: &str) -> bool {
    /// The shortest text that is taken for bytes.
    const BASE64_MIN: usize = 128;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
    text.starts_with("data:")
        || text.parse::<f64>().is_ok()
        || (text.len() >= BASE64_MIN && text.bytes().all(is_base64))
}

/// The strings and numbers in a JSON value that `keep` accepts, one a line; it is given the name of the nearest member.
/// Names of members are left out, because every call of a tool has the same.
fn strings_of(value: &Value, keep: impl Fn(&str, &str) -> bool) -> String {
    let mut text = String::new();
    let mut open = vec![("", value)];
    while let Some((key, value)) = open.pop() {
        let piece = match value {
            Value::String(piece) => Cow::Borrowed(piece.as_str()),
            Value::Number(number) => Cow::Owned(number.to_string()),
            Value::Array(values) => {
                open.extend(values.iter().rev().map(|value| (key, value)));
                continue;
            }
            Value::Object(fields) => {
                open.extend(fields.iter().rev().map(|(key, value)| (key.as_str(), value)));
                continue;
            }
            Value::Null | Value::Bool(_) => continue,
        };
        if keep(key, &piece) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&piece);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_that_the_text_has_in_other_words_only_are_kept() {
        let mut document = Document::default();
        document.add(FieldKind::Result, "concatenate the_rows, a catalogue (and cafe\u{301}s)");
        let details = serde_json::json!(["cat", "the_rows", "concatenate the", "cafe", "rows,"]);
        document.add_details(&details, FieldKind::Result);
        assert_eq!(document.fields[1].text, "cat\ncafe");
    }

    #[test]
    fn members_of_a_format_are_searched_by_their_prose() {
        let bytes = "QUJD".repeat(40);
        let message = serde_json::json!({
            "role": "assistant", "model": "m", "provider": "p", "stop_reason": "end", "timestamp": 1,
            "openai-chat": {"audio": {"id": "audioid", "transcript": "spoken words", "data": bytes}},
            "content": [{"type": "text", "text": "a cited text", "original": {"anthropic": {
                "type": "document", "title": "cited", "source": {"media_type": "text/plain", "data": "document body"},
                "tool_use_id": "callid", "index": 7, "$item": "marker"}}}],
        });
        let message: AgentMessage = serde_json::from_value(message).unwrap();
        let mut document = Document::default();
        document.add_message(&message);
        let data = document.fields.iter().filter(|field| field.kind == FieldKind::Data);
        let texts: Vec<&str> = data.map(|field| field.text.as_str()).collect();
        assert_eq!(texts, ["document body", "spoken words"]);
    }
}
