use std::sync::Arc;

use bough_record::{ChainHash, Envelope};
use bough_session::limits::BATCH_RECORDS_MAX;
use bough_session::{
    EntryBody, FORMAT_PI, ForeignBody, LoopPhase, MetaChange, RawJson, Record, Revision,
    SessionStatus, StatusChange, TaskStatus, codec,
};
use serde_json::json;

use super::Factory;
use super::make::{
    assistant, create, custom, done, entry, entry_id, id, loop_event, map, meta, push, says, titled,
};
use crate::{Position, StoreError, StoreExt};

pub(super) async fn a_session_begins_with_its_meta_and_only_once(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    assert!(store.state(&session).await.unwrap().is_none());
    let wrong = store.create(&session, vec![says("e", None, "hi", 1)].into()).await;
    assert!(matches!(wrong, Err(StoreError::Invalid { .. })), "{wrong:?}");
    let wrong = store.create(&session, Vec::new().into()).await;
    assert!(matches!(wrong, Err(StoreError::Invalid { .. })), "{wrong:?}");

    let head = create(store.as_ref(), &session, 7).await;
    let snapshot = store.state(&session).await.unwrap().unwrap();
    assert_eq!(snapshot.head, head);
    assert_eq!(snapshot.position, Position::at(head.seq));
    assert_eq!((snapshot.state.meta.created_at, snapshot.state.meta.updated_at), (7, 7));
    assert_eq!(snapshot.state.meta.title, "t");

    let again = store.create(&session, vec![titled("other", 8)].into()).await;
    assert!(matches!(again, Err(StoreError::Exists { .. })), "{again:?}");
}

pub(super) async fn an_append_needs_the_head_and_a_conflict_carries_it(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    let first = create(store.as_ref(), &session, 1).await;
    let appended = store.append(&session, &first, vec![says("a", None, "hi", 2)].into()).await;
    let second = done(appended).await;
    assert_eq!(second.incarnation, first.incarnation);
    assert!(second.seq > first.seq);
    assert_ne!(second.chain, first.chain);

    let stale = store.append(&session, &first, vec![says("b", Some("a"), "ho", 3)].into()).await;
    match stale {
        Err(StoreError::Conflict { current }) => assert_eq!(current, second),
        other => panic!("{other:?}"),
    }
    let mut forged = second;
    let mut bytes = forged.chain.bytes();
    bytes[0] ^= 1;
    forged.chain = ChainHash::from_bytes(bytes);
    let forged = store.append(&session, &forged, vec![says("b", Some("a"), "ho", 3)].into()).await;
    assert!(matches!(forged, Err(StoreError::Conflict { .. })), "{forged:?}");
    assert!(store.entry(&session, &entry_id("b")).await.unwrap().is_none());
}

pub(super) async fn what_is_not_there_is_not_found(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let (session, nobody) = (id("s"), id("nobody"));
    let head = create(store.as_ref(), &session, 1).await;
    let lost = |error: StoreError| assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    lost(store.append(&nobody, &head, vec![titled("t", 1)].into()).await.unwrap_err());
    let step = super::make::step("e", 1, "x", 1);
    lost(store.append_delta(&nobody, step.clone()).await.unwrap_err());
    lost(store.records(&nobody, Position::default(), 1).await.unwrap_err());
    lost(store.branch_heads(&nobody, None, 1).await.unwrap_err());
    let whole = super::make::query(crate::PathStart::Root, 1);
    lost(store.path(&nobody, &whole).await.unwrap_err());
    assert!(store.entry(&nobody, &entry_id("e")).await.unwrap().is_none());
    assert!(store.delete(&nobody, 1).await.unwrap().is_none());
    let missing = store.append_delta(&session, step).await.unwrap_err();
    assert!(matches!(missing, StoreError::EntryNotFound { .. }), "{missing}");
}

