//! The difference between two contents, small where a stream adds text.
//!
//! A streamed reply arrives as thousands of whole contents, each a little longer than the last. Only the difference is
//! stored: [`ContentChange::between`] makes it, and [`ContentChange::apply`] applies it. A property test checks that
//! `between(a, b).apply(a) == b`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ContentBlock;
use crate::json::{is_default, json_bytes};

/// The change from one content to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentChange {
    /// Text is added at the end of one text or thinking block, or to the arguments of a call.
    Append(TextAppend),
    /// Some blocks change, the others stay.
    Edit(BlockEdit),
    /// All of it is new.
    Content(Vec<ContentBlock>),
}

/// Text is added at the end of one block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextAppend {
    /// Which block, from 0.
    pub block: u32,
    /// The added text.
    pub text: String,
}

/// Old blocks stay up to `keep`; the next one may have its text spliced; then `remove` old blocks give
/// way to `insert`; the remaining old blocks stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockEdit {
    /// How many leading blocks stay as they are.
    pub keep: u32,
    /// A change inside the text of the block after those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub splice: Option<TextSplice>,
    /// How many old blocks are removed after that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub remove: u32,
    /// The blocks that come in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insert: Vec<ContentBlock>,
}

/// A change inside one text: bytes up to `at` stay, `cut` bytes go, `text` comes, the rest stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSplice {
    /// The offset, in bytes of UTF-8.
    pub at: usize,
    /// How many bytes are removed.
    pub cut: usize,
    /// The inserted text.
    pub text: String,
}

/// A difference that does not fit the content that it is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DiffError {
    /// It names a block that is not there.
    #[error("the change names block {block}, and the content has {blocks}")]
    NoSuchBlock {
        /// The named block.
        block: u32,
        /// How many there are.
        blocks: usize,
    },
    /// It changes the text of a block without text.
    #[error("the change adds text to block {block}, which takes none")]
    NotText {
        /// The named block.
        block: u32,
    },
    /// It cuts outside the text or inside a character.
    #[error("the change cuts the text of block {block} where it cannot be cut")]
    BadCut {
        /// The named block.
        block: u32,
    },
}

impl ContentChange {
    /// The smallest of the three forms that turns `old` into `new`.
    #[must_use]
    pub fn between(old: &[ContentBlock], new: &[ContentBlock]) -> Self {
        let Some(edit) = BlockEdit::between(old, new) else {
            return Self::Content(new.to_vec());
        };
        if let Some(append) = edit.as_append(old) {
            return Self::Append(append);
        }
        if json_bytes(&edit) < json_bytes(new) {
            Self::Edit(edit)
        } else {
            Self::Content(new.to_vec())
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Append(append) => append.text.is_empty(),
            Self::Edit(edit) => edit.splice.is_none() && edit.remove == 0 && edit.insert.is_empty(),
            Self::Content(_) => false,
        }
    }

    /// Applies the change. On an error `content` is as it was.
    pub fn apply(&self, content: &mut Vec<ContentBlock>) -> Result<(), DiffError> {
        match self {
            Self::Append(append) => append.apply(content),
            Self::Edit(edit) => edit.apply(content),
            Self::Content(new) => {
                content.clone_from(new);
                Ok(())
            }
        }
    }
}

impl TextAppend {
    fn apply(&self, content: &mut [ContentBlock]) -> Result<(), DiffError> {
        let (block, blocks) = (self.block, content.len());
        let index = usize::try_from(block).unwrap_or(usize::MAX);
        let found = content.get_mut(index).ok_or(DiffError::NoSuchBlock { block, blocks })?;
        if found.append_text(&self.text) { Ok(()) } else { Err(DiffError::NotText { block }) }
    }
}

impl BlockEdit {
    fn between(old: &[ContentBlock], new: &[ContentBlock]) -> Option<Self> {
        let keep = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let (old, new) = (old.get(keep..)?, new.get(keep..)?);
        let splice = match (old.first(), new.first()) {
            (Some(before), Some(after)) => TextSplice::between(before, after),
            _ => None,
        };
        let spliced = usize::from(splice.is_some());
        let (old, new) = (old.get(spliced..)?, new.get(spliced..)?);
        let tail = old.iter().rev().zip(new.iter().rev());
        let tail = tail.take_while(|(a, b)| a == b).count();
        Some(Self {
            keep: u32::try_from(keep).ok()?,
            splice,
            remove: u32::try_from(old.len() - tail).ok()?,
            insert: new.get(..new.len() - tail)?.to_vec(),
        })
    }

