#!/bin/sh
# Proves the MCP server with the protocol's conformance suite over HTTP, and with its Python SDK over stdio and HTTP.
#
#   tests/mcp/run.sh                all
#   tests/mcp/run.sh -k stdio       what pytest selects by these arguments
#
# Installs the suite from npm, Node 22 where another one is installed, and the SDK from PyPI, into the build directory. BOUGH may
# name the program. README.md says which scenarios do not apply.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
python_with mcp==2.3.0 pytest==9.2.0 pytest-timeout==2.4.0
find_node
suite=@modelcontextprotocol/conformance@0.2.0-alpha.12
if [ "$(cat "$installed/suite.txt" 2>/dev/null)" != "$suite" ]; then
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$installed/suite" "$suite"
    echo "$suite" > "$installed/suite.txt"
fi
export CONFORMANCE="$installed/suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"
# The very server, with the tools that the suite wants to find.
cargo build --quiet --manifest-path "$root/Cargo.toml" -p bough-server --example mcp_fixture
export MCP_FIXTURE="$target/debug/examples/mcp_fixture"
cd "$here"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest -q -p no:cacheprovider --timeout 120 "$@"
