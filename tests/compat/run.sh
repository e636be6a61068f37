#!/bin/sh
# Runs our session files and our bus against the published Rust crates of phi-core and iii.
#
# A workspace of its own with its own lock file; packages that the product needs too are shared through the build directory.
set -eu
cd "$(dirname "$0")"
exec cargo test --quiet --locked
