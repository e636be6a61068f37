//! Commands on a long session, as a user runs them: time, and the memory of the whole process.

use std::path::Path;
use std::process::Command;

use super::files;
use crate::program::{self, Took};
use crate::report::Row;
use crate::{Options, Outcome};

const SHORT: usize = 10_000;
const LONG: usize = 1_000_000;
const ENTRY_BYTES: usize = 50;

/// What must take little memory on a long session.
const COMMANDS: [&[&str]; 5] = [
    &["context", "--max-tokens", "1000"],
    &["context"],
    &["context", "--json"],
    &["tree", "--json"],
    &["export"],
];

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let place = folder.path();
    let mut rows = Vec::new();
    for form in ["V1", "native"] {
        let short = session(place, form, SHORT)?;
        let long = session(place, form, LONG)?;
        for args in COMMANDS {
            let short = bough_on(place, &short, args)?;
            let long = bough_on(place, &long, args)?;
            rows.extend(pair(&format!("{}, {form}", args.join(" ")), &long, Some(&short)));
        }
    }
    let back = bough_on(place, &format!("native-{LONG}"), &["rollback", "--yes"])?;
    rows.extend(pair("rollback", &back, None));
    Ok(rows)
}

/// A session of so many entries; how commands name it.
fn session(place: &Path, form: &str, entries: usize) -> Outcome<String> {
    let name = format!("{form}-{entries}");
    let file = place.join(format!("{name}.jsonl"));
    files::write(&file, &name, entries, ENTRY_BYTES)?;
    let file = file.to_str().ok_or("the folder's name is not text")?.to_owned();
    if form == "V1" {
        return Ok(file);
    }
    eprintln!("commands: migrating {entries} entries");
    bough_on(place, &file, &["migrate"])?;
    Ok(name)
}

fn bough_on(place: &Path, session: &str, args: &[&str]) -> Outcome<Took> {
    let mut command = Command::new(program::bough()?);
    command.arg("--data-dir").arg(place.join("data")).args(args).arg(session);
    program::run(&mut command)
}

fn pair(what: &str, long: &Took, short: Option<&Took>) -> [Row; 2] {
    let row = |unit: &str, read: fn(&Took) -> f64| {
        let row = Row::new(format!("{what}: {LONG} entries"), unit, read(long));
        match short {
            Some(short) => row.beside(&format!("of_{SHORT}"), read(short)),
            None => row,
        }
    };
    [row("ms", |took| took.milliseconds), row("MB", |took| took.memory)]
}
