"""`npx boughdb serve`: from a registry on loopback, as npm would get it from the public one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import (
    NODE_MODULES,
    SECONDS_MAX,
    answers,
    clean_environment,
    free_port,
    healthz,
    ok,
    package,
    run,
    running,
    started,
)

CONFIG = """
storage: {folder}/storage
auth: {{htpasswd: {{file: {folder}/htpasswd}}}}
packages: {{"**": {{access: $all, publish: $all}}}}
max_body_size: 200mb
middlewares: {{audit: {{enabled: false}}}}
log: {{type: stdout, format: pretty, level: warn}}
"""
USES_THE_CLIENT = """
import { Bough } from "boughdb";
const session = await Bough.local(process.argv[1], { idleExit: 1 }).create({ title: "From npm" });
await session.append("Hello");
console.log((await session.meta()).title);
process.exit(0);
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry that has our packages and no others."""
    folder, port = tmp_path_factory.mktemp("registry"), free_port()
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder))
    command = ["node", NODE_MODULES / "verdaccio/bin/verdaccio", "--config", config, "--listen", f"127.0.0.1:{port}"]
    address = f"http://127.0.0.1:{port}/"
    environment = clean_environment(folder)
    with running(command, lambda: answers(f"{address}-/ping"), env=environment):
        (folder / ".npmrc").write_text(f"//127.0.0.1:{port}/:_authToken=anybody\n")
        for pattern in ("boughdb-linux-x64-*.tgz", "boughdb-[0-9]*.tgz"):
            ok(["npm", "publish", "--registry", address, "--userconfig", folder / ".npmrc", package(pattern)], env=environment)
        yield address


@pytest.fixture
def environment(registry: str, home: Path) -> dict[str, str]:
    """A new user's, with that registry and an empty cache."""
    return clean_environment(home, npm_config_registry=registry, npm_config_cache=str(home / "cache"))


def install(home: Path, environment: dict[str, str], *options: str) -> Path:
    """A new project with the package; where its commands are."""
    project = home / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true, "type": "module"}')
    ok(["npm", "install", "--no-audit", "--no-fund", *options, "boughdb"], cwd=project, env=environment)
    return project


def test_npx_serves_without_an_installation(home: Path, environment: dict[str, str], port: int) -> None:
    command = ["npx", "--yes", "boughdb", "serve", "--listen", f"127.0.0.1:{port}", "--bus", "off"]
    with started(command, port, env=environment, cwd=home):
        pass


def test_the_launcher_ends_with_the_program_and_as_it_ends(home: Path, environment: dict[str, str], port: int) -> None:
    bough = install(home, environment) / "node_modules/.bin/bough"
    environment = {**environment, "BOUGH_LISTEN": f"127.0.0.1:{port}", "BOUGH_BUS": "off"}
    with started([bough, "serve"], port, env=environment) as launcher:
        ok([bough, "health"], env=environment)
        # Only the launcher is asked to end; the server has to end with it.
        os.kill(launcher.pid, signal.SIGTERM)
        assert launcher.wait(timeout=SECONDS_MAX) == 0
        assert healthz(port) is None
    assert run([bough, "health"], env=environment).returncode == 1
    assert run([bough, "no-such-command"], env=environment).returncode == 2


def test_the_client_finds_the_program(home: Path, environment: dict[str, str]) -> None:
    project = install(home, environment)
    command = ["node", "--input-type=module", "--eval", USES_THE_CLIENT, home / "data"]
    assert ok(command, cwd=project, env=environment).strip() == "From npm"


def test_without_a_package_for_the_platform_the_launcher_says_what_to_do(home: Path, environment: dict[str, str]) -> None:
    bough = install(home, environment, "--omit=optional") / "node_modules/.bin/bough"
    done = run([bough, "ls"], env=environment)
    assert done.returncode == 1
    assert "@boughdb/linux-x64" in done.stderr
