#!/bin/sh
# Checks the console's sources, builds it again and compares, then drives it in Chromium.
#
#   tests/console/run.sh            all
#   tests/console/run.sh FILE...    these test files only, without the build
#   tests/console/run.sh bench      measures first paint and frames instead (cargo xtask bench console)
#   tests/console/run.sh pictures   draws the pictures of docs/images anew
#
# Installs npm packages as the lock files say into the build directory, and Debian's Chromium where there is none. BOUGH may
# name the program, CHROMIUM the browser.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"

# The packages of a folder's lock file, installed beside a copy of the folder: `packages_of FOLDER NAME`.
packages_of() {
    place="$installed/$2"
    mkdir -p "$place"
    if ! cmp -s "$1/package-lock.json" "$place/installed-lock.json"; then
        cp "$1/package.json" "$1/package-lock.json" "$place/"
        (cd "$place" && timeout 400 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
        cp "$1/package-lock.json" "$place/installed-lock.json"
    fi
}

check_build() {
    packages_of "$root/console" console
    rm -rf "$place/src" "$place/test" "$place/dist"
    cp -r "$root/console/src" "$root/console/test" "$root/console/build.mjs" "$root/console/tsconfig.json" "$place/"
    (cd "$place" && npm run --silent check && npm test --silent && npm run --silent build)
    # Compressed files differ between versions of zlib; what they hold must not.
    for file in "$place"/dist/*; do
        name=$(basename "$file")
        case "$name" in
            *.gz) gzip -dc "$root/console/dist/$name" | cmp - "${file%.gz}" ;;
            *) cmp "$root/console/dist/$name" "$file" ;;
        esac || { echo "console/dist/$name is not what the sources build: run 'npm run build' in console/" >&2; exit 1; }
    done
}

[ $# -gt 0 ] || check_build
find_chromium
packages_of "$here" browser
cp "$here"/*.mjs "$place/"
cd "$place"
[ "${1:-}" != bench ] || exec node bench.mjs
if [ "${1:-}" = pictures ]; then
    command -v pngquant > /dev/null || install_debian pngquant
    BOUGH_CONSOLE_IMAGES="$root/docs/images" node pictures.mjs
    # A page has few colours: a palette makes a picture a third as large.
    exec pngquant --force --strip --speed 1 --ext .png 128 "$root"/docs/images/console-*.png
fi
[ $# -gt 0 ] || set -- *.test.mjs
exec node --test --test-concurrency=1 --test-timeout=600000 "$@"
