//! Runs the crash harness from the command line.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to a terminal")]

use std::path::Path;
use std::process::ExitCode;

use bough_testkit::crash::{CHILD, CrashOptions, Memory, Part, Slice, child, replay, run};

const USAGE: &str = "crash [--short [--slice NUMBER/COUNT]] [--json] [--seed N] [--threads N] [--only cuts|rot|faults|model|kills|canaries] [--replay PLACE]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, memory, root] = args.as_slice()
        && first == CHILD
    {
        let memory = if memory == "lossy" { Memory::Lossy } else { Memory::Plain };
        if let Err(error) = child(Path::new(root), memory) {
            eprintln!("{error}");
        }
        return ExitCode::FAILURE;
    }
    match parse(&args) {
        Ok(Command::Replay { place, seed }) => {
            println!("{}", replay(&place, seed));
            ExitCode::SUCCESS
        }
        Ok(Command::Run { options, json }) => {
            let report = run(&options);
            if json {
                println!("{}", report.to_json());
            } else {
                print!("{report}");
            }
            if report.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(words) => {
            eprintln!("{words}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

enum Command {
    Run { options: CrashOptions, json: bool },
    Replay { place: String, seed: u64 },
}

fn parse(args: &[String]) -> Result<Command, String> {
    let progress = |line: &str| eprintln!("{line}");
    let mut options = CrashOptions { progress, ..CrashOptions::default() };
    let (mut json, mut place) = (false, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--short" => options.short = true,
            "--slice" => options.slice = Some(slice(value()?)?),
            "--json" => json = true,
            "--seed" => options.seed = value()?.parse().map_err(|_| "the seed is a number")?,
            "--threads" => {
                options.threads = value()?.parse().map_err(|_| "threads are a number")?
            }
            "--only" => options.parts = vec![part(value()?)?],
            "--replay" => place = Some(value()?.clone()),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    Ok(match place {
        Some(place) => Command::Replay { place, seed: options.seed },
        None => Command::Run { options, json },
    })
}

fn slice(text: &str) -> Result<Slice, String> {
    let numbers = text.split_once('/');
    let slice = numbers.and_then(|(number, of)| Slice::new(number.parse().ok()?, of.parse().ok()?));
    slice.ok_or_else(|| format!("a slice is such as 0/64, not {text:?}"))
}

fn part(name: &str) -> Result<Part, String> {
    let named = |part: &Part| format!("{part:?}").eq_ignore_ascii_case(name);
    Part::ALL.into_iter().find(named).ok_or_else(|| format!("there is no part {name:?}"))
}