pub(super) async fn batches_on_their_way_build_on_each_other(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    let mut head = create(store.as_ref(), &session, 1).await;
    let mut waits = Vec::new();
    for n in 0..20_i64 {
        let parent = (n > 0).then(|| format!("e{}", n - 1));
        let record = says(&format!("e{n}"), parent.as_deref(), "hi", n);
        let appended = store.append(&session, &head, vec![record].into()).await.unwrap();
        head = appended.head;
        waits.push(appended.durable);
    }
    for wait in waits {
        wait.await.unwrap();
    }
    let snapshot = store.state(&session).await.unwrap().unwrap();
    assert_eq!(snapshot.head, head);
    assert_eq!(snapshot.state.meta.message_count, 20);
}

pub(super) async fn writers_that_retry_land_exactly_once_each(factory: &dyn Factory) {
    const WRITERS: i64 = 16;
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (store, session) = (Arc::clone(&store), session.clone());
            tokio::spawn(async move {
                let mut head = store.state(&session).await.unwrap().unwrap().head;
                loop {
                    let record = says(&format!("w{n}"), None, "hi", 2);
                    match store.append(&session, &head, vec![record].into()).await {
                        Ok(appended) => return appended.durable.await.unwrap(),
                        Err(StoreError::Conflict { current }) => head = current,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let snapshot = store.state(&session).await.unwrap().unwrap();
    assert_eq!(snapshot.state.meta.message_count, WRITERS.unsigned_abs());
}

pub(super) async fn empty_and_oversized_batches_are_refused(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    let head = create(store.as_ref(), &session, 1).await;
    let empty = store.append(&session, &head, Vec::new().into()).await.unwrap_err();
    assert!(matches!(empty, StoreError::Invalid { .. }), "{empty}");
    let many =
        (0..=BATCH_RECORDS_MAX).map(|n| says(&n.to_string(), None, "", 1)).collect::<Vec<_>>();
    let many = store.append(&session, &head, many.into()).await.unwrap_err();
    assert!(matches!(many, StoreError::TooLarge(_)), "{many}");
    assert_eq!(store.state(&session).await.unwrap().unwrap().head, head);
}

pub(super) async fn records_come_back_in_order_from_any_position(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    let first = create(store.as_ref(), &session, 1).await;
    let batch =
        vec![says("a", None, "1", 2), says("b", Some("a"), "2", 2), says("c", Some("b"), "3", 2)];
    push(store.as_ref(), &session, batch.clone()).await;

    let mut after = Position::at(first.seq);
    let mut seen = Vec::new();
    loop {
        let page = store.records(&session, after, 2).await.unwrap();
        assert!(page.records.len() <= 2);
        assert_eq!(page.incarnation, first.incarnation);
        let Some(last) = page.records.last() else { break };
        assert!(last.position() > after);
        after = last.position();
        seen.extend(page.records.iter().filter_map(|stored| stored.record.as_entry().cloned()));
        if after == page.end {
            break;
        }
    }
    let expected: Vec<_> = batch.iter().filter_map(|new| new.record.as_entry().cloned()).collect();
    assert_eq!(seen, expected);
    let beyond = store.records(&session, Position::at(after.seq + 9), 2).await.unwrap();
    assert_eq!(beyond.records, Vec::new());
}

pub(super) async fn every_kind_of_record_survives(factory: &dyn Factory) {
    let store = factory.fresh().await;
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    let change = MetaChange {
        description: Some("about".into()),
        metadata: Some(map(json!({"owner": "u"}))),
        status: Some(StatusChange { status: SessionStatus::Error, reason: Some("broke".into()) }),
        archived: Some(true),
        task_name: Some("fix it".into()),
        ..MetaChange::default()
    };
    let line = r#"{"type":"message","id":"x","message":{"role":"user","content":"from pi"},"z":1}"#;
    let foreign = ForeignBody::new(FORMAT_PI, RawJson::parse(line).unwrap());
    let batch = vec![
        meta(change, 2),
        entry("a", None, EntryBody::Message(assistant("hi", 5, 2).into()), 2),
        custom("b", Some("a"), json!({"deep": [1, {"x": null}]}), 2),
        entry("c", Some("b"), EntryBody::Foreign(foreign.clone()), 2),
        Record::Leaf(Some(entry_id("a"))).at(2),
        loop_event("l", LoopPhase::Running, 2),
    ];
    push(store.as_ref(), &session, batch).await;

    let state = store.state(&session).await.unwrap().unwrap().state;
    assert_eq!(state.meta.metadata, Some(map(json!({"owner": "u"}))));
    assert_eq!((state.meta.description.as_str(), state.meta.title.as_str()), ("about", "t"));
    assert_eq!(state.meta.status_reason.as_deref(), Some("broke"));
    assert_eq!((state.meta.message_count, state.entry_count), (2, 3));
    assert_eq!(state.leaf, Some(entry_id("a")));
    assert!(state.archived);
    assert_eq!(state.details().task_status, Some(TaskStatus::Running));
    assert_eq!(state.details().task_name.as_deref(), Some("fix it"));
    assert_eq!(state.usage.total.output, 5);

    let stored = store.entry(&session, &entry_id("c")).await.unwrap().unwrap();
    assert_eq!(stored.entry.body, EntryBody::Foreign(foreign));
    assert_eq!(stored.entry.message().unwrap().text(), "from pi");
}

pub(super) async fn unknown_records_survive_byte_for_byte(factory: &dyn Factory) {
    let store = factory.fresh().await;
    if !store.capabilities().keeps_unknown_records {
        return;
    }
    let session = id("s");
    let head = create(store.as_ref(), &session, 1).await;
    let tomorrow = Envelope {
        kind: "tomorrow".into(),
        id: None,
        parent: None,
        target: Some("e".into()),
        revision: None,
        at_ms: 2,
        payload: r#"{"b": 1.0, "a":[]}"#.into(),
    };
    let newer = Envelope {
        kind: "leaf".into(),
        id: None,
        parent: None,
        target: None,
        revision: None,
        at_ms: 2,
        payload: r#"{"why":"because"}"#.into(),
    };
    let given = [tomorrow, newer];
    let batch = given.iter().map(|stored| codec::decode(stored.clone()).at(2)).collect();
    push(store.as_ref(), &session, batch).await;
    let page = store.records(&session, Position::at(head.seq), 9).await.unwrap();
    let back: Vec<Envelope<'_>> =
        page.records.iter().map(|stored| codec::encode(&stored.record, stored.at_ms)).collect();
    assert_eq!(back, given);
}

pub(super) async fn everything_is_there_after_a_restart(factory: &dyn Factory) {
    let store = factory.fresh().await;
    if !store.capabilities().survives_restart {
        return;
    }
    let session = id("s");
    create(store.as_ref(), &session, 1).await;
    push(store.as_ref(), &session, vec![says("a", None, "one", 2)]).await;
    let stored = store.entry(&session, &entry_id("a")).await.unwrap().unwrap();
    let new = super::make::user("two", 2);
    let revision = Revision::replace(&stored.entry, new.content(), None);
    push(store.as_ref(), &session, vec![Record::Revision(revision).at(3)]).await;
    push(store.as_ref(), &session, vec![loop_event("l", LoopPhase::Running, 4)]).await;
    let before = store.state(&session).await.unwrap().unwrap();
    let records = store.records(&session, Position::default(), 99).await.unwrap();

    let store = factory.reopen(store).await;
    assert_eq!(store.state(&session).await.unwrap().unwrap(), before);
    assert_eq!(store.records(&session, Position::default(), 99).await.unwrap(), records);
    let stored = store.entry(&session, &entry_id("a")).await.unwrap().unwrap();
    assert_eq!((super::make::text_of(&stored).as_str(), stored.entry.revision), ("two", 1));
    let appended = store.append(&session, &before.head, vec![says("b", None, "x", 5)].into()).await;
    done(appended).await;
}
