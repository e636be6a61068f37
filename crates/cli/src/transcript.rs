//! A message as blocks of text, for printing and for screens. Pure.

use bough_service::api::MessageItem;
use bough_session::{
    AgentMessage, AssistantMessage, Bookkeeping, ContentBlock, CustomPayload, RawJson, StopReason,
    compacted_system_prompt,
};

use crate::text::{bytes, count, tokens};

/// The author of a message, as far as it is shown differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Assistant,
    Tool,
    Application,
    Note,
}

/// The kind of a block; some kinds are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Thinking,
    Call,
    Result,
    Summary,
    Picture,
    Problem,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    /// The line that is shown instead when it is folded; empty for plain text.
    pub(crate) title: String,
    pub(crate) body: String,
}

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) speaker: Speaker,
    /// The speaker, in words.
    pub(crate) heading: String,
    pub(crate) blocks: Vec<Block>,
}

/// An entry as it is shown.
pub(crate) fn shown(item: &MessageItem) -> Shown {
    match (&item.message, &item.custom) {
        (Some(message), _) => shown_message(message),
        (None, Some(custom)) => shown_note(custom),
        (None, None) => note("entry", String::new()),
    }
}

fn shown_message(message: &AgentMessage) -> Shown {
    let mut blocks: Vec<Block> = message.content().iter().map(block).collect();
    let (speaker, heading) = match message {
        AgentMessage::User(_) => (Speaker::User, "user".to_owned()),
        AgentMessage::Assistant(reply) => {
            blocks.extend(problem(reply));
            (Speaker::Assistant, assistant_heading(reply))
        }
        AgentMessage::FunctionResult(result) => {
            let failed = if result.is_error { " failed" } else { "" };
            let heading = format!("result of {}{failed}", result.function_id);
            blocks.iter_mut().filter(|b| b.kind == BlockKind::Text).for_each(|block| {
                block.kind = BlockKind::Result;
                block.title = size_of(&block.body);
            });
            if let Some(path) = full_output_path(&result.details) {
                name_full_output(&mut blocks, &path);
            }
            (Speaker::Tool, heading)
        }
        AgentMessage::Custom(custom) => (Speaker::Application, custom.custom_type.clone()),
    };
    Shown { speaker, heading, blocks }
}

/// Where the whole output of a tool is, if the result has only a part of it. Pi says it so.
fn full_output_path(details: &RawJson) -> Option<String> {
    const KEY: &str = "fullOutputPath";
    let details = Some(details).filter(|details| details.get().contains(KEY))?.value();
    details.get(KEY)?.as_str().map(str::to_owned)
}

fn name_full_output(blocks: &mut Vec<Block>, path: &str) {
    let words = format!("all of the output: {path}");
    match blocks.iter_mut().rfind(|block| block.kind == BlockKind::Result) {
        Some(block) => block.title.push_str(&format!(", {words}")),
        None => blocks.push(Block { kind: BlockKind::Result, title: words, body: String::new() }),
    }
}

fn assistant_heading(reply: &AssistantMessage) -> String {
    let usage = reply.usage.as_ref();
    let output = usage.and_then(|usage| usage.output).filter(|output| *output > 0);
    let output = output.map(|output| format!(" · {} out", tokens(output)));
    let model = Some(&reply.model).filter(|model| !model.is_empty());
    let model = model.map(|model| format!(" {model}"));
    format!("assistant{}{}", model.unwrap_or_default(), output.unwrap_or_default())
}

fn problem(reply: &AssistantMessage) -> Option<Block> {
    let what = match reply.stop_reason {
        StopReason::End | StopReason::FunctionCall => return None,
        StopReason::Length => "cut off at the output limit",
        StopReason::Aborted => "aborted",
        StopReason::Error => "failed",
    };
    let body = reply.error_message.clone().unwrap_or_default();
    Some(Block { kind: BlockKind::Problem, title: what.to_owned(), body })
}

