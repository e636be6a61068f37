//! The machine-readable contract: its examples, and the files that the engine really writes, validate
//! against it; each missing or wrong critical field is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::path::{Path, PathBuf};

use bough_log::format::{
    Checkpoint, FORMAT_VERSION, LedgerEvent, Manifest, OffsetRow, StoreState, decode_frame, schema,
};
use bough_log::{Envelope, Expected, LogStore, Maintenance, NewDelta, Options};
use bough_platform::Platform;
use serde_json::{Value, json};

const SCHEMAS: [&str; 5] = [
    schema::MANIFEST,
    schema::SEGMENT_FRAME,
    schema::OFFSET_INDEX,
    schema::CHECKPOINT,
    schema::MIGRATION_EVENT,
];

fn contract() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schema/session_store_v2_contract.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Validates against one of the contract's schemas.
fn validator(id: &str) -> jsonschema::Validator {
    let contract = contract();
    let schema = json!({
        "$schema": contract["$schema"],
        "$ref": format!("#/$defs/{id}"),
        "$defs": contract["$defs"],
    });
    jsonschema::validator_for(&schema).unwrap()
}

fn check(id: &str, value: &Value, what: &str) {
    let errors: Vec<String> =
        validator(id).iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{what} against {id}: {errors:?}\n{value}");
}

#[test]
fn the_contract_has_the_six_schema_ids_the_states_and_the_transitions() {
    let contract = contract();
    assert_eq!(contract["schema"], schema::CONTRACT);
    assert_eq!(contract["$id"], schema::CONTRACT);
    for id in SCHEMAS {
        assert!(contract["$defs"][id].is_object(), "{id}");
    }
    let states: Vec<Value> = StoreState::ALL.iter().map(|state| json!(state)).collect();
    assert_eq!(contract["states"], Value::Array(states));
    for state in StoreState::ALL {
        let successors: Vec<Value> = state.successors().iter().map(|state| json!(state)).collect();
        assert_eq!(contract["transitions"][state.to_string()], Value::Array(successors), "{state}");
    }
    let whole = jsonschema::validator_for(&contract).unwrap();
    assert!(whole.is_valid(&contract), "the contract describes itself");
}

#[test]
fn the_examples_validate() {
    let contract = contract();
    for id in SCHEMAS {
        let examples = contract["example_files"][id].as_array().unwrap();
        assert!(!examples.is_empty());
        for example in examples {
            check(id, example, "an example");
        }
    }
}

#[test]
fn each_missing_or_wrong_critical_field_of_the_examples_is_refused() {
    let contract = contract();
    for id in SCHEMAS {
        let validator = validator(id);
        let required: Vec<String> =
            serde_json::from_value(contract["$defs"][id]["required"].clone()).unwrap();
        for example in contract["example_files"][id].as_array().unwrap() {
            for field in &required {
                let mut without = example.clone();
                without.as_object_mut().unwrap().remove(field);
                assert!(!validator.is_valid(&without), "{id} without {field}");
                // A fold and a payload may be anything.
                if field == "fold" || field == "x" {
                    continue;
                }
                let mut wrong = example.clone();
                wrong[field] = json!({ "not": ["this"] });
                assert!(!validator.is_valid(&wrong), "{id} with a wrong {field}");
            }
            let mut more = example.clone();
            more["surprise"] = json!(1);
            assert!(!validator.is_valid(&more), "{id} with an unknown field");
        }
    }
}

#[test]
fn decoders_refuse_what_the_contract_refuses() {
    let contract = contract();
    for field in ["schema", "head", "pointer", "crc", "state"] {
        let mut manifest = contract["example_files"][schema::MANIFEST][0].clone();
        manifest.as_object_mut().unwrap().remove(field);
        assert!(Manifest::decode(manifest.to_string().as_bytes()).is_err(), "{field}");
    }
    let mut marker = Manifest::new("s", bough_log::Incarnation::new([1; 16]), 1);
    marker.active_store = bough_log::format::ActiveStore::JsonlV3;
    let refused = Manifest::decode(&marker.encode().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("INV-007"), "{refused}");
    let mut newer = Manifest::new("s", bough_log::Incarnation::new([1; 16]), 1);
    newer.format = FORMAT_VERSION + 1;
    let refused = Manifest::decode(&newer.encode().unwrap()).unwrap_err();
    assert!(
        matches!(refused, bough_log::LogError::NewerFormat { found, supported: FORMAT_VERSION, .. } if found > FORMAT_VERSION)
    );
}

