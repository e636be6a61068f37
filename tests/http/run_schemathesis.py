"""Starts a server on a fresh directory and lets schemathesis loose on it."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

# Streams never end, so a client that waits for the end of an answer would wait for ever.
STREAMS = ["/v1/events", "/v1/sessions/{session_id}/events"]
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# All of it, however slow the machine.
AT_MOST_SECONDS = 150


def main():
    with tempfile.TemporaryDirectory(prefix="bough-http-") as folder:
        command = [os.environ["BOUGH"], "serve", "--data-dir", f"{folder}/data", "--listen", "127.0.0.1:0", "--bus", "off"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            code = run(read_address(server), folder, os.environ.get("BOUGH_HTTP_EXAMPLES", "10"))
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


def run(address, folder, examples):
    program = pathlib.Path(sys.executable).with_name("schemathesis")
    report = f"{folder}/report.xml"
    command = [
        str(program), "run", f"{address}/openapi.json", "--url", address,
        "--checks", CHECKS, "--max-examples", examples, "--phases", "examples,coverage,fuzzing",
        "--request-timeout", "20", "--seed", "1", "--continue-on-failure", "--workers", "2",
        "--generation-database", "none", "--report", "junit", "--report-junit-path", report,
    ]
    for path in STREAMS:
        command += ["--exclude-path", path]
    started = time.monotonic()
    here = pathlib.Path(__file__).parent
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