fn block(block: &ContentBlock) -> Block {
    let made = |kind, title: String, body: String| Block { kind, title, body };
    match block {
        ContentBlock::Text(text) => made(BlockKind::Text, String::new(), text.text.clone()),
        ContentBlock::Thinking(thinking) => {
            let title = format!("thinking, {}", size_of(&thinking.text));
            made(BlockKind::Thinking, title, thinking.text.clone())
        }
        ContentBlock::Image(image) => {
            let size = bytes(image.data.len() as u64 / 4 * 3);
            made(BlockKind::Picture, format!("picture, {}, {size}", image.mime), String::new())
        }
        ContentBlock::FunctionCall(call) => {
            let body = serde_json::to_string_pretty(&call.arguments.value()).unwrap_or_default();
            let title = format!("{} {}", call.function_id, call.arguments);
            made(BlockKind::Call, title, body)
        }
        ContentBlock::FunctionResult(result) => {
            let texts: Vec<&str> =
                result.content.iter().filter_map(ContentBlock::as_text).collect();
            let body = texts.join("\n");
            let failed = if result.is_error == Some(true) { "failed, " } else { "" };
            made(BlockKind::Result, format!("{failed}{}", size_of(&body)), body)
        }
    }
}

fn size_of(text: &str) -> String {
    count(text.lines().count().max(1) as u64, "line", "lines")
}

fn note(heading: &str, title: String) -> Shown {
    let blocks = if title.is_empty() {
        Vec::new()
    } else {
        vec![Block { kind: BlockKind::Text, title: String::new(), body: title }]
    };
    Shown { speaker: Speaker::Note, heading: heading.to_owned(), blocks }
}

