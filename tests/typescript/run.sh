#!/bin/sh
# Checks the TypeScript client and its adapters, and runs their tests and the suites of frameworks against the real program.
#
#   tests/typescript/run.sh            all
#   tests/typescript/run.sh client     types and tests of the client and the adapters
#   tests/typescript/run.sh types      makes the types of the client from the OpenAPI document, and compares
#   tests/typescript/run.sh suites     the suites that frameworks publish and a chat page in Chromium, with the client as npm
#                                      installs it
#   tests/typescript/run.sh runtimes   the client on Deno and Bun
#
# Installs packages as the lock files say, Node 22 from npm where another one is installed, and Debian's Chromium where there is
# none. BOUGH may name the program, CHROMIUM the browser.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
client="$root/sdk/typescript"

# Installs what the lock file of a folder says: `packages_of FOLDER OPTION...`. Not by `npm ci`: it refuses a lock file that names the
# optional packages of this system only, and npm writes no other where a registry has only those.
packages_of() {
    folder=$1
    shift
    if ! cmp -s "$folder/package-lock.json" "$folder/node_modules/installed-lock.json"; then
        (cd "$folder" && timeout 600 npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error "$@")
        cp "$folder/package-lock.json" "$folder/node_modules/installed-lock.json"
    fi
}

# Frameworks bring programs of their own as optional dependencies, which no test needs.
build() {
    packages_of "$client" --omit=optional
    rm -rf "$client/dist"
    (cd "$client" && npm run --silent build)
}

client() {
    (cd "$client" && node --test --test-concurrency=1 --test-timeout=120000 dist/test/*.test.js)
}

# Makes the types of the client from the document that the program serves, and compares them with those that are there.
types() {
    place="$installed/types"
    mkdir -p "$place"
    (cd "$client" && node --input-type=module --eval '
        import { writeFileSync } from "node:fs";
        const { Server } = await import(process.cwd() + "/dist/test/server.js");
        const server = await Server.start();
        writeFileSync(process.argv[1], await (await fetch(server.url + "/openapi.json")).text());
        await server.remove();' "$place/openapi.json"
    node tools/make-types.mjs "$place/openapi.json" "$place/openapi.ts")
    diff -u "$client/src/openapi.ts" "$place/openapi.ts" || {
        echo "sdk/typescript/src/openapi.ts is not what the document says: copy $place/openapi.ts there" >&2
        exit 1
    }
}

suites() {
    place="$installed/suites"
    mkdir -p "$place"
    cp "$here/package.json" "$here/package-lock.json" "$place/"
    packages_of "$place"
    package="$place/node_modules/boughdb"
    rm -rf "$package"
    mkdir "$package"
    (cd "$client" && npm pack --silent --pack-destination "$place" > /dev/null)
    tar -xzf "$place"/boughdb-*.tgz -C "$package" --strip-components 1
    rm -rf "$place"/*.ts "$place/chat"
    cp -r "$here"/*.test.ts "$here/chat" "$client/test/server.ts" "$place/"
    find_chromium
    (cd "$place" && node node_modules/vitest/vitest.mjs run --globals --reporter=dot)
}

# A conversation on the runtimes that npm has for this machine.
runtimes() {
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "Deno and Bun are not tried here" >&2
        return
    fi
    place="$installed/runtimes"
    scratch=$(mktemp -d)
    mkdir -p "$place"
    echo '{"private": true, "type": "module"}' > "$place/package.json"
    (cd "$place" && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error \
        @deno/linux-x64-glibc@2.9.6 @oven/bun-linux-x64-baseline@1.4.4)
    mkdir -p "$place/node_modules/boughdb"
    cp -r "$client/dist" "$client/package.json" "$place/node_modules/boughdb/"
    cp "$here/runtimes.mjs" "$place/"
    ln -s "$BOUGH" "$scratch/bough"
    (
        cd "$place"
        PATH="$scratch:$PATH"
        node_modules/@deno/linux-x64-glibc/deno run --allow-all --node-modules-dir=manual runtimes.mjs "$scratch/deno"
        node_modules/@oven/bun-linux-x64-baseline/bin/bun runtimes.mjs "$scratch/bun"
    )
    echo "2 passed, 0 failed"
}

find_node
build
case "${1:-all}" in
    client | types | suites | runtimes) "$1" ;;
    all) client; types; suites; runtimes ;;
    *) echo "unknown: $1 (client, types, suites, runtimes or nothing)" >&2; exit 2 ;;
esac
