"""Starts a server on a fresh directory and lets schemathesis loose on it."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

# Streams never end, so a client that waits for the end of an answer would wait for ever.
STREAMS = ["/v1/events", "/v1/sessions/{session_id}/events"]
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def main():
    data = tempfile.mkdtemp(prefix="bough-http-")
    command = [os.environ["BOUGH_SERVE"], data, "127.0.0.1:0", "off"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = read_address(server)
        return run(address, os.environ.get("BOUGH_HTTP_EXAMPLES", "25"))
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
        assert code == 0, f"the server ended with {code}"


def read_address(server):
    for line in server.stdout:
        words = line.split()
        if words[:1] == ["HTTP"]:
            return words[1]
    raise SystemExit("the server did not start")


def run(address, examples):
    program = pathlib.Path(sys.executable).with_name("schemathesis")
    command = [
        str(program), "run", f"{address}/openapi.json", "--url", address,
        "--checks", CHECKS, "--max-examples", examples, "--phases", "examples,coverage,fuzzing",
        "--request-timeout", "20", "--seed", "1", "--continue-on-failure",
    ]
    for path in STREAMS:
        command += ["--exclude-path", path]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
