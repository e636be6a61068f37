//! Shared by the formats: pictures, blocks that are kept whole, calls, roles.

use serde_json::value::RawValue;

use super::Format;
use super::read::{Members, typed};
use super::write::{Mapping, ORIGINAL, Object, to_json};
use crate::members::UnknownMembers;
use crate::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, FunctionResultBlock,
    FunctionResultMessage, ImageBlock, LossReason, RawJson, StopReason, TextBlock, UserMessage,
};

/// The member of an image block that holds the picture's address; its `data` is empty then.
const URL: &str = "url";
/// The media type of a picture whose type is not known.
const ANY_IMAGE: &str = "image/*";

/// Members that the canonical shape does not have, under the format's name.
pub(super) fn kept(format: Format, rest: Members<'_>) -> UnknownMembers {
    kept_members(format, rest.into_unknown())
}

/// The same, if some of them are elsewhere in the format.
pub(super) fn kept_members(format: Format, rest: UnknownMembers) -> UnknownMembers {
    let mut unknown = UnknownMembers::NONE;
    if !rest.is_empty() {
        unknown.set(format.name(), to_json(&rest));
    }
    unknown
}

/// A block that the canonical message cannot express: a text that names it, and the block as it came.
pub(super) fn whole_block(format: Format, raw: &RawValue, text: String) -> ContentBlock {
    let mut block = ContentBlock::text(text);
    keep_whole(&mut block, format, raw);
    block
}

/// Keeps a format's whole block beside the text that is shown for it.
pub(super) fn keep_whole(block: &mut ContentBlock, format: Format, raw: &RawValue) {
    block.unknown_mut().set(ORIGINAL, Object::with(format.name(), RawJson::from(raw)).into_raw());
}

/// Reads content, which is one text or a list of blocks. Anything else is left in place.
pub(super) fn take_content<'a>(
    format: Format,
    members: &mut Members<'a>,
    key: &str,
    read: impl Fn(&'a RawValue, Members<'a>) -> ContentBlock,
) -> Vec<ContentBlock> {
    if let Some(text) = members.take_text(key) {
        return vec![ContentBlock::text(text)];
    }
    let blocks = members.take_list(key).unwrap_or_default().into_iter();
    blocks.map(|raw| read_block(format, raw, |members| read(raw, members))).collect()
}

/// Reads a block that is an object. Any other JSON is kept whole.
pub(super) fn read_block<'a>(
    format: Format,
    raw: &'a RawValue,
    read: impl FnOnce(Members<'a>) -> ContentBlock,
) -> ContentBlock {
    match Members::of(raw) {
        Some(members) => read(members),
        None => whole_block(format, raw, raw.get().to_owned()),
    }
}

/// A text block with the members that were not taken.
pub(super) fn text_block(format: Format, text: String, rest: Members<'_>) -> ContentBlock {
    ContentBlock::Text(TextBlock { text, unknown: kept(format, rest) })
}

/// A message of the user with the members that were not taken.
pub(super) fn user_message(
    format: Format,
    content: Vec<ContentBlock>,
    timestamp: i64,
    rest: Members<'_>,
) -> AgentMessage {
    AgentMessage::User(UserMessage { content, timestamp, unknown: kept(format, rest) })
}

/// A name for a block: its type, and its name if it has one.
pub(super) fn name_of(kind: &str, members: &Members<'_>) -> String {
    const NAMES: &[&str] = &["title", "filename", "name", "file_id", "id", "url", "fileUri"];
    match NAMES.iter().find_map(|key| members.text(key)) {
        Some(name) => format!("[{kind}: {name}]"),
        None => format!("[{kind}]"),
    }
}

/// A picture in the message itself.
pub(super) const fn image(mime: String, data: String) -> ContentBlock {
    ContentBlock::Image(ImageBlock { mime, data, unknown: UnknownMembers::NONE })
}

/// A picture at an address, or in the address itself: `data:image/png;base64,...`.
pub(super) fn image_at(url: &str, mime: &str) -> ContentBlock {
    if let Some((mime, data)) = data_url(url) {
        return image(mime.to_owned(), data.to_owned());
    }
    // Formats that need a type get this one where none is known.
    let mime = if mime == ANY_IMAGE { "" } else { mime };
    let mut block = image(mime.to_owned(), String::new());
    block.unknown_mut().set(URL, to_json(url));
    block
}

fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// The data or the address of a picture.
pub(super) enum Picture {
    /// In the message.
    Here,
    /// At an address.
    At(String),
}

