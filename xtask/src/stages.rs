//! `cargo xtask test`: a list of named stages, run in order, each counted.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use serde::Serialize;

use crate::args::TestOptions;
use crate::counts::{self, Counts};
use crate::external::{self, External};
use crate::package::TARGETS;
use crate::{crash_command, shell, tidy};

/// The stage that also builds the program.
const TESTS: &str = "test";

/// How many sessions, and entries of one session, the console is scrolled through when there is time.
const LARGE_CONSOLE: &str = "100000";
/// How many loops a recording has that the console is scrolled through then.
const LONG_RECORDING: &str = "10000";

/// How many failed tests of a stage the report names.
const FAILURES_NAMED_MAX: usize = 20;

/// The crates that must compile everywhere.
const PORTABLE: [&str; 3] = ["bough-platform", "bough-log", "bough-session"];

enum Work {
    Ours(fn(&Path) -> Result<Counts, String>),
    External(External),
}

struct Stage {
    name: String,
    about: String,
    work: Work,
    /// Whether it runs when no stage is named.
    is_usual: bool,
}

#[derive(Serialize)]
struct Done {
    name: String,
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    seconds: f64,
}

#[derive(Serialize)]
struct Report {
    stages: Vec<Done>,
    passed: u64,
    failed: u64,
    seconds: f64,
}

/// Runs the chosen stages. A stage that fails does not stop the others: one run tells all.
pub(crate) fn run(root: &Path, options: &TestOptions) -> ExitCode {
    let all = list(root);
    if options.list {
        for stage in &all {
            let when = if stage.is_usual { "" } else { " (only when it is named)" };
            println!("{:<12} {}{when}", stage.name, stage.about);
        }
        return ExitCode::SUCCESS;
    }
    let unknown = options.only.iter().find(|name| all.iter().all(|stage| stage.name != **name));
    if let Some(name) = unknown {
        eprintln!("xtask: there is no stage {name:?}; 'cargo xtask test --list' names them");
        return ExitCode::from(2);
    }
    let chosen: Vec<&Stage> =
        all.iter().filter(|stage| options.wants(&stage.name, stage.is_usual)).collect();
    let report = run_stages(root, &chosen);
    print_report(&report, options.json);
    if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn list(root: &Path) -> Vec<Stage> {
    let ours = |name: &str, about: &str, work| Stage {
        name: name.to_owned(),
        about: about.to_owned(),
        work: Work::Ours(work),
        is_usual: true,
    };
    let mut stages = vec![
        ours("setup", "install what the other stages need", setup),
        ours("fmt", "the sources are formatted", format),
        ours("tidy", "the rules of the house", tidy::stage),
        ours("clippy", "no lint fires, in any target", clippy),
        ours(TESTS, "unit and integration tests", unit_tests),
        ours("doctest", "the examples in the documentation run", doctests),
        ours("examples", "the example programs build", examples),
        ours("doc", "the documentation builds and its links hold", documentation),
        ours("targets", "the portable crates compile for other systems", targets),
        ours("crash", "a short run of the crash harness and a slice of the full one", crash),
    ];
    stages.extend(external::find(root).into_iter().map(|found| Stage {
        name: found.name.clone(),
        about: found.about.clone(),
        work: Work::External(found),
        is_usual: true,
    }));
    let about = "what takes too long for every run: the full crash run, LangGraph's tests, the console with 100,000 sessions, lints of the other workspaces";
    stages.push(Stage { is_usual: false, ..ours("suites-all", about, suites_all) });
    stages
}

fn run_stages(root: &Path, chosen: &[&Stage]) -> Report {
    let started = Instant::now();
    let mut stages = Vec::new();
    let mut program = None;
    for (number, stage) in (1..).zip(chosen) {
        eprintln!("[{number}/{}] {}: {}", chosen.len(), stage.name, stage.about);
        let began = Instant::now();
        let outcome = match &stage.work {
            Work::Ours(work) => work(root),
            Work::External(found) => found.run(program.as_deref()),
        };
        let counts = outcome.unwrap_or_else(|problem| {
            eprintln!("      {problem}");
            Counts::ONE_FAILED
        });
        let seconds = began.elapsed().as_secs_f64();
        let word = if counts.failed == 0 { "ok" } else { "FAILED" };
        eprintln!("[{number}/{}] {}: {word}, {seconds:.1} s", chosen.len(), stage.name);
        if stage.name == TESTS && counts.failed == 0 {
            program = tested_program(root);
        }
        stages.push(Done {
            name: stage.name.clone(),
            passed: counts.passed,
            failed: counts.failed,
            failures: counts.failures,
            seconds,
        });
    }
    Report {
        passed: stages.iter().map(|done| done.passed).sum(),
        failed: stages.iter().map(|done| done.failed).sum(),
        seconds: started.elapsed().as_secs_f64(),
        stages,
    }
}

/// The program that the tests of the command line built. The suites in other languages take it as it is: asking cargo for it
/// again would build half of the tree a second time, without the features that only tests turn on.
fn tested_program(root: &Path) -> Option<PathBuf> {
    let program = shell::target_dir(root).join("debug").join("bough");
    program.exists().then_some(program)
}

fn print_report(report: &Report, json: bool) {
    if json {
        println!("{}", serde_json::json!(report));
        return;
    }
    println!("{:<14} {:>7} {:>7} {:>9}", "stage", "passed", "failed", "seconds");
    for done in &report.stages {
        println!("{:<14} {:>7} {:>7} {:>9.1}", done.name, done.passed, done.failed, done.seconds);
    }
    // Where only the end of a long run is kept, it must say what to look for.
    for done in report.stages.iter().filter(|done| done.failed > 0) {
        for name in done.failures.iter().take(FAILURES_NAMED_MAX) {
            println!("failed in {}: {name}", done.name);
        }
    }
    println!("all stages took {:.0} s", report.seconds);
    println!("{} passed, {} failed", report.passed, report.failed);
}

fn checked(command: &mut Command) -> Result<Counts, String> {
    let ran = shell::run(command)?;
    Ok(counts::of_run(ran.success, &ran.output))
}

/// A check that is one thing, whatever its output looks like.
fn checked_as_one(command: &mut Command) -> Result<Counts, String> {
    Ok(if shell::run(command)?.success { Counts::ONE_PASSED } else { Counts::ONE_FAILED })
}

fn setup(root: &Path) -> Result<Counts, String> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if shell::answer(shell::cargo(root).args([subcommand, "--version"])).is_none() {
            let mut add = Command::new("rustup");
            checked_as_one(add.args(["component", "add", component]))?;
        }
    }
    // SQLite is compiled from its C source.
    if shell::answer(Command::new("cc").arg("--version")).is_none() {
        external::install_packages(&["build-essential"])?;
    }
    // Debian ships Python without the module that makes virtual environments.
    let venv = ["-c", "import venv, ensurepip"];
    if shell::answer(Command::new("python3").args(venv)).is_none() {
        external::install_packages(&["python3", "python3-venv"])?;
    }
    Ok(Counts::ONE_PASSED)
}

