//! A message as lines for a window of some width. Pure; cached with the message until something changes.

use bough_service::api::MessageItem;

use super::super::super::limits::{BLOCK_LINES_MAX, FOLDED_LINES};
use crate::text::{clean_line, clean_text, fit, wrap};
use crate::transcript::{Block, BlockKind, Speaker, shown};

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Heading(Speaker),
    Text,
    Folded,
    Thinking,
    Call,
    Result,
    Summary,
    Problem,
    Empty,
}

/// One line of the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextLine {
    pub(crate) kind: LineKind,
    pub(crate) text: String,
}

/// The kinds of blocks that are unfolded everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfolded {
    pub(crate) thinking: bool,
    pub(crate) tools: bool,
}

/// The lines of one message. `flipped` inverts folding for this message alone.
pub(crate) fn lines_of(
    item: &MessageItem,
    columns: usize,
    unfolded: Unfolded,
    flipped: bool,
) -> Vec<TextLine> {
    let shown = shown(item);
    let heading = fit(&format!("● {}", clean_line(&shown.heading)), columns);
    let mut lines = vec![TextLine { kind: LineKind::Heading(shown.speaker), text: heading }];
    for block in &shown.blocks {
        add_block(block, columns, unfolded, flipped, &mut lines);
    }
    lines.push(TextLine { kind: LineKind::Empty, text: String::new() });
    lines
}

fn add_block(
    block: &Block,
    columns: usize,
    unfolded: Unfolded,
    flipped: bool,
    lines: &mut Vec<TextLine>,
) {
    let (kind, open) = match block.kind {
        BlockKind::Text => (LineKind::Text, true),
        BlockKind::Thinking => (LineKind::Thinking, unfolded.thinking != flipped),
        BlockKind::Call => (LineKind::Call, unfolded.tools != flipped),
        BlockKind::Result => (LineKind::Result, unfolded.tools != flipped),
        BlockKind::Summary => (LineKind::Summary, !flipped),
        BlockKind::Picture => (LineKind::Folded, false),
        BlockKind::Problem => (LineKind::Problem, true),
    };
    if !block.title.is_empty() {
        let can_open = !block.body.is_empty();
        let mark = match (can_open, open) {
            (false, _) => "  ",
            (true, true) => "▾ ",
            (true, false) => "▸ ",
        };
        let text = fit(&format!("{mark}{}", clean_line(&block.title)), columns);
        let kind = if open { kind } else { LineKind::Folded };
        lines.push(TextLine { kind, text });
        debug_assert_eq!(FOLDED_LINES, 1);
    }
    if open && !block.body.is_empty() {
        let text = clean_text(&block.body);
        let columns_left = columns.saturating_sub(2);
        let body = wrap(text.trim_end(), columns_left, BLOCK_LINES_MAX + 1);
        let cut = body.len() > BLOCK_LINES_MAX;
        let body = body.into_iter().take(BLOCK_LINES_MAX);
        lines.extend(body.map(|line| TextLine { kind, text: format!("  {line}") }));
        if cut {
            let text = "  … the rest is in `bough show --full`".to_owned();
            lines.push(TextLine { kind: LineKind::Folded, text });
        }
    }
}