    /// The shorter form for the common case: text at the end of one block, nothing else.
    fn as_append(&self, old: &[ContentBlock]) -> Option<TextAppend> {
        let splice = self.splice.as_ref()?;
        let text = old.get(usize::try_from(self.keep).ok()?)?.stream_text()?;
        let plain = self.remove == 0 && self.insert.is_empty();
        (plain && splice.cut == 0 && splice.at == text.len())
            .then(|| TextAppend { block: self.keep, text: splice.text.clone() })
    }

    fn apply(&self, content: &mut Vec<ContentBlock>) -> Result<(), DiffError> {
        let spliced = u32::from(self.splice.is_some());
        let missing = |block| DiffError::NoSuchBlock { block, blocks: content.len() };
        let end_block = self.keep.saturating_add(spliced).saturating_add(self.remove);
        let end = usize::try_from(end_block).unwrap_or(usize::MAX);
        if content.len() < end {
            return Err(missing(end_block));
        }
        let start = usize::try_from(self.keep + spliced).map_err(|_| missing(self.keep))?;
        if let Some(splice) = &self.splice {
            splice.apply(stream_text_at(content, self.keep)?, self.keep)?;
        }
        content.splice(start..end, self.insert.iter().cloned());
        Ok(())
    }
}

impl TextSplice {
    /// The change inside the text of a block, when nothing else about the block changed and enough of
    /// the text stayed for this to be shorter than the new text.
    fn between(before: &ContentBlock, after: &ContentBlock) -> Option<Self> {
        let (old, new) = match (before, after) {
            _ if before.unknown() != after.unknown() => return None,
            (ContentBlock::Text(old), ContentBlock::Text(new)) => (&old.text, &new.text),
            (ContentBlock::Thinking(old), ContentBlock::Thinking(new))
                if old.signature == new.signature =>
            {
                (&old.text, &new.text)
            }
            _ => return None,
        };
        let at = common_prefix(old, new);
        let (old_rest, new_rest) = (old.get(at..)?, new.get(at..)?);
        let tail = common_suffix(old_rest, new_rest);
        Some(Self {
            at,
            cut: old_rest.len() - tail,
            text: new_rest.get(..new_rest.len() - tail)?.to_owned(),
        })
    }

    fn apply(&self, text: &mut String, block: u32) -> Result<(), DiffError> {
        let bad = DiffError::BadCut { block };
        let end = self.at.checked_add(self.cut).ok_or(bad)?;
        if !text.is_char_boundary(self.at) || !text.is_char_boundary(end) {
            return Err(bad);
        }
        text.replace_range(self.at..end, &self.text);
        Ok(())
    }
}

fn stream_text_at(content: &mut [ContentBlock], block: u32) -> Result<&mut String, DiffError> {
    let blocks = content.len();
    let index = usize::try_from(block).unwrap_or(usize::MAX);
    let found = content.get_mut(index).ok_or(DiffError::NoSuchBlock { block, blocks })?;
    found.stream_text_mut().ok_or(DiffError::NotText { block })
}

