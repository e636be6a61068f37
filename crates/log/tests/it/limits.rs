//! Every bound at one below, at, and one above; ids that would leave the directory; modes of files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bough_log::limits::{
    BATCH_BYTES_MAX, BATCH_RECORDS_MAX, DELTA_BYTES_MAX, ENTRY_ID_BYTES_MAX, ID_BYTES_MAX,
    KIND_BYTES_MAX, RECORD_BYTES_MAX,
};
use bough_log::{Envelope, Expected, LogError, LogStore, NewDelta, Options};
use bough_platform::Platform;

use crate::support::*;

/// Refused with the name of the bound, and nothing was written.
fn too_large(machine: &Machine, limit: usize, act: impl FnOnce() -> Result<(), LogError>) {
    let before = machine.disk.operations();
    match act() {
        Err(LogError::TooLarge { limit: found, size, what }) => {
            assert_eq!((found, size), (limit as u64, limit as u64 + 1), "{what}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(machine.disk.operations(), before, "a refusal wrote");
}

#[test]
fn a_session_id_of_1024_bytes_is_the_longest() {
    let machine = Machine::new();
    let store = machine.start().store;
    for len in [ID_BYTES_MAX - 1, ID_BYTES_MAX] {
        let id = "i".repeat(len);
        store.create(&id, vec![entry(1)]).unwrap();
        append(&store, &id, 2);
        assert_eq!(numbers(&store, &id), [1, 2]);
    }
    let id = "i".repeat(ID_BYTES_MAX + 1);
    too_large(&machine, ID_BYTES_MAX, || store.create(&id, vec![entry(1)]).map(drop));
    too_large(&machine, ID_BYTES_MAX, || {
        store.append(&id, Expected::Any, vec![entry(1)]).map(drop)
    });
    too_large(&machine, ID_BYTES_MAX, || store.read(&id).map(drop));
    assert!(matches!(store.create("", vec![entry(1)]), Err(LogError::Invalid { .. })));
}

#[test]
fn an_entry_id_of_512_bytes_is_the_longest_wherever_it_stands() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    let append = |record| store.append("s", Expected::Any, vec![record]).map(drop);
    for len in [ENTRY_ID_BYTES_MAX - 1, ENTRY_ID_BYTES_MAX] {
        let id = "e".repeat(len);
        append(Envelope::entry(&id, Some("e1"), 1, "2")).unwrap();
        append(Envelope::revision(&id, 1, 1, "3")).unwrap();
        append(Envelope::leaf(Some(&id), 1)).unwrap();
        assert!(
            store.read("s").unwrap().entry(&id, |stored| stored.into_owned()).unwrap().is_some()
        );
    }
    let long = "e".repeat(ENTRY_ID_BYTES_MAX + 1);
    for record in [
        Envelope::entry(&long, None, 1, "1"),
        Envelope::entry("x", Some(&long), 1, "1"),
        Envelope::revision(&long, 1, 1, "1"),
        Envelope::leaf(Some(&long), 1),
    ] {
        too_large(&machine, ENTRY_ID_BYTES_MAX, || append(record));
    }
    let streamed = NewDelta { target: long, ..delta("e1", 1) };
    too_large(&machine, ENTRY_ID_BYTES_MAX, || store.enqueue_delta("s", &streamed).map(drop));
    assert!(matches!(append(Envelope::entry("", None, 1, "1")), Err(LogError::Invalid { .. })));
}

#[test]
fn a_kind_is_one_to_sixteen_plain_characters() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    let append = |kind: &str| {
        store.append("s", Expected::Any, vec![Envelope::plain(kind.to_owned(), 1, "1")])
    };
    for kind in ["k", &"k".repeat(KIND_BYTES_MAX - 1), &"k".repeat(KIND_BYTES_MAX)] {
        append(kind).unwrap();
    }
    for kind in ["", &"k".repeat(KIND_BYTES_MAX + 1), "Kind", "a-b", "k\"", "entry"] {
        let refused = append(kind);
        assert!(matches!(refused, Err(LogError::Invalid { .. })), "{kind:?}: {refused:?}");
    }
}

/// A JSON text of so many bytes.
fn text_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

#[test]
fn a_record_of_64_mib_is_the_largest() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    store.open_for_writing("s").unwrap();
    let append = |id, bytes| {
        let record = Envelope::entry(id, None, 1, text_of(bytes));
        store.append("s", Expected::Any, vec![record]).map(drop)
    };
    too_large(&machine, RECORD_BYTES_MAX, || append("larger", RECORD_BYTES_MAX + 1));
    for (id, bytes) in [("below", RECORD_BYTES_MAX - 1), ("at", RECORD_BYTES_MAX)] {
        append(id, bytes).unwrap();
        let read =
            store.read("s").unwrap().entry(id, |stored| stored.into_owned()).unwrap().unwrap();
        assert_eq!(read.added.envelope.payload.len(), bytes);
    }
}

