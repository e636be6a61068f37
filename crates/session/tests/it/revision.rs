//! Revisions, steps of a stream, and putting steps together.

use bough_session::{
    AgentMessage, Bookkeeping, ContentBlock, ContentChange, Delta, Entry, EntryBody, EntryId,
    FORMAT_PHI, Finish, ForeignBody, RawJson, Revision, RevisionError, SessionInfo, StopReason,
    TextAppend, Usage, UsageChange, settle,
};
use proptest::prelude::*;
use serde_json::json;

use crate::common::{any_message, assistant, entry, kept, map, result, user};

fn append(id: &str, revision: u64, text: &str) -> Delta {
    Delta {
        at_ms: 1,
        entry_id: EntryId::from_stored(id),
        revision,
        change: ContentChange::Append(TextAppend { block: 0, text: text.to_owned() }),
        details: None,
        origin: Some(map(json!({"n": revision}))),
    }
}

#[test]
fn steps_lead_from_one_revision_to_the_next() {
    let mut changed = entry("e", None, user("", 1));
    append("e", 1, "one").apply(&mut changed).unwrap();
    append("e", 2, " two").apply(&mut changed).unwrap();
    assert_eq!((changed.message().unwrap().text().as_str(), changed.revision), ("one two", 2));
}

#[test]
fn a_step_that_does_not_fit_changes_nothing() {
    let changed = entry("e", None, user("x", 1));
    let note = kept("n", None, &Bookkeeping::SessionInfo(SessionInfo { name: "n".into() }));
    let check = |entry: &Entry, delta: Delta| {
        let mut changed = entry.clone();
        let error = delta.apply(&mut changed).unwrap_err();
        assert_eq!(changed, *entry);
        error
    };
    let error = check(&changed, append("e", 2, "y"));
    assert_eq!(error, RevisionError::WrongRevision { from: 1, current: 0 });
    assert!(matches!(check(&changed, append("e", 0, "y")), RevisionError::BadRange { .. }));
    assert!(matches!(check(&changed, append("f", 1, "y")), RevisionError::OtherEntry { .. }));
    assert!(matches!(check(&note, append("n", 1, "y")), RevisionError::NotMessage { .. }));
}

#[test]
fn a_finished_message_knows_its_cost() {
    let mut changed = entry("e", None, assistant("x", "m", None));
    let usage = Usage { output: Some(3), ..Usage::default() };
    let revision = Revision {
        finish: Some(Box::new(Finish {
            stop_reason: Some(StopReason::Length),
            native_stop_reason: Some("max_tokens".into()),
            usage: Some(UsageChange { model: "m".into(), before: None, after: usage.clone() }),
            ..Finish::default()
        })),
        ..Revision::replace(&changed, &[ContentBlock::text("xy")], None)
    };
    revision.apply(&mut changed).unwrap();
    let message = changed.message().expect("still a message");
    let AgentMessage::Assistant(message) = &*message else { panic!("still an assistant's") };
    assert_eq!((message.stop_reason, message.usage.as_ref()), (StopReason::Length, Some(&usage)));
    assert_eq!(message.native_stop_reason.as_deref(), Some("max_tokens"));
}

#[test]
fn details_are_replaced_where_the_role_has_them() {
    let mut changed = entry("e", None, result("x"));
    let content = [ContentBlock::text("x")];
    Revision::replace(&changed, &content, Some(json!({"d": 1}).into()))
        .apply(&mut changed)
        .unwrap();
    assert_eq!(changed.message().unwrap().details(), Some(&json!({"d": 1}).into()));
    Revision::replace(&changed, &content, None).apply(&mut changed).unwrap();
    assert_eq!(changed.message().unwrap().details(), Some(&json!({"d": 1}).into()));
    assert_eq!(changed.revision, 2);
}

#[test]
fn a_foreign_message_can_be_revised_and_keeps_its_own_json() {
    let json =
        RawJson::parse(r#"{"role":"user","content":[{"type":"text","text":"old"}],"timestamp":5}"#);
    let body = ForeignBody::new(FORMAT_PHI, json.unwrap());
    let mut changed =
        Entry { body: EntryBody::Foreign(body.clone()), ..entry("e", None, user("", 1)) };
    let new = [ContentBlock::text("old and new")];
    let revision = Revision::replace(&changed, &new, None);
    assert!(matches!(revision.change, ContentChange::Append(_)));
    revision.apply(&mut changed).unwrap();
    let message = changed.message().unwrap();
    assert_eq!((message.text().as_str(), message.timestamp()), ("old and new", 5));
    match &changed.body {
        EntryBody::Foreign(now) => assert_eq!(now.json, body.json),
        other => panic!("{other:?}"),
    }
    let copy = changed.into_copy(EntryId::from_stored("f"), None);
    assert_eq!((copy.revision, copy.message().unwrap().text().as_str()), (0, "old and new"));
}

#[test]
fn a_stream_put_together_costs_about_its_text() {
    let base = entry("e", None, user("", 1));
    let mut changed = base.clone();
    for revision in 1..=2000 {
        append("e", revision, "six ch").apply(&mut changed).unwrap();
    }
    let revision = settle(&base, &changed, None).unwrap();
    assert_eq!((revision.from, revision.to), (0, 2000));
    let record = bough_session::Record::Revision(revision);
    let form = bough_session::codec::encode(&record, 1);
    assert!(form.payload.len() < 12_000 + 100, "{}", form.payload.len());
    assert_eq!(settle(&base, &base, None), None);
}

proptest! {
    #[test]
    fn a_replacement_or_a_settled_range_gives_the_new_message(
        old in any_message(),
        new in any_message(),
    ) {
        let base = entry("e", None, old);
        let mut replaced = base.clone();
        Revision::replace(&base, new.content(), None).apply(&mut replaced).unwrap();
        let message = replaced.message().unwrap();
        prop_assert_eq!(message.content(), new.content());
        prop_assert_eq!(replaced.revision, 1);

        let mut settled = base.clone();
        settle(&base, &replaced, None).unwrap().apply(&mut settled).unwrap();
        prop_assert_eq!(settled, replaced);
    }
}
