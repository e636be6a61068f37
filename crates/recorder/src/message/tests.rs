//! Messages come back as they were written, and as the store's own messages.

use bough_session::{
    AgentMessage, AssistantMessage, Canonical, ContentBlock, ErrorKind, Format, RawJson,
    StopReason, Usage, UserMessage,
};
use serde_json::json;

use super::role_first;
use super::*;

/// One message of each kind, with sorted members as session files have them.
const SORTED: [&str; 4] = [
    r#"{"content":[{"text":"é \"q\"\n","type":"text"}],"role":"user","timestamp":1}"#,
    concat!(
        r#"{"content":[{"signature":"s","thinking":"hm","type":"thinking"},"#,
        r#"{"arguments":{"a":[1,null]},"id":"c","name":"bash","type":"toolCall"}],"#,
        r#""error_message":"x","model":"m","provider":"p","role":"assistant","#,
        r#""stopReason":"toolUse","timestamp":2,"#,
        r#""usage":{"cache_read":1,"cache_write":2,"input":3,"output":4,"reasoning":5,"total_tokens":6}}"#
    ),
    concat!(
        r#"{"content":[{"data":"aGk=","mimeType":"image/png","type":"image"}],"isError":false,"#,
        r#""role":"toolResult","timestamp":5,"toolCallId":"c","toolName":"bash"}"#
    ),
    r#"{"content":[],"role":"user","timestamp":1}"#,
];

fn read(text: &str) -> RecordedMessage {
    serde_json::from_str(text).unwrap()
}

fn written(message: &RecordedMessage) -> String {
    serde_json::to_string(message).unwrap()
}

#[test]
fn messages_are_written_as_they_are_read() {
    for text in SORTED {
        let message = read(text);
        assert_eq!((written(&message).as_str(), message.kept_text()), (text, None));
        let turn_id = TurnId { loop_id: "l".to_owned(), turn_index: 3 };
        let in_turn = message.with_turn_id(Some(turn_id.clone()));
        assert_eq!((in_turn.turn_id(), in_turn.kept_text()), (Some(&turn_id), None));
        assert_eq!(read(&written(&in_turn)), in_turn);
        let sorted: Value = serde_json::from_str(&written(&in_turn)).unwrap();
        assert_eq!(written(&in_turn), sorted.to_string(), "its turn is among the sorted members");
    }
    let extension = r#"{"role":"extension","kind":"ui","data":{"toast":"hi"}}"#;
    assert_eq!(
        (written(&read(extension)).as_str(), read(extension).kept_text()),
        (extension, None)
    );
}

#[test]
fn what_is_not_known_is_kept() {
    for text in [
        r#"{"body":1,"role":"oracle"}"#,
        r#"{"content":[{"clip":7,"type":"video"}],"role":"user","timestamp":1}"#,
        r#"{"content":[],"nodeId":4,"parentId":3,"role":"user","timestamp":1}"#,
        r#"{"content":[],"role":"user","timestamp":1,"turnId":"not one"}"#,
        r#"{"content":[],"role":"user","timestamp":1,"turnId":null}"#,
        r#"{"content":[],"model":"m","role":"user","timestamp":1}"#,
        r#"{"content":[{"arguments":null,"id":"c","name":"n","type":"toolCall"}],"role":"user","timestamp":1}"#,
    ] {
        let message = read(text);
        assert_eq!((written(&message).as_str(), message.kept_text()), (text, None));
    }
    for text in [
        r#"{"content":[],"role":"user","timestamp":18446744073709551615}"#,
        r#"{"content":[{"text":"a","type":"text","x":1}],"role":"user","timestamp":1}"#,
    ] {
        let message = read(text);
        assert_eq!((written(&message).as_str(), message.kept_text()), (text, Some(text)));
    }
}

