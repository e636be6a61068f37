//! From lines to records: what an entry becomes, and that nothing of it changes.

use crate::common::*;
use bough_migrate::V1_KIND;
use bough_session::{Bookkeeping, EntryId, NewRecord, Record, SessionId, SessionState, codec};
use bough_testkit::SimDisk;
use serde_json::{Value, json};

fn mapped(text: &str) -> Vec<NewRecord> {
    let disk = SimDisk::new();
    disk.plant(&path("v1/f.jsonl"), text.as_bytes()).unwrap();
    let live = migrator(&disk, inline(), 1).open_file("v1/f.jsonl").unwrap();
    let mut found = Vec::new();
    live.records(&mut |new| found.push(new)).unwrap();
    found
}

fn links(text: &str) -> Vec<(String, Option<String>)> {
    texts_of(&entries(&mapped(text))).into_iter().map(|(id, parent, _)| (id, parent)).collect()
}

fn link(id: &str, parent: Option<&str>) -> (String, Option<String>) {
    (id.to_owned(), parent.map(ToOwned::to_owned))
}

#[test]
fn the_first_record_is_the_sessions_own_and_the_header_is_kept_beside_it() {
    let records = mapped(&sample("s"));
    let Record::Meta(meta) = &records[0].record else { panic!("{:?}", records[0]) };
    assert_eq!(meta.created_at, Some(1_733_234_400_000));
    assert_eq!(meta.metadata.as_ref().unwrap()["cwd"], "/p");
    let Record::Unknown(header) = &records[1].record else { panic!("{:?}", records[1]) };
    assert_eq!(header.kind, V1_KIND);
    let payload: Value = serde_json::from_str(&header.payload).unwrap();
    assert_eq!(payload["json"], crate::common::header("s"));
}

#[test]
fn a_fork_names_the_session_that_it_came_from_where_the_path_tells() {
    let fork = |parent: &str| {
        let mut first = header("s");
        first["parentSession"] = json!(parent);
        let records = mapped(&file(&[first, message("a", None, "x")]));
        let Record::Meta(meta) = &records[0].record else { panic!() };
        meta.forked_from.as_ref().map(ToString::to_string)
    };
    assert_eq!(fork("/s/2024-12-03T14-00-00-000Z_old.jsonl").as_deref(), Some("old"));
    assert_eq!(fork("/s/2024-12-03T14-00-00.000Z_0f0e0d0c.jsonl"), None);
    assert_eq!(fork("elsewhere"), None);
}

#[test]
fn an_entrys_json_is_stored_as_it_came() {
    let odd = r#"{"zz":1.50,"type":"later_kind","timestamp":"2024-12-03T14:00:00.000Z","id":"x","parentId":null,"a":{"b":[1e3]}}"#;
    let records = mapped(&format!("{}\n  {odd} \r\n", header("s")));
    let entry = records[2].record.as_entry().unwrap();
    let bough_session::EntryBody::Foreign(body) = &entry.body else { panic!() };
    assert_eq!(body.json.get(), odd);
    assert_eq!(body.format, "pi");
}

#[test]
fn records_are_in_the_form_that_the_codec_writes() {
    let hazards = format!(
        "{}\nnot json\n[1]\n{}\n",
        header("s"),
        message("a", Some("zz"), "orphan \u{7} text")
    );
    for text in [sample("s"), hazards, version_1()] {
        for new in mapped(&text) {
            let encoded = codec::encode(&new.record, new.at_ms);
            assert_eq!(codec::decode(encoded.clone()), new.record);
            if let Record::Entry(_) = &new.record {
                let decoded = codec::decode(encoded.clone());
                let again = codec::encode(&decoded, new.at_ms);
                assert_eq!(again, encoded);
            }
        }
    }
}

