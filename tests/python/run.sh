#!/bin/sh
# Tests the Python client and its adapters, the adapters with the suites of their frameworks.
#
#   tests/python/run.sh             what every run tests: client, adapters, agents, stores
#   tests/python/run.sh client      types, examples and tests of the client, and that it can be installed
#   tests/python/run.sh adapters    our tests of the adapters, with the suites that the frameworks publish for them
#   tests/python/run.sh agents      the session tests of the OpenAI Agents SDK, from its source
#   tests/python/run.sh stores      LangGraph's own tests of stores, from its source, without those of vectors
#   tests/python/run.sh langgraph   LangGraph's own tests, from its source (minutes; `cargo xtask test --stage suites-all`)
#
# Installs the frameworks from PyPI into the build directory, and PostgreSQL from Debian where there is none. BOUGH may name the program to
# test.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
sdk="$root/sdk/python"
python_with $(grep -v '^#' "$here/requirements.txt")
export PYTHONPATH="$sdk/src:$sdk/tests:$here" PYTHONDONTWRITEBYTECODE=1
pytest="$python -m pytest -q -p no:cacheprovider"
scratch="$installed/scratch"
rm -rf "$scratch"
mkdir "$scratch"

client() {
    "$python" -m pyright --project "$sdk" --pythonpath "$python"
    "$python" -m ruff check --no-cache --config "$sdk/pyproject.toml" "$sdk" "$here"
    "$python" -m ruff format --no-cache --config "$sdk/pyproject.toml" --check "$sdk" "$here"
    (cd "$sdk" && $pytest tests)
    "$installed/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$scratch/site" "$sdk"
    test -f "$scratch/site/boughdb/py.typed"
    PYTHONPATH="$scratch/site" "$python" -c "import boughdb"
}

# LangChain's suite for key-value stores. Without what it depends on for the other suites: that contradicts what is pinned here.
langchain_tests() {
    folder="$installed/langchain-tests-$1"
    if [ ! -d "$folder" ]; then
        "$installed/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder" "langchain-tests==$1"
    fi
    PYTHONPATH="$PYTHONPATH:$folder"
}

adapters() {
    find_postgres
    langchain_tests 1.1.9
    $pytest -p no:asyncio -p bough_server "$here"
}

# The tests of a package, from its source: `tests_of NAME VERSION` prints the folder.
tests_of() {
    folder="$installed/sources/$1-$2"
    if [ ! -d "$folder/tests" ]; then
        mkdir -p "$folder"
        "$installed/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary "$1" \
            --dest "$folder" "$1==$2" >&2
        tar -xzf "$folder"/*.tar.gz -C "$folder" --strip-components 1
        # The installed package is what is tested, not the one beside the tests.
        find "$folder" -mindepth 1 -maxdepth 1 ! -name tests ! -name pyproject.toml -exec rm -rf {} +
    fi
    echo "$folder"
}

agents() {
    cd "$(tests_of openai-agents 0.24.0)"
    run="$pytest -o addopts= -p openai_agents_plugin --basetemp $scratch/tests"
    $run tests/memory/test_session.py tests/memory/test_session_limit.py tests/memory/test_compaction_model_visibility.py \
        tests/memory/test_openai_responses_compaction_session.py tests/deferred_session_writes tests/test_hitl_session_scenario.py tests/test_soft_cancel.py
    # Of the tests of runs, those with a session.
    $run -k "session or sqlite" tests/sandbox/test_memory.py tests/test_agent_runner.py tests/test_agent_runner_streamed.py \
        tests/test_max_turns.py tests/test_native_tool_failure_history.py tests/test_programmatic_tool_calling.py \
        tests/test_run_impl_resume_paths.py tests/test_tool_batch_failure_history.py tests/test_tool_failure_boundaries.py
}

stores() {
    cd "$(tests_of langgraph-checkpoint 4.3.1)"
    $pytest -o addopts= -o asyncio_mode=auto -p langgraph_store_plugin --basetemp "$scratch/tests" \
        -k "not vector and not embed and not non_ascii" tests/test_store.py
}

langgraph() {
    cd "$(tests_of langgraph 1.2.20)"
    NO_DOCKER=true $pytest -o addopts= -p langgraph_plugin --basetemp "$scratch/tests" -k "sqlite and not aes" tests
}

case "${1:-all}" in
    client | adapters | agents | stores | langgraph) "$1" ;;
    all) client; adapters; agents; stores ;;
    *) echo "unknown: $1 (client, adapters, agents, stores, langgraph or nothing)" >&2; exit 2 ;;
esac
