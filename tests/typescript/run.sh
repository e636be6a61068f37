#!/bin/sh
# Checks the TypeScript client and runs its tests against the real program.
#
# Builds the client with the compiler of its lock file. BOUGH may name the program.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
client="$root/sdk/typescript"
(cd "$client" && npm ci --silent --no-audit --no-fund --ignore-scripts && npm run --silent build)
(cd "$client" && node --test --test-concurrency=1 --test-timeout=120000 dist/test/*.test.js)
