#!/bin/sh
# Runs programs of the published iii SDKs against Bough's own bus.
#
#   tests/sdk/run.sh            all of them
#   tests/sdk/run.sh python     one of: python, node, rust
#
# Installs what it needs from PyPI and npm into .venv and node_modules beside this file. BOUGH_SERVE may name a program that
# takes DATA_DIR LISTEN BUS; otherwise the server's example is built and used.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
which=${1:-all}

if [ -z "${BOUGH_SERVE:-}" ]; then
    (cd "$root" && cargo build --quiet -p bough-server --example serve)
    BOUGH_SERVE="$root/target/debug/examples/serve"
fi
export BOUGH_SERVE

run_python() {
    if [ ! -x "$here/.venv/bin/python" ]; then
        python3 -m venv "$here/.venv"
    fi
    "$here/.venv/bin/pip" install --quiet "iii-sdk==0.25.0"
    "$here/.venv/bin/python" "$here/python_sdk.py"
}

run_node() {
    (cd "$here" && npm install --silent --no-audit --no-fund --no-save iii-sdk@0.22.1)
    node "$here/node_sdk.mjs"
}

run_rust() {
    (cd "$root" && cargo test --quiet -p bough-sdk-compat)
}

case "$which" in
    python) run_python ;;
    node) run_node ;;
    rust) run_rust ;;
    all) run_python; run_node; run_rust ;;
    *) echo "unknown: $which (python, node, rust or nothing)" >&2; exit 2 ;;
esac