#[test]
fn a_batch_of_100_000_records_is_the_largest() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    store.open_for_writing("s").unwrap();
    let batch = |records| vec![Envelope::plain("k", 1, "1"); records];
    let append = |records| store.append("s", Expected::Any, batch(records));
    let over = BATCH_RECORDS_MAX + 1;
    too_large(&machine, BATCH_RECORDS_MAX, || append(over).map(drop));
    too_large(&machine, BATCH_RECORDS_MAX, || store.create("t", batch(over)).map(drop));
    for records in [BATCH_RECORDS_MAX - 1, BATCH_RECORDS_MAX] {
        let before = store.read("s").unwrap().head().seq;
        assert_eq!(append(records).unwrap().seq - before, records as u64);
    }
}

#[test]
fn a_batch_of_256_mib_is_the_largest_though_none_of_its_records_is() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    store.open_for_writing("s").unwrap();
    // Six records: five of a sixth of the limit each, and one that has what is left.
    let part = BATCH_BYTES_MAX / 6;
    let batch = |bytes: usize| {
        let mut batch = vec![Envelope::plain("k", 1, text_of(part)); 5];
        batch.push(Envelope::plain("k", 1, text_of(bytes - 5 * part)));
        batch
    };
    let append = |bytes| store.append("s", Expected::Any, batch(bytes)).map(drop);
    let over = BATCH_BYTES_MAX + 1;
    too_large(&machine, BATCH_BYTES_MAX, || append(over));
    too_large(&machine, BATCH_BYTES_MAX, || store.create("t", batch(over)).map(drop));
    // One that is allowed is judged by what comes after its size: a wrong parent.
    for bytes in [BATCH_BYTES_MAX - 1, BATCH_BYTES_MAX] {
        let mut batch = batch(bytes);
        batch.push(Envelope::entry("child", Some("nobody"), 1, ""));
        let refused = store.append("s", Expected::Any, batch);
        assert!(!matches!(refused, Err(LogError::TooLarge { .. })), "{refused:?}");
    }
}

#[test]
fn a_delta_of_1_mib_is_the_largest() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    store.open_for_writing("s").unwrap();
    let of = |revision, bytes: usize| NewDelta { payload: text_of(bytes), ..delta("e1", revision) };
    too_large(&machine, DELTA_BYTES_MAX, || {
        store.enqueue_delta("s", &of(1, DELTA_BYTES_MAX + 1)).map(drop)
    });
    for (revision, bytes) in [(1, DELTA_BYTES_MAX - 1), (2, DELTA_BYTES_MAX)] {
        store.enqueue_delta("s", &of(revision, bytes)).unwrap().wait().unwrap();
    }
    assert_eq!(machine.look().read("s").unwrap().deltas().len(), 2);
}

#[test]
fn a_payload_is_one_line_of_json() {
    let machine = Machine::new();
    let store = machine.start().store;
    store.create("s", vec![entry(1)]).unwrap();
    for payload in ["", " 1", "1 ", "{\"a\":\n1}", "{\"a\":\r1}", "{", "1 2", "nul"] {
        let record = Envelope::plain("k", 1, payload);
        let refused = store.append("s", Expected::Any, vec![record]);
        assert!(matches!(refused, Err(LogError::Invalid { .. })), "{payload:?}: {refused:?}");
    }
}