/// The workspaces of the project. Formatting knows only the members of one.
const WORKSPACES: [&str; 4] = [".", "tests/compat", "tests/features", "fuzz"];

fn format(root: &Path) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for workspace in WORKSPACES {
        let mut command = shell::cargo(&root.join(workspace));
        counts = counts.plus(checked_as_one(command.args(["fmt", "--all", "--check"]))?);
    }
    Ok(counts)
}

fn clippy(root: &Path) -> Result<Counts, String> {
    let mut command = shell::cargo(root);
    command.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
    checked_as_one(command.args(["--", "-D", "warnings"]))
}

/// nextest is quicker and stops a test that hangs, but takes minutes to build: used where it is found.
fn unit_tests(root: &Path) -> Result<Counts, String> {
    let mut command = shell::cargo(root);
    if shell::answer(shell::cargo(root).args(["nextest", "--version"])).is_some() {
        command.args(["nextest", "run", "--no-fail-fast", "--status-level", "slow"]);
        return checked(command.arg("--workspace"));
    }
    command.args(["test", "--quiet", "--no-fail-fast", "--workspace"]);
    checked(command.args(["--lib", "--bins", "--tests"]))
}

fn doctests(root: &Path) -> Result<Counts, String> {
    checked(shell::cargo(root).args(["test", "--quiet", "--doc", "--workspace"]))
}

fn examples(root: &Path) -> Result<Counts, String> {
    checked_as_one(shell::cargo(root).args(["build", "--quiet", "--examples", "--workspace"]))
}

