//! Short ways to say what the cases need.

use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, ContentChange, CustomPayload, Delta, Entry,
    EntryBody, EntryId, JsonMap, LoopEvent, LoopId, LoopPhase, MetaChange, NewRecord, RawJson,
    Record, SessionId, TextAppend, Usage, UserMessage,
};
use serde_json::Value;

use crate::{Appended, Head, PathQuery, PathStart, Store, StoreError, StoreExt, StoredEntry};

pub(super) fn id(text: &str) -> SessionId {
    SessionId::from_stored(text)
}

pub(super) fn entry_id(text: &str) -> EntryId {
    EntryId::from_stored(text)
}

pub(super) fn map(value: Value) -> JsonMap {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

pub(super) fn titled(title: &str, at_ms: i64) -> NewRecord {
    let change = MetaChange { title: Some(title.to_owned()), ..MetaChange::default() };
    Record::Meta(change).at(at_ms)
}

pub(super) fn meta(change: MetaChange, at_ms: i64) -> NewRecord {
    Record::Meta(change).at(at_ms)
}

pub(super) fn user(text: &str, at_ms: i64) -> AgentMessage {
    AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], at_ms))
}

pub(super) fn assistant(text: &str, output: u64, at_ms: i64) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        usage: Some(Usage { output: Some(output), ..Usage::default() }),
        ..AssistantMessage::new(
            vec![ContentBlock::text(text)],
            "p".to_owned(),
            "m".to_owned(),
            at_ms,
        )
    })
}

pub(super) fn entry(name: &str, parent: Option<&str>, body: EntryBody, at_ms: i64) -> NewRecord {
    let entry = Entry::new(entry_id(name), parent.map(entry_id), at_ms, body);
    Record::Entry(entry).at(at_ms)
}

pub(super) fn says(name: &str, parent: Option<&str>, text: &str, at_ms: i64) -> NewRecord {
    entry(name, parent, EntryBody::Message(user(text, at_ms).into()), at_ms)
}

pub(super) fn custom(name: &str, parent: Option<&str>, data: Value, at_ms: i64) -> NewRecord {
    let custom = CustomPayload { custom_type: "app.note".to_owned(), data };
    entry(name, parent, EntryBody::Custom(custom), at_ms)
}

pub(super) fn loop_event(name: &str, phase: LoopPhase, at_ms: i64) -> NewRecord {
    let event = LoopEvent {
        loop_id: LoopId::from_stored(name),
        phase: Some(phase),
        entry_id: None,
        event: RawJson::parse(r#"{"type":"AgentStart","n":1.0}"#).unwrap(),
    };
    Record::Loop(event).at(at_ms)
}

pub(super) fn step(name: &str, revision: u64, text: &str, at_ms: i64) -> Delta {
    let append = TextAppend { block: 0, text: text.to_owned() };
    Delta {
        at_ms,
        entry_id: entry_id(name),
        revision,
        change: ContentChange::Append(append),
        details: None,
        origin: Some(map(serde_json::json!({"turn_id": revision}))),
    }
}

/// Waits until an append is durable.
pub(super) async fn done(appended: Result<Appended, StoreError>) -> Head {
    let appended = appended.unwrap();
    appended.durable.await.unwrap();
    appended.head
}

pub(super) async fn create(store: &dyn Store, session: &SessionId, at_ms: i64) -> Head {
    done(store.create(session, vec![titled("t", at_ms)].into()).await).await
}

/// Appends at the present head.
pub(super) async fn push(store: &dyn Store, session: &SessionId, records: Vec<NewRecord>) -> Head {
    let head = store.state(session).await.unwrap().unwrap().head;
    done(store.append(session, &head, records.into()).await).await
}

pub(super) fn query(start: PathStart<EntryId>, limit: usize) -> PathQuery {
    PathQuery { leaf: None, start, limit }
}

pub(super) fn names(entries: &[StoredEntry]) -> Vec<&str> {
    entries.iter().map(|stored| stored.entry.id.as_str()).collect()
}

pub(super) fn text_of(stored: &StoredEntry) -> String {
    stored.entry.message().map(|message| message.text()).unwrap_or_default()
}
