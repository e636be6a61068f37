#!/bin/sh
# Checks the OpenAPI document with outside validators, generates clients from it, and uses them on the real program.
#
# Installs the tools as requirements.txt and package-lock.json say into the build directory. BOUGH may name the program to
# test. requirements.txt is made from requirements.in: pip-compile --generate-hashes --strip-extras.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
if ! cmp -s "$here/requirements.txt" "$installed/requirements.txt"; then
    python3 -m venv --clear "$installed/python"
    "$installed/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$installed/"
fi
if ! cmp -s "$here/package-lock.json" "$installed/installed-lock.json"; then
    cp "$here/package.json" "$here/package-lock.json" "$installed/"
    (cd "$installed" && timeout 400 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    cp "$here/package-lock.json" "$installed/installed-lock.json"
fi
export OPENAPI_TOOLS="$installed"
exec "$installed/python/bin/python" -m pytest -q -p no:cacheprovider "$@" "$here"
