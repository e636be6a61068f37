//! Checks the table of losses in `docs/FORMATS.md` against the code.

use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, ErrorKind, Format,
    FunctionCallBlock, FunctionResultMessage, ImageBlock, Loss, LossReason, StopReason,
    ThinkingBlock, UnknownMembers, Usage, UserMessage,
};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../../docs/FORMATS.md");

fn reply(change: impl Fn(&mut AssistantMessage)) -> AgentMessage {
    let mut reply =
        AssistantMessage::new(vec![ContentBlock::text("hi")], String::new(), "m".into(), 1);
    // A reply without usage gets one in some formats, which is a loss of its own.
    reply.usage = Some(Usage::default());
    change(&mut reply);
    AgentMessage::Assistant(reply)
}

fn blocks(blocks: Vec<ContentBlock>) -> AgentMessage {
    reply(|message| message.content.clone_from(&blocks))
}

fn thought(signature: Option<&str>) -> ContentBlock {
    ContentBlock::Thinking(ThinkingBlock {
        text: "hm".into(),
        signature: signature.map(str::to_owned),
        unknown: UnknownMembers::default(),
    })
}

fn used(usage: Usage) -> AgentMessage {
    reply(|message| message.usage = Some(usage.clone()))
}

fn result(change: impl Fn(&mut FunctionResultMessage)) -> AgentMessage {
    let content = vec![ContentBlock::text("x")];
    let mut result = FunctionResultMessage::new("c".into(), String::new(), content, 1);
    change(&mut result);
    AgentMessage::FunctionResult(result)
}

fn custom(custom_type: &str) -> AgentMessage {
    AgentMessage::Custom(CustomMessage {
        custom_type: custom_type.into(),
        content: vec![ContentBlock::text("x")],
        display: None,
        details: None,
        timestamp: 1,
        unknown: UnknownMembers::default(),
    })
}

fn picture(url: Option<&str>) -> AgentMessage {
    let mut unknown = UnknownMembers::default();
    if let Some(url) = url {
        unknown.set("url", json!(url).into());
    }
    let data = if url.is_none() { "QQ==" } else { "" };
    let mime = if url.is_none() { "image/png" } else { "" };
    let image = ImageBlock { mime: mime.into(), data: data.into(), unknown };
    AgentMessage::User(UserMessage::new(vec![ContentBlock::Image(image)], 1))
}

fn marked(mut message: AgentMessage, in_block: bool) -> AgentMessage {
    let unknown =
        if in_block { message.content_mut()[0].unknown_mut() } else { message.unknown_mut() };
    unknown.set("cache_control", json!({"type": "ephemeral"}).into());
    message
}

/// Messages with one feature each, named as in the document.
fn features() -> Vec<(&'static str, AgentMessage)> {
    let call = FunctionCallBlock::new("c".into(), "f".into(), json!({"a": 1}).into());
    vec![
        ("text", blocks(vec![ContentBlock::text("hi")])),
        (
            "a call and its arguments",
            reply(|it| {
                it.content = vec![ContentBlock::FunctionCall(call.clone())];
                it.stop_reason = StopReason::FunctionCall;
            }),
        ),
        ("a result", result(|_| ())),
        ("that a call failed (`is_error`)", result(|result| result.is_error = true)),
        ("the function's name on a result", result(|result| result.function_id = "f".into())),
        (
            "data beside a result (`details`)",
            result(|result| result.details = json!({"a": 1}).into()),
        ),
        ("a picture in the message", picture(None)),
        ("a picture by its address", picture(Some("https://example.org/a.png"))),
        ("a thought", blocks(vec![thought(None)])),
        (
            "the signature of a thought, by a provider without a name",
            blocks(vec![thought(Some("s"))]),
        ),
        (
            "the signature of a thought, by another provider",
            reply(|it| {
                it.provider = "other".into();
                it.content = vec![thought(Some("s"))];
            }),
        ),
        ("the system's words (role `system`)", custom("system")),
        ("a custom message", custom("notice")),
        (
            "tokens read, written and cached",
            used(Usage {
                input: Some(1),
                output: Some(2),
                cache_read: Some(3),
                ..Usage::default()
            }),
        ),
        ("tokens written to a cache", used(Usage { cache_write: Some(1), ..Usage::default() })),
        ("tokens thought", used(Usage { reasoning: Some(1), output: Some(1), ..Usage::default() })),
        ("the price (`cost_usd`)", used(Usage { cost_usd: Some(0.5), ..Usage::default() })),
        ("that a reply was cut off (`length`)", reply(|it| it.stop_reason = StopReason::Length)),
        ("that a reply was stopped (`aborted`)", reply(|it| it.stop_reason = StopReason::Aborted)),
        ("that a reply failed (`error`)", reply(|it| it.stop_reason = StopReason::Error)),
        (
            "another provider's word for why it stopped",
            reply(|it| it.native_stop_reason = Some("odd".into())),
        ),
        ("the text of an error", reply(|it| it.error_message = Some("e".into()))),
        ("the kind of an error", reply(|it| it.error_kind = Some(ErrorKind::Transient))),
        ("warnings", reply(|it| it.warnings = Some(vec!["w".into()]))),
        ("another provider's name", reply(|it| it.provider = "other".into())),
        (
            "a member of a block that the canonical message does not know",
            marked(blocks(vec![ContentBlock::text("hi")]), true),
        ),
        (
            "a member of a message that the canonical message does not know",
            marked(reply(|_| ()), false),
        ),
    ]
}