/// The address or data of a picture, and the members that this covers.
pub(super) fn picture(image: &ImageBlock) -> (Picture, &'static [&'static str]) {
    let url = image.unknown.get(URL).and_then(|url| typed(url.raw()));
    match url {
        Some(url) if image.data.is_empty() => (Picture::At(url), &[URL]),
        _ => (Picture::Here, &[]),
    }
}

/// The type of a picture for the formats that need one.
pub(super) fn some_mime(image: &ImageBlock) -> &str {
    if image.mime.is_empty() { ANY_IMAGE } else { &image.mime }
}

/// Notes the loss of a picture's media type, for the formats that do not have it.
pub(super) fn lose_mime(mapping: &mut Mapping, at: &str, image: &ImageBlock) {
    if matches!(picture(image).0, Picture::At(_)) && !image.mime.is_empty() {
        mapping.lose(format!("{at}/mime"));
    }
}

/// A picture as one address.
pub(super) fn picture_url(image: &ImageBlock) -> String {
    match picture(image).0 {
        Picture::At(url) => url,
        Picture::Here => format!("data:{};base64,{}", image.mime, image.data),
    }
}

/// Reads arguments that a format writes as a text of JSON. Invalid JSON is kept as a text.
pub(super) fn arguments_of(text: &str) -> RawJson {
    RawJson::parse(text).unwrap_or_else(|_| to_json(text))
}

/// Arguments as a text of JSON: the reverse of [`arguments_of`]. While the call streams, a text is what has come of them.
pub(super) fn arguments_text(arguments: &RawJson, mapping: &Mapping) -> String {
    match typed::<String>(arguments.raw()) {
        Some(text) if mapping.is_unfinished || RawJson::parse(text.as_str()).is_err() => text,
        _ if arguments.is_null() => "{}".to_owned(),
        _ => arguments.get().to_owned(),
    }
}

/// Arguments as an object, for the formats that want one.
pub(super) fn arguments_object(arguments: &RawJson) -> RawJson {
    if arguments.is_null() {
        return to_json(&UnknownMembers::NONE);
    }
    arguments.clone()
}

/// The texts of a content, joined.
pub(super) fn joined_text(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(ContentBlock::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// The blocks of a content, each with its pointer into the canonical message.
pub(super) fn placed<'a>(
    at: &str,
    content: &'a [ContentBlock],
) -> impl Iterator<Item = (String, &'a ContentBlock)> {
    let at = format!("{at}/content");
    content.iter().enumerate().map(move |(index, block)| (format!("{at}/{index}"), block))
}

/// Whether a text block of another format has no content of its own: a mark, such as the start of a step.
pub(super) fn is_mark(block: &ContentBlock) -> bool {
    block.as_text() == Some("") && block.unknown().get(ORIGINAL).is_some()
}

/// The role in the formats that have no custom messages.
pub(super) fn plain_role(message: &AgentMessage) -> PlainRole<'_> {
    match message {
        AgentMessage::User(_) => PlainRole::User,
        AgentMessage::Assistant(reply) => PlainRole::Assistant(reply),
        AgentMessage::FunctionResult(result) => PlainRole::Result(result),
        AgentMessage::Custom(custom) if custom.is_system() => PlainRole::System,
        AgentMessage::Custom(_) => PlainRole::User,
    }
}

