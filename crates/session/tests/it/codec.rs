//! Every record survives its form in the log, and unknown data is kept as it came.

use bough_record::Envelope;
use bough_session::codec::{decode, decode_delta, encode, encode_delta, shortened};
use bough_session::{
    ContentBlock, ContentChange, CustomPayload, Delta, Entry, EntryBody, EntryId, FORMAT_PI,
    Finish, ForeignBody, LoopEvent, LoopId, LoopPhase, MetaChange, ModelName, RawJson, Record,
    Replaced, RequestDigest, Revision, SessionId, SessionState, SessionStatus, StatusChange,
    StopReason, TextAppend, Usage, UsageChange,
};
use proptest::prelude::*;
use serde_json::json;

use crate::common::{any_message, entry, map, user};

fn stored(kind: &'static str, payload: &str) -> Envelope<'static> {
    Envelope {
        kind: kind.into(),
        id: None,
        parent: None,
        target: None,
        revision: None,
        at_ms: 7,
        payload: payload.to_owned().into(),
    }
}

/// The record comes back, and its payload is the expected text.
#[track_caller]
fn check(record: Record, payload: &str) {
    let form = encode(&record, 7);
    assert_eq!(form.payload, payload);
    assert_eq!(decode(form), record);
}

#[test]
fn a_meta_change_holds_what_changes() {
    check(Record::Meta(MetaChange::default()), "{}");
    let change = MetaChange {
        title: Some("t".into()),
        description: Some(String::new()),
        metadata: Some(map(json!({"b": 1, "a": 2}))),
        status: Some(StatusChange { status: SessionStatus::Error, reason: Some("r".into()) }),
        forked_from: Some(SessionId::from_stored("s")),
        created_at: Some(1),
        updated_at: Some(2),
        archived: Some(false),
        task_name: Some("n".into()),
        digest: None,
        kind: None,
    };
    check(
        Record::Meta(change),
        r#"{"title":"t","description":"","metadata":{"a":2,"b":1},"status":"error","reason":"r","forked_from":"s","created_at":1,"updated_at":2,"archived":false,"task_name":"n"}"#,
    );
    let made = MetaChange { digest: Some(RequestDigest([0x1f; 32])), ..MetaChange::default() };
    check(Record::Meta(made), &format!(r#"{{"digest":"{}"}}"#, "1f".repeat(32)));
}

#[test]
fn an_entry_does_not_repeat_its_place() {
    let mut stored = entry("e", Some("p"), user("hi", 7));
    stored.timestamp = 7;
    let record = Record::Entry(stored.clone());
    let form = encode(&record, 7);
    assert_eq!((form.kind.as_ref(), form.id.as_deref()), ("entry", Some("e")));
    assert_eq!((form.parent.as_deref(), form.target), (Some("p"), None));
    check(
        record,
        r#"{"message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":7}}"#,
    );
    stored.body = EntryBody::Custom(CustomPayload { custom_type: "x".into(), data: json!(null) });
    stored.origin = Some(map(json!({"turn_id": "t"})));
    stored.timestamp = 3;
    stored.revision = 2;
    check(
        Record::Entry(stored),
        r#"{"custom":"x","data":null,"origin":{"turn_id":"t"},"timestamp":3,"revision":2}"#,
    );
}

#[test]
fn a_foreign_entry_keeps_its_text() {
    let json = RawJson::parse(r#"{"z": 1.0, "a":  "é"}"#).unwrap();
    let mut body = ForeignBody::new(FORMAT_PI, json);
    let at = |body: ForeignBody| {
        Record::Entry(Entry {
            timestamp: 7,
            body: EntryBody::Foreign(body),
            ..entry("e", None, user("", 7))
        })
    };
    check(at(body.clone()), r#"{"foreign":"pi","json":{"z": 1.0, "a":  "é"}}"#);
    body.replaced =
        Some(Replaced { content: vec![ContentBlock::text("new")], details: None, finish: None });
    check(
        at(body),
        r#"{"foreign":"pi","json":{"z": 1.0, "a":  "é"},"replaced":{"content":[{"type":"text","text":"new"}]}}"#,
    );
}

#[test]
fn a_revision_holds_the_difference() {
    let revision = Revision {
        entry_id: EntryId::from_stored("e"),
        from: 3,
        to: 9,
        change: ContentChange::Append(TextAppend { block: 0, text: "more".into() }),
        details: Some(json!({"d": 1}).into()),
        origin: Some(map(json!({"t": 1}))),
        finish: Some(Box::new(Finish {
            stop_reason: Some(StopReason::Length),
            usage: Some(UsageChange { model: "m".into(), before: None, after: Usage::default() }),
            model: Some(ModelName { provider: "p".into(), model: "m".into() }),
            aborted: true,
            ..Finish::default()
        })),
    };
    let record = Record::Revision(revision.clone());
    let form = encode(&record, 7);
    assert_eq!((form.target.as_deref(), form.revision), (Some("e"), Some(9)));
    check(
        Record::Revision(revision),
        r#"{"from":3,"append":{"block":0,"text":"more"},"details":{"d":1},"origin":{"t":1},"finish":{"stop_reason":"length","model":{"provider":"p","model":"m"},"aborted":true,"usage":{"model":"m","after":{}}}}"#,
    );
}

#[test]
fn the_other_kinds_survive() {
    check(Record::Leaf(None), "{}");
    check(Record::Leaf(Some(EntryId::from_stored("e"))), "{}");
    check(Record::Streaming(EntryId::from_stored("e")), r#"{"entry":"e"}"#);
    check(Record::Tombstone, "{}");
    check(Record::Restored, "{}");
    let event = LoopEvent {
        loop_id: LoopId::from_stored("l.1"),
        phase: Some(LoopPhase::Running),
        entry_id: Some(EntryId::from_stored("e")),
        event: RawJson::parse(r#"{"type":"AgentStart","x": 1e3}"#).unwrap(),
    };
    check(
        Record::Loop(event),
        r#"{"loop":"l.1","phase":"running","entry":"e","event":{"type":"AgentStart","x": 1e3}}"#,
    );
}

#[test]
fn what_is_not_known_is_kept_byte_for_byte() {
    let check = |form: Envelope<'static>, known: bool| {
        let record = decode(form.clone());
        assert_eq!(matches!(record, Record::Newer { .. }), known, "{form:?}");
        assert_eq!(matches!(record, Record::Unknown(_)), !known, "{form:?}");
        assert_eq!(encode(&record, 999), form);
    };
    check(stored("tomorrow", r#"{"a": 1.0}"#), false);
    check(stored("meta", r#"{"status":"sleeping"}"#), false);
    check(stored("meta", "not json"), false);
    check(stored("rev", r#"{"from":1}"#), false);
    check(stored("entry", r#"{"message":{"role":"user","content":[],"timestamp":1}}"#), false);
    check(stored("meta", r#"{"x": [1 , 2],"title":"t"}"#), true);
    check(stored("leaf", r#"{"why":"w"}"#), true);
    check(stored("tomb", "null"), true);
}

#[test]
fn the_known_part_of_a_newer_record_is_read() {
    let record = decode(stored("meta", r#"{"colour":"red","title":"t"}"#));
    match record.known() {
        Record::Meta(change) => assert_eq!(change.title.as_deref(), Some("t")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_step_of_a_stream_is_small() {
    let delta = Delta {
        at_ms: 5,
        entry_id: EntryId::from_stored("e"),
        revision: 4,
        change: ContentChange::Append(TextAppend { block: 1, text: "é\n".into() }),
        details: None,
        origin: None,
    };
    let text = encode_delta(&delta);
    assert_eq!(text, r#"{"at":5,"entry":"e","revision":4,"append":{"block":1,"text":"é\n"}}"#);
    assert_eq!(decode_delta(&text), Some(delta));
    assert_eq!(decode_delta("{}"), None);
    assert_eq!(decode_delta("{\"at\":5"), None);
}

proptest! {
    #[test]
    fn any_message_survives(message in any_message(), timestamp in any::<i64>()) {
        let record = Record::Entry(Entry { timestamp, ..entry("e", None, message) });
        let form = encode(&record, 7);
        prop_assert!(!form.payload.contains('\n'));
        prop_assert_eq!(decode(form), record);
    }

    #[test]
    fn any_text_is_read_without_a_panic(
        kind in "meta|entry|rev|leaf|loop|tomb|restored",
        payload in "\\{(\"(title|message|from|loop|event|custom|data|foreign|json)\":(1|\"x\"|\\{\\}|null|\\[\\]),?){0,3}\\}?",
    ) {
        let form = Envelope {
            kind: kind.into(),
            id: Some("e".into()),
            revision: Some(1),
            target: Some("e".into()),
            ..stored("meta", &payload)
        };
        let record = decode(form.clone());
        if let Record::Newer { .. } | Record::Unknown(_) = record {
            prop_assert_eq!(encode(&record, 0), form);
        }
    }
}

#[test]
fn a_shortened_payload_makes_the_same_state() {
    let long = "a \"word\" \n\u{4e16} ".repeat(50_000);
    let usage = json!({"input": 7, "output": 3, "cost": {"total": 0.125}});
    let lines = [
        json!({"type": "message", "id": "a", "message": {"role": "user", "content": long}}),
        json!({"type": "message", "id": "b", "message": {"role": "assistant", "model": "m", "provider": "p",
            "usage": usage, "content": [{"type": "text", "text": long}, {"type": "image", "data": long}]}}),
        json!({"type": "session_info", "id": "c", "name": long}),
        json!({"type": "of_the_future", "id": "d", "list": [null, true, -1, 1.5, {"deep": long}]}),
    ];
    let mut whole = bough_session::SessionState::new(SessionId::from_stored("s"));
    let mut short = whole.clone();
    for (seq, line) in (1..).zip(&lines) {
        let payload = json!({"foreign": FORMAT_PI, "json": line}).to_string();
        let cut = shortened(&payload);
        assert!(cut.len() < 64 * 1024, "{} bytes are left", cut.len());
        let record = |payload: &str| {
            let id = Some(line["id"].as_str().unwrap().into());
            decode(Envelope { id, ..stored("entry", payload) })
        };
        whole.apply(&record(&payload), seq, 9);
        short.apply(&record(&cut), seq, 9);
    }
    assert_eq!(short, whole);
    assert_eq!((whole.entry_count, whole.meta.message_count, whole.usage.total.input), (4, 2, 7));
    assert_eq!(shortened("{\"a\": \"as it is\"}"), "{\"a\": \"as it is\"}");
    let broken = format!("{{\"a\": \"{long}");
    assert_eq!(shortened(&broken), broken, "what cannot be read is not touched");
}

/// A redacted entry is hidden, and the record says the same when it is written again.
#[test]
fn a_redaction_hides_its_entry_and_is_kept_byte_for_byte() {
    for payload in
        [r#"{"message":true,"preview":true}"#, r#"{"by":"a","reason":"b"}"#, "null", "{}"]
    {
        let form = Envelope { target: Some("e".into()), ..stored("redacted", payload) };
        let record = decode(form.clone());
        let Record::Removed(removal) = record.known() else { panic!("{record:?}") };
        assert_eq!(removal.entry_id, EntryId::from_stored("e"));
        let is_counted = payload.contains("message");
        assert_eq!((removal.is_message, removal.is_preview), (is_counted, is_counted));
        assert_eq!(encode(&record, 7), form);
    }
    let again = Envelope { target: Some("e".into()), ..stored("redacted", r#"{"hidden":true}"#) };
    assert!(matches!(decode(again.clone()), Record::Unknown(_)), "it was hidden before");
    assert_eq!(encode(&decode(again.clone()), 7), again);
    assert!(matches!(decode(stored("redacted", "{}")), Record::Unknown(_)), "it names no entry");
}

/// The content of a redacted frame is gone; the entry is still a node of the tree.
#[test]
fn an_entry_of_which_nothing_was_kept_is_hidden() {
    for payload in ["null", "{}", "{    }"] {
        let form =
            Envelope { id: Some("e".into()), parent: Some("p".into()), ..stored("entry", payload) };
        let record = decode(form.clone());
        let found = record.as_entry().unwrap();
        assert!(found.is_hidden(), "{found:?}");
        assert_eq!((found.id.as_str(), found.parent_id.as_ref().unwrap().as_str()), ("e", "p"));
        assert_eq!(found.timestamp, 7);
        let mut known = form.clone();
        known.payload = payload.into();
        assert_eq!(encode(&record, 7).id, known.id);
    }
}

/// The record that redacts an entry takes it out of the counts, whatever was kept of it.
#[test]
fn an_entry_of_which_nothing_was_kept_is_counted_once() {
    let meta = decode(stored("meta", r#"{"title":"t"}"#));
    let emptied = Envelope { id: Some("e".into()), ..stored("entry", "{}") };
    let whole = Envelope { id: Some("e".into()), ..stored("entry", r#"{"opaque":"t","json":1}"#) };
    let redacted = Envelope { target: Some("e".into()), ..stored("redacted", "{}") };
    for entry in [whole, emptied] {
        let mut state = SessionState::new(SessionId::from_stored("s"));
        for (seq, record) in (1..).zip([&meta, &decode(entry), &decode(redacted.clone())]) {
            state.apply(record, seq, 7);
        }
        assert_eq!((state.entry_count, state.hidden_count, state.meta.message_count), (0, 1, 0));
    }
}

/// A record that names who writes a stream, which a later version writes, is given back as it came.
#[test]
fn the_owner_of_a_stream_is_kept() {
    let payload = r#"{"owner":{"process":"p1"}}"#;
    let form =
        Envelope { target: Some("e".into()), revision: Some(0), ..stored("stream", payload) };
    assert_eq!(encode(&decode(form.clone()), 7), form);
}
