#!/bin/sh
# Holds our pi files against pi's own session manager, in both directions. Needs cargo, node 20 and npm.
#
# Two versions of pi are installed as the lock file says into the target folder, so that nothing of them is in the
# sources; the newer one needs node 22, which npm has too. BOUGH names a
# program that is there already.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
target=$(cargo metadata --format-version 1 --no-deps --offline |
    node -e 'let t = ""; process.stdin.on("data", (d) => (t += d)); process.stdin.on("end", () => console.log(JSON.parse(t).target_directory))')
place="$target/tests-pi"
mkdir -p "$place"
if ! cmp -s "$here/package-lock.json" "$place/installed-lock.json"; then
    cp "$here/package.json" "$here/package-lock.json" "$place/"
    (cd "$place" && timeout 400 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    cp "$here/package-lock.json" "$place/installed-lock.json"
fi
if [ -z "${BOUGH:-}" ]; then
    cargo build --quiet --package bough
    BOUGH="$target/debug/bough"
fi
export BOUGH PI_MODULES="$place/node_modules"
exec timeout 240 node --test "$here/test.mjs"