/// Writes a store that uses every kind of file, and returns its container.
fn real_store(dir: &Path) -> PathBuf {
    let options = Options {
        maintenance: Maintenance::Inline,
        segment_bytes: 2_000,
        checkpoint_every_bytes: 3_000,
        tiny_bytes: 100,
        tail_rows_max: 4,
        ..Options::default()
    };
    let store = <LogStore>::open(Platform::system(dir).unwrap(), options.clone()).unwrap();
    store.create("s/1", vec![Envelope::entry("e0", None, 1, "{}")]).unwrap();
    for n in 1..30_u64 {
        let parent = format!("e{}", n - 1);
        let entry = Envelope::entry(&format!("e{n}"), Some(&parent), 1, "{\"text\":\"x\"}");
        let meta = Envelope::plain("meta", 1, "{}");
        store.append("s/1", Expected::Any, vec![entry, meta]).unwrap();
    }
    let long = Envelope::entry(&"long".repeat(30), Some("e3"), 1, "[]");
    store.append("s/1", Expected::Any, vec![long]).unwrap();
    let delta = NewDelta { target: "e5".into(), revision: 1, at_ms: 2, payload: "\"d\"".into() };
    store.enqueue_delta("s/1", &delta).unwrap().wait().unwrap();
    store.close_all().unwrap();
    // An index that has to be made again leaves a line in the ledger.
    let container = find(dir, "offsets.jsonl").parent().unwrap().parent().unwrap().to_owned();
    std::fs::write(container.join("index/offsets.jsonl"), b"gone").unwrap();
    let store = <LogStore>::open(Platform::system(dir).unwrap(), options).unwrap();
    store.open_for_writing("s/1").unwrap();
    store.close_all().unwrap();
    container
}

fn find(dir: &Path, name: &str) -> PathBuf {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.file_name().is_some_and(|found| found == name) {
                return path;
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    panic!("{name} is not there");
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_files_that_the_engine_writes_validate() {
    let dir = tempfile::tempdir().unwrap();
    let container = real_store(dir.path());
    let manifest = std::fs::read(container.join("manifest.json")).unwrap();
    check(schema::MANIFEST, &serde_json::from_slice(&manifest).unwrap(), "manifest.json");
    Manifest::decode(&manifest).unwrap();
    let mut frames = 0;
    for segment in std::fs::read_dir(container.join("segments")).unwrap() {
        let path = segment.unwrap().path();
        for (line, text) in
            json_lines(&path).iter().zip(std::fs::read_to_string(&path).unwrap().lines())
        {
            check(schema::SEGMENT_FRAME, line, "a frame");
            decode_frame(text.as_bytes()).unwrap();
            frames += 1;
        }
    }
    let rows = json_lines(&container.join("index/offsets.jsonl"));
    assert_eq!(rows.len(), frames);
    for row in &rows {
        check(schema::OFFSET_INDEX, row, "an offset row");
    }
    let text = std::fs::read_to_string(container.join("index/offsets.jsonl")).unwrap();
    assert!(text.split_inclusive('\n').all(|row| OffsetRow::decode(row.as_bytes()).is_some()));
    for file in std::fs::read_dir(container.join("checkpoints")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        check("checkpoint_file", &serde_json::from_slice(&bytes).unwrap(), "a checkpoint");
        Checkpoint::decode(&bytes, "checkpoint").unwrap();
    }
    let path = container.join("migrations/ledger.jsonl");
    let ledger = json_lines(&path);
    assert_eq!(ledger.len(), 1);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.lines().all(|line| LedgerEvent::decode(line.as_bytes()).is_some()));
    for event in &ledger {
        check(schema::MIGRATION_EVENT, event, "a ledger event");
        assert!(
            LedgerEvent::decode(event.to_string().as_bytes()).is_some() || event["crc"].is_string()
        );
    }
}
