//! Out again: as the file that came in, in pi's words, in ours, and for people.

use std::sync::Arc;

use crate::common::*;
use bough_migrate::{
    ExportFormat, ExportOptions, LiveV1, MigrateError, Migrator, OsV1Files, export, write_sqlite,
};
use bough_platform::Platform;
use bough_session::{Entry, EntryId, Format, NewRecord, RawJson, Record, SessionId};
use bough_store::{MemoryStore, NativeOptions, NativeStore, Store, StoreExt};
use bough_testkit::SimDisk;
use serde_json::{Value, json};

const LARGE: &[u8] = include_bytes!("../fixtures/pi-large-session.jsonl");

/// A session that was migrated from a text, in a store.
async fn migrated(text: &[u8]) -> MemoryStore {
    let disk = SimDisk::new();
    disk.plant(&path("v1/f.jsonl"), text).unwrap();
    let migrator = migrator(&disk, inline(), 1);
    let summary = migrate(&migrator, "v1/f.jsonl");
    let session = summary.plan.session_id.to_string();
    memory(&session, records(&logs(&disk), &session)).await
}

async fn exported(store: &dyn Store, session: &str, options: &ExportOptions) -> Vec<u8> {
    let mut out = Vec::new();
    export(store, &SessionId::from_stored(session), options, &mut out).await.unwrap();
    out
}

async fn whole(store: &dyn Store, session: &str, format: ExportFormat) -> Vec<u8> {
    exported(store, session, &ExportOptions::whole(format)).await
}

async fn branch(store: &dyn Store, session: &str, format: ExportFormat, leaf: &str) -> Vec<u8> {
    let options = ExportOptions::branch(format, EntryId::from_stored(leaf));
    exported(store, session, &options).await
}

async fn append(store: &MemoryStore, session: &str, record: Record) {
    let session = SessionId::from_stored(session);
    let head = store.state(&session).await.unwrap().unwrap().head;
    let records = vec![NewRecord { at_ms: 1_800_000_000_000, record }];
    store.append(&session, &head, records.into()).await.unwrap().durable.await.unwrap();
}

#[tokio::test]
async fn a_migrated_file_comes_out_byte_for_byte() {
    let store = migrated(sample("s").as_bytes()).await;
    assert_eq!(whole(&store, "s", ExportFormat::Pi).await, sample("s").as_bytes());
}

#[tokio::test]
async fn a_genuine_file_of_the_first_version_comes_out_as_it_went_in() {
    let store = migrated(LARGE).await;
    let session = "d703a1a9-1b7b-4fb1-b512-c9738b1fe617";
    let out = whole(&store, session, ExportFormat::Pi).await;
    assert_eq!(values(&out), values(LARGE));
    assert_eq!(values(&out).len(), 1_019);
}

#[tokio::test]
async fn lines_that_are_no_entries_come_out_in_their_places() {
    let text = format!(
        "{}\nnot json\r\n\n{}\n[7]\nnull\n{}\n{{\"torn",
        header("s"),
        message("a", Some("gone"), "orphan"),
        message("a", Some("a"), "self"),
    );
    let store = migrated(text.as_bytes()).await;
    assert_eq!(values(&whole(&store, "s", ExportFormat::Pi).await), values(text.as_bytes()));
}

#[tokio::test]
async fn what_no_value_can_hold_comes_out_as_it_went_in() {
    let odd = message("a", None, "TEXT").to_string();
    let text = format!("{}\n{}\n", header("s"), odd.replace("TEXT", r"cut \ud83d"));
    let store = migrated(text.as_bytes()).await;
    assert_eq!(whole(&store, "s", ExportFormat::Pi).await, text.as_bytes());
    let shown = String::from_utf8(whole(&store, "s", ExportFormat::Md).await).unwrap();
    assert!(shown.contains("cut \u{fffd}"), "{shown}");
}

#[tokio::test]
async fn a_branch_is_a_file_of_its_path() {
    let store = migrated(sample("s").as_bytes()).await;
    let lines = values(&branch(&store, "s", ExportFormat::Pi, "c").await);
    let ids: Vec<&Value> = lines.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, ["s", "a", "b", "c", "bough-label-1"]);
    let label = &lines[4];
    assert_eq!((&label["targetId"], &label["label"]), (&json!("b"), &json!("here")));
    assert_eq!(label["parentId"], "c");
    let missing = ExportOptions::branch(ExportFormat::Pi, EntryId::from_stored("zz"));
    let session = SessionId::from_stored("s");
    let refused = export(&store, &session, &missing, &mut Vec::new()).await;
    assert!(matches!(refused, Err(MigrateError::Store(_))));
}

