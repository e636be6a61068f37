//! A whole conversation in a format: the messages of a request to its API.

use std::collections::HashMap;
use std::sync::Arc;

use super::ai_sdk::step_start;
use super::block::{result_as_block, result_message};
use super::read::{Members, list};
use super::write::{Mapping, Object, to_json};
use super::{Codec, Format, Loss, Mapped};
use crate::context::{ContextKind, ContextView};
use crate::{
    AgentMessage, AssistantMessage, ContentBlock, Entry, EntryBody, EntryId, FunctionResultBlock,
    FunctionResultMessage, RawJson, Role, StreamTally, UserMessage,
};

/// A conversation in a format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The instructions for the model, for the formats that take them beside the messages: Anthropic's `system`,
    /// Gemini's `systemInstruction`.
    pub system: Option<RawJson>,
    /// The messages, the oldest first.
    pub messages: Vec<RawJson>,
    /// What could not be expressed.
    pub losses: Vec<Loss>,
}

/// The messages of a path in a format.
///
/// A message that came in the format is written as it came, without what the API adds around its replies. The results
/// of calls are moved to where the format wants them.
#[must_use]
pub fn conversation_to_format(path: &[Entry], format: Format) -> Conversation {
    let sources = path.iter().filter_map(|entry| Source::of(entry, format)).collect();
    write(sources, format)
}

/// What a model would be sent, in a format. If an item is its entry's message unchanged, it is taken from the entry. A
/// message that still streams has no stop reason.
#[must_use]
pub fn context_to_format(
    view: &ContextView,
    path: &[Entry],
    format: Format,
    streams: &StreamTally,
) -> Conversation {
    let entries: HashMap<&EntryId, &Entry> = path.iter().map(|entry| (&entry.id, entry)).collect();
    let sources = view.items.iter().map(|item| {
        let entry = entries.get(&item.entry_id).filter(|_| item.kind == ContextKind::Message);
        let source = entry.and_then(|entry| Source::of(entry, format));
        source.filter(|source| source.message == item.message).unwrap_or_else(|| Source {
            entry_id: &item.entry_id,
            message: item.message.clone(),
            stored: None,
            is_unfinished: false,
        })
    });
    let sources = sources.map(|source| {
        let is_unfinished = streams.is_open(source.entry_id);
        Source { is_unfinished, ..source }
    });
    write(sources.collect(), format)
}

/// A message, and its JSON where it came in the format.
struct Source<'a> {
    entry_id: &'a EntryId,
    message: Arc<AgentMessage>,
    stored: Option<&'a RawJson>,
    is_unfinished: bool,
}

impl<'a> Source<'a> {
    fn of(entry: &'a Entry, format: Format) -> Option<Self> {
        let stored = match &entry.body {
            EntryBody::Foreign(body) => body.as_it_came(format),
            EntryBody::Message(_) | EntryBody::Custom(_) | EntryBody::Opaque(_) => None,
        };
        Some(Self { entry_id: &entry.id, message: entry.message()?, stored, is_unfinished: false })
    }
}

/// A message on its way out.
enum Piece {
    Stored(RawJson),
    Message(AgentMessage),
    /// A message that still streams.
    Unfinished(AgentMessage),
}