fn documentation(root: &Path) -> Result<Counts, String> {
    let mut command = shell::cargo(root);
    command.env("RUSTDOCFLAGS", "-D warnings");
    checked_as_one(command.args(["doc", "--quiet", "--no-deps", "--workspace"]))
}

fn targets(root: &Path) -> Result<Counts, String> {
    let installed = shell::answer(Command::new("rustup").args(["target", "list", "--installed"]));
    let installed = installed.unwrap_or_default();
    let about_rustc = shell::answer(Command::new("rustc").arg("-vV")).unwrap_or_default();
    let host = about_rustc.lines().find_map(|line| line.strip_prefix("host: "));
    let mut counts = Counts::default();
    // This machine's own target is what every other stage compiles.
    let triples = TARGETS.iter().map(|target| target.triple);
    for target in triples.filter(|triple| Some(*triple) != host) {
        if !installed.lines().any(|line| line == target) {
            eprintln!("      {target}: not in this toolchain");
            continue;
        }
        let mut command = shell::cargo(root);
        command.args(["check", "--quiet", "--target", target]);
        for package in PORTABLE {
            command.args(["--package", package]);
        }
        counts = counts.plus(checked_as_one(&mut command)?);
    }
    Ok(counts)
}

/// The full run of the crash harness is covered over the commits: each runs one of so many slices of it.
const CRASH_SLICES: u64 = 64;

/// The commit chooses the slice and the seed, so that a failure can be repeated from the commit alone.
fn crash(root: &Path) -> Result<Counts, String> {
    let head = shell::answer(Command::new("git").current_dir(root).args(["rev-parse", "HEAD"]));
    let (slice, seed) = crash_slice(head.as_deref().unwrap_or_default());
    let arguments = format!("--short --slice {slice}/{CRASH_SLICES} --seed {seed}");
    eprintln!("      to run it again: cargo xtask crash {arguments}");
    checked_as_one(crash_command(root).arg("--").args(arguments.split(' ')))
}

fn crash_slice(commit: &str) -> (u64, u64) {
    let digits = commit.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let number = digits.unwrap_or(0);
    (number % CRASH_SLICES, number / CRASH_SLICES)
}

/// What does not fit into a run for every change.
fn suites_all(root: &Path) -> Result<Counts, String> {
    let mut counts = checked_as_one(&mut crash_command(root))?;
    for workspace in ["tests/compat", "tests/features"] {
        let mut lints = shell::cargo(&root.join(workspace));
        lints.args(["clippy", "--quiet", "--locked", "--all-targets", "--", "-D", "warnings"]);
        counts = counts.plus(checked_as_one(&mut lints)?);
    }
    let mut langgraph = Command::new("sh");
    langgraph.arg(root.join("tests/python/run.sh")).arg("langgraph");
    counts = counts.plus(checked(&mut langgraph)?);
    let mut console = Command::new("sh");
    console.arg(root.join("tests/console/run.sh")).args(["large.test.mjs", "loops_long.test.mjs"]);
    console
        .env("BOUGH_CONSOLE_SESSIONS", LARGE_CONSOLE)
        .env("BOUGH_CONSOLE_ENTRIES", LARGE_CONSOLE)
        .env("BOUGH_CONSOLE_LOOPS", LONG_RECORDING);
    Ok(counts.plus(checked(&mut console)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_stage_does_not_stop_the_next_and_is_counted() {
        let stage = |name: &str, work| Stage {
            name: name.to_owned(),
            about: String::new(),
            work: Work::Ours(work),
            is_usual: true,
        };
        let bad = stage("bad", |_| Err("no".to_owned()));
        let good = stage("good", |_| Ok(Counts::of(3, 0)));
        let report = run_stages(Path::new("."), &[&bad, &good]);
        assert_eq!((report.passed, report.failed), (3, 1));
        assert_eq!(report.stages.len(), 2);
    }

    #[test]
    fn the_commit_chooses_the_slice_and_the_seed() {
        assert_eq!(crash_slice("0000004142424242"), (1, 1));
        assert_eq!(crash_slice(""), (0, 0));
        assert_eq!(crash_slice("not a commit"), (0, 0));
    }

    #[test]
    fn stage_names_are_unique() {
        let mut names: Vec<String> =
            list(&crate::workspace_root()).into_iter().map(|stage| stage.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