#[tokio::test]
async fn what_was_added_since_is_said_in_pis_words() {
    let store = migrated(sample("s").as_bytes()).await;
    let entry = native_entry("n", Some("c"), "more", 1_800_000_000_000);
    append(&store, "s", Record::Entry(entry)).await;
    let out = whole(&store, "s", ExportFormat::Pi).await;
    assert!(out.starts_with(sample("s").as_bytes()));
    let last = values(&out).pop().unwrap();
    assert_eq!(last["message"]["content"], json!([{"type":"text","text":"more"}]));
    append(&store, "s", Record::Leaf(Some(EntryId::from_stored("b")))).await;
    let last = values(&whole(&store, "s", ExportFormat::Pi).await).pop().unwrap();
    assert_eq!((&last["customType"], &last["parentId"]), (&json!("bough.leaf"), &json!("b")));
}

#[tokio::test]
async fn a_version_1_file_that_grew_a_branch_comes_out_as_version_3() {
    let at = "2024-12-03T14:00:01.000Z";
    let text = file(&[
        json!({"type":"session","id":"s","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p"}),
        json!({"type":"message","timestamp":at,"message":{"role":"user","content":"one","timestamp":1}}),
        json!({"type":"message","timestamp":at,"message":{"role":"hookMessage","customType":"h","content":"two","display":true}}),
        json!({"type":"compaction","timestamp":at,"summary":"s","firstKeptEntryIndex":2,"tokensBefore":5}),
    ]);
    let store = migrated(text.as_bytes()).await;
    assert_eq!(values(&whole(&store, "s", ExportFormat::Pi).await), values(text.as_bytes()));
    let session = SessionId::from_stored("s");
    let page = store.records(&session, bough_store::Position::default(), 100).await.unwrap();
    let first = page.records.iter().find_map(|r| r.record.as_entry()).unwrap().id.clone();
    let entry = native_entry("n", Some(first.as_str()), "branch", 1_800_000_000_000);
    append(&store, "s", Record::Entry(entry)).await;
    let lines = values(&whole(&store, "s", ExportFormat::Pi).await);
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[1]["id"], first.as_str());
    assert_eq!(lines[2]["parentId"], lines[1]["id"]);
    assert_eq!(lines[2]["message"]["role"], "custom");
    assert_eq!(lines[3]["firstKeptEntryId"], lines[2]["id"]);
    assert_eq!(lines[4]["parentId"], lines[1]["id"]);
}

/// Every kind of entry, as a service writes them.
fn native_session() -> Vec<NewRecord> {
    let entry = |value: Value| {
        let wire: bough_session::SessionEntry = serde_json::from_value(value).unwrap();
        Record::Entry(wire.into())
    };
    let custom = |id: &str, parent: &str, kind: &str, data: Value| {
        entry(
            json!({"kind":"custom","id":id,"parent_id":parent,"timestamp":5,"custom_type":kind,"data":data}),
        )
    };
    let meta = bough_session::MetaChange { title: Some("A title".into()), ..Default::default() };
    let records = [
        Record::Meta(meta),
        entry(json!({"kind":"message","id":"u","parent_id":null,"timestamp":1,
            "message":{"role":"user","content":[{"type":"text","text":"look \u{1b}[31m"},{"type":"image","mime":"image/png","data":"AAAA"}],"timestamp":1}})),
        entry(json!({"kind":"message","id":"v","parent_id":"u","timestamp":2,
            "message":{"role":"assistant","content":[{"type":"thinking","text":"hm","signature":"sig"},
                {"type":"function_call","id":"c1","function_id":"bash","arguments":{"command":"ls"}}],
                "stop_reason":"function_call","model":"m","provider":"p","usage":{"input":1,"output":2,"cost_usd":0.5},"timestamp":2}})),
        entry(json!({"kind":"message","id":"w","parent_id":"v","timestamp":3,
            "message":{"role":"function_result","function_call_id":"c1","function_id":"bash","content":[{"type":"text","text":"``` out"}],"details":{"k":1},"is_error":true,"timestamp":3}})),
        custom("x", "w", "bough.model_change", json!({"provider":"q","model_id":"n"})),
        custom(
            "y",
            "x",
            "bough.compaction",
            json!({"summary":"sum","first_kept_entry_id":"w","tokens_before":9}),
        ),
        custom("z", "y", "app.thing", json!({"a":[1]})),
    ];
    records.into_iter().map(|record| record.at(10)).collect()
}