fn write(sources: Vec<Source<'_>>, format: Format) -> Conversation {
    let codec = format.codec();
    let names = function_names(&sources);
    let mut conversation = Conversation::default();
    let mut system = Vec::new();
    let mut pieces = Vec::new();
    for source in &sources {
        let is_system =
            matches!(&*source.message, AgentMessage::Custom(custom) if custom.is_system());
        let list = codec.system_list().filter(|_| is_system);
        let mut mapping = Mapping::into(format);
        if let Some(list_name) = list {
            system.extend(system_blocks(source, list_name, codec, &mut mapping));
        } else if let Some(json) = source.stored {
            pieces.extend(codec.input(json.clone(), &mut mapping).into_iter().map(Piece::Stored));
        } else {
            for part in split(&source.message, codec, &names) {
                let mut own = Mapping::into(format);
                for json in codec.write(&part.message, &mut own) {
                    codec.input(json, &mut own);
                }
                part.of.relocate(own.losses, &mut mapping.losses);
                // The canonical message has names of functions in its calls.
                let message = match format {
                    Format::Bough => part.message,
                    _ => with_names(part.message, &names),
                };
                pieces.push(if source.is_unfinished {
                    Piece::Unfinished(message)
                } else {
                    Piece::Message(message)
                });
            }
        }
        let of_entry = |loss| Loss { entry_id: Some(source.entry_id.clone()), ..loss };
        conversation.losses.extend(mapping.losses.into_iter().map(of_entry));
    }
    conversation.messages = arrange(pieces, codec)
        .into_iter()
        .flat_map(|piece| match piece {
            Piece::Stored(json) => vec![json],
            Piece::Message(message) => write_input(&message, Mapping::into(format)),
            Piece::Unfinished(message) => {
                write_input(&message, Mapping { is_unfinished: true, ..Mapping::into(format) })
            }
        })
        .collect();
    conversation.system = (!system.is_empty()).then(|| system_json(format, &system));
    conversation
}

/// A message of a request. One of the model of which the format can express nothing is left out: no API takes it.
fn write_input(message: &AgentMessage, mut mapping: Mapping) -> Vec<RawJson> {
    let codec = mapping.format.codec();
    let written = codec.write(message, &mut mapping);
    let input = written.into_iter().flat_map(|json| codec.input(json, &mut mapping));
    let is_reply = message.role() == Role::Assistant && !message.content().is_empty();
    input.filter(|json| !(is_reply && codec.joins_calls() && is_empty_reply(json))).collect()
}

/// Whether a reply has neither content nor calls.
fn is_empty_reply(json: &RawJson) -> bool {
    /// Where the formats have what a reply says.
    const CONTENT: [&str; 4] = ["content", "parts", "refusal", "tool_calls"];
    let Some(members) = Members::parse(json.get()) else { return false };
    let mut parts = CONTENT.iter().filter_map(|key| members.get(key));
    parts.all(|value| matches!(value.get(), "null" | "[]" | "\"\""))
}

/// The blocks of a system message, in the format.
fn system_blocks(
    source: &Source<'_>,
    list_name: &str,
    codec: &dyn Codec,
    mapping: &mut Mapping,
) -> Vec<RawJson> {
    // A message that came with a text in place of a list is written anew.
    let stored = source.stored.and_then(|json| list(Members::parse(json.get())?.get(list_name)?));
    if let Some(blocks) = stored {
        return blocks.into_iter().map(RawJson::from).collect();
    }
    let written = codec.write(&source.message, mapping);
    let blocks = written.iter().filter_map(|json| {
        let blocks = list(Members::parse(json.get())?.get(list_name)?)?;
        Some(blocks.into_iter().map(RawJson::from).collect::<Vec<_>>())
    });
    blocks.flatten().collect()
}

fn system_json(format: Format, blocks: &[RawJson]) -> RawJson {
    if format == Format::Gemini {
        return Object::with("parts", blocks).into_raw();
    }
    to_json(blocks)
}

/// The function of each call. Some formats do not repeat it in the result, and others need it there.
fn function_names(sources: &[Source<'_>]) -> HashMap<String, String> {
    names_in(sources.iter().flat_map(|source| source.message.content()))
}

fn names_in<'a>(blocks: impl Iterator<Item = &'a ContentBlock>) -> HashMap<String, String> {
    let calls = blocks.filter_map(|block| match block {
        ContentBlock::FunctionCall(call) => Some((call.id.clone(), call.function_id.clone())),
        _ => None,
    });
    calls.collect()
}

/// The message with the functions of its results, for the formats that need them there.
fn with_names(mut message: AgentMessage, names: &HashMap<String, String>) -> AgentMessage {
    for block in message.content_mut() {
        if let ContentBlock::FunctionResult(result) = block
            && let Some(name) = names.get(&result.function_call_id)
        {
            super::gemini_results::keep_name(&mut result.unknown, name);
        }
    }
    message
}

