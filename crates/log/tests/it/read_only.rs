//! Looking never writes, whatever state the files are in.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bough_log::{Expected, LogStore, Maintenance, Options};
use bough_platform::Platform;

use crate::support::*;

fn options() -> Options {
    Options {
        maintenance: Maintenance::Inline,
        segment_bytes: 700,
        checkpoint_every_bytes: 900,
        tiny_bytes: 0,
        tail_rows_max: 2,
        ..Options::default()
    }
}

/// Everything that a write would change: bytes, times, modes, and which names there are.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let bytes = if meta.is_dir() { Vec::new() } else { std::fs::read(&path).unwrap() };
            if meta.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (meta.mode(), meta.mtime(), meta.mtime_nsec(), bytes));
        }
    }
    found
}

fn look_at_everything(dir: &Path) {
    let store = <LogStore>::open_to_look(Platform::system(dir).unwrap(), options());
    let mut ids = Vec::new();
    store.visit(&mut |log| ids.extend(log.ok().map(|log| log.id))).unwrap();
    for id in ids {
        let Ok(reader) = store.read(&id) else { continue };
        drop(reader.records(0, 1_000, |stored| stored.into_owned()));
        drop(reader.entry("e2", |stored| stored.into_owned()));
        drop(reader.branch_heads());
        drop(store.extent(&id));
        drop(store.ledger(&id));
        store.verify(&id).unwrap();
    }
    store.verify_all(&mut |_| ControlFlow::Continue(())).unwrap();
    store.measure(&mut || ControlFlow::Continue(())).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = <LogStore>::open(Platform::system(elsewhere.path()).unwrap(), options()).unwrap();
    store.salvage_all(&target, &mut |_| {}).unwrap();
    drop(store.trash());
}

#[test]
fn looking_at_a_real_directory_leaves_the_tree_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let store = <LogStore>::open(Platform::system(dir.path()).unwrap(), options()).unwrap();
    for id in ["closed", "open", "torn", "streaming", "no-manifest", "no-index"] {
        fill(&store, id, 9);
    }
    store.enqueue_delta("streaming", &delta("e9", 1)).unwrap().wait().unwrap();
    fill(&store, "deleted", 3);
    store.delete("deleted", 5, "{}").unwrap();
    for id in ["closed", "no-manifest", "no-index"] {
        store.close(id).unwrap();
    }
    let file = |id: &str, end: &str| {
        let folder = format!("/{id}.");
        let mut found = tree(dir.path()).into_keys().filter(|path| {
            let text = path.to_string_lossy();
            text.contains(&folder) && text.ends_with(end)
        });
        found.next_back().unwrap()
    };
    let torn = file("torn", ".seg");
    let mut bytes = std::fs::read(&torn).unwrap();
    bytes.extend_from_slice(b"{\"c\":\"0000");
    std::fs::write(&torn, bytes).unwrap();
    std::fs::write(file("no-manifest", "manifest.json"), b"{}").unwrap();
    std::fs::remove_file(file("no-index", "offsets.jsonl")).unwrap();
    let before = tree(dir.path());
    look_at_everything(dir.path());
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn a_reader_of_an_unclean_log_does_not_even_ask_the_disk_for_a_change() {
    let machine = Machine::small();
    let process = machine.start();
    fill(&process.store, "s", 9);
    process.store.enqueue_delta("s", &delta("e9", 1)).unwrap().wait().unwrap();
    process.kill();
    machine.change("offsets.jsonl", |bytes| bytes.truncate(bytes.len() / 2));
    let store = machine.look();
    let before = (machine.disk.operations(), machine.disk.digest());
    assert_eq!(numbers(&store, "s"), (1..=9).collect::<Vec<_>>());
    assert_eq!(store.read("s").unwrap().deltas().len(), 1);
    store.verify("s").unwrap();
    assert_eq!((machine.disk.operations(), machine.disk.digest()), before);
}

#[test]
fn a_refused_append_writes_nothing() {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 2);
    let head = process.store.read("s").unwrap().head();
    let stale = bough_log::Head { seq: 1, ..head };
    let before = machine.disk.operations();
    for (expected, record) in [
        (Expected::Head(stale), entry(3)),
        (Expected::Any, entry(2)),
        (Expected::Any, bough_log::Envelope::entry("x", Some("nobody"), 1, "1")),
        (Expected::Any, bough_log::Envelope::entry("x", None, 1, "{not json")),
        (Expected::Any, bough_log::Envelope::revision("nobody", 1, 1, "1")),
    ] {
        assert!(process.store.append("s", expected, vec![record]).is_err());
    }
    assert!(process.store.append("s", Expected::Any, Vec::new()).is_err());
    assert_eq!(machine.disk.operations(), before);
}
