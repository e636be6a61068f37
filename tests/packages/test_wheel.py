"""`pip install boughdb`: the client and the program."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import PACKAGES, ROOT, clean_environment, ok, package, started

USES_THE_CLIENT = """
import sys
from boughdb import Bough
with Bough.local(sys.argv[1], idle_exit=1) as bough:
    session = bough.create("From a wheel")
    session.append("Hello")
    print(len(list(session.messages())))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel, its dependencies from PyPI."""
    folder = tmp_path_factory.mktemp("wheel") / "python"
    ok(["python3", "-m", "venv", folder])
    ok([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--find-links", PACKAGES, "boughdb"])
    return folder


def test_the_program_is_among_the_scripts(environment: Path, home: Path, port: int) -> None:
    program = environment / "bin/bough"
    variables = clean_environment(home, BOUGH_LISTEN=f"127.0.0.1:{port}", BOUGH_BUS="off")
    with started([program, "serve"], port, env=variables):
        ok([program, "health"], env=variables)


def test_the_client_finds_the_program_where_the_path_does_not_name_it(environment: Path, home: Path) -> None:
    command = [environment / "bin/python", "-c", USES_THE_CLIENT, home / "data"]
    assert ok(command, env=clean_environment(home)).strip() == "1"


def test_the_name_says_which_glibc_the_program_needs() -> None:
    wheel = package("boughdb-*.whl")
    named = re.search(r"-py3-none-manylinux_(\d+)_(\d+)_x86_64\.whl$", wheel.name)
    assert named, wheel.name
    shown = ok([Path(sys.executable).with_name("auditwheel"), "show", wheel])
    told = [tuple(map(int, found)) for found in re.findall(r"manylinux_(\d+)_(\d+)_x86_64", shown)]
    assert told and min(told) <= tuple(map(int, named.groups())), shown


@pytest.mark.skipif("PACKAGED" in os.environ, reason="a program that was built for this machine needs its glibc")
def test_the_program_that_is_built_for_packages_runs_on_glibc_2_17() -> None:
    program = PACKAGES / "work/x86_64-unknown-linux-gnu/program/bough"
    listed = subprocess.run(["readelf", "--version-info", "-W", program], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", listed)}
    assert versions and max(versions) <= (2, 17), max(versions)


def test_without_a_program_the_wheel_is_for_every_platform(tmp_path: Path) -> None:
    python = PACKAGES.parent / "installed/package/python/bin/python"
    ok([python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, ROOT / "sdk/python"])
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "/scripts/" in name]