/// A canonical message in a format, outside of a conversation.
pub(super) fn write_message(message: &AgentMessage, format: Format, is_unfinished: bool) -> Mapped {
    let codec = format.codec();
    let parts = split(message, codec, &names_in(message.content().iter()));
    let mut losses = Vec::new();
    let mut messages = Vec::new();
    for part in parts {
        let mut mapping = Mapping { is_unfinished, ..Mapping::into(format) };
        messages.extend(codec.write(&part.message, &mut mapping));
        part.of.relocate(mapping.losses, &mut losses);
    }
    Mapped { messages, losses }
}

/// A part of a message that is a message in the format.
struct Part {
    message: AgentMessage,
    of: Blocks,
}

/// Which blocks of a message a part has.
enum Blocks {
    /// All: the part is the message.
    All,
    /// Those at these indexes.
    Some(Vec<usize>),
    /// The content of the result at this index.
    Result(usize),
}

impl Blocks {
    /// Takes over the losses of a part, with pointers into the message.
    fn relocate(&self, from: Vec<Loss>, into: &mut Vec<Loss>) {
        for loss in from {
            let Some(pointer) = self.pointer(&loss.pointer) else { continue };
            let loss = Loss { pointer, ..loss };
            // Several parts of a message may lose the same members.
            if !into.contains(&loss) {
                into.push(loss);
            }
        }
    }

    fn pointer(&self, of_part: &str) -> Option<String> {
        match self {
            Self::All => Some(of_part.to_owned()),
            Self::Some(blocks) => {
                let Some(rest) = of_part.strip_prefix("/content/") else {
                    return Some(of_part.to_owned());
                };
                let (index, rest) = rest.split_once('/').unwrap_or((rest, ""));
                let index = blocks.get(index.parse::<usize>().ok()?)?;
                let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
                Some(format!("/content/{index}{rest}"))
            }
            // The function's name was found in its call.
            Self::Result(_) if of_part == "/function_id" => None,
            Self::Result(index) => Some(format!("/content/{index}{of_part}")),
        }
    }
}

/// Splits the message so that no result is between other blocks, for the formats that want it so.
fn split(message: &AgentMessage, codec: &dyn Codec, names: &HashMap<String, String>) -> Vec<Part> {
    let name_of = |id: &str| names.get(id).cloned().unwrap_or_default();
    if let AgentMessage::FunctionResult(result) = message {
        let mut result = result.clone();
        if result.function_id.is_empty() {
            result.function_id = name_of(&result.function_call_id);
        }
        return vec![Part { message: AgentMessage::FunctionResult(result), of: Blocks::All }];
    }
    let is_result = |block: &ContentBlock| matches!(block, ContentBlock::FunctionResult(_));
    let splits = match message.role() {
        // Results in a message of the user are joined already.
        Role::User => !codec.joins_results() && (codec.splits_results() || codec.merges_steps()),
        _ => codec.splits_results(),
    };
    if !splits || !message.content().iter().any(is_result) {
        return vec![Part { message: message.clone(), of: Blocks::All }];
    }
    let mut parts = Vec::new();
    let mut open = Vec::new();
    for (index, block) in message.content().iter().enumerate() {
        match block {
            ContentBlock::FunctionResult(result) => {
                parts.extend(part_of(message, std::mem::take(&mut open)));
                let name = name_of(&result.function_call_id);
                let result = result_message(result.clone(), name, message.timestamp());
                let message = AgentMessage::FunctionResult(result);
                parts.push(Part { message, of: Blocks::Result(index) });
            }
            _ => open.push(index),
        }
    }
    parts.extend(part_of(message, open));
    parts
}