fn shown_note(custom: &CustomPayload) -> Shown {
    let summary = |heading: &str, text: String| Shown {
        speaker: Speaker::Note,
        heading: heading.to_owned(),
        blocks: vec![Block { kind: BlockKind::Summary, title: size_of(&text), body: text }],
    };
    match Bookkeeping::from_payload(custom) {
        Some(Bookkeeping::ModelChange(to)) => {
            note(&format!("model is now {}/{}", to.provider, to.model_id), String::new())
        }
        Some(Bookkeeping::ThinkingLevelChange(to)) => {
            note(&format!("thinking is now {}", to.thinking_level), String::new())
        }
        Some(Bookkeeping::Compaction(done)) if done.summary.is_empty() => {
            note("compaction undone", String::new())
        }
        Some(Bookkeeping::Compaction(done)) => {
            let before = tokens(done.tokens_before);
            let mut shown = summary(&format!("compacted from {before} tokens"), done.summary);
            shown.blocks.extend(compacted_system_prompt(custom).map(|prompt| Block {
                kind: BlockKind::Summary,
                title: format!("system prompt from here on, {}", size_of(&prompt)),
                body: prompt,
            }));
            shown
        }
        Some(Bookkeeping::BranchSummary(left)) => {
            summary("summary of the branch that was left", left.summary)
        }
        Some(Bookkeeping::SessionInfo(info)) => {
            note(&format!("session is called {:?}", info.name), String::new())
        }
        Some(Bookkeeping::Label(label)) => {
            let about = match &label.label {
                Some(name) => format!("label {name:?} on {}", label.target_id),
                None => format!("label taken off {}", label.target_id),
            };
            note(&about, String::new())
        }
        None => note(&custom.custom_type, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(
        item: serde_json::Value,
        speaker: Speaker,
        heading: &str,
        blocks: &[(BlockKind, &str)],
    ) {
        let mut item = item;
        item["entry_id"] = json!("e");
        let shown = shown(&serde_json::from_value(item).unwrap());
        assert_eq!((shown.speaker, shown.heading.as_str()), (speaker, heading));
        let found: Vec<(BlockKind, &str)> =
            shown.blocks.iter().map(|block| (block.kind, block.title.as_str())).collect();
        assert_eq!(found, blocks);
    }

    #[test]
    fn a_result_names_the_file_with_all_of_its_output() {
        let check_result = |content: serde_json::Value, blocks: &[(BlockKind, &str)]| {
            let message = json!({"role": "function_result", "timestamp": 0, "function_call_id": "1",
                "function_id": "bash", "content": content, "is_error": false,
                "details": {"fullOutputPath": "/tmp/pi-bash-1.log"}});
            check(json!({"message": message}), Speaker::Tool, "result of bash", blocks);
        };
        let text = json!([{"type": "text", "text": "a\nb"}]);
        check_result(
            text,
            &[(BlockKind::Result, "2 lines, all of the output: /tmp/pi-bash-1.log")],
        );
        check_result(json!([]), &[(BlockKind::Result, "all of the output: /tmp/pi-bash-1.log")]);
    }

    #[test]
    fn messages_become_blocks() {
        check(
            json!({"message": {"role": "user", "timestamp": 0,
                "content": [{"type": "text", "text": "hi"}, {"type": "image", "mime": "image/png", "data": "AAAA"}]}}),
            Speaker::User,
            "user",
            &[(BlockKind::Text, ""), (BlockKind::Picture, "picture, image/png, 3 B")],
        );
        check(
            json!({"message": {"role": "assistant", "timestamp": 0, "model": "m", "provider": "p",
                "stop_reason": "aborted", "usage": {"output": 1200}, "content": [
                    {"type": "thinking", "text": "a\nb"},
                    {"type": "function_call", "id": "1", "function_id": "bash", "arguments": {"command": "ls"}}]}}),
            Speaker::Assistant,
            "assistant m · 1.2k out",
            &[
                (BlockKind::Thinking, "thinking, 2 lines"),
                (BlockKind::Call, r#"bash {"command":"ls"}"#),
                (BlockKind::Problem, "aborted"),
            ],
        );
        check(
            json!({"message": {"role": "function_result", "timestamp": 0, "function_call_id": "1",
                "function_id": "bash", "is_error": true, "content": [{"type": "text", "text": "no"}]}}),
            Speaker::Tool,
            "result of bash failed",
            &[(BlockKind::Result, "1 line")],
        );
    }

    #[test]
    fn an_answer_of_an_unnamed_model_has_a_plain_heading() {
        for (model, heading) in [("", "assistant"), ("m", "assistant m")] {
            let reply = json!({"role": "assistant", "timestamp": 0, "model": model, "provider": "p",
                "stop_reason": "end", "content": []});
            check(json!({"message": reply}), Speaker::Assistant, heading, &[]);
        }
    }

    #[test]
    fn bookkeeping_is_a_note() {
        for (label, about) in [(json!("x"), "label \"x\" on e"), (json!(null), "label taken off e")]
        {
            let data = json!({"target_id": "e", "label": label});
            let custom = json!({"custom": {"custom_type": "bough.label", "data": data}});
            check(custom, Speaker::Note, about, &[]);
        }
        check(
            json!({"custom": {"custom_type": "bough.model_change", "data": {"provider": "p", "model_id": "m"}}}),
            Speaker::Note,
            "model is now p/m",
            &[],
        );
        check(
            json!({"custom": {"custom_type": "bough.compaction",
                "data": {"summary": "s", "first_kept_entry_id": "e", "tokens_before": 52_000}}}),
            Speaker::Note,
            "compacted from 52k tokens",
            &[(BlockKind::Summary, "1 line")],
        );
        check(
            json!({"custom": {"custom_type": "bough.compaction",
                "data": {"summary": "s", "first_kept_entry_id": "e", "tokens_before": 7,
                    "pi.system_message": {"role": "system", "content": "Be brief."}}}}),
            Speaker::Note,
            "compacted from 7 tokens",
            &[
                (BlockKind::Summary, "1 line"),
                (BlockKind::Summary, "system prompt from here on, 1 line"),
            ],
        );
        check(
            json!({"custom": {"custom_type": "app.mark", "data": 1}}),
            Speaker::Note,
            "app.mark",
            &[],
        );
    }
}
