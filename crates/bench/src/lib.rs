//! Measures Bough beside its peers, in one run, on the same disk. This library holds what every bench needs: rounds, rows
//! and the command line; the program beside it holds the benches.
//!
//! Invariants:
//! - No crate of the product may name this one: its peers (SQLite, redb) are built for measuring only. Peers that need many
//!   packages are measured in `tests/compat`.
//! - A row compares equal promises: a durable row waits for the disk on every side, and a row whose peers
//!   promise less says so in the peer's name.
//! - What it prints on standard output is the table or the JSON object; progress goes to standard error.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "measuring needs the real clock and disk, and talks to the terminal"
)]

pub mod measure;
pub mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use report::Row;

/// Any failure ends a bench: a figure from a run with errors would mean nothing.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A named bench.
pub struct Bench {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Measures the parts that were asked for.
    pub run: fn(&Options) -> Outcome<Vec<Row>>,
}

/// What was asked for.
pub struct Options {
    /// Where the files go: on the disk that is to be measured, never in memory.
    pub folder: PathBuf,
    /// Only the part of the bench that has this name.
    part: Option<String>,
    json: bool,
}

impl Options {
    /// Runs the parts of a bench that were asked for, in order.
    pub fn run_parts(&self, parts: &[Part]) -> Outcome<Vec<Row>> {
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
pub type Part = (&'static str, fn(&Options) -> Outcome<Vec<Row>>);

/// The whole program: reads the command line, runs one bench and prints its rows.
pub fn main(benches: &[Bench]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(benches, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(benches: &[Bench], arguments: &[String]) -> Outcome<()> {
    let (name, options) = parse(arguments)?;
    if name == "list" {
        for bench in benches {
            println!("{:<10} {}", bench.name, bench.about);
        }
        return Ok(());
    }
    let bench = benches
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