#[test]
fn two_messages_are_equal_if_all_that_is_known_of_them_is() {
    let same = |one: &str, other: &str| read(one) == read(other);
    let reply = SORTED[1];
    let sorted: Value = serde_json::from_str(reply).unwrap();
    let spaced = serde_json::to_string_pretty(&sorted).unwrap();
    assert!(same(reply, &spaced), "the layout does not count");
    let changed = |from: &str, to: &str| {
        assert!(reply.contains(from), "{from}");
        reply.replacen(from, to, 1)
    };
    // Members that this version does not know, in a block and in the usage, do not count.
    assert!(same(reply, &changed(r#""id":"c""#, r#""id":"c","x":1"#)));
    assert!(same(reply, &changed(r#""input":3"#, r#""input":3,"tier":"std""#)));
    // The order of arguments and the spelling of a text do not count either.
    let two = |arguments: &str| changed(r#"{"a":[1,null]}"#, arguments);
    assert!(same(&two(r#"{"a":1,"b":2}"#), &two(r#"{"b":2,"a":1}"#)));
    assert!(same(reply, &changed(r#""hm""#, r#""\u0068m""#)));
    for (from, to) in [
        (r#""input":3"#, r#""input":4"#),
        (r#""total_tokens":6"#, r#""total_tokens":7"#),
        (r#""toolUse""#, r#""stop""#),
        (r#"[1,null]"#, r#"[1,2]"#),
        (r#""timestamp":2"#, r#""nodeId":1,"timestamp":2"#),
        (r#""timestamp":2"#, r#""timestamp":2,"turnId":{"loopId":"l","turnIndex":0}"#),
    ] {
        assert!(!same(reply, &changed(from, to)), "{to}");
    }
    let stop = |word: &str| changed("toolUse", word);
    assert!(!same(&stop("stop"), &stop("a word of a later version")), "both are an end");
}

#[test]
fn a_result_begins_with_its_role() {
    let text = concat!(
        r#"[{"role":"toolResult","toolCallId":"c","toolName":"bash","#,
        r#""content":[{"type":"text","text":"ok"}],"isError":true,"timestamp":5}]"#
    );
    let from = &mut serde_json::Deserializer::from_str(text);
    let results = role_first::deserialize(from).unwrap();
    assert_eq!(results[0].kept_text(), None);
    let mut again = Vec::new();
    role_first::serialize(&results, &mut serde_json::Serializer::new(&mut again)).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);
    let sorted = results[0].for_turn();
    assert!(written(&sorted).starts_with(r#"{"content""#));
    assert!(sorted.without_turn().unwrap().is_written_like(&results[0]));
    let unknown = r#"[{"role":"oracle","body":1}]"#;
    assert!(role_first::deserialize(&mut serde_json::Deserializer::from_str(unknown)).is_err());
}

#[test]
fn a_known_role_in_a_wrong_form_is_refused() {
    for wrong in [
        json!({"role": "user"}),
        json!({"role": "user", "content": "words", "timestamp": 1}),
        json!({"role": "user", "content": [{"type": "text"}], "timestamp": 1}),
        json!({"role": "user", "content": [{"text": "a"}], "timestamp": 1}),
        json!({"role": "user", "content": [{"type": "video"}, 7], "timestamp": 1}),
        json!({"role": "user", "content": [], "timestamp": -1}),
        json!({"role": "assistant", "content": [], "timestamp": 1}),
        json!({"content": []}),
        json!([]),
    ] {
        assert!(serde_json::from_value::<RecordedMessage>(wrong.clone()).is_err(), "{wrong}");
    }
}

/// What is read of a usual message is what the codec of the format makes of it, and of any other message the codec makes
/// the message.
#[test]
fn a_message_is_the_canonical_view_of_its_text() {
    let unusual = [
        r#"{"content":[{"clip":7,"title":"a","type":"video"}],"role":"user","timestamp":1}"#,
        r#"{"content":[{"text":"a","type":"text","x":1.10}],"nodeId":1,"role":"user","timestamp":1}"#,
    ];
    for text in SORTED.into_iter().chain(unusual) {
        let canonical = Format::Phi.to_canonical(&RawJson::parse(text).unwrap(), 0);
        let Canonical::Message(canonical) = canonical else { panic!("{text}") };
        assert_eq!(read(text).message(), Some(&*canonical), "{text}");
    }
}

#[test]
fn a_message_of_the_store_comes_back() {
    let message = AgentMessage::User(UserMessage::new(vec![ContentBlock::text("Hello")], 7));
    let recorded = RecordedMessage::from(message.clone());
    assert_eq!(
        (recorded.role(), recorded.text(), recorded.timestamp()),
        ("user", "Hello".to_owned(), 7)
    );
    assert_eq!(recorded.message(), Some(&message));
    let reply = AgentMessage::Assistant(AssistantMessage {
        usage: Some(Usage { cost_usd: Some(0.5), ..crate::usage::none() }),
        stop_reason: StopReason::End,
        native_stop_reason: Some("stop".to_owned()),
        error_kind: Some(ErrorKind::Transient),
        warnings: Some(vec!["a parameter was dropped".to_owned()]),
        ..AssistantMessage::new(vec![ContentBlock::text("Hi!")], "p".into(), "m".into(), 9)
    });
    let recorded = RecordedMessage::from(reply.clone());
    assert!(recorded.is_assistant());
    assert_eq!(recorded.message(), Some(&reply));
}

#[test]
fn a_message_of_a_role_that_events_do_not_have_is_kept_whole() {
    let notice = r#"{"role":"custom","custom_type":"note","content":[{"type":"text","text":"Paused"}],"display":"small","timestamp":1,"n":123456789012345678901234567890}"#;
    let notice: AgentMessage = serde_json::from_str(notice).unwrap();
    let recorded = RecordedMessage::from(notice.clone());
    assert_eq!(recorded.known(), None, "no model reads it");
    assert_eq!(recorded.message(), Some(&notice));
    assert_eq!(RecordedMessage::extension("ui", json!(1)).message(), None);
}
