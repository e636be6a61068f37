//! The `bough` command.
fn main() {}
