#!/bin/sh
# Tests the HTTP API against its own OpenAPI document with schemathesis.
#
# Installs schemathesis from PyPI into .venv beside this file. BOUGH_SERVE may name a program that takes DATA_DIR LISTEN BUS;
# otherwise the server's example is built and used. BOUGH_HTTP_EXAMPLES sets how many requests are made per operation.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)

if [ -z "${BOUGH_SERVE:-}" ]; then
    (cd "$root" && cargo build --quiet -p bough-server --example serve)
    BOUGH_SERVE="$root/target/debug/examples/serve"
fi
export BOUGH_SERVE

if [ ! -x "$here/.venv/bin/python" ]; then
    python3 -m venv "$here/.venv"
fi
"$here/.venv/bin/pip" install --quiet "schemathesis==4.*"
exec "$here/.venv/bin/python" "$here/run_schemathesis.py"
