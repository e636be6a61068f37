//! Writes the JSON of another format and notes what the format cannot express.

use serde::Serialize;

use super::block::{is_mark, picture, placed};
use super::{Format, Loss, LossReason};
use crate::json::RawJson;
use crate::members::UnknownMembers;
use crate::{ContentBlock, ThinkingBlock};

/// The member under which a block keeps a format's whole block that the canonical message cannot express.
pub(super) const ORIGINAL: &str = "original";

/// An object being written: members in the order they are put.
#[derive(Default)]
pub(super) struct Object(UnknownMembers);

impl Object {
    /// An object with one member.
    pub(super) fn with(key: &str, value: impl Serialize) -> Self {
        let mut object = Self::default();
        object.put(key, value);
        object
    }

    /// Sets a member.
    pub(super) fn put(&mut self, key: &str, value: impl Serialize) {
        self.0.set(key, to_json(&value));
    }

    /// The object with one more member.
    pub(super) fn and(mut self, key: &str, value: impl Serialize) -> Self {
        self.put(key, value);
        self
    }

    /// The object with one more member, if there is a value.
    pub(super) fn and_some(mut self, key: &str, value: Option<impl Serialize>) -> Self {
        self.put_some(key, value);
        self
    }

    /// Sets a member if there is a value.
    pub(super) fn put_some(&mut self, key: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Puts back members that were kept. A member that is present is replaced; others are added at the end.
    pub(super) fn put_back(&mut self, kept: UnknownMembers) {
        self.0.extend(kept);
    }

    /// The JSON of the object with members that were kept.
    pub(super) fn with_kept(mut self, kept: UnknownMembers) -> RawJson {
        self.put_back(kept);
        self.into_raw()
    }

    /// Whether a member is null or absent.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.0.get(key).is_none_or(RawJson::is_null)
    }

    /// The members.
    pub(super) fn into_members(self) -> UnknownMembers {
        self.0
    }

    /// The object as JSON.
    pub(super) fn into_raw(self) -> RawJson {
        to_json(&self.0)
    }
}

/// A mapping into one format in progress. It collects the losses: what the format cannot express, as a pointer into the
/// canonical message.
pub(super) struct Mapping {
    /// The format that is written.
    pub(super) format: Format,
    /// What could not be expressed.
    pub(super) losses: Vec<Loss>,
    /// Whether the message still streams, and so has no stop reason yet.
    pub(super) is_unfinished: bool,
}

impl Mapping {
    pub(super) const fn into(format: Format) -> Self {
        Self { format, losses: Vec::new(), is_unfinished: false }
    }

    /// Notes the loss of something that the format has no member for.
    pub(super) fn lose(&mut self, pointer: String) {
        self.note(pointer, LossReason::NoPlace);
    }

    /// Notes a loss.
    pub(super) fn note(&mut self, pointer: String, reason: LossReason) {
        self.losses.push(Loss { entry_id: None, pointer, reason });
    }

    /// Notes the loss of a member, if it has a value.
    pub(super) fn lose_some<T>(&mut self, at: &str, key: &str, value: Option<&T>) {
        if value.is_some() {
            self.lose(format!("{at}/{key}"));
        }
    }

    /// The members that an object keeps for this format. The loss of its other unknown members is noted, except of
    /// those in `carried`, which the format has under another name.
    pub(super) fn kept(
        &mut self,
        at: &str,
        unknown: &UnknownMembers,
        carried: &[&str],
    ) -> UnknownMembers {
        let mut kept = UnknownMembers::NONE;
        for (key, value) in unknown.iter() {
            if key == self.format.name() {
                kept = members_of(value);
            } else if key == ORIGINAL || Format::named(key).is_some() {
                for (inner, value) in members_of(value) {
                    if inner == self.format.name() {
                        continue;
                    }
                    self.lose_value(&format!("{at}/{}", escaped(key)), &inner, &value);
                }
            } else if !carried.contains(&key) {
                self.lose_value(at, key, value);
            }
        }
        kept
    }

    fn lose_value(&mut self, at: &str, key: &str, value: &RawJson) {
        // An empty value carries no information.
        if !matches!(value.get(), "null" | "[]" | "{}" | "\"\"" | "false") {
            self.lose(format!("{at}/{}", escaped(key)));
        }
    }

