#!/bin/sh
# Builds the documentation site, compares the pages made from the program, and runs code blocks and examples.
#
# The blocks of one language on one page run in order as one program. BOUGH may name the program. What it installs stays in the build
# directory: mdBook, built once, and Python packages; Debian's nginx where there is none.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
mdbook_version=0.5.4
if [ "$("$installed/bin/mdbook" --version 2>/dev/null)" != "mdbook v$mdbook_version" ]; then
    cargo install --quiet --locked --debug --config profile.dev.debug=false mdbook --version "$mdbook_version" \
        --no-default-features --features search --root "$installed" --target-dir "$installed/mdbook"
    rm -rf "$installed/mdbook"
fi
python_with iii-sdk==0.25.0 \
    httpx==0.28.1 typing_extensions==4.16.0 langgraph-checkpoint==4.3.1 langchain-core==1.7.2
export PYTHONPATH="$root/sdk/python/src" PYTHONDONTWRITEBYTECODE=1
(cd "$root/sdk/typescript" && npm ci --silent --no-audit --no-fund --ignore-scripts && npm run --silent build)
find_nginx
"$python" "$here/reference.py" "$root" --check
"$installed/bin/mdbook" build --dest-dir "$target/site" "$root"
"$python" "$here/check_links.py" "$target/site" "$root/docs"
"$python" "$here/run_blocks.py" "$root"
"$python" "$here/run_examples.py" "$root"