/// Every file and folder below, with its mode; links are not followed.
fn modes(dir: &Path) -> Vec<(std::path::PathBuf, bool, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, meta.is_dir(), meta.mode() & 0o7777));
        }
    }
    found
}

/// Ids that would lead elsewhere if they were taken for paths, or take another's place.
const EVIL: [&str; 16] = [
    "..",
    ".",
    "../../outside",
    "/etc/passwd",
    "a/b/c",
    "a\\b",
    "..%2f..",
    "%2e%2e",
    "nul",
    "con.txt",
    "a\0b",
    "line\nbreak",
    "lock",
    "S",
    "s",
    "\u{202e}txt.exe",
];

#[test]
fn no_id_leaves_the_data_directory_and_each_has_a_place_of_its_own() {
    let around = tempfile::tempdir().unwrap();
    let root = around.path().join("data");
    let store = <LogStore>::open(Platform::system(&root).unwrap(), Options::default()).unwrap();
    for (id, n) in EVIL.iter().zip(1..) {
        store.create(id, vec![Envelope::entry("e", None, 1, n.to_string())]).unwrap();
    }
    store.close_all().unwrap();
    let again = <LogStore>::open(Platform::system(&root).unwrap(), Options::default()).unwrap();
    for (id, n) in EVIL.iter().zip(1..) {
        assert_eq!(numbers(&again, id), [n], "{id:?}");
    }
    let mut listed = Vec::new();
    again.visit(&mut |log| listed.push(log.unwrap().id)).unwrap();
    let mut expected = EVIL.map(str::to_owned);
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    for (path, ..) in modes(around.path()) {
        assert!(path.starts_with(&root), "{path:?}");
    }
    for id in EVIL {
        again.delete(id, 5, "{}").unwrap();
    }
    assert_eq!(again.purge(i64::MAX).unwrap(), EVIL.len());
    assert_eq!(std::fs::read_dir(around.path()).unwrap().count(), 1);
}

#[test]
fn files_are_0600_and_folders_0700() {
    let around = tempfile::tempdir().unwrap();
    let root = around.path().join("data");
    let options = Options {
        segment_bytes: 500,
        checkpoint_every_bytes: 900,
        tail_rows_max: 2,
        tiny_bytes: 0,
        maintenance: bough_log::Maintenance::Inline,
        ..Options::default()
    };
    let store = <LogStore>::open(Platform::system(&root).unwrap(), options).unwrap();
    for id in ["open", "closed", "deleted"] {
        fill(&store, id, 9);
        store.enqueue_delta(id, &delta("e9", 1)).unwrap().wait().unwrap();
    }
    store.close("closed").unwrap();
    store.delete("deleted", 5, "{}").unwrap();
    let found = modes(around.path());
    for name in ["lock", "stream.log", "manifest.json", "offsets.jsonl", "ids-0000000000000001.tbl"]
    {
        assert!(found.iter().any(|(path, ..)| path.ends_with(name)), "{name}");
    }
    for (path, is_dir, mode) in found {
        assert_eq!(mode, if is_dir { 0o700 } else { 0o600 }, "{path:?}");
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        <LogStore>::open(Platform::system(dir.path()).unwrap(), Options::default()).unwrap();
    store.create("s", vec![entry(1)]).unwrap();
    let segment = modes(dir.path()).into_iter().map(|(path, ..)| path);
    let segment = segment.into_iter().find(|path| path.ends_with("0000000000000001.seg")).unwrap();
    let outside = dir.path().join("outside");
    std::fs::rename(&segment, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &segment).unwrap();
    let before = std::fs::read(&outside).unwrap();
    assert!(store.append("s", Expected::Any, vec![entry(2)]).is_err());
    assert_eq!(std::fs::read(&outside).unwrap(), before);
}
