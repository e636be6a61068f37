#!/bin/sh
# Reads replies that stream with httpx-sse, sseclient-py and Node's eventsource while the server is killed again and again.
#
# Installs them from PyPI and npm into the build directory. BOUGH may name the program to test.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
python_with "httpx==0.28.1" "httpx-sse==0.4.3" "requests==2.32.5" "sseclient-py==1.9.0" "pytest==8.4.2"
if [ ! -d "$installed/node_modules/eventsource" ]; then
    (cd "$installed" && npm install --silent --no-audit --no-fund --ignore-scripts --no-save eventsource@5.1.4)
fi
# A program finds its packages beside itself, so it runs from where they are.
cp "$here/reader.mjs" "$installed/"
export NODE_READER="$installed/reader.mjs"
exec "$python" -m pytest -q -x -p no:cacheprovider "$here/test_streams.py"
