#!/bin/sh
# Builds the documentation site, compares the pages made from the program, and runs code blocks and examples.
#
# The blocks of one language on one page run in order as one program. BOUGH may name the program.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
python_with properdocs==1.6.7 properdocs-theme-mkdocs==1.6.7 mkdocs-literate-nav==0.6.3 \
    httpx==0.28.1 typing_extensions==4.16.0 langgraph-checkpoint==4.3.1 langchain-core==1.7.2
export PYTHONPATH="$root/sdk/python/src" PYTHONDONTWRITEBYTECODE=1
(cd "$root/sdk/typescript" && npm ci --silent --no-audit --no-fund --ignore-scripts && npm run --silent build)
"$python" "$here/reference.py" "$root" --check
"$python" -m properdocs build --strict --config-file "$root/properdocs.yml" --site-dir "$target/site"
"$python" "$here/run_blocks.py" "$root"
"$python" "$here/run_examples.py" "$root"