/// The message with some of its blocks; `None` where there are none.
fn part_of(message: &AgentMessage, blocks: Vec<usize>) -> Option<Part> {
    if blocks.is_empty() {
        return None;
    }
    let mut part = message.clone();
    let content = blocks.iter().filter_map(|index| message.content().get(*index)).cloned();
    *part.content_mut() = content.collect();
    Some(Part { message: part, of: Blocks::Some(blocks) })
}

/// Joins messages that are one message in the format.
fn arrange(pieces: Vec<Piece>, codec: &dyn Codec) -> Vec<Piece> {
    let mut arranged: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let piece = match piece {
            Piece::Message(AgentMessage::FunctionResult(result)) if codec.joins_results() => {
                if let Some(Piece::Message(AgentMessage::User(joined))) = arranged.last_mut()
                    && is_joined(joined)
                {
                    joined.content.push(result_block(result));
                    continue;
                }
                let timestamp = result.timestamp;
                let joined = UserMessage::new(vec![result_block(result)], timestamp);
                Piece::Message(AgentMessage::User(joined))
            }
            Piece::Message(AgentMessage::Assistant(next)) if codec.joins_calls() => {
                match arranged.last_mut() {
                    Some(Piece::Message(AgentMessage::Assistant(reply))) if is_begun(reply) => {
                        join_reply(reply, next);
                        continue;
                    }
                    _ => Piece::Message(AgentMessage::Assistant(next)),
                }
            }
            Piece::Message(message) if codec.merges_steps() => {
                match merge(arranged.last_mut(), message) {
                    Some(message) => Piece::Message(message),
                    None => continue,
                }
            }
            piece => piece,
        };
        arranged.push(piece);
    }
    arranged
}

/// Whether a reply goes on in the next message of the model: so far it only thought, or it has calls without results.
fn is_begun(reply: &AssistantMessage) -> bool {
    let is_thought = |block: &ContentBlock| matches!(block, ContentBlock::Thinking(_));
    let is_call = |block: &ContentBlock| matches!(block, ContentBlock::FunctionCall(_));
    reply.content.iter().all(is_thought) || reply.content.iter().any(is_call)
}

/// Whether a message is nothing but results.
fn is_joined(message: &UserMessage) -> bool {
    message.content.iter().all(|block| matches!(block, ContentBlock::FunctionResult(_)))
        && !message.content.is_empty()
}

fn result_block(mut result: FunctionResultMessage) -> ContentBlock {
    super::gemini_results::keep_name(&mut result.unknown, &result.function_id);
    let is_error = result.is_error.then_some(true);
    ContentBlock::FunctionResult(FunctionResultBlock { is_error, ..result_as_block(result) })
}

/// Puts a result, or a further step of the model, into the reply before it. Returns the message if it does not belong
/// there.
fn merge(last: Option<&mut Piece>, message: AgentMessage) -> Option<AgentMessage> {
    let Some(Piece::Message(AgentMessage::Assistant(reply))) = last else { return Some(message) };
    match message {
        AgentMessage::FunctionResult(result) => {
            reply.content.push(ContentBlock::FunctionResult(result_as_block(result)));
            None
        }
        AgentMessage::Assistant(next) => {
            reply.content.push(step_start());
            join_reply(reply, next);
            None
        }
        message => Some(message),
    }
}

/// Adds a further message of the model to the one before it.
fn join_reply(reply: &mut AssistantMessage, next: AssistantMessage) {
    reply.content.extend(next.content);
    reply.stop_reason = next.stop_reason;
    reply.native_stop_reason = next.native_stop_reason;
    reply.error_message = next.error_message;
    reply.error_kind = next.error_kind;
    reply.model = next.model;
    reply.provider = next.provider;
    let Some(more) = next.usage else { return };
    let usage = reply.usage.get_or_insert_default();
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        }
    };
    add(&mut usage.input, more.input);
    add(&mut usage.output, more.output);
    add(&mut usage.cache_read, more.cache_read);
    add(&mut usage.cache_write, more.cache_write);
    add(&mut usage.reasoning, more.reasoning);
    if let Some(cost) = more.cost_usd {
        *usage.cost_usd.get_or_insert(0.0) += cost;
    }
}
