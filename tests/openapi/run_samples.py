"""Runs each program of a folder on a session `first` with an entry `e_1`; the server is BOUGH_SERVER."""

import os
import pathlib
import runpy
import sys

import httpx

MESSAGE = {"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 0}


def prepare(client, name):
    client.post("/v1/trash/first/undelete", json={})
    client.put("/v1/sessions/first", json={"title": "My first session"}).raise_for_status()
    client.post("/v1/sessions/first/entries", json={"entry_id": "e_1", "message": MESSAGE}).raise_for_status()
    if name == "undeleteSession":
        client.delete("/v1/sessions/first").raise_for_status()


with httpx.Client(base_url=os.environ["BOUGH_SERVER"]) as client:
    for program in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
        print(program.stem, flush=True)
        prepare(client, program.stem)
        runpy.run_path(str(program), run_name="__main__")
