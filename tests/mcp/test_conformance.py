"""The scenarios of the conformance suite for servers: those about the protocol on Bough itself, and those that call for tools or
resources of given names on the same server with those of fixture.json."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Server

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"

ON_BOUGH = [
    (HANDSHAKE, "server-initialize"),
    (HANDSHAKE, "server-session-lifecycle"),
    (HANDSHAKE, "ping"),
    (HANDSHAKE, "tools-list"),
    (HANDSHAKE, "resources-list"),
    (HANDSHAKE, "dns-rebinding-protection"),
    (STATELESS, "tools-list"),
    (STATELESS, "resources-list"),
    (STATELESS, "sep-2164-resource-not-found"),
    (STATELESS, "dns-rebinding-protection"),
    (STATELESS, "caching"),
    (STATELESS, "http-header-validation"),
    (STATELESS, "server-sse-multiple-streams"),
]

_EITHER = [
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "json-schema-2020-12",
]
ON_FIXTURE = [
    *((version, scenario) for version in (HANDSHAKE, STATELESS) for scenario in _EITHER),
    (STATELESS, "server-stateless"),
]

# Checks that do not apply, of scenarios that otherwise do.
NOT_APPLICABLE = {
    # Bough has no prompts, and says so.
    ("caching", "sep-2549-prompts-list-caching-hints"),
}


def run(server: Server, version: str, scenario: str, folder: Path) -> list[dict[str, Any]]:
    """Runs a scenario; returns its checks that did not go well."""
    command = ["node", os.environ["CONFORMANCE"], "server", "--url", server.mcp, "--scenario", scenario]
    command += ["--spec-version", version, "--output-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    results = list(folder.rglob("checks.json"))
    assert len(results) == 1, done.stdout + done.stderr
    checks = json.loads(results[0].read_text())
    assert any(check["status"] in ("SUCCESS", "INFO") for check in checks), checks
    return [
        check
        for check in checks
        if check["status"] not in ("SUCCESS", "INFO", "SKIPPED") and (scenario, check["id"]) not in NOT_APPLICABLE
    ]


@pytest.mark.parametrize(("version", "scenario"), ON_BOUGH)
def test_bough_passes(server: Server, version: str, scenario: str, tmp_path: Path) -> None:
    assert run(server, version, scenario, tmp_path) == []


@pytest.mark.parametrize(("version", "scenario"), ON_FIXTURE)
def test_the_protocol_passes_with_given_tools(fixture_server: Server, version: str, scenario: str, tmp_path: Path) -> None:
    assert run(fixture_server, version, scenario, tmp_path) == []


def test_every_scenario_is_run_or_said_not_to_apply() -> None:
    """A newer suite may have more."""
    listed = subprocess.run(
        ["node", os.environ["CONFORMANCE"], "list", "--server"], capture_output=True, text=True, check=True
    ).stdout
    section = listed.split("Client scenarios")[0]
    known = {line.split()[1] for line in section.splitlines() if line.startswith("  - ")}
    ran = {scenario for _, scenario in ON_BOUGH + ON_FIXTURE}
    text = Path(__file__).with_name("README.md").read_text()
    assert known and {name for name in known - ran if f"`{name}`" not in text} == set()
