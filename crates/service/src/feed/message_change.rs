//! How an event changes a message, for readers that keep messages and apply changes to them.

use bough_session::{ContentBlock, ContentChange, EntryId, Finish};

use crate::api::DeltaBlock;

/// What an event does to a message. The whole message is in the event's payload.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageChange {
    /// The number of the record that added the message.
    pub entry_seq: u64,
    /// The entry that the message follows.
    pub parent_id: Option<EntryId>,
    /// Whether the message is a stream that was not finished before.
    pub is_streaming: bool,
    /// What happened.
    pub kind: ChangeKind,
}

/// What happened to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// It was appended; a stream begins empty or with its first words.
    Added,
    /// Text was added to what it was at the revision before.
    Text(TextDelta),
    /// It has to be taken as it is in the payload: it was edited, or the steps that led to it are no longer kept.
    Replaced,
    /// The stream ended.
    Finished {
        /// What is known of the message since.
        finish: Box<Finish>,
        /// Whether the content changed too.
        has_new_content: bool,
    },
}

/// Text that was added to one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextDelta {
    /// Which block, counted from 0. The number of blocks that there were begins one.
    pub block: u32,
    /// What the text is a part of.
    pub kind: DeltaBlock,
    /// What was added.
    pub text: String,
    /// The call that the block is, when this begins one.
    pub call: Option<CallName>,
}

/// Names a function call that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The call's id, which its result repeats.
    pub id: String,
    /// The function that is called.
    pub function_id: String,
}

impl TextDelta {
    /// The text that a change added, if that is all it did; `content` is what it led to.
    pub(super) fn of(change: &ContentChange, content: &[ContentBlock]) -> Option<Self> {
        let at = |block: u32| content.get(usize::try_from(block).ok()?);
        match change {
            ContentChange::Append(more) => {
                let kind = kind_of(at(more.block)?)?;
                Some(Self { block: more.block, kind, text: more.text.clone(), call: None })
            }
            ContentChange::Edit(edit) if edit.splice.is_none() && edit.remove == 0 => {
                let [begun] = edit.insert.as_slice() else { return None };
                let is_last = usize::try_from(edit.keep).ok()? + 1 == content.len();
                if is_last { Self::beginning(edit.keep, begun) } else { None }
            }
            ContentChange::Edit(_) | ContentChange::Content(_) => None,
        }
    }

    /// A block without anything that the event does not show.
    fn beginning(block: u32, begun: &ContentBlock) -> Option<Self> {
        if !begun.unknown().is_empty() {
            return None;
        }
        let (text, call) = match begun {
            ContentBlock::Text(words) => (words.text.clone(), None),
            ContentBlock::Thinking(thought) if thought.signature.is_none() => {
                (thought.text.clone(), None)
            }
            ContentBlock::FunctionCall(call) => {
                let name = CallName { id: call.id.clone(), function_id: call.function_id.clone() };
                (call.partial_arguments()?, Some(name))
            }
            _ => return None,
        };
        Some(Self { block, kind: kind_of(begun)?, text, call })
    }
}

const fn kind_of(block: &ContentBlock) -> Option<DeltaBlock> {
    match block {
        ContentBlock::Text(_) => Some(DeltaBlock::Text),
        ContentBlock::Thinking(_) => Some(DeltaBlock::Thinking),
        ContentBlock::FunctionCall(_) => Some(DeltaBlock::ToolArguments),
        ContentBlock::Image(_) | ContentBlock::FunctionResult(_) => None,
    }
}
