//! The program `bough` as people run it, built beside this one.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;

/// The time between two looks at the memory of a command.
const LOOK: Duration = Duration::from_millis(5);

/// Where the program is.
pub(crate) fn bough() -> Outcome<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("bough");
    if program.is_file() {
        return Ok(program);
    }
    Err("there is no `bough` beside this program: `cargo build --release -p bough` makes it".into())
}

/// What a command took.
pub(crate) struct Took {
    pub(crate) milliseconds: f64,
    /// The most memory that it had, in megabytes.
    pub(crate) memory: f64,
}

/// Runs a command to its end; what it prints is dropped.
pub(crate) fn run(command: &mut Command) -> Outcome<Took> {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut memory = 0.0;
    let status = loop {
        // A process that is just ending says nothing any more; what it said before is its peak.
        memory = peak_of(child.id()).unwrap_or(memory);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(LOOK),
        }
    };
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(Took { milliseconds: began.elapsed().as_secs_f64() * 1000.0, memory })
}

fn peak_of(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
