#!/bin/sh
# Holds our pi files against pi's own session manager, in both directions. Needs cargo, node and npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
if [ ! -d node_modules/@mariozechner/pi-coding-agent ]; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
fi
cargo build --quiet --package bough-migrate --example pi_peer --manifest-path ../../Cargo.toml
target=$(cargo metadata --format-version 1 --no-deps --manifest-path ../../Cargo.toml |
    node -e 'process.stdin.on("data", (d) => (t = (globalThis.t || "") + d)); process.stdin.on("end", () => console.log(JSON.parse(t).target_directory))')
PI_PEER="$target/debug/examples/pi_peer" node --test test.mjs