/// The role of a message.
pub(super) enum PlainRole<'a> {
    User,
    Assistant(&'a AssistantMessage),
    Result(&'a FunctionResultMessage),
    System,
}

/// Notes what a plain format cannot express of a message as a whole.
pub(super) fn lose_plain(mapping: &mut Mapping, message: &AgentMessage) {
    match message {
        AgentMessage::Custom(custom) => lose_custom(mapping, custom),
        AgentMessage::FunctionResult(result) if !result.details.is_null() => {
            mapping.lose("/details".to_owned());
        }
        AgentMessage::User(_) | AgentMessage::FunctionResult(_) | AgentMessage::Assistant(_) => {}
    }
}

/// Notes the members of a reply beside its content that few formats have: the provider, and the kind of its errors.
pub(super) fn lose_reply(mapping: &mut Mapping, reply: &AssistantMessage, provider: &str) {
    if !signature_is_ours(Some(&reply.provider), provider) {
        mapping.lose("/provider".to_owned());
    }
    mapping.lose_some("", "error_kind", reply.error_kind.as_ref());
    mapping.lose_some("", "warnings", reply.warnings.as_ref());
}

/// Notes the text of an error, for the formats that have no member for it.
pub(super) fn lose_error(mapping: &mut Mapping, reply: &AssistantMessage) {
    mapping.lose_some("", "error_message", reply.error_message.as_ref());
}

/// Notes what is lost of a custom or system message that is written as a message of the user.
pub(super) fn lose_custom_as_user(mapping: &mut Mapping, custom: &CustomMessage) {
    if custom.is_system() {
        mapping.note("/role".to_owned(), LossReason::Changed);
    }
    lose_custom(mapping, custom);
}

fn lose_custom(mapping: &mut Mapping, custom: &CustomMessage) {
    if !custom.is_system() {
        mapping.note("/role".to_owned(), LossReason::Changed);
        mapping.lose("/custom_type".to_owned());
    }
    mapping.lose_some("", "display", custom.display.as_ref());
    mapping.lose_some("", "details", custom.details.as_ref());
}

/// Whether a reply has more than its content, so that it is written in the form of an API's
/// response.
pub(super) const fn is_reply(reply: &AssistantMessage) -> bool {
    !reply.model.is_empty() || reply.usage.is_some() || reply.native_stop_reason.is_some()
}

/// Whether a signature can be sent: only the provider that made it accepts it.
pub(super) fn signature_is_ours(provider: Option<&str>, ours: &str) -> bool {
    provider.is_none_or(|provider| provider.is_empty() || provider == ours)
}

/// The stop reason of a reply without a word for it, by its content.
pub(super) fn stop_reason_of(content: &[ContentBlock]) -> StopReason {
    let is_call = |block: &ContentBlock| matches!(block, ContentBlock::FunctionCall(_));
    if content.iter().any(is_call) { StopReason::FunctionCall } else { StopReason::End }
}

/// A format's words for why a model stopped.
pub(super) struct StopWords {
    /// The provider whose words these are, even those that are not listed here.
    pub(super) provider: Option<&'static str>,
    /// The words that are written.
    pub(super) usual: &'static [(&'static str, StopReason)],
    /// More words that are read.
    pub(super) others: &'static [(&'static str, StopReason)],
}

impl StopWords {
    /// The reason that a word means; `None` if the word is not known.
    pub(super) fn reason(&self, word: &str) -> Option<StopReason> {
        let mut words = self.usual.iter().chain(self.others);
        words.find(|(known, _)| *known == word).map(|(_, reason)| *reason)
    }

    /// The word for the stop reason: the reply's own one if the format has it, otherwise the usual one. `None` if the
    /// format has no word for it, and while the message streams.
    pub(super) fn word(&self, reply: &AssistantMessage, mapping: &mut Mapping) -> Option<String> {
        if mapping.is_unfinished {
            return None;
        }
        if let Some(native) = &reply.native_stop_reason
            && (self.reason(native) == Some(reply.stop_reason)
                || self.provider == Some(&reply.provider))
        {
            return Some(native.clone());
        }
        let word = self.usual.iter().find(|(_, reason)| *reason == reply.stop_reason);
        if word.is_none() {
            mapping.lose("/stop_reason".to_owned());
        }
        if reply.native_stop_reason.is_some() {
            mapping.note("/native_stop_reason".to_owned(), LossReason::Changed);
        }
        word.map(|(word, _)| (*word).to_owned())
    }
}

/// A result as a block of another message.
pub(super) fn result_as_block(message: FunctionResultMessage) -> FunctionResultBlock {
    FunctionResultBlock {
        function_call_id: message.function_call_id,
        content: message.content,
        is_error: Some(message.is_error),
        unknown: message.unknown,
    }
}

/// One result as a message of its own.
pub(super) fn result_message(
    block: FunctionResultBlock,
    function_id: String,
    timestamp: i64,
) -> FunctionResultMessage {
    FunctionResultMessage {
        is_error: block.is_error.unwrap_or(false),
        unknown: block.unknown,
        ..FunctionResultMessage::new(block.function_call_id, function_id, block.content, timestamp)
    }
}

/// A message that instructs the model.
pub(super) fn system_message(
    content: Vec<ContentBlock>,
    timestamp: i64,
    unknown: UnknownMembers,
) -> AgentMessage {
    AgentMessage::Custom(CustomMessage {
        custom_type: CustomMessage::SYSTEM.to_owned(),
        content,
        display: None,
        details: None,
        timestamp,
        unknown,
    })
}
