//! Reading V1 files: every hazard is handled, counted and reported, and nothing is left out.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::*;
use bough_migrate::FindingKind::{self, *};
use bough_migrate::{Content, Lines, MigrateError, Plan, Snapshot};
use bough_platform::File;
use bough_testkit::SimDisk;
use serde_json::{Value, json};

fn planned(text: &[u8]) -> Plan {
    planned_as("2024-12-03T14-00-00-000Z_file.jsonl", text)
}

fn planned_as(name: &str, text: &[u8]) -> Plan {
    let disk = SimDisk::new();
    let address = format!("v1/{name}");
    disk.plant(&path(&address), text).unwrap();
    plan(&migrator(&disk, inline(), 1), &address)
}

/// What the report lists, in order.
fn findings(text: &str) -> Vec<(u64, FindingKind)> {
    let report = planned(text.as_bytes()).report;
    for (kind, count) in &report.counts {
        let listed = report.findings.iter().filter(|finding| finding.kind == *kind).count();
        assert_eq!(listed as u64, *count, "{kind:?}");
    }
    assert_eq!(report.lines, report.entries + report.kept + report.blank, "{report:?}");
    report.findings.iter().map(|finding| (finding.line, finding.kind)).collect()
}

#[test]
fn a_plain_file_has_no_findings() {
    let plan = planned(sample("s").as_bytes());
    assert!(plan.report.is_well());
    assert_eq!((plan.report.lines, plan.report.entries, plan.report.version), (6, 5, 3));
    assert_eq!(plan.session_id.as_str(), "s");
    assert_eq!(plan.header.unwrap().cwd.as_deref(), Some("/p"));
    assert_eq!(plan.report.types["message"], 4);
}

#[test]
fn each_hazard_is_found_where_it_is() {
    let h = header("s");
    let m = message;
    let check = |lines: &[Value], expected: &[(u64, FindingKind)]| {
        assert_eq!(findings(&file(lines)), expected, "{lines:?}");
    };
    check(&[h.clone(), m("a", None, ""), m("a", None, "")], &[(3, DuplicateId)]);
    check(&[h.clone(), m("a", Some("zz"), "")], &[(2, ParentMissing)]);
    check(&[h.clone(), m("a", Some("a"), "")], &[(2, ParentSelf)]);
    check(&[h.clone(), m("a", Some("b"), ""), m("b", None, "")], &[(2, ParentLater)]);
    check(
        &[h.clone(), m("a", Some("c"), ""), m("b", Some("a"), ""), m("c", Some("b"), "")],
        &[(2, ParentCycle)],
    );
    check(
        &[h.clone(), json!({"type":"custom","customType":"x","timestamp":1})],
        &[(2, IdAssigned)],
    );
    check(&[h.clone(), json!({"type":"message","id":"a","parentId":null})], &[(2, TimeMissing)]);
    check(&[h.clone(), h.clone()], &[(2, HeaderAgain)]);
    check(&[h.clone(), json!([1]), json!(7)], &[(2, NotAnObject), (3, NotAnObject)]);
    check(&[m("a", None, "")], &[(1, HeaderMissing)]);
    let newer = json!({"type":"session","version":9,"id":"s","timestamp":1,"cwd":"/"});
    check(&[newer], &[(1, NewerVersion)]);
    check(
        &[h, json!({"type":"message","id":"a","parentId":7,"timestamp":1})],
        &[(2, ParentMissing)],
    );
}

#[test]
fn lines_that_are_no_json_are_kept_and_a_torn_tail_is_told_from_them() {
    let start = sample("s");
    assert_eq!(findings(&format!("{start}{{\"a\":\n")), [(7, NotJson)]);
    assert_eq!(findings(&format!("{start}{{\"a\":")), [(7, TornTail)]);
    assert_eq!(findings(start.trim_end()), []);
    assert_eq!(findings(&format!("\u{feff}{start}")), []);
    let mut bytes = start.into_bytes();
    bytes.extend_from_slice(b"{\"type\":\"custom\",\"id\":\"\xff\"}\n");
    assert_eq!(planned(&bytes).report.count(NotUtf8), 1);
}

