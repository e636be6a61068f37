#!/bin/sh
# Tests the HTTP API against its own OpenAPI document with schemathesis.
#
# Installs schemathesis from PyPI into the build directory. BOUGH may name the program to test, BOUGH_HTTP_EXAMPLES how many
# requests are made up per operation.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
python_with "schemathesis==4.32.5" "hypothesis==6.170.15"
exec "$python" "$here/run_schemathesis.py"
