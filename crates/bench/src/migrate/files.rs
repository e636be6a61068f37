//! V1 files as pi writes them.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use crate::Outcome;

/// Writes a session in one row, each message of about `bytes` bytes.
pub(super) fn write(path: &Path, session: &str, entries: usize, bytes: usize) -> Outcome<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let at = "2026-02-07T14:00:00.000Z";
    writeln!(
        out,
        r#"{{"type":"session","version":3,"id":"{session}","timestamp":"{at}","cwd":"/p"}}"#
    )?;
    let text = "word ".repeat(bytes / 5);
    for number in 0..entries {
        let parent = match number.checked_sub(1) {
            Some(before) => format!("\"{before:08x}\""),
            None => "null".to_owned(),
        };
        writeln!(
            out,
            r#"{{"type":"message","id":"{number:08x}","parentId":{parent},"timestamp":"{at}","message":{{"role":"user","content":"{text}","timestamp":1}}}}"#
        )?;
    }
    out.flush()?;
    Ok(())
}

/// Reads a file once from end to end; how many bytes it has.
pub(super) fn read_once(path: &Path) -> Outcome<usize> {
    let mut file = File::open(path)?;
    let mut chunk = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(bytes),
            read => bytes += read,
        }
    }
}