#[test]
fn what_no_value_can_hold_is_counted() {
    let with = |content: &str| {
        let line = message("a", None, "TEXT").to_string().replace("\"TEXT\"", content);
        findings(&format!("{}\n{line}\n", header("s")))
    };
    assert_eq!(with(r#""\ud83d\ude00""#), []);
    assert_eq!(with(r#""cut \ud83d""#), [(2, HalfCharacter)]);
    assert_eq!(with("1E400"), [(2, NotShownWhole)]);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(with(&deep), [(2, NotShownWhole)]);
}

#[test]
fn line_ends_of_other_systems_and_blank_lines_are_no_findings() {
    let text = sample("s").replace('\n', "\r\n").replacen("\r\n", "\r\n\r\n \t\r\n", 1);
    let report = planned(text.as_bytes()).report;
    assert!(report.is_well(), "{report:?}");
    assert_eq!((report.entries, report.blank, report.crlf), (5, 2, 8));
}

#[test]
fn a_file_without_a_header_takes_its_id_from_its_name() {
    let text = file(&[message("a", None, "x")]);
    let plan = planned_as("2024-12-03T14-00-00-000Z_abc.jsonl", text.as_bytes());
    assert_eq!(plan.session_id.as_str(), "abc");
    let plan = planned_as("notes.jsonl", text.as_bytes());
    assert!(plan.session_id.as_str().starts_with("pi-"));
}

#[test]
fn what_is_no_session_is_refused() {
    for text in ["", "\n\n", "hello", "{\"a\":1}\n", "[]\n"] {
        let disk = SimDisk::new();
        disk.plant(&path("v1/x.jsonl"), text.as_bytes()).unwrap();
        let refused = migrator(&disk, inline(), 1).plan("v1/x.jsonl", &mut |_| {});
        assert!(matches!(refused, Err(MigrateError::NotASession { .. })), "{text:?}");
    }
    let missing = migrator(&SimDisk::new(), inline(), 1).plan("v1/x.jsonl", &mut |_| {});
    assert!(matches!(missing, Err(MigrateError::Missing { .. })));
}

#[test]
fn the_reports_list_is_bounded_and_its_counts_are_not() {
    let mut text = format!("{}\n", header("s"));
    text.push_str(&"not json\n".repeat(3_000));
    let report = planned(text.as_bytes()).report;
    assert_eq!(report.count(NotJson), 3_000);
    assert_eq!(report.findings.len(), bough_migrate::limits::FINDINGS_MAX);
}

#[test]
fn planning_changes_nothing() {
    let disk = SimDisk::new();
    disk.plant(&path("v1/s.jsonl"), sample("s").as_bytes()).unwrap();
    let migrator = migrator(&disk, inline(), 1);
    let before = disk.digest();
    plan(&migrator, "v1/s.jsonl");
    assert_eq!(disk.digest(), before);
}

/// A file that makes its bytes up and counts what is asked of it.
#[derive(Debug)]
struct MadeUp {
    len: u64,
    line: u64,
    read: AtomicU64,
    largest: AtomicU64,
}

impl File for MadeUp {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let count = out.len().min(usize::try_from(self.len - at.min(self.len)).unwrap());
        out[..count].fill(b'x');
        let mut next = self.line - 1 - at % self.line;
        while next < count as u64 {
            out[usize::try_from(next).unwrap()] = b'\n';
            next += self.line;
        }
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        self.largest.fetch_max(out.len() as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a file of equal lines; the largest piece that was ever held, and bytes read in all.
fn read_through(len: u64, line: u64) -> (u64, u64) {
    let file = MadeUp { len, line, read: AtomicU64::new(0), largest: AtomicU64::new(0) };
    let mut lines = Lines::new(&file).unwrap();
    let mut seen = 0;
    let mut ahead = 0;
    while let Some(found) = lines.next_line().unwrap() {
        let Content::Bytes(bytes) = found.content else { panic!("too long") };
        seen += bytes.len() as u64 + u64::from(found.ended);
        // Bytes fetched and not given out yet: never more than a chunk.
        let fetched = file.read.load(Ordering::Relaxed);
        ahead = ahead.max(fetched.saturating_sub(2 * seen));
    }
    assert_eq!(seen, len);
    assert!(ahead <= bough_migrate::limits::CHUNK_BYTES as u64);
    (file.largest.into_inner(), file.read.into_inner())
}

#[test]
fn memory_is_one_chunk_and_one_line_whatever_the_size_of_the_file() {
    let chunk = bough_migrate::limits::CHUNK_BYTES as u64;
    let (largest, read) = read_through(64 * 1024 * 1024, 1_000);
    assert_eq!(largest, chunk);
    assert!(read < 66 * 1024 * 1024, "short lines are read about once: {read}");
    let long = 50 * 1000 * 1000;
    let (largest, read) = read_through(2 * long, long);
    assert_eq!(largest, long - 1, "a long line is held once, in exactly its size");
    assert!(read <= 4 * long + 2 * chunk, "a long line is measured, then read: {read}");
}

#[test]
fn a_line_that_no_record_can_hold_is_refused_by_its_number() {
    let len = bough_migrate::limits::LINE_BYTES_MAX + 2;
    let file = MadeUp { len, line: len, read: AtomicU64::new(0), largest: AtomicU64::new(0) };
    let mut lines = Lines::new(&file).unwrap();
    let line = lines.next_line().unwrap().unwrap();
    assert_eq!((line.number, line.content), (1, Content::TooLong(len - 1)));
    assert_eq!(file.largest.into_inner(), bough_migrate::limits::CHUNK_BYTES as u64);
}

#[test]
fn the_snapshot_is_the_digest_of_all_bytes_and_survives_its_text() {
    for text in
        [sample("s"), String::new(), "x".repeat(600_000), format!("{}\n\n", "y".repeat(300_000))]
    {
        let disk = SimDisk::new();
        disk.plant(&path("f"), text.as_bytes()).unwrap();
        let file =
            bough_platform::Disk::open(&disk, &path("f"), bough_platform::Access::Read).unwrap();
        let mut lines = Lines::new(&*file).unwrap();
        while lines.next_line().unwrap().is_some() {}
        let snapshot = lines.snapshot();
        assert_eq!(snapshot, Snapshot::of(text.as_bytes()));
        assert_eq!(Snapshot::parse(&snapshot.to_string()), Some(snapshot));
    }
}
