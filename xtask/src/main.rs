//! The project's own tasks: `cargo xtask test`, `tidy`, `package`, `crash` and `bench`.
//!
//! Invariants:
//! - Everything a check needs is installed by the check itself; nothing is expected of the machine but
//!   Rust, Python, Node and the package manager.
//! - It knows the workspace only from outside: `cargo metadata`, source text and the exit status of
//!   programs. It links no crate of the product, so that it builds in seconds and runs when they do not.
//! - What it prints on standard output is its answer; progress goes to standard error.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task runner is no part of the product: it reads the tree and talks to the terminal"
)]

mod args;
mod counts;
mod external;
mod package;
mod shell;
mod stages;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use args::Task;

const HELP: &str = "\
The project's own tasks.

  cargo xtask test [--stage NAME]... [--list] [--json]
      Everything: format, tidy, lints, tests, documentation, a short crash run, and clients in
      Python and Node. The last line is 'N passed, N failed'. Some stages run only when they are
      named: --list says which.
  cargo xtask tidy [--json]
      The rules that the compiler does not know, and a report of sizes.
  cargo xtask package [archive|wheel|npm|deb|image|all]... [--target TRIPLE] [--program FILE] [--profile NAME] [--json]
      What is handed out, in 'packages' in the build directory: one stripped program for a target, in each form. Without
      --program it is built, with the profile 'dist' and for glibc 2.17.
  cargo xtask crash [--short [--slice NUMBER/COUNT]] [--seed N] [--replay PLACE] [--json]
      Crashes, faults, rot and kills against the log. Without --short: the full run. A slice is a part of
      what a short run leaves out; the test stage takes one that the commit chooses.
  cargo xtask bench NAME [--json] [--part PART] [--dir FOLDER]
      Measures beside its peers. 'cargo xtask bench list' names the benches.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match args::parse(&arguments) {
        Ok(task) => run(task),
        Err(problem) => {
            eprintln!("xtask: {problem}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn run(task: Task) -> ExitCode {
    let root = workspace_root();
    match task {
        Task::Help => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Task::Test(options) => stages::run(&root, &options),
        Task::Tidy { json } => tidy::run(&root, json),
        Task::Package(options) => package::run(&root, &options),
        Task::Crash { rest } => forward(crash_command(&root).arg("--").args(rest)),
        Task::Bench { rest } => bench(&root, &rest),
    }
}

/// The folder of the workspace: the parent of this package, wherever the command was typed.
fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The harness is a program of its own, built with optimisation and only when it is asked for.
fn crash_command(root: &Path) -> Command {
    let mut command = shell::cargo(root);
    command.args(["run", "--quiet", "--release", "--package", "bough-testkit"]);
    command.args(["--features", "crash", "--bin", "crash"]);
    command
}

/// The server and the console are measured as people run them: the program itself, which their benches start.
fn bench(root: &Path, rest: &[String]) -> ExitCode {
    let is_console = rest.iter().any(|word| word == "console");
    if is_console || rest.iter().any(|word| word == "server") {
        let built = forward(shell::cargo(root).args(["build", "--release", "--package", "bough"]));
        if built != ExitCode::SUCCESS {
            return built;
        }
    }
    if is_console {
        let program = shell::target_dir(root).join("release/bough");
        let mut script = Command::new("sh");
        return forward(
            script.args(["tests/console/run.sh", "bench"]).env("BOUGH", program).current_dir(root),
        );
    }
    let done = forward(bench_command(root, rest).arg("--").args(rest));
    if rest.iter().any(|word| word == "list") {
        println!(
            "console    first paint and frames of the console with 100,000 sessions and entries"
        );
        println!("recorder   the recorder beside phi-core: recording, session files, navigation");
        println!("search     search over a million entries beside ripgrep, plain FTS5 and tantivy");
    }
    done
}

/// The benches link other databases, which nobody should have to build for ordinary work. The peers of the recorder and of search
/// need the most packages, and have their benches in the workspace of the compatibility tests.
fn bench_command(root: &Path, rest: &[String]) -> Command {
    let mut command = shell::cargo(root);
    command.args(["run", "--quiet", "--release"]);
    let apart = ["recorder", "search"].iter().find(|name| rest.iter().any(|word| word == *name));
    if let Some(name) = apart {
        command.args(["--manifest-path", "tests/compat/Cargo.toml", "--target-dir"]);
        command.arg(shell::target_dir(root));
        command.arg("--package").arg(format!("bough-{name}-bench"));
    } else {
        command.args(["--package", "bough-bench", "--bin", "bough-bench"]);
    }
    command
}

fn forward(command: &mut Command) -> ExitCode {
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {} did not start: {error}", shell::describe(command));
            ExitCode::FAILURE
        }
    }
}
