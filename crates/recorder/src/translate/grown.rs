//! Streamed messages: the message of an event from the one before it and the piece that was added.

use std::fmt::Write as _;

use bough_session::{ContentBlock, ThinkingBlock, UnknownMembers};
use serde_json::value::RawValue;

use super::splice::range_in;
use crate::event::StreamDelta;
use crate::message::RecordedMessage;

/// How the writer of a text escapes characters in strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaping {
    /// Only what JSON asks for.
    Needed,
    /// Everything but ASCII, as `\u00e9`.
    Ascii,
}

/// A message with one more piece, if the piece fits its last block. A message that came as text grows as text too.
pub(super) fn grown(
    before: &RecordedMessage,
    delta: &StreamDelta,
    escaping: Escaping,
) -> Option<RecordedMessage> {
    let said = before.said()?;
    if let Some(text) = before.kept_text() {
        let text = grown_text(text, delta, escaping)?;
        return serde_json::from_str(&text).ok();
    }
    if escaping == Escaping::Ascii {
        return None;
    }
    let mut said = said.clone();
    let content = said.message.content_mut();
    match (content.last_mut(), delta) {
        (Some(ContentBlock::Text(block)), StreamDelta::Text { delta })
            if block.unknown.is_empty() =>
        {
            block.text.push_str(delta);
        }
        (Some(ContentBlock::Thinking(thought)), StreamDelta::Thinking { delta }) => {
            thought.text.push_str(delta);
        }
        (None, StreamDelta::Text { delta }) => content.push(ContentBlock::text(delta.as_str())),
        (None, StreamDelta::Thinking { delta }) => {
            content.push(ContentBlock::Thinking(ThinkingBlock {
                text: delta.to_string(),
                signature: None,
                unknown: UnknownMembers::NONE,
            }))
        }
        _ => return None,
    }
    Some(said.into())
}

/// The text of a message whose last block has one more piece.
fn grown_text(text: &str, delta: &StreamDelta, escaping: Escaping) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Blocks<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Block<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        #[serde(borrow)]
        thinking: Option<&'a RawValue>,
    }
    let blocks: Blocks<'_> = serde_json::from_str(text).ok()?;
    let last: Block<'_> = serde_json::from_str(blocks.content.last()?.get()).ok()?;
    let (held, delta) = match delta {
        StreamDelta::Text { delta } => (last.text?, delta),
        StreamDelta::Thinking { delta } => (last.thinking?, delta),
        StreamDelta::ToolCallDelta { .. } => return None,
    };
    let end = range_in(text, held.get())?.end.checked_sub(1)?;
    let (begin, rest) = (text.get(..end)?, text.get(end..)?);
    Some([begin, &escaped(delta, escaping)?, rest].concat())
}

/// A text as it stands between the quotes of a JSON string.
fn escaped(text: &str, escaping: Escaping) -> Option<String> {
    let quoted = serde_json::to_string(text).ok()?;
    let needed = quoted.get(1..quoted.len().checked_sub(1)?)?;
    if escaping == Escaping::Needed {
        return Some(needed.to_owned());
    }
    let mut ascii = String::with_capacity(needed.len());
    for character in needed.chars() {
        if matches!(character, ' '..='~') {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(ascii, "\\u{unit:04x}").ok()?;
        }
    }
    Some(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_grows_by_a_piece_as_its_writer_spells_it() {
        let check = |before: &str, delta: &str, escaping, after: &str| {
            let before: RecordedMessage = serde_json::from_str(before).unwrap();
            let delta = StreamDelta::Text { delta: delta.into() };
            let message = grown(&before, &delta, escaping).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), after);
        };
        check(
            r#"{"content":[{"text":"a","type":"text"}],"role":"user","timestamp":1}"#,
            "\"é",
            Escaping::Needed,
            r#"{"content":[{"text":"a\"é","type":"text"}],"role":"user","timestamp":1}"#,
        );
        check(
            r#"{"role": "user", "content": [{"type": "text", "text": "a", "x": 1.10}], "timestamp": 1}"#,
            "\né😀",
            Escaping::Ascii,
            r#"{"role": "user", "content": [{"type": "text", "text": "a\n\u00e9\ud83d\ude00", "x": 1.10}], "timestamp": 1}"#,
        );
    }
}
