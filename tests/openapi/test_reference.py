"""The examples of the reference page work as they are printed."""

import html.parser
import os
import subprocess
import urllib.request

import pytest
from conftest import HERE, TOOLS, node_tool, python_tool, run

ROOT = HERE.parent.parent


class Samples(html.parser.HTMLParser):
    """The examples on the page, by the id of the operation and the language."""

    def __init__(self, page):
        super().__init__()
        self.found, self.operation, self.language, self.inside = {}, None, None, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "h3":
            self.operation = dict(attributes).get("id")
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "figcaption":
            self.language = data
        elif self.inside == "code" and self.language is not None:
            self.found[self.operation, self.language] = data
            self.language = None


@pytest.fixture(scope="session")
def samples(server):
    with urllib.request.urlopen(f"{server}/docs", timeout=20) as answer:
        return Samples(answer.read().decode()).found


def test_every_operation_has_an_example_in_each_language(samples, operations):
    missing = [(name, language) for name in operations for language in ["curl", "Python", "TypeScript"] if (name, language) not in samples]
    assert missing == []


def test_python_examples_work(samples, server, tmp_path):
    """Those that use the client are run; those that follow events have no end, and are compiled like all others."""
    for (name, language), text in samples.items():
        if language == "Python":
            compile(text, name, "exec")
            if "boughdb" in text and ".watch(" not in text:
                (tmp_path / f"{name}.py").write_text(text)
    assert len(list(tmp_path.iterdir())) > 20
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python" / "src"), "PYTHONDONTWRITEBYTECODE": "1", "BOUGH_SERVER": server}
    command = [str(python_tool("python")), str(HERE / "run_samples.py"), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_typescript_examples_compile(samples, tmp_path):
    for (name, language), text in samples.items():
        if language == "TypeScript":
            # Each is a module of its own.
            (tmp_path / f"{name}.ts").write_text(f"{text}\nexport {{}};\n")
    (tmp_path / "boughdb").symlink_to(ROOT / "sdk" / "typescript" / "src")
    (tmp_path / "node_modules").symlink_to(TOOLS / "node_modules")
    (tmp_path / "tsconfig.json").write_text((HERE / "typescript" / "samples.tsconfig.json").read_text())
    run(node_tool("tsc"), "--project", tmp_path)
