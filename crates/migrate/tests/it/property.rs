//! Files made at random, with every hazard: nothing is lost on the way in, and it comes out as it was.

use crate::common::pieces::{piece, text};
use crate::common::*;
use bough_migrate::{ExportFormat, ExportOptions, FindingKind, export};
use bough_session::{EntryBody, Record, SessionId};
use bough_testkit::SimDisk;
use proptest::prelude::*;
use serde_json::Value;

const FILE: &str = "v1/f.jsonl";

/// Lines as they must come out: blank ones gone, the space around them gone.
fn expected_lines(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(|byte| *byte == b'\n')
        .map(|line| {
            let is_json = serde_json::from_slice::<Value>(line).is_ok();
            if is_json { line.trim_ascii().to_vec() } else { line.to_vec() }
        })
        .filter(|line| !line.trim_ascii().is_empty())
        .collect()
}

fn check(text: &[u8]) {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), text).unwrap();
    let migrator = migrator(&disk, small(), 1);
    let plan = plan(&migrator, FILE);
    let report = plan.report.clone();
    assert_eq!(report.lines, report.entries + report.kept + report.blank);
    let summary = migrator.migrate(plan, None, &mut |_| {}).unwrap();
    assert!(summary.verification.hash_chain_match);
    let log = logs(&disk);
    assert!(log.verify("s").unwrap().is_well());
    let records = records(&log, "s");
    check_tree(&records, report.entries);
    let findings = report.findings.iter().filter(|f| f.kind == FindingKind::DuplicateId).count();
    assert_eq!(findings as u64, report.count(FindingKind::DuplicateId));

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let out = runtime.block_on(async {
        let store = memory("s", records).await;
        let mut out = Vec::new();
        let options = ExportOptions::whole(ExportFormat::Pi);
        export(&store, &SessionId::from_stored("s"), &options, &mut out).await.unwrap();
        for format in [ExportFormat::Jsonl, ExportFormat::Json, ExportFormat::Md] {
            let options = ExportOptions::whole(format);
            export(&store, &SessionId::from_stored("s"), &options, &mut Vec::new()).await.unwrap();
        }
        out
    });
    let lines: Vec<Vec<u8>> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    assert_eq!(lines, expected_lines(text));
    assert_eq!(bytes(&disk, FILE), text, "the source is as it was");
}

/// Parents come first, ids are unique, every body is a line of the file.
fn check_tree(records: &[bough_session::NewRecord], expected: u64) {
    let mut known = std::collections::HashSet::new();
    for new in records {
        let Record::Entry(entry) = &new.record else { continue };
        if let Some(parent) = &entry.parent_id {
            assert!(known.contains(parent), "{entry:?}");
        }
        assert!(known.insert(entry.id.clone()), "{entry:?}");
        assert!(matches!(entry.body, EntryBody::Foreign(_)));
    }
    assert_eq!(known.len() as u64, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_file_goes_in_and_comes_out_whole(
        pieces in proptest::collection::vec(piece(), 0..40),
        crlf in any::<bool>(),
        ended in any::<bool>(),
        version in 2..=3_u64,
    ) {
        check(&text(&pieces, version, crlf, ended));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let disk = SimDisk::new();
        disk.plant(&path(FILE), &bytes).unwrap();
        let planned = migrator(&disk, inline(), 1).plan(FILE, &mut |_| {});
        if let Ok(plan) = planned {
            prop_assert_eq!(plan.report.lines, plan.report.entries + plan.report.kept + plan.report.blank);
        }
        let refused = migrator(&disk, inline(), 1).open_file(FILE);
        drop(refused);
    }
}
