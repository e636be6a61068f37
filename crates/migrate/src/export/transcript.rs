//! A transcript for people, as Markdown. Whatever a model or a tool wrote, a terminal that shows it is
//! not steered by it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write;

use bough_session::{
    AgentMessage, Bookkeeping, Canonical, ContentBlock, CustomPayload, Entry, EntryId, SessionId,
    SessionState,
};
use bough_store::{ReadStore, StoreExt};
use serde_json::Value;

use super::walk::Path;
use super::{ExportOptions, Exported, snapshot};
use crate::error::Result;
use crate::limits::TRANSCRIPT_BRANCHES_MAX;
use crate::v1::format_iso;

pub(super) async fn export(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let state = snapshot(store, session).await?.state;
    out.write_all(title(&state).as_bytes())?;
    let mut seen = HashSet::new();
    let mut written = Exported::default();
    let active = options.leaf.clone().or_else(|| state.leaf.clone());
    if let Some(leaf) = active.clone() {
        written.entries += branch(store, session, leaf, &mut seen, out).await?;
    }
    if options.leaf.is_some() {
        return Ok(written);
    }
    for head in store.branch_heads(session, None, TRANSCRIPT_BRANCHES_MAX).await? {
        if seen.contains(&head.entry_id) {
            continue;
        }
        let end = store.entry(session, &head.entry_id).await?;
        match end.filter(|stored| !stored.entry.is_hidden()) {
            Some(_) => {
                writeln!(out, "\n---\n\n# Another branch, to {}", inline(head.entry_id.as_str()))?;
            }
            None => writeln!(out, "\n---\n\n# Another branch")?,
        }
        written.entries += branch(store, session, head.entry_id, &mut seen, out).await?;
    }
    Ok(written)
}

/// The entries of a path that were not shown yet.
async fn branch(
    store: &dyn ReadStore,
    session: &SessionId,
    leaf: EntryId,
    seen: &mut HashSet<EntryId>,
    out: &mut (dyn Write + Send),
) -> Result<u64> {
    let mut path = Path::new(store, session, leaf).beginning_at_newest(seen).await?;
    let mut shown = 0;
    let mut from = None;
    while let Some(page) = path.next().await? {
        for entry in page {
            if !seen.insert(entry.id.clone()) {
                from = Some(entry.id);
                continue;
            }
            if let Some(from) = from.take() {
                writeln!(out, "\nFrom {} on:", inline(from.as_str()))?;
            }
            out.write_all(entry_text(&entry).as_bytes())?;
            shown += 1;
        }
    }
    Ok(shown)
}

fn title(state: &SessionState) -> String {
    let named = [Some(&state.meta.title), state.name.as_ref(), state.preview.as_ref()];
    let name = named.into_iter().flatten().find(|name| !name.is_empty());
    let name = name.map_or("Session", String::as_str);
    let mut text = format!("# {}\n\n", inline(name));
    let _ = writeln!(text, "- session: {}", inline(state.meta.session_id.as_str()));
    let _ = writeln!(text, "- begun: {}", format_iso(state.meta.created_at));
    let _ = writeln!(text, "- last changed: {}", format_iso(state.meta.updated_at));
    let cwd = state.meta.metadata.as_ref().and_then(|metadata| metadata.get("cwd"));
    if let Some(cwd) = cwd.and_then(Value::as_str) {
        let _ = writeln!(text, "- directory: {}", inline(cwd));
    }
    let _ = writeln!(text, "- messages: {}", state.meta.message_count);
    text
}

fn entry_text(entry: &Entry) -> String {
    let time = format_iso(entry.timestamp);
    match entry.canonical() {
        Canonical::Message(message) => message_text(&message, &time),
        Canonical::Custom(custom) => custom_text(&custom, &time),
    }
}

fn message_text(message: &AgentMessage, time: &str) -> String {
    let who = match message {
        AgentMessage::User(_) => "User".to_owned(),
        AgentMessage::Assistant(reply) if reply.model.is_empty() => "Assistant".to_owned(),
        AgentMessage::Assistant(reply) => format!("Assistant ({})", inline(&reply.model)),
        AgentMessage::FunctionResult(result) => {
            let failed = if result.is_error { ", failed" } else { "" };
            format!("Result of {}{failed}", inline(&result.function_id))
        }
        AgentMessage::Custom(custom) => inline(&custom.custom_type),
    };
    let mut text = format!("\n## {who}\n\n*{time}*\n");
    let is_result = matches!(message, AgentMessage::FunctionResult(_));
    for block in message.content() {
        text.push('\n');
        text.push_str(&block_text(block, is_result));
    }
    if let AgentMessage::Assistant(reply) = message
        && let Some(error) = &reply.error_message
    {
        let _ = writeln!(text, "\n**Error:** {}", inline(error));
    }
    text
}

