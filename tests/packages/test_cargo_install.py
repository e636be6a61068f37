"""`cargo install --path crates/cli`, with what was compiled for the packages."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, clean_environment, started

INSTALLED = Path(os.environ["TARGET"], "installed/package/python/bin")


@pytest.mark.skipif("PACKAGED" in os.environ, reason="nothing was compiled, and compiling it takes minutes")
def test_it_installs_a_program_that_serves(tmp_path: Path, home: Path, port: int) -> None:
    # Zig's linker as for the packages: with another one everything would be compiled again.
    command = [INSTALLED / "cargo-zigbuild", "install", "--path", ROOT / "crates/cli", "--locked", "--root", tmp_path / "cargo"]
    command += ["--profile", os.environ["PACKAGE_PROFILE"], "--target", "x86_64-unknown-linux-gnu.2.17"]
    command += ["--target-dir", os.environ["TARGET"]]
    path = f"{INSTALLED}:{os.environ['PATH']}"
    assert subprocess.run([str(word) for word in command], env={**os.environ, "PATH": path}, check=False).returncode == 0
    environment = clean_environment(home, BOUGH_LISTEN=f"127.0.0.1:{port}", BOUGH_BUS="off")
    with started([tmp_path / "cargo/bin/bough", "serve"], port, env=environment):
        pass
