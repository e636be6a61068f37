//! One entry function for each decoder: takes any bytes, must not panic, and what it accepts must encode to
//! the same bytes again where there is one spelling. The fuzz targets and the kept inputs share them.

use std::sync::Arc;

use bough_log::format::{
    Checkpoint, LedgerEvent, Manifest, OffsetRow, PAGE_BYTES, ROW_BYTES, STREAM_HEADER_BYTES,
    StreamHeader, StreamLine, decode_frame, encode_frame, search_page,
};
use bough_log::{ChainHash, Envelope, LogStore, Maintenance, Options};
use bough_platform::{Platform, RelPath};
use bough_testkit::{SimClock, SimDisk, SimEntropy};

/// A decoder by the name of its fuzz target.
pub(crate) type Decoder = (&'static str, fn(&[u8]));

/// All of them.
#[allow(dead_code, reason = "a fuzz target uses one")]
pub(crate) const ALL: [Decoder; 10] = [
    ("frame", frame),
    ("row", row),
    ("manifest", manifest),
    ("checkpoint", checkpoint),
    ("ledger", ledger),
    ("stream_line", stream_line),
    ("stream_header", stream_header),
    ("id_table", id_table),
    ("container_name", container_name),
    ("segment", segment),
];

/// A line of a segment.
pub(crate) fn frame(data: &[u8]) {
    let Ok(frame) = decode_frame(data) else { return };
    assert!(!frame.payload.contains('\n') || data.contains(&b'\n'));
    // The chain is over what stands before: with another beginning only `h` and `c` may differ.
    let mut again = Vec::new();
    encode_frame(&frame.header, frame.payload, ChainHash::from_bytes([0; 32]), &mut again);
    let after_chain = |line: &[u8]| {
        let at = line.windows(5).position(|window| window == b"\"h\":\"").unwrap();
        line[at + 48..].to_vec()
    };
    assert_eq!(after_chain(again.strip_suffix(b"\n").unwrap()), after_chain(data));
}

/// A row of the index.
pub(crate) fn row(data: &[u8]) {
    for bytes in data.chunks(ROW_BYTES) {
        if let Some(row) = OffsetRow::decode(bytes) {
            let mut again = Vec::new();
            row.encode(&mut again);
            assert_eq!(again, bytes);
        }
    }
}

/// `manifest.json`.
pub(crate) fn manifest(data: &[u8]) {
    if let Ok(manifest) = Manifest::decode(data) {
        let again = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&again).unwrap(), manifest);
    }
}

/// A checkpoint's file.
pub(crate) fn checkpoint(data: &[u8]) {
    if let Ok(checkpoint) = Checkpoint::decode(data, "checkpoint") {
        let again = checkpoint.encode().unwrap();
        assert_eq!(Checkpoint::decode(&again, "checkpoint").unwrap(), checkpoint);
    }
}

/// A line of the ledger.
pub(crate) fn ledger(data: &[u8]) {
    if let Some(event) = LedgerEvent::decode(data) {
        let again = event.encode().unwrap();
        assert_eq!(LedgerEvent::decode(again.strip_suffix(b"\n").unwrap()), Some(event));
    }
}

/// A line of `stream.log`.
pub(crate) fn stream_line(data: &[u8]) {
    if let Some(line) = StreamLine::decode(data) {
        let mut again = Vec::new();
        line.encode(&mut again).unwrap();
        let back = StreamLine::decode(again.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(
            (back.number, back.revision, back.after),
            (line.number, line.revision, line.after)
        );
        assert_eq!((back.target, back.payload.get()), (line.target, line.payload.get()));
    }
}

/// The header of `stream.log`.
pub(crate) fn stream_header(data: &[u8]) {
    if let Some(header) = StreamHeader::decode(data) {
        assert_eq!(header.encode().unwrap(), &data[..STREAM_HEADER_BYTES]);
    }
}

/// A page of an id table.
pub(crate) fn id_table(data: &[u8]) {
    let hash = data.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
    let read = |_, page: &mut [u8; PAGE_BYTES]| {
        let bytes = data.get(..PAGE_BYTES);
        bytes.map(|bytes| page.copy_from_slice(bytes)).is_some()
    };
    if let Some(found) = search_page(hash, 1, read) {
        assert!(found.len() <= PAGE_BYTES / 16 && found.is_sorted_by(|a, b| a >= b));
    }
}

fn store(disk: &SimDisk) -> LogStore {
    let platform = Platform {
        disk: Arc::new(disk.another_process()),
        clock: Arc::new(SimClock::default()),
        entropy: Arc::new(SimEntropy::new(1)),
    };
    let options = Options { maintenance: Maintenance::Inline, ..Options::default() };
    <LogStore>::open(platform, options).unwrap()
}

/// The name of a container's folder, and an id.
pub(crate) fn container_name(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let disk = SimDisk::new();
    let whole = store(&disk);
    if let Ok(path) = RelPath::parse("sessions/000").and_then(|dir| dir.join(text))
        && let Ok(file) = path.join("manifest.json")
        && disk.plant(&file, b"{}").is_ok()
    {
        whole.visit(&mut |_| {}).unwrap();
        whole.verify_all(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
        whole.salvage_all(&store(&SimDisk::new()), &mut |_| {}).unwrap();
    }
    // As an id it is refused or has a folder of its own that leads back to it.
    let other = SimDisk::new();
    let made = store(&other).create(text, vec![Envelope::entry("e", None, 1, "1")]);
    if made.is_ok() {
        for (path, _) in other.files() {
            assert!(path.as_str().starts_with("sessions/"), "{path}");
        }
        let mut listed = Vec::new();
        store(&other).visit(&mut |log| listed.push(log.unwrap().id)).unwrap();
        assert_eq!(listed, [text]);
    }
}

/// The bytes of a segment: read, verified, opened for writing and salvaged.
pub(crate) fn segment(data: &[u8]) {
    let disk = SimDisk::new();
    let maker = store(&disk);
    maker.create("s", vec![Envelope::entry("e1", None, 1, "1")]).unwrap();
    let files = disk.files();
    let (path, first) = files.iter().find(|(path, _)| path.as_str().ends_with(".seg")).unwrap();
    // With its whole first frame, and without.
    for bytes in [[first.as_slice(), data].concat(), data.to_vec()] {
        let damaged = disk.copy();
        damaged.plant(path, &bytes).unwrap();
        let looking = store(&damaged);
        let reader = looking.read("s").unwrap();
        let shown = reader.records(0, 1_000, |stored| stored.into_owned()).unwrap();
        assert_eq!(shown.len() as u64, reader.head().seq.min(1_000));
        let verified = looking.verify("s").unwrap();
        assert_eq!(reader.damage().is_some(), !verified.is_well());
        looking.salvage("s", &store(&SimDisk::new())).unwrap();
        let opened = looking.open_for_writing("s");
        assert_eq!(opened.is_ok(), reader.damage().is_none(), "{opened:?} {:?}", reader.damage());
    }
}
