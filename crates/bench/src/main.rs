//! Measures Bough beside its peers, in one run, on the same disk.
//!
//! Invariants:
//! - No room of the product may name this crate: its peers (SQLite, redb, phi-core) are built for measuring only.
//! - A row compares equal promises: a durable row waits for the disk on every side, and a row whose peers
//!   promise less says so in the peer's name.
//! - What it prints on standard output is the table or the JSON object; progress goes to standard error.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "measuring needs the real clock and disk, and the peers use them as they like"
)]

mod entries;
mod log;
mod measure;
mod migrate;
mod peers;
#[cfg(feature = "original")]
mod recorder;
mod report;
mod server;
mod service;

use std::path::PathBuf;
use std::process::ExitCode;

use report::Row;

/// Any failure ends a bench: a figure from a run with errors would mean nothing.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Counts allocations, so that a row can say how many an operation needs.
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

/// A named bench.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Options) -> Outcome<Vec<Row>>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "log", about: "the log: appends, opening, sizes, listing", run: log::run },
    Bench {
        name: "service",
        about: "the service: appends, streams, pages, lists, forks, fan-out",
        run: service::run,
    },
    Bench {
        name: "migrate",
        about: "V1 files of pi: opening, rolling back, migrating many",
        run: migrate::run,
    },
    #[cfg(feature = "original")]
    Bench {
        name: "recorder",
        about: "the recorder beside the original: recording, session files, navigation",
        run: recorder::run,
    },
    Bench { name: "server", about: "a server: load, live events, memory, kills", run: server::run },
];

/// What was asked for.
pub(crate) struct Options {
    /// Where the files go: on the disk that is to be measured, never in memory.
    pub(crate) folder: PathBuf,
    /// Only the part of the bench that has this name.
    part: Option<String>,
    json: bool,
}

impl Options {
    /// Runs the parts of a bench that were asked for, in order.
    pub(crate) fn run_parts(&self, parts: &[Part]) -> Outcome<Vec<Row>> {
        let wanted = |name: &str| self.part.as_deref().is_none_or(|part| part == name);
        let mut rows = Vec::new();
        let mut found = false;
        for (_, run) in parts.iter().filter(|(name, _)| wanted(name)) {
            found = true;
            rows.extend(run(self)?);
        }
        if found {
            return Ok(rows);
        }
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        Err(format!("this bench has the parts {names:?}").into())
    }
}

/// A named group of rows of a bench.
pub(crate) type Part = (&'static str, fn(&Options) -> Outcome<Vec<Row>>);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Outcome<()> {
    let (name, options) = parse(arguments)?;
    if name == "list" {
        for bench in BENCHES {
            println!("{:<10} {}", bench.name, bench.about);
        }
        return Ok(());
    }
    let bench = BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .ok_or_else(|| format!("there is no bench {name:?}; 'list' names them"))?;
    std::fs::create_dir_all(&options.folder)?;
    let rows = (bench.run)(&options)?;
    if options.json {
        println!("{}", serde_json::json!({ "rows": rows }));
    } else {
        print!("{}", report::table(&rows));
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Outcome<(String, Options)> {
    let mut name = None;
    let mut options = Options { folder: PathBuf::from("target/bench"), part: None, json: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--dir" => options.folder = rest.next().ok_or("--dir needs a folder")?.into(),
            "--part" => options.part = Some(rest.next().ok_or("--part needs a name")?.clone()),
            word if name.is_none() && !word.starts_with('-') => name = Some(word.to_owned()),
            other => return Err(format!("bench does not know {other:?}").into()),
        }
    }
    let name = name.ok_or("which bench? 'list' names them")?;
    Ok((name, options))
}
