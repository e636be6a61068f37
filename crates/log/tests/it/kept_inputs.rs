//! The inputs that fuzzing starts from, and everything near them, as an ordinary test.

use std::path::Path;

use bough_testkit::Seeded;

use crate::decoders::{ALL, Decoder};

/// Changed copies of each kept input.
const NEAR: usize = 60;

fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|item| item.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A few bytes changed, put in, taken out or repeated; checksums are made right again now and then, so that
/// what stands behind them is reached.
fn near(input: &[u8], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=seeded.below(3) {
        let at = seeded.below(bytes.len() + 1);
        match seeded.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, u8::try_from(seeded.below(256)).unwrap()),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let end = bytes.len().min(at + seeded.below(40));
                bytes.extend_from_within(at..end);
            }
            4 => {
                let digits = b"0123456789{}[]\",:-.eE\\\n";
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = digits[seeded.below(digits.len())];
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << seeded.below(8);
                }
            }
        }
    }
    if seeded.one_in(2) { with_right_checksums(bytes) } else { bytes }
}

/// A sealed object, a frame or a page with the checksum that fits its bytes.
fn with_right_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    const SEAL: usize = ",\"crc\":\"00000000\"}".len();
    if bytes.starts_with(b"{\"c\":\"") && bytes.len() > 16 {
        let crc = format!("{:08x}", crc32c::crc32c(&bytes[16..]));
        bytes[6..14].copy_from_slice(crc.as_bytes());
    } else if bytes.ends_with(b"\"}") && bytes.len() > SEAL {
        let body = bytes.len() - SEAL;
        let seal = format!(",\"crc\":\"{:08x}\"}}", crc32c::crc32c(&bytes[..body]));
        bytes[body..].copy_from_slice(seal.as_bytes());
    } else if bytes.len() >= 4096 {
        let crc = crc32c::crc32c(&bytes[4..4096]).to_le_bytes();
        bytes[..4].copy_from_slice(&crc);
    }
    bytes
}

fn run(name: &str) {
    let (_, decode): Decoder = *ALL.iter().find(|(known, _)| *known == name).unwrap();
    let inputs = kept(name);
    assert!(inputs.len() >= 2, "{name} has kept inputs");
    let mut seeded = Seeded::new(7);
    for input in &inputs {
        decode(input);
        for _ in 0..NEAR {
            decode(&near(input, &mut seeded));
        }
    }
}

macro_rules! each_decoder {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_decoder_has_its_test_and_its_fuzz_target() {
            let tested = [$(stringify!($name)),*];
            for (name, _) in ALL {
                assert!(tested.contains(&name), "{name}");
                let target = format!("../../fuzz/fuzz_targets/{name}.rs");
                let text = std::fs::read_to_string(
                    Path::new(env!("CARGO_MANIFEST_DIR")).join(target),
                ).unwrap();
                assert!(text.contains(&format!("decoders::{name}(")), "{name}");
            }
            assert_eq!(tested.len(), ALL.len());
        }
    };
}

each_decoder!(
    frame,
    row,
    manifest,
    checkpoint,
    ledger,
    stream_line,
    stream_header,
    id_table,
    container_name,
    segment
);
