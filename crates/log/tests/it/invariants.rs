//! INV-001 to INV-007, each broken in files that are right in every other way, and named.

use bough_log::format::{ActiveStore, BranchHead, BranchHeads, OffsetRow, ROW_BYTES};
use bough_log::{ChainHash, DamageKind, LogError};

use crate::support::*;

/// A closed log of four entries in one segment, with nothing derived.
fn tiny() -> Machine {
    let machine = Machine::new();
    let process = machine.start();
    fill(&process.store, "s", 4);
    process.store.close_all().unwrap();
    assert!(machine.verify("s").is_well());
    machine
}

/// A closed log of four entries with index and checkpoint.
fn full() -> Machine {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 4);
    process.store.close_all().unwrap();
    assert!(machine.verify("s").is_well());
    machine
}

#[test]
fn a_forged_log_without_a_change_is_well() {
    let machine = tiny();
    machine.forge(|_| {});
    assert_eq!(machine.named("s"), [""; 0]);
    assert_eq!(machine.shown("s"), [1, 2, 3, 4]);
}

#[test]
fn inv_001_a_parent_that_is_not_there_is_named() {
    let machine = tiny();
    machine.forge(|header| {
        if header.seq == 3 {
            header.parent = Some("nobody".into());
        }
    });
    assert_eq!(machine.named("s"), ["INV-001"]);
    assert_eq!(machine.verify("s").damage[0].seq, Some(3));
    let refused = machine.refusal("s");
    assert!(
        matches!(&refused, LogError::Corrupt(d) if d.kind == DamageKind::ParentUnknown),
        "{refused}"
    );
}

#[test]
fn inv_001_an_entry_that_is_there_twice_is_named() {
    let machine = tiny();
    machine.forge(|header| {
        if header.seq == 3 {
            header.id = Some("e1".into());
            header.parent = None;
        }
        if header.seq == 4 {
            header.parent = Some("e2".into());
        }
    });
    assert_eq!(machine.named("s"), ["INV-001"]);
}

#[test]
fn inv_002_a_number_that_is_left_out_is_named() {
    let machine = tiny();
    machine.forge(|header| header.seq += u64::from(header.seq > 2));
    assert_eq!(machine.named("s")[0], "INV-002");
    let damage = machine.damage("s").unwrap();
    assert_eq!((damage.kind, damage.seq), (DamageKind::SequenceBroken, Some(3)));
    assert_eq!(machine.shown("s"), [1, 2], "what stands before it is readable");
    assert!(machine.refusal("s").to_string().contains("INV-002"));
}

#[test]
fn inv_003_a_row_that_leads_out_of_its_segment_is_named_and_made_again() {
    for change in [
        |row: &mut OffsetRow| row.offset = 1_000_000,
        |row: &mut OffsetRow| row.segment = 9,
        |row: &mut OffsetRow| row.len += 1,
        |row: &mut OffsetRow| row.frame += 1,
    ] {
        let machine = full();
        machine.change("offsets.jsonl", |bytes| {
            let place = ROW_BYTES..2 * ROW_BYTES;
            let mut row = OffsetRow::decode(&bytes[place.clone()]).unwrap();
            change(&mut row);
            let mut again = Vec::new();
            row.encode(&mut again);
            bytes[place].copy_from_slice(&again);
        });
        assert_eq!(machine.named("s"), ["INV-003"]);
        let process = machine.start();
        assert!(
            process
                .store
                .read("s")
                .unwrap()
                .entry("e1", |stored| stored.into_owned())
                .unwrap()
                .is_some()
        );
    }
}

#[test]
fn inv_004_a_checkpoint_of_another_head_is_named() {
    let machine = full();
    machine.change_checkpoint("checkpoints/0000000000000001.json", |checkpoint| {
        checkpoint.head.chain = ChainHash::from_bytes([7; 32]);
    });
    assert_eq!(machine.named("s"), ["INV-004"]);
}

#[test]
fn inv_005_a_frame_of_another_chain_is_named() {
    let machine = tiny();
    machine.change("0000000000000001.seg", |bytes| {
        let starts = line_starts(bytes);
        let line = bytes[starts[1]..starts[2] - 1].to_vec();
        let frame = bough_log::format::decode_frame(&line).unwrap();
        // The same record, as if something else stood before it: whole in itself.
        let mut other = Vec::new();
        let elsewhere = ChainHash::from_bytes([7; 32]);
        bough_log::format::encode_frame(&frame.header, frame.payload, elsewhere, &mut other);
        assert!(bough_log::format::decode_frame(other.strip_suffix(b"\n").unwrap()).is_ok());
        bytes.splice(starts[1]..starts[2], other);
    });
    assert_eq!(machine.named("s")[0], "INV-005");
    assert_eq!(machine.damage("s").unwrap().seq, Some(2));
    assert!(machine.refusal("s").to_string().contains("INV-005"));
}

#[test]
fn inv_005_a_manifest_whose_head_is_not_on_the_chain_is_named() {
    let machine = full();
    machine.change_manifest(|manifest| manifest.head.chain = ChainHash::from_bytes([7; 32]));
    assert!(machine.named("s").contains(&"INV-005"), "{:?}", machine.named("s"));
}

#[test]
fn inv_006_a_branch_head_that_the_index_does_not_know_is_named() {
    let unknown = BranchHead { entry_id: "nobody".to_owned(), seq: 4 };
    let elsewhere = BranchHead { entry_id: "e4".to_owned(), seq: 2 };
    for head in [unknown, elsewhere] {
        let machine = full();
        machine.change_checkpoint("checkpoints/0000000000000001.json", |checkpoint| {
            checkpoint.branch_heads = BranchHeads::All { heads: vec![head.clone()] };
        });
        assert_eq!(machine.named("s"), ["INV-006"], "{head:?}");
    }
    let machine = full();
    machine.change_checkpoint("checkpoints/0000000000000001.json", |checkpoint| {
        checkpoint.active_leaf = Some("nobody".to_owned());
    });
    assert_eq!(machine.named("s"), ["INV-006"], "the active leaf");
}

#[test]
fn damage_of_a_checkpoint_names_the_file_that_holds_it() {
    let machine = tiny();
    assert!(!machine.has("checkpoints/0000000000000001.json"), "a small log has no file for it");
    machine.change_manifest(|manifest| {
        let checkpoint = manifest.checkpoint.as_mut().unwrap();
        checkpoint.active_leaf = Some("nobody".to_owned());
    });
    let files: Vec<String> =
        machine.verify("s").damage.into_iter().map(|damage| damage.file).collect();
    assert_eq!(files, ["manifest.json"]);
}

#[test]
fn inv_007_a_marker_that_moved_without_its_pointer_is_named_and_refused() {
    let machine = tiny();
    machine.change_manifest(|manifest| manifest.active_store = ActiveStore::JsonlV3);
    assert!(machine.named("s").contains(&"INV-007"), "{:?}", machine.named("s"));
    let refused = machine.refusal("s");
    assert!(matches!(&refused, LogError::Corrupt(d) if d.kind == DamageKind::Pointer), "{refused}");
}
