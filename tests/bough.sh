# Read by the scripts of the folders beside this file: builds the program, and says where it and what is installed are.
#
#   BOUGH      the program (set it to test another one; nothing is built then)
#   installed  a folder in the build directory that outlives the run
root=$(CDPATH= cd -- "$here/../.." && pwd)
target=$(cargo metadata --format-version 1 --no-deps --manifest-path "$root/Cargo.toml" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
if [ -z "${BOUGH:-}" ]; then
    cargo build --quiet --manifest-path "$root/Cargo.toml" -p bough
    BOUGH="$target/debug/bough"
fi
export BOUGH
installed="$target/installed/$(basename "$here")"
mkdir -p "$installed"

# A virtual environment with exactly these packages: `python_with NAME==VERSION...`.
python_with() {
    if [ "$(cat "$installed/python.txt" 2>/dev/null)" != "$*" ]; then
        python3 -m venv --clear "$installed/python"
        "$installed/python/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" > "$installed/python.txt"
    fi
    python="$installed/python/bin/python"
}

# Puts Node 22 on the PATH, from npm where an older one is installed.
find_node() {
    case "$(node --version)" in v2[2-9].* | v[3-9][0-9].*) return ;; esac
    node="$installed/node/node_modules/node/bin"
    [ -x "$node/node" ] || npm install --silent --no-audit --no-fund --prefix "$installed/node" node@22.23.3
    PATH="$node:$PATH"
}

# Installs Debian's packages: `install_debian NAME...`.
install_debian() {
    apt=apt-get
    [ "$(id -u)" = 0 ] || apt="sudo -n apt-get"
    $apt update -qq
    $apt install -y -qq --no-install-recommends "$@" > /dev/null
}

# Sets CHROMIUM to the browser, and installs Debian's where there is none.
find_chromium() {
    CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
    if [ -z "$CHROMIUM" ]; then
        install_debian chromium fonts-dejavu-core
        CHROMIUM=$(command -v chromium)
    fi
    export CHROMIUM
}

# Sets NGINX to nginx, and installs Debian's where there is none.
find_nginx() {
    NGINX=$(PATH="$PATH:/usr/sbin" command -v nginx || true)
    if [ -z "$NGINX" ]; then
        install_debian nginx-light
        NGINX=/usr/sbin/nginx
    fi
    export NGINX
}

# Sets POSTGRES_BIN to the folder of PostgreSQL's programs, and installs Debian's where there are none.
find_postgres() {
    newest() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }
    POSTGRES_BIN=${POSTGRES_BIN:-$(newest)}
    if [ -z "$POSTGRES_BIN" ]; then
        install_debian postgresql
        POSTGRES_BIN=$(newest)
    fi
    export POSTGRES_BIN
}
