#!/bin/sh
# Runs programs of the published Python and Node SDKs of iii against Bough's own bus.
#
#   tests/sdk/run.sh            both
#   tests/sdk/run.sh python     one of: python, node
#
# Installs them from PyPI and npm into the build directory; the Rust SDKs are in tests/compat. BOUGH may name the program.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
which=${1:-all}

run_python() {
    python_with "iii-sdk==0.25.0" "pytest==8.4.2"
    "$python" -m pytest -q -x -p no:cacheprovider "$here/test_python_sdk.py"
}

# A program finds its packages beside itself, so it runs from where they are.
run_node() {
    if [ ! -d "$installed/node_modules/iii-sdk" ]; then
        (cd "$installed" && npm install --silent --no-audit --no-fund --ignore-scripts --no-save iii-sdk@0.22.1)
    fi
    cp "$here/node_sdk.test.mjs" "$installed/"
    (cd "$installed" && node --test --test-timeout=100000 node_sdk.test.mjs)
}

case "$which" in
    python) run_python ;;
    node) run_node ;;
    all) run_python; run_node ;;
    *) echo "unknown: $which (python, node or nothing)" >&2; exit 2 ;;
esac