#[tokio::test]
async fn a_native_session_is_a_file_that_pi_understands() {
    let store = memory("s_1", native_session()).await;
    let lines = values(&whole(&store, "s_1", ExportFormat::Pi).await);
    assert_eq!(
        lines[0],
        json!({"type":"session","version":3,"id":"s_1","timestamp":"1970-01-01T00:00:00.010Z","cwd":"/"})
    );
    assert_eq!(
        lines[1]["message"]["content"][1],
        json!({"type":"image","mimeType":"image/png","data":"AAAA"})
    );
    let message = &lines[2]["message"];
    assert_eq!(
        message["content"][0],
        json!({"type":"thinking","thinking":"hm","thinkingSignature":"sig"})
    );
    assert_eq!(
        message["content"][1],
        json!({"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}})
    );
    assert_eq!(
        (&message["stopReason"], &message["usage"]["totalTokens"]),
        (&json!("toolUse"), &json!(3))
    );
    assert_eq!(message["usage"]["cost"]["total"], 0.5);
    assert_eq!(lines[3]["message"]["role"], "toolResult");
    assert_eq!(lines[4]["type"], "model_change");
    assert_eq!(lines[5]["firstKeptEntryId"], "w");
    assert_eq!(
        (&lines[6]["type"], &lines[6]["customType"]),
        (&json!("custom"), &json!("app.thing"))
    );
    assert_eq!((&lines[7]["type"], &lines[7]["name"]), (&json!("session_info"), &json!("A title")));
}

#[tokio::test]
async fn what_pi_gets_reads_back_as_the_same_conversation() {
    let store = memory("s_1", native_session()).await;
    let text = whole(&store, "s_1", ExportFormat::Pi).await;
    let again = migrated(&text).await;
    let canonical = |out: Vec<u8>| -> Vec<Value> {
        values(&out)
            .into_iter()
            .filter(|entry| entry["custom_type"] != "bough.session_info")
            .collect()
    };
    let mut before = canonical(whole(&store, "s_1", ExportFormat::Jsonl).await);
    let mut after = canonical(whole(&again, "s_1", ExportFormat::Jsonl).await);
    for entry in before.iter_mut().chain(&mut after) {
        // pi's own word for why a model stopped comes with its lines.
        if let Some(message) = entry["message"].as_object_mut() {
            message.remove("native_stop_reason");
            // Members that only pi's lines have are kept under its name.
            message.remove("pi");
            if let Some(usage) = message.get_mut("usage").and_then(Value::as_object_mut) {
                usage.remove("pi");
                usage.retain(|_, figure| *figure != json!(0));
            }
        }
    }
    assert_eq!(before, after);
}

#[tokio::test]
async fn canonical_lines_and_the_document_hold_the_same_entries() {
    let store = migrated(sample("s").as_bytes()).await;
    let lines = values(&whole(&store, "s", ExportFormat::Jsonl).await);
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["message"]["content"][0]["text"], "first");
    let document: Value =
        serde_json::from_slice(&whole(&store, "s", ExportFormat::Json).await).unwrap();
    assert_eq!(document["entries"], Value::Array(lines));
    assert_eq!((&document["format"], &document["leaf"]), (&json!("bough.session/1"), &json!("e")));
    assert_eq!(document["session"]["session_id"], "s");
    let path = values(&branch(&store, "s", ExportFormat::Jsonl, "c").await);
    assert_eq!(path.iter().map(|entry| &entry["id"]).collect::<Vec<_>>(), ["a", "b", "c"]);
    let missing = ExportOptions::whole(ExportFormat::Jsonl);
    let nobody = SessionId::from_stored("nobody");
    assert!(export(&store, &nobody, &missing, &mut Vec::new()).await.is_err());
}

#[tokio::test]
async fn a_transcript_is_readable_and_steers_no_terminal() {
    let store = memory("s_1", native_session()).await;
    let text = String::from_utf8(whole(&store, "s_1", ExportFormat::Md).await).unwrap();
    let expected = "\
# A title

- session: s_1
- begun: 1970-01-01T00:00:00.010Z
- last changed: 1970-01-01T00:00:00.010Z
- messages: 3

## User

*1970-01-01T00:00:00.001Z*

look \u{241b}[31m

*(image, image/png, about 3 bytes)*

## Assistant (m)

*1970-01-01T00:00:00.002Z*

> hm

Calls **bash**

```json
{
  \"command\": \"ls\"
}
```

## Result of bash, failed

*1970-01-01T00:00:00.003Z*

````
``` out
````

*1970-01-01T00:00:00.005Z: model: q/n*

*1970-01-01T00:00:00.005Z: what came before (9 tokens) summed up*

> sum

*1970-01-01T00:00:00.005Z: app.thing (not shown)*
";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_transcript_shows_every_branch_once() {
    let store = migrated(sample("s").as_bytes()).await;
    let text = String::from_utf8(whole(&store, "s", ExportFormat::Md).await).unwrap();
    for words in ["first", "another second", "third"] {
        assert_eq!(text.matches(&format!("\n{words}\n")).count(), 1, "{words}");
    }
    assert!(text.contains("# Another branch, to c\n\nFrom a on:"), "{text}");
    let one = String::from_utf8(branch(&store, "s", ExportFormat::Md, "c").await).unwrap();
    assert!(one.contains("third") && !one.contains("another second"));
}

#[tokio::test]
async fn a_database_written_from_a_session_is_one_that_is_read_back() {
    let store = migrated(sample("s").as_bytes()).await;
    let mut out = Vec::new();
    let session = SessionId::from_stored("s");
    assert_eq!(write_sqlite(&store, &session, &mut out).await.unwrap().entries, 5);
    let disk = SimDisk::new();
    disk.plant(&path("v1/s.sqlite"), &out).unwrap();
    let live = migrator(&disk, inline(), 1).open_file("v1/s.sqlite").unwrap();
    assert_eq!(LiveV1::fold(live.file().clone()).unwrap().meta.message_count, 4);
    assert_eq!(live.leaf().unwrap().as_str(), "e");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_native_store_serves_what_was_migrated_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("pi/--p--");
    std::fs::create_dir_all(&sessions).unwrap();
    let name = "2024-12-03T14-00-00-000Z_s.jsonl";
    std::fs::write(sessions.join(name), sample("s")).unwrap();
    let data = dir.path().join("data");
    let platform = Platform::system(&data).unwrap();
    let migrator = Migrator::open(platform.clone(), Arc::new(OsV1Files)).unwrap();
    let results =
        migrator.migrate_all(sessions.to_str().unwrap(), &mut |_, _| {}, &mut |_| {}).unwrap();
    assert!(results[0].summary.is_some(), "{results:?}");
    let store = NativeStore::open(platform, data, NativeOptions::default()).await.unwrap();
    assert_eq!(whole(&store, "s", ExportFormat::Pi).await, sample("s").as_bytes());
    let state = store.state(&SessionId::from_stored("s")).await.unwrap().unwrap().state;
    assert_eq!(state.meta.message_count, 4);
    store.close().await.unwrap();
    let back = migrator.rollback(&session_s(), &bough_migrate::RollbackOptions::default()).unwrap();
    assert!(back.address.ends_with(name));
    assert!(migrator.open_live(&session_s()).is_ok());
}

#[tokio::test]
async fn a_branch_comes_out_in_a_providers_format_with_what_it_could_not_carry() {
    let store = migrated(sample("s").as_bytes()).await;
    let message = json!({
        "role": "user",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
    });
    let body = Format::Anthropic.body(RawJson::parse(message.to_string()).unwrap()).unwrap();
    let id = EntryId::from_stored("as-it-came");
    let entry = Entry::new(id, Some(EntryId::from_stored("c")), 1, body);
    append(&store, "s", Record::Entry(entry)).await;
    let document = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).unwrap();
    let format = ExportFormat::Conversation(Format::Anthropic);
    let same = document(whole(&store, "s", format).await);
    assert_eq!((&same["format"], &same["session_id"]), (&json!("anthropic"), &json!("s")));
    let messages = same["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"][0]["text"], "first");
    let last = messages.last().unwrap();
    assert_eq!(last["content"].as_array().unwrap().last(), Some(&message["content"][0]));
    let lost = |document: &Value| {
        let losses = document["losses"].as_array().unwrap().clone();
        losses.into_iter().any(|loss| loss["entry_id"] == "as-it-came")
    };
    assert!(!lost(&same), "{same}");
    let chat = ExportFormat::Conversation(Format::OpenaiChat);
    let other = document(whole(&store, "s", chat).await);
    assert!(lost(&other), "the chat API has no cache marks: {other}");
    let before = document(branch(&store, "s", chat, "a").await);
    assert_eq!(before["messages"].as_array().unwrap().len(), 1, "only the branch to that entry");
}
