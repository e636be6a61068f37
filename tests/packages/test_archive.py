"""The archive, unpacked by hand."""

import tarfile
from pathlib import Path

from conftest import PACKAGES, ROOT, clean_environment, ok, package, run, started


def unpacked(tmp_path: Path) -> Path:
    with tarfile.open(package("bough-*-x86_64-unknown-linux-gnu.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("bough-*")
    return folder


def test_it_serves_and_says_that_a_port_is_in_use(tmp_path: Path, home: Path, port: int) -> None:
    program = unpacked(tmp_path) / "bough"
    serve = [program, "serve", "--listen", f"127.0.0.1:{port}", "--bus", "off"]
    environment = clean_environment(home, BOUGH_LISTEN=f"127.0.0.1:{port}")
    with started(serve, port, env=environment):
        ok([program, "health"], env=environment)
        second = run([*serve, "--data-dir", tmp_path / "other"], env=environment)
        assert second.returncode == 1
        assert f"127.0.0.1:{port}" in second.stderr
    assert run([program, "health"], env=environment).returncode == 1


def test_it_has_licences_and_completions_and_is_packed_the_same_way_twice(tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    names = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "README.md", "completions/_bough"} <= names
    archive = package("bough-*-x86_64-unknown-linux-gnu.tar.gz")
    again = tmp_path / archive.name
    work = PACKAGES / "work/x86_64-unknown-linux-gnu/archive" / folder.name
    ok(["python3", ROOT / "packaging/archive.py", work, again])
    assert again.read_bytes() == archive.read_bytes()