fn block_text(block: &ContentBlock, fenced_text: bool) -> String {
    match block {
        ContentBlock::Text(words) if fenced_text => fenced("", &words.text),
        ContentBlock::Text(words) => format!("{}\n", neutralise(words.text.trim_end())),
        ContentBlock::Thinking(thought) => quoted(&thought.text),
        ContentBlock::Image(image) => {
            let bytes = image.data.len() / 4 * 3;
            format!("*(image, {}, about {bytes} bytes)*\n", inline(&image.mime))
        }
        ContentBlock::FunctionCall(call) => {
            let arguments =
                serde_json::to_string_pretty(&call.arguments.value()).unwrap_or_default();
            format!("Calls **{}**\n\n{}", inline(&call.function_id), fenced("json", &arguments))
        }
        ContentBlock::FunctionResult(result) => {
            result.content.iter().map(|inner| block_text(inner, true)).collect()
        }
    }
}

fn custom_text(custom: &CustomPayload, time: &str) -> String {
    let line = match Bookkeeping::from_payload(custom) {
        Some(Bookkeeping::ModelChange(change)) => {
            format!("model: {}/{}", inline(&change.provider), inline(&change.model_id))
        }
        Some(Bookkeeping::ThinkingLevelChange(change)) => {
            format!("thinking: {}", inline(&change.thinking_level))
        }
        Some(Bookkeeping::SessionInfo(info)) => format!("named: {}", inline(&info.name)),
        Some(Bookkeeping::Label(label)) => match &label.label {
            Some(name) => format!("label {} on {}", inline(name), inline(label.target_id.as_str())),
            None => format!("label taken off {}", inline(label.target_id.as_str())),
        },
        Some(Bookkeeping::Compaction(compaction)) => {
            let tokens = compaction.tokens_before;
            let summary = quoted(&compaction.summary);
            return format!(
                "\n*{time}: what came before ({tokens} tokens) summed up*\n\n{summary}"
            );
        }
        Some(Bookkeeping::BranchSummary(branch)) => {
            let summary = quoted(&branch.summary);
            return format!("\n*{time}: a branch that was left, summed up*\n\n{summary}");
        }
        None => format!("{} (not shown)", inline(&custom.custom_type)),
    };
    format!("\n*{time}: {line}*\n")
}

/// A block of code whose fence is longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}{language}\n{}\n{fence}\n", neutralise(text.trim_end()))
}

fn quoted(text: &str) -> String {
    let mut quote = String::new();
    for line in neutralise(text.trim_end()).split('\n') {
        let _ = writeln!(quote, "> {line}");
    }
    quote
}

/// One line, neutral.
fn inline(text: &str) -> String {
    neutralise(text).replace(['\n', '\t'], " ")
}

/// Text that steers no terminal: control characters are shown by their pictures, and the marks that turn
/// the direction of writing by their numbers. Line breaks and tabs stay.
#[must_use]
pub fn neutralise(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => plain.push(character),
            // A carriage return before a line break is only an ending; alone it overwrites the line.
            '\r' if characters.peek() == Some(&'\n') => {}
            '\0'..='\u{1f}' => {
                plain.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('?'));
            }
            '\u{7f}' => plain.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                let _ = write!(plain, "\\u{{{:x}}}", u32::from(character));
            }
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_reaches_a_terminal() {
        assert_eq!(neutralise("a\u{1b}[31mb\u{7}"), "a\u{241b}[31mb\u{2407}");
        assert_eq!(neutralise("\u{9b}2J\u{202e}x\u{7f}"), "\\u{9b}2J\\u{202e}x\u{2421}");
        assert_eq!(neutralise("a\r\nb\rc\td"), "a\nb\u{240d}c\td");
        assert_eq!(inline("a\nb"), "a b");
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("", "a"), "```\na\n```\n");
        assert_eq!(fenced("json", "x ```` y"), "`````json\nx ```` y\n`````\n");
    }
}
