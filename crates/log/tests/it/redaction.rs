//! The reserved marks: an entry that was redacted, and the owner of a stream.

use bough_log::format::decode_frame;
use bough_log::{Envelope, Expected, LogError, PathStart, kind};
use bough_testkit::{RedactedLength, redact_entry};

use crate::support::*;

const SECRET: &str =
    "a secret that is long enough for the digest that takes its place, and then some";

fn redacted(entry: &str) -> Envelope<'static> {
    let payload = r#"{"by":"somebody","reason":"asked to","message":true}"#;
    Envelope {
        target: Some(entry.to_owned().into()),
        ..Envelope::plain(kind::REDACTED, 5, payload)
    }
}

/// A closed log whose second entry, which was revised, has the secret, and which has a `redacted` record of it.
fn with_secret(machine: &Machine) {
    let process = machine.start();
    fill(&process.store, "s", 1);
    let secret = format!("{{\"text\":\"{SECRET}\"}}");
    let entry = Envelope::entry("e2", Some("e1"), 1, secret.clone());
    process.store.append("s", Expected::Any, vec![entry]).unwrap();
    let revision = Envelope::revision("e2", 1, 1, secret);
    process.store.append("s", Expected::Any, vec![revision]).unwrap();
    let next = Envelope::entry("e3", Some("e2"), 1, "3".to_owned());
    process.store.append("s", Expected::Any, vec![next]).unwrap();
    process.store.append("s", Expected::Any, vec![redacted("e2")]).unwrap();
    process.store.close("s").unwrap();
    process.kill();
}

fn all_bytes(machine: &Machine) -> String {
    let files = machine.disk.files().into_iter();
    files.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

fn payloads(machine: &Machine) -> Vec<String> {
    let reader = machine.look().read("s").unwrap();
    let records = reader.records(0, 99, |stored| stored.envelope.payload.trim().to_owned());
    records.unwrap()
}

fn check(machine: &Machine, length: RedactedLength) {
    with_secret(machine);
    assert!(all_bytes(machine).contains(SECRET));
    let before = machine.look().read("s").unwrap().head();
    let changed = redact_entry(&machine.disk.another_process(), "s", "e2", length).unwrap();
    assert_eq!(changed, 2, "the entry and its revision");
    assert!(!all_bytes(machine).contains(SECRET));
    let report = machine.verify("s");
    assert!(report.is_well() && report.records == 5, "{report:?}");
    assert_eq!(machine.damage("s"), None);
    let reader = machine.look().read("s").unwrap();
    assert_eq!(reader.head(), before, "the chain is the same");
    assert!(reader.is_removed("e2").unwrap() && !reader.is_removed("e1").unwrap());
    let path = reader.path("e3", PathStart::Root, 9, |stored| stored.seq).unwrap().unwrap();
    assert_eq!(path.entries.iter().map(|entry| entry.added).collect::<Vec<_>>(), [1, 2, 4]);
    let process = machine.start();
    append(&process.store, "s", 4);
    process.store.checkpoint("s").unwrap();
    process.store.close("s").unwrap();
    assert!(machine.verify("s").is_well(), "{:?}", machine.verify("s"));
    let shown = payloads(machine);
    assert_eq!(shown.len(), 6);
    assert_eq!(shown[4], r#"{"by":"somebody","reason":"asked to","message":true}"#);
    assert!(!shown.concat().contains(SECRET), "{shown:?}");
}

#[test]
fn a_redacted_log_verifies_and_is_read_and_written_on() {
    for length in [RedactedLength::Kept, RedactedLength::Changed] {
        check(&Machine::new(), length);
        check(&Machine::full(), length);
        // A segment for about two records.
        check(
            &Machine::with(|options| {
                options.tiny_bytes = 0;
                options.segment_bytes = 500;
            }),
            length,
        );
    }
}

#[test]
fn a_redacted_frame_says_the_digest_of_what_it_had() {
    let machine = Machine::full();
    with_secret(&machine);
    let lines = |machine: &Machine| {
        let segment = String::from_utf8(machine.bytes("0000000000000001.seg")).unwrap();
        segment.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let before = lines(&machine);
    let disk = machine.disk.another_process();
    redact_entry(&disk, "s", "e2", RedactedLength::Kept).unwrap();
    for (line, before) in lines(&machine).iter().zip(&before) {
        let (frame, before) =
            (decode_frame(line.as_bytes()).unwrap(), decode_frame(before.as_bytes()).unwrap());
        assert_eq!((&frame.header, frame.chain), (&before.header, before.chain));
        assert_eq!(frame.redacted.is_some(), frame.payload != before.payload);
    }
    // The digest is kept when the frame is redacted again.
    let once = lines(&machine);
    redact_entry(&disk, "s", "e2", RedactedLength::Kept).unwrap();
    assert_eq!(lines(&machine), once);
}

#[test]
fn a_redaction_names_an_entry_that_is_there() {
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    let refused = process.store.append("s", Expected::Any, vec![redacted("nothing")]).unwrap_err();
    assert!(
        matches!(&refused, LogError::UnknownEntry { entry } if entry == "nothing"),
        "{refused}"
    );
}

#[test]
fn the_owner_of_a_stream_is_kept_and_the_stream_goes_on() {
    const OWNED: &str = r#"{"owner":{"process":"p1","until":9}}"#;
    let machine = Machine::full();
    let process = machine.start();
    fill(&process.store, "s", 2);
    let stream = Envelope {
        target: Some("e2".into()),
        revision: Some(0),
        ..Envelope::plain(kind::STREAM, 3, OWNED)
    };
    process.store.append("s", Expected::Any, vec![stream]).unwrap();
    process.store.enqueue_delta("s", &delta("e2", 1)).unwrap().wait().unwrap();
    process.store.checkpoint("s").unwrap();
    process.kill();
    let process = machine.start();
    process.store.enqueue_delta("s", &delta("e2", 2)).unwrap().wait().unwrap();
    process.store.close("s").unwrap();
    let reader = machine.look().read("s").unwrap();
    assert_eq!(reader.deltas().iter().map(|line| line.revision).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(payloads(&machine), ["1", "2", OWNED], "the stream was not opened again");
    assert!(machine.verify("s").is_well());
}
