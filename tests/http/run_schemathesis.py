"""Starts a server with a token on a fresh directory and lets schemathesis loose on it, with all checks but two."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

# Checks that cannot judge this API. Many rules are no matter of a shape (a summary or a digest, words to search for), so a request
# of the right shape may be refused; and an entry that is not in a new session does not mean that the session is not there.
LEFT_OUT = ["positive_data_acceptance", "ensure_resource_availability"]
# Streams never end, so a client that waits for the end of an answer would wait for ever.
STREAMS = ["/v1/events", "/v1/sessions/{session_id}/events"]
# All of it, however slow the machine.
AT_MOST_SECONDS = 600


def main():
    with tempfile.TemporaryDirectory(prefix="bough-http-") as folder:
        bough = [os.environ["BOUGH"], "--data-dir", f"{folder}/data"]
        # Without tokens every caller on this machine is let in, and no check would see that a token is asked for.
        made = [*bough, "token", "create", "--rights", "read,write,admin,metrics", "--json"]
        token = json.loads(subprocess.run(made, check=True, capture_output=True, text=True).stdout)["token"]
        command = [*bough, "serve", "--listen", "127.0.0.1:0", "--bus", "off"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            code = run(read_address(server), token, folder, os.environ.get("BOUGH_HTTP_EXAMPLES", "10"))
        finally:
            server.send_signal(signal.SIGTERM)
            ended = server.wait(timeout=60)
        assert ended == 0, f"the server ended with {ended}"
        return code


def read_address(server):
    for line in server.stdout:
        words = line.split()
        if words[:1] == ["HTTP"]:
            return words[1]
    raise SystemExit("the server did not start")


def run(address, token, folder, examples):
    here = pathlib.Path(__file__).parent
    program = pathlib.Path(sys.executable).with_name("schemathesis")
    report = f"{folder}/report.xml"
    command = [
        str(program), "--config-file", str(here / "schemathesis.toml"), "run", f"{address}/openapi.json", "--url", address,
        "--header", f"Authorization: Bearer {token}", "--checks", "all",
        "--exclude-checks", ",".join(LEFT_OUT),
        "--max-examples", examples, "--phases", "examples,coverage,fuzzing,stateful",
        "--request-timeout", "20", "--seed", "1", "--continue-on-failure", "--workers", "2",
        "--generation-database", "none", "--report", "junit", "--report-junit-path", report,
    ]
    for path in STREAMS:
        command += ["--exclude-path", path]
    started = time.monotonic()
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(here), "PYTHONDONTWRITEBYTECODE": "1"}
    code = subprocess.run(command, check=False, cwd=folder, timeout=AT_MOST_SECONDS, env=environment).returncode
    suites = list(xml.parse(report).getroot().iter("testsuite"))
    total, failed = (
        sum(sum(int(suite.get(name, "0")) for name in names) for suite in suites)
        for names in [("tests",), ("failures", "errors")]
    )
    print(f"{failed} failed, {total - failed} passed in {time.monotonic() - started:.1f}s")
    return code


if __name__ == "__main__":
    sys.exit(main())
