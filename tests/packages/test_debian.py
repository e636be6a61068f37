"""The Debian package, installed by dpkg into a folder that has nothing else."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import clean_environment, ok, package, run, started, until_ok

# What `systemd-analyze security` may give the service at most: 0 is closed in, 100 is open.
EXPOSURE_MAX = 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with the package installed, and the C library of this machine for the program."""
    folder = tmp_path / "root"
    for name in ("etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
        (folder / name).mkdir(parents=True)
    (folder / "var/lib/dpkg/status").touch()
    tmp_path.chmod(0o755)
    folder.chmod(0o755)
    # Scripts see the folder in DPKG_ROOT: nothing of this machine is touched. What it depends on is not in the folder.
    options = ["--force-script-chrootless", "--force-depends", "--no-triggers", f"--root={folder}"]
    ok(["dpkg", *options, "--log=/dev/null", "--install", package("bough_*.deb")], env=system_environment(tmp_path))
    for library in re.findall(r"/\S+", ok(["ldd", folder / "usr/bin/bough"])):
        copy = folder / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    return folder


def system_environment(home: Path) -> dict[str, str]:
    return clean_environment(home, DEBIAN_FRONTEND="noninteractive")


def settings(root: Path, name: str) -> list[str]:
    """The values that the unit has under a name."""
    unit = (root / "usr/lib/systemd/system/bough.service").read_text()
    return re.findall(rf"^{name}=(.*)$", unit, re.M)


def test_the_service_starts_as_its_own_user(root: Path, home: Path, port: int) -> None:
    (account,) = re.findall(r"^bough:[^:]*:(\d+):(\d+):", (root / "etc/passwd").read_text(), re.M)
    state = root / "var/lib" / settings(root, "StateDirectory")[0]
    state.mkdir(mode=int(settings(root, "StateDirectoryMode")[0], 8))
    os.chown(state, int(account[0]), int(account[1]))
    variables = dict(value.split("=", 1) for value in settings(root, "Environment"))
    environment = {**variables, "PATH": "/usr/sbin:/usr/bin", "BOUGH_LISTEN": f"127.0.0.1:{port}"}
    in_root = ["/usr/sbin/chroot", f"--userspec={account[0]}:{account[1]}", root]
    bough = [*in_root, "/usr/bin/bough"]
    remote = ["ls", "--server", f"http://127.0.0.1:{port}", "--token"]
    (command,) = settings(root, "ExecStart")
    with started([*in_root, *command.split()], port, env=environment):
        ok([*bough, "health"], env=environment)
        # The server asks for tokens although nobody made one.
        assert run([*bough, *remote, "wrong"], env=environment).returncode == 6
        token = json.loads(ok([*bough, "token", "create", "--json"], env=environment))["token"]
        until_ok([*bough, *remote, token], env=environment)


def test_the_unit_is_right_and_closed_in(root: Path, tmp_path: Path) -> None:
    # The checker looks for the program where the unit says, so it is given one that is there.
    unit = tmp_path / "bough.service"
    text = (root / "usr/lib/systemd/system/bough.service").read_text()
    unit.write_text(text.replace("/usr/bin/bough", str(root / "usr/bin/bough")))
    done = run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit])
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    ok(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", unit])


def test_removing_it_keeps_the_configuration_and_purging_it_the_sessions(root: Path, tmp_path: Path) -> None:
    sessions = root / "var/lib/bough/sessions"
    sessions.mkdir(parents=True)
    options = ["--force-script-chrootless", "--no-triggers", f"--root={root}", "--log=/dev/null"]
    ok(["dpkg", *options, "--remove", "bough"], env=system_environment(tmp_path))
    assert not (root / "usr/bin/bough").exists()
    assert (root / "etc/bough/config.yaml").exists()
    ok(["dpkg", *options, "--purge", "bough"], env=system_environment(tmp_path))
    assert not (root / "etc/bough/config.yaml").exists()
    assert sessions.exists()


def test_it_depends_on_the_glibc_that_its_program_needs() -> None:
    shown = ok(["dpkg-deb", "--field", package("bough_*.deb"), "Depends"])
    assert re.search(r"libc6 \(>= 2\.\d+\)", shown), shown