/// How many bytes two texts share at their start, in whole characters.
fn common_prefix(a: &str, b: &str) -> usize {
    let mut at = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    while !a.is_char_boundary(at) || !b.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// How many bytes two texts share at their end, in whole characters.
fn common_suffix(a: &str, b: &str) -> usize {
    let pairs = a.bytes().rev().zip(b.bytes().rev());
    let mut tail = pairs.take_while(|(x, y)| x == y).count();
    while !a.is_char_boundary(a.len() - tail) || !b.is_char_boundary(b.len() - tail) {
        tail -= 1;
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnknownMembers;
    use crate::{FunctionCallBlock, ThinkingBlock};
    use proptest::prelude::*;
    use serde_json::json;

    fn text(text: &str) -> ContentBlock {
        ContentBlock::text(text)
    }

    #[test]
    fn text_added_to_the_last_block_is_stored_as_that_text() {
        let old = vec![text("a"), text("hé")];
        let new = vec![text("a"), text("héllo")];
        let expected = TextAppend { block: 1, text: "llo".into() };
        assert_eq!(ContentChange::between(&old, &new), ContentChange::Append(expected));
    }

    #[test]
    fn a_change_in_the_middle_of_a_long_text_is_a_splice() {
        let long = "x".repeat(1000);
        let old = vec![text(&format!("{long}cat{long}"))];
        let new = vec![text(&format!("{long}dog{long}"))];
        let change = ContentChange::between(&old, &new);
        assert!(json_bytes(&change) < 100, "{change:?}");
        let mut content = old;
        change.apply(&mut content).unwrap();
        assert_eq!(content, new);
    }

    #[test]
    fn nothing_in_common_is_the_whole_content() {
        let change = ContentChange::between(&[text("abc")], &[text("xyz")]);
        assert_eq!(change, ContentChange::Content(vec![text("xyz")]));
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused_and_changes_nothing() {
        let check = |change: serde_json::Value, expected: DiffError| {
            let change: ContentChange = serde_json::from_value(change).unwrap();
            let mut content = vec![text("né"), ContentBlock::FunctionCall(call())];
            let before = content.clone();
            assert_eq!(change.apply(&mut content), Err(expected));
            assert_eq!(content, before);
        };
        let missing = |block| DiffError::NoSuchBlock { block, blocks: 2 };
        check(json!({"append": {"block": 2, "text": "x"}}), missing(2));
        check(json!({"append": {"block": 1, "text": "x"}}), DiffError::NotText { block: 1 });
        check(json!({"edit": {"keep": 1, "remove": 2}}), missing(3));
        check(json!({"edit": {"keep": u32::MAX, "remove": 2}}), missing(u32::MAX));
        let cut = |at: usize, cut: usize| json!({"edit": {"keep": 0, "splice": {"at": at, "cut": cut, "text": ""}}});
        check(cut(2, 0), DiffError::BadCut { block: 0 });
        check(cut(0, 9), DiffError::BadCut { block: 0 });
        check(cut(1, usize::MAX), DiffError::BadCut { block: 0 });
    }

    fn call() -> FunctionCallBlock {
        FunctionCallBlock {
            id: "c".into(),
            function_id: "f".into(),
            arguments: json!({"a": 1}).into(),
            unknown: UnknownMembers::default(),
        }
    }

    fn any_block() -> impl Strategy<Value = ContentBlock> {
        let words = "[aé世]{0,6}";
        prop_oneof![
            words.prop_map(ContentBlock::text),
            (words, proptest::option::of("[s]{0,2}")).prop_map(|(text, signature)| {
                ContentBlock::Thinking(ThinkingBlock {
                    text,
                    signature,
                    unknown: UnknownMembers::default(),
                })
            }),
            Just(ContentBlock::FunctionCall(call())),
        ]
    }

    proptest! {
        #[test]
        fn the_difference_applied_to_the_old_gives_the_new(
            old in proptest::collection::vec(any_block(), 0..5),
            new in proptest::collection::vec(any_block(), 0..5),
        ) {
            let change = ContentChange::between(&old, &new);
            let stored = serde_json::to_string(&change).unwrap();
            let change: ContentChange = serde_json::from_str(&stored).unwrap();
            let mut content = old;
            change.apply(&mut content).unwrap();
            prop_assert_eq!(content, new);
        }

        #[test]
        fn an_edited_copy_differs_by_little_and_comes_back(
            base in proptest::collection::vec(any_block(), 1..6),
            at in any::<proptest::sample::Index>(),
            with in any_block(),
            more in "[aé]{0,4}",
        ) {
            let mut new = base.clone();
            let at = at.index(new.len());
            match new[at].stream_text_mut() {
                Some(text) => text.push_str(&more),
                None => new[at] = with,
            }
            let change = ContentChange::between(&base, &new);
            let mut content = base;
            change.apply(&mut content).unwrap();
            prop_assert_eq!(content, new);
        }
    }
}