fn verdict(message: &AgentMessage, format: Format) -> &'static str {
    let losses: Vec<Loss> = format.from_canonical(message).losses;
    // The provider's name is a row of its own.
    let about = |loss: &&Loss| {
        loss.pointer != "/provider"
            || message.content().len() == 1 && message.content()[0].as_text().is_some()
    };
    let reasons: Vec<LossReason> = losses.iter().filter(about).map(|loss| loss.reason).collect();
    match reasons.as_slice() {
        [] => "kept",
        reasons if reasons.contains(&LossReason::NoPlace) => "lost",
        _ => "changed",
    }
}

fn table() -> String {
    let names: Vec<String> = Format::ALL.iter().map(|format| format!("`{format}`")).collect();
    let mut table =
        format!("| a message says | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(8));
    for (what, message) in features() {
        let verdicts: Vec<&str> =
            Format::ALL.iter().map(|format| verdict(&message, *format)).collect();
        table.push_str(&format!("| {what} | {} |\n", verdicts.join(" | ")));
    }
    table
}

#[test]
fn the_table_of_losses_is_in_the_document() {
    let table = table();
    assert!(DOCUMENT.contains(&table), "docs/FORMATS.md needs this table:\n\n{table}");
}

/// The parts of a message that the rows of the table are about, after it went through a format.
fn of_rows(messages: &[AgentMessage], like: &AgentMessage) -> Value {
    let blocks = |message: &AgentMessage| {
        let mut content = message.content().to_vec();
        for block in &mut content {
            // What a format writes beside what it was given.
            for format in Format::ALL {
                block.unknown_mut().remove(format.name());
            }
        }
        serde_json::to_value(content).unwrap()
    };
    let content: Vec<Value> = messages.iter().map(blocks).collect();
    let mut rows = json!({"content": content});
    let message = &messages[0];
    match (message, like) {
        (AgentMessage::Assistant(reply), AgentMessage::Assistant(like)) => {
            let usage = reply.usage.clone().unwrap_or_default();
            let figures = [usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
            rows["usage"] = json!(figures.map(Option::unwrap_or_default));
            rows["input"] = json!(usage.input.unwrap_or_default());
            rows["price"] = json!(usage.cost_usd.unwrap_or_default());
            rows["errors"] = json!([reply.error_message, reply.error_kind, reply.warnings]);
            rows["stop"] = json!(reply.stop_reason);
            rows["native"] =
                json!(like.native_stop_reason.as_ref().and(reply.native_stop_reason.as_ref()));
            rows["provider"] = json!(Some(&reply.provider).filter(|_| !like.provider.is_empty()));
        }
        (AgentMessage::FunctionResult(result), AgentMessage::FunctionResult(like)) => {
            let name = Some(&result.function_id).filter(|_| !like.function_id.is_empty());
            rows["result"] =
                json!([result.function_call_id, name, result.details, result.is_error]);
        }
        (message, _) => rows["role"] = json!(message.role()),
    }
    if let AgentMessage::Custom(custom) = message {
        rows["custom"] = json!(custom.custom_type);
    }
    rows
}

/// The table is made of the losses that the mappings report; this checks those reports.
#[test]
fn what_is_kept_is_there_when_it_is_read_again() {
    for (what, message) in features() {
        for format in Format::ALL {
            // A result alone is the part of an unknown call there.
            let is_result = message.role() == bough_session::Role::FunctionResult;
            if verdict(&message, format) != "kept" || is_result && format == Format::AiSdk {
                continue;
            }
            let there = format.from_canonical(&message).messages;
            let back: Vec<_> = there.iter().map(|json| crate::message_of(format, json)).collect();
            let before = of_rows(std::slice::from_ref(&message), &message);
            assert_eq!(of_rows(&back, &message), before, "{what} in {format}: {there:?}");
        }
    }
}

#[test]
fn the_document_names_every_format() {
    for format in Format::ALL {
        assert!(DOCUMENT.contains(&format!("| `{format}` |")), "{format}");
    }
}