#[test]
fn the_fold_reads_a_pi_session() {
    let text = file(&[
        header("s"),
        message("a", None, "hello there"),
        json!({"type":"session_info","id":"b","parentId":"a","timestamp":"2024-12-03T15:00:00.000Z","name":"Refactor"}),
        json!({"type":"label","id":"c","parentId":"b","timestamp":"2024-12-03T16:00:00.000Z","targetId":"a","label":"start"}),
    ]);
    let mut state = SessionState::new(SessionId::from_stored("s"));
    for (seq, new) in (1..).zip(mapped(&text)) {
        state.apply(&new.record, seq, new.at_ms);
    }
    assert_eq!(state.name.as_deref(), Some("Refactor"));
    assert_eq!(state.preview.as_deref(), Some("hello there"));
    assert_eq!(state.labels.get(&EntryId::from_stored("a")), Some("start"));
    assert_eq!((state.entry_count, state.meta.message_count), (3, 1));
    assert_eq!(state.meta.created_at, 1_733_234_400_000);
    assert_eq!(state.meta.updated_at, 1_733_241_600_000);
    assert_eq!(state.leaf, Some(EntryId::from_stored("c")));
}

#[test]
fn an_id_that_comes_again_gets_another_name_and_children_follow_the_newest() {
    let text = file(&[
        header("s"),
        message("a", None, "1"),
        message("b", Some("a"), "2"),
        message("a", Some("b"), "3"),
        message("c", Some("a"), "4"),
        message("a", None, "5"),
    ]);
    let expected = [
        link("a", None),
        link("b", Some("a")),
        link("a~2", Some("b")),
        link("c", Some("a~2")),
        link("a~3", None),
    ];
    assert_eq!(links(&text), expected);
}

#[test]
fn what_has_no_parent_in_the_file_is_a_root() {
    let text = file(&[
        header("s"),
        message("a", Some("gone"), ""),
        message("b", Some("c"), ""),
        message("c", Some("b"), ""),
        message("d", Some("d"), ""),
    ]);
    let expected = [link("a", None), link("b", None), link("c", Some("b")), link("d", None)];
    assert_eq!(links(&text), expected);
}

/// Version 1: no ids, no parents, compactions by line number.
fn version_1() -> String {
    let at = "2024-12-03T14:00:01.000Z";
    file(&[
        json!({"type":"session","id":"s","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p","provider":"x"}),
        json!({"type":"message","timestamp":at,"message":{"role":"user","content":"one","timestamp":1}}),
        json!({"type":"message","timestamp":at,"message":{"role":"hookMessage","customType":"h","content":"two","display":true}}),
        json!({"type":"compaction","timestamp":at,"summary":"s","firstKeptEntryIndex":2,"tokensBefore":5}),
        json!({"type":"message","timestamp":at,"message":{"role":"user","content":"three","timestamp":1}}),
    ])
}

#[test]
fn version_1_is_a_line_of_entries_with_ids_that_stay_the_same() {
    let first = entries(&mapped(&version_1()));
    let again = entries(&mapped(&version_1()));
    assert_eq!(first, again);
    let mut previous = None;
    for entry in &first {
        assert_eq!(entry.parent_id, previous);
        assert_eq!(entry.id.as_str().len(), 8);
        previous = Some(entry.id.clone());
    }
    let Some(Bookkeeping::Compaction(compaction)) = first[2].bookkeeping() else { panic!() };
    assert_eq!(compaction.first_kept_entry_id, first[1].id);
    assert_eq!(first[1].message().unwrap().text(), "two");
}

#[test]
fn a_compaction_that_keeps_from_a_line_that_is_no_entry_keeps_nothing() {
    let text = version_1().replace("\"firstKeptEntryIndex\":2", "\"firstKeptEntryIndex\":0");
    let found = entries(&mapped(&text));
    let Some(Bookkeeping::Compaction(compaction)) = found[2].bookkeeping() else { panic!() };
    assert_eq!(compaction.first_kept_entry_id.as_str(), "");
}

#[test]
fn ids_that_cannot_be_used_are_replaced_and_their_children_find_them() {
    let long = "x".repeat(600);
    let text = file(&[header("s"), message(&long, None, ""), message("b", Some(&long), "")]);
    let found = links(&text);
    assert_eq!(found[0].0.len(), 8);
    assert_eq!(found[1], link("b", Some(&found[0].0)));
}
