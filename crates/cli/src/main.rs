//! The `bough` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    bough_cli::run(std::env::args_os())
}