    /// Writes the signature of a thought. Only the provider that made it accepts it, so for another one it is lost.
    pub(super) fn put_signature(
        &mut self,
        object: &mut Object,
        key: &str,
        at: &str,
        thought: &ThinkingBlock,
        is_ours: bool,
    ) {
        if is_ours {
            object.put_some(key, thought.signature.as_ref());
        } else {
            self.lose_some(at, "signature", thought.signature.as_ref());
        }
    }

    /// Writes the blocks of a content, each with its pointer. A block that came in this format is written as it came.
    /// For others `write` gets the members that are kept for this format; it returns the block with them, or `None` if
    /// the block is written elsewhere or nowhere.
    pub(super) fn blocks(
        &mut self,
        at: &str,
        content: &[ContentBlock],
        mut write: impl FnMut(&mut Self, &str, &ContentBlock, UnknownMembers) -> Option<RawJson>,
    ) -> Vec<RawJson> {
        let blocks = placed(at, content);
        blocks.filter_map(|(at, block)| self.block(&at, block, &mut write)).collect()
    }

    /// Writes one block as [`blocks`](Self::blocks) does.
    pub(super) fn block(
        &mut self,
        at: &str,
        block: &ContentBlock,
        write: impl FnOnce(&mut Self, &str, &ContentBlock, UnknownMembers) -> Option<RawJson>,
    ) -> Option<RawJson> {
        if let Some(whole) = self.original(block.unknown()) {
            return Some(whole);
        }
        let carried = match block {
            ContentBlock::Image(image) => picture(image).1,
            _ => &[],
        };
        let kept = self.kept(at, block.unknown(), carried);
        if is_mark(block) { None } else { write(self, at, block, kept) }
    }

    /// The whole block that is kept for this format.
    pub(super) fn original(&self, unknown: &UnknownMembers) -> Option<RawJson> {
        members_of(unknown.get(ORIGINAL)?).remove(self.format.name())
    }
}

/// Drops what a format keeps of a message that had not ended when it came: an end and a usage that were null, and words that
/// say that it streams. Once the message is finished, the first are known and the others wrong.
pub(super) fn drop_open_ends(unknown: &mut UnknownMembers, format: &str) {
    if let Some(kept) = unknown.get(format) {
        let kept = without_open_ends(kept);
        unknown.set(format, kept);
    }
}

fn without_open_ends(kept: &RawJson) -> RawJson {
    /// How the formats name the end and the usage of a reply.
    const ENDS: [&str; 5] =
        ["finishReason", "finish_reason", "stop_reason", "usage", "usageMetadata"];
    /// How an item of the Responses API and a part of the AI SDK say that they stream.
    const STREAMS: [(&str, &str); 3] = [
        ("status", r#""in_progress""#),
        ("state", r#""streaming""#),
        ("state", r#""input-streaming""#),
    ];
    if !kept.get().starts_with('{') {
        return kept.clone();
    }
    let members = members_of(kept).into_iter();
    let known = members.filter(|(key, value)| {
        let is_open = value.is_null() && ENDS.contains(&key.as_str());
        !is_open && !STREAMS.contains(&(key.as_str(), value.get()))
    });
    let inner = known.map(|(key, value)| (key, without_open_ends(&value)));
    to_json(&inner.collect::<UnknownMembers>())
}

/// The JSON of a value. None of our types holds a value that JSON cannot represent.
pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> RawJson {
    RawJson::of(value).unwrap_or_default()
}

/// The members of a value; none if it is not an object.
pub(super) fn members_of(value: &RawJson) -> UnknownMembers {
    super::read::Members::parse(value.get()).unwrap_or_default().into_unknown()
}

/// Takes a member out and returns its own members.
pub(super) fn take_members(members: &mut UnknownMembers, key: &str) -> UnknownMembers {
    members.remove(key).as_ref().map(members_of).unwrap_or_default()
}

/// Sets a member to an object, unless the object is empty.
pub(super) fn set_members(members: &mut UnknownMembers, key: &str, inner: &UnknownMembers) {
    if !inner.is_empty() {
        members.set(key, to_json(inner));
    }
}

/// The members that are kept for a format.
pub(super) fn own_members(format: Format, unknown: &UnknownMembers) -> UnknownMembers {
    unknown.get(format.name()).map(members_of).unwrap_or_default()
}

/// A key as a JSON pointer names it.
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
