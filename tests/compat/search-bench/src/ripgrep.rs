//! ripgrep over the same messages as lines of JSON, one file a session.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{Outcome, bough, corpus, entries};

const FOLDER: &str = "jsonl";

/// Writes the files, unless they are there.
pub(crate) fn make(folder: &Path) -> Outcome<()> {
    let (done, files) = (folder.join("jsonl.done"), folder.join(FOLDER));
    if done.is_file() {
        return Ok(());
    }
    std::fs::create_dir_all(&files)?;
    let count = entries()?;
    for (session, entries) in bough::sessions(count).enumerate() {
        let file = std::fs::File::create(files.join(format!("{session:06}.jsonl")))?;
        let mut file = std::io::BufWriter::new(file);
        for number in entries {
            writeln!(file, "{}", corpus::entry(number, count).message)?;
        }
        file.flush()?;
    }
    Ok(std::fs::write(done, "")?)
}

/// Milliseconds until there are `limit` lines, or it has read everything.
pub(crate) fn first_lines(folder: &Path, pattern: &str, limit: usize) -> Outcome<f64> {
    let began = Instant::now();
    let mut child = Command::new("rg")
        .args(["--fixed-strings", "--ignore-case", "--no-heading", "--"])
        .arg(pattern)
        .arg(folder.join(FOLDER))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("rg did not start ({error}); install ripgrep"))?;
    let output = child.stdout.take().ok_or("rg has no output")?;
    let lines = BufReader::new(output).split(b'\n').take(limit).count();
    let took = began.elapsed().as_secs_f64() * 1000.0;
    child.kill().ok();
    child.wait()?;
    if lines == 0 { Err(format!("ripgrep finds no {pattern:?}").into()) } else { Ok(took) }
}
