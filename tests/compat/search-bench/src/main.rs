//! `cargo xtask bench search`: search over a million entries beside ripgrep, plain FTS5 and tantivy.
//!
//! The parts `store` and `peers` make the sessions and the indexes once, in the folder of the bench, and keep the figures of the
//! making beside them; `queries`, `appends` and `freshness` measure on what is there. `BOUGH_BENCH_ENTRIES` is how many entries
//! there are.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "measuring needs the real clock and disk, and the peers use them as they like"
)]

mod appends;
mod bough;
mod corpus;
mod freshness;
mod fts5;
mod peers;
mod queries;
mod ripgrep;
mod tantivy_index;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bough_bench::{Bench, Options, Outcome, Part, measure, report};

const PARTS: [Part; 5] = [
    ("store", bough::rows),
    ("peers", peers::rows),
    ("queries", queries::rows),
    ("appends", appends::rows),
    ("freshness", freshness::rows),
];

fn main() -> ExitCode {
    bough_bench::main(&[Bench {
        name: "search",
        about: "search beside ripgrep, plain FTS5 and tantivy: time, size, freshness, appends",
        run: |options| options.run_parts(&PARTS),
    }])
}

/// How many entries are searched.
fn entries() -> Outcome<usize> {
    match std::env::var("BOUGH_BENCH_ENTRIES") {
        Ok(count) => Ok(count.parse()?),
        Err(_) => Ok(1_000_000),
    }
}

/// Where what is searched is kept between runs.
fn place(options: &Options) -> Outcome<PathBuf> {
    Ok(options.folder.join(format!("search-{}", entries()?)))
}

/// The processor time of this process so far, in seconds.
fn processor_seconds() -> Outcome<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().ok_or("no figures of the process")?;
    let ticks: Vec<f64> =
        after_name.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// The bytes of all files in a folder whose names begin with `name`.
fn bytes_of(folder: &Path, name: &str) -> Outcome<f64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        let metadata = file.metadata()?;
        if metadata.is_file() && file.file_name().to_string_lossy().starts_with(name) {
            bytes += metadata.len();
        }
    }
    Ok(measure::as_f64(usize::try_from(bytes)?))
}

/// What making an index cost. It is kept beside what was made.
struct Made {
    text_bytes: f64,
    index_bytes: f64,
    processor_seconds: f64,
    seconds: f64,
}

impl Made {
    fn keep(&self, folder: &Path, name: &str) -> Outcome<()> {
        let text = serde_json::json!([
            self.text_bytes,
            self.index_bytes,
            self.processor_seconds,
            self.seconds
        ]);
        Ok(std::fs::write(folder.join(format!("{name}.json")), text.to_string())?)
    }

    /// The figures of an index that was made in an earlier run.
    fn kept(folder: &Path, name: &str) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).ok()?;
        let [text_bytes, index_bytes, processor_seconds, seconds] =
            serde_json::from_str(&text).ok()?;
        Some(Self { text_bytes, index_bytes, processor_seconds, seconds })
    }

    fn size(&self) -> f64 {
        self.index_bytes / self.text_bytes
    }

    fn processor(&self) -> f64 {
        self.processor_seconds / (self.text_bytes / 1e6)
    }

    fn rate(&self) -> f64 {
        self.text_bytes / 1e6 / self.seconds
    }
}
