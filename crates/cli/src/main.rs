//! The `bough` command.

use std::process::ExitCode;

/// Most of what a request costs beside the disk is small allocations on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    bough_cli::run(std::env::args_os())
}
