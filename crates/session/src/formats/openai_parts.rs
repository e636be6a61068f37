//! The parts of an item's content in OpenAI's Responses API.

use serde_json::value::RawValue;

use super::block::{
    image_at, is_mark, kept, lose_mime, name_of, picture, picture_url, placed, take_content,
    text_block, whole_block,
};
use super::openai_responses::FORMAT;
use super::read::{Members, typed};
use super::write::{Mapping, Object, members_of, to_json};
use crate::{ContentBlock, RawJson};

/// Parts that are kept whole; whatever else is kept whole is an item.
const WHOLE_PARTS: &[&str] =
    &["refusal", "input_file", "input_audio", "output_audio", "input_image", "summary_text"];

/// Reads content, which is one text or a list of parts.
pub(super) fn content_of(members: &mut Members<'_>, key: &str) -> Vec<ContentBlock> {
    take_content(FORMAT, members, key, part)
}

fn part(raw: &RawValue, mut members: Members<'_>) -> ContentBlock {
    let kind = members.take_text("type").unwrap_or_default();
    match kind.as_str() {
        "input_text" | "output_text" | "text" if members.text("text").is_some() => {
            let text = members.take_text("text").unwrap_or_default();
            text_block(FORMAT, text, members)
        }
        "input_image" => match members.take_text("image_url") {
            Some(url) => {
                let mut block = image_at(&url, "");
                block.unknown_mut().extend(kept(FORMAT, members));
                block
            }
            None => whole_block(FORMAT, raw, name_of("image", &members)),
        },
        // The text of a refusal is shown as the text of the message.
        "refusal" => whole_block(FORMAT, raw, members.text("refusal").unwrap_or_default()),
        "input_file" => whole_block(FORMAT, raw, name_of("file", &members)),
        _ => whole_block(FORMAT, raw, name_of(&kind, &members)),
    }
}

/// The parts of a content; calls, results and thoughts are items.
pub(super) fn write_parts(
    at: &str,
    content: &[ContentBlock],
    side: &str,
    mapping: &mut Mapping,
) -> Vec<RawJson> {
    let mut parts = Vec::with_capacity(content.len());
    for (at, block) in placed(at, content) {
        match write_part(&at, block, side, mapping) {
            Some(part) => parts.push(part),
            None if is_mark(block) => {}
            None => mapping.lose(at),
        }
    }
    parts
}

/// A part, `input` or `output` by who speaks; `None` where the block is an item of its own.
pub(super) fn write_part(
    at: &str,
    block: &ContentBlock,
    side: &str,
    mapping: &mut Mapping,
) -> Option<RawJson> {
    // A message that came without content is kept whole until it has a text.
    let has_text = block.as_text().is_some_and(|text| !text.is_empty());
    let whole = mapping.original(block.unknown());
    let whole = whole.filter(|whole| !(has_text && is_message(whole)));
    if let Some(whole) = whole {
        let kind = Members::parse(whole.get()).and_then(|members| members.text("type"));
        kind.filter(|kind| WHOLE_PARTS.contains(&kind.as_str()))?;
        let mut object = members_of(&whole);
        object.extend(mapping.kept(at, block.unknown(), &[]));
        return Some(to_json(&object));
    }
    match block {
        ContentBlock::Text(text) if !is_mark(block) => {
            let object = Object::with("type", format!("{side}_text")).and("text", &text.text);
            Some(object.with_kept(mapping.kept(at, &text.unknown, &[])))
        }
        ContentBlock::Image(image) => {
            let kept = mapping.kept(at, &image.unknown, picture(image).1);
            lose_mime(mapping, at, image);
            let object = Object::with("type", "input_image").and("image_url", picture_url(image));
            Some(object.with_kept(kept))
        }
        _ => None,
    }
}

/// The parts as JSON. One part of this type with nothing but its text is written as a text.
pub(super) fn text_or_parts(kind: &str, parts: Vec<RawJson>) -> RawJson {
    if let [part] = parts.as_slice()
        && let Some(mut members) = Members::parse(part.get())
        && members.take_word("type", kind)
        && let Some(text) = members.take("text")
        && typed::<String>(text).is_some()
        && members.is_empty()
    {
        return text.into();
    }
    to_json(&parts)
}

/// Whether an item is a message: a whole one is kept only where it came without content.
fn is_message(item: &RawJson) -> bool {
    let kind = Members::parse(item.get()).and_then(|members| members.text("type"));
    kind.is_none_or(|kind| kind == "message")
}
