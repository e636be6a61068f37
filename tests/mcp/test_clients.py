"""Bough as the protocol's own Python SDK sees it, over stdio and over HTTP, with a handshake and without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from conftest import Server, bough
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

WIRES = ["legacy", "2026-07-28"]


def stdio(folder: Path, *more: str) -> StdioServerParameters:
    return StdioServerParameters(command=os.environ["BOUGH"], args=["mcp", "--data-dir", str(folder), *more])


def said(result: Any) -> str:
    assert [part.type for part in result.content] == ["text"]
    return result.content[0].text


async def use(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool answers."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, said(result)
    answer = json.loads(said(result))
    assert result.structured_content == answer
    return answer


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return said(result)


async def texts(client: Client, tool: str, session: str, **more: Any) -> list[str]:
    page = await use(client, tool, session_id=session, **more)
    return [item["message"]["content"][0]["text"] for item in page["messages"]]


async def walk(client: Client) -> str:
    """Uses every tool as an agent would; returns the session."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"search", "list_sessions", "read_messages", "append_message", "fork_session"} <= set(tools)
    assert tools["search"].annotations is not None and tools["search"].annotations.read_only_hint
    session = (await use(client, "create_session", title="Weather"))["session_id"]
    first = await use(client, "append_message", session_id=session, message={"role": "user", "content": "Will it rain?"})
    await use(client, "append_message", session_id=session, message={"role": "assistant", "content": "No umbrella needed."})
    assert await texts(client, "read_messages", session) == ["Will it rain?", "No umbrella needed."]
    assert await texts(client, "read_latest_messages", session, limit=1) == ["No umbrella needed."]

    found = await use(client, "search", query="umbrella")
    assert [hit["meta"]["session_id"] for hit in found["hits"]] == [session]
    listed = await use(client, "list_sessions")
    assert session in [one["session_id"] for one in listed["sessions"]]

    other = {"role": "assistant", "content": "It will pour."}
    await use(client, "append_message", session_id=session, message=other, parent_id=first["entry_id"])
    assert await texts(client, "read_messages", session) == ["Will it rain?", "It will pour."]
    branches = (await use(client, "list_branches", session_id=session))["branches"]
    assert len(branches) == 2
    back = next(branch["entry_id"] for branch in branches if not branch["active"])
    await use(client, "switch_branch", session_id=session, entry_id=back)
    assert await texts(client, "read_messages", session) == ["Will it rain?", "No umbrella needed."]
    forked = await use(client, "fork_session", session_id=session, entry_id=first["entry_id"], title="Again")
    assert await texts(client, "read_messages", forked["session_id"]) == ["Will it rain?"]
    described = await use(client, "describe_session", session_id=forked["session_id"])
    assert described["meta"]["title"] == "Again"
    return session


async def read_resources(client: Client, session: str) -> None:
    uri = f"bough://sessions/{session}"
    assert uri in [str(resource.uri) for resource in (await client.list_resources()).resources]
    templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
    assert templates == ["bough://sessions/{session_id}", "bough://sessions/{session_id}/entries/{entry_id}"]
    contents = (await client.read_resource(uri)).contents
    document = json.loads(contents[0].text)
    assert [item["message"]["role"] for item in document["messages"]] == ["user", "assistant"]
    entry = document["messages"][0]["entry_id"]
    contents = (await client.read_resource(f"{uri}/entries/{entry}")).contents
    assert json.loads(contents[0].text)["entry"]["entry_id"] == entry
    for missing in ("bough://sessions/none", f"{uri}/entries/none", "file:///etc/passwd"):
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource(missing)


async def meet_errors(client: Client, session: str) -> None:
    assert await refused(client, "read_messages", session_id="none") == (
        "session none does not exist. list_sessions and search say which sessions there are."
    )
    assert "no argument" in await refused(client, "search", text="rain")
    assert "limit" in await refused(client, "read_messages", session_id=session, limit=1000)
    assert "query" in await refused(client, "search")
    message = {"role": "user", "content": "x"}
    assert "list_branches" in await refused(client, "append_message", session_id=session, message=message, parent_id="none")
    assert "read the latest" in await refused(client, "append_message", session_id=session, message=message, expected_leaf="none")
    with pytest.raises(MCPError, match="the tools are"):
        await client.call_tool("rm", {})


@pytest.mark.anyio
@pytest.mark.parametrize("wire", WIRES)
async def test_an_agent_over_stdio(wire: str, tmp_path: Path) -> None:
    async with Client(stdio(tmp_path), mode=wire) as client:
        session = await walk(client)
        await read_resources(client, session)
        await meet_errors(client, session)


@pytest.mark.anyio
@pytest.mark.parametrize("wire", WIRES)
async def test_an_agent_over_http(wire: str, tmp_path: Path) -> None:
    server = bough(tmp_path)
    try:
        async with Client(server.mcp, mode=wire) as client:
            session = await walk(client)
            await read_resources(client, session)
            await meet_errors(client, session)
    finally:
        server.stop()


@pytest.mark.anyio
async def test_an_agent_over_stdio_through_a_server(server: Server, tmp_path: Path) -> None:
    async with Client(stdio(tmp_path, "--server", server.url)) as client:
        session = await walk(client)
        await read_resources(client, session)


@pytest.mark.anyio
async def test_a_client_chooses_the_newest_version_by_itself(server: Server, tmp_path: Path) -> None:
    for place in (stdio(tmp_path), server.mcp):
        async with Client(place) as client:
            assert client.protocol_version == "2026-07-28"
            assert client.server_info is not None and client.server_info.name == "bough"
            assert client.instructions is not None and "append_message" in client.instructions


@pytest.mark.anyio
@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_changes_are_told_to_a_client_that_listens(over: str, server: Server, tmp_path: Path) -> None:
    place = stdio(tmp_path, "--server", server.url) if over == "stdio" else server.mcp
    async with Client(place, mode="2026-07-28") as client:
        session = (await use(client, "create_session"))["session_id"]
        uri = f"bough://sessions/{session}"
        async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as told:
            message = {"role": "user", "content": "hello"}
            server.send("POST", f"/v1/sessions/{session}/entries", {"message": message})
            server.send("PUT", f"/v1/sessions/made-{over}", {})
            kinds: set[str] = set()
            with anyio.fail_after(60):
                async for event in told:
                    kinds.add(type(event).__name__)
                    if len(kinds) == 2:
                        break
            assert kinds == {"ResourceUpdated", "ResourcesListChanged"}


@pytest.mark.anyio
async def test_changes_are_told_to_a_client_that_subscribed(server: Server, tmp_path: Path) -> None:
    told: list[str] = []
    arrived = anyio.Event()

    async def note(message: Any) -> None:
        told.append(getattr(message, "method", ""))
        if "notifications/resources/updated" in told:
            arrived.set()

    place = stdio(tmp_path, "--server", server.url)
    async with Client(place, mode="legacy", message_handler=note) as client:
        session = (await use(client, "create_session"))["session_id"]
        await client.subscribe_resource(f"bough://sessions/{session}")
        with pytest.raises(MCPError, match="no resource"):
            await client.subscribe_resource("bough://sessions/none")
        server.send("POST", f"/v1/sessions/{session}/entries", {"message": {"role": "user", "content": "hello"}})
        with anyio.fail_after(60):
            await arrived.wait()
        assert "notifications/resources/list_changed" in told


def test_lists_have_pages(tmp_path: Path) -> None:
    server = bough(tmp_path)
    try:
        for number in range(101):
            server.send("PUT", f"/v1/sessions/s{number}", {})
        names: set[str] = set()
        cursor: dict[str, str] = {}
        while True:
            body = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": cursor}
            page = server.post(json.dumps(body).encode())[1]["result"]
            names |= {resource["name"] for resource in page["resources"]}
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert len(names) == 101 and cursor
    finally:
        server.stop()


@pytest.mark.parametrize("ending", ["closed", "killed"])
def test_a_client_that_goes_leaves_no_process(ending: str, tmp_path: Path) -> None:
    """The client is a process of its own, which starts the server as clients do."""
    program = (
        "import subprocess, sys\n"
        "server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        'ping = b\'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n\'\n'
        "server.stdin.write(ping); server.stdin.flush()\n"
        "assert b'result' in server.stdout.readline()\n"
        "print(server.pid, flush=True)\n"
        "sys.stdin.read()\n"
        "server.stdin.close()\n"
        "sys.exit(server.wait(timeout=60))\n"
    )
    command = [sys.executable, "-c", program, os.environ["BOUGH"], "mcp", "--data-dir", str(tmp_path)]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdin is not None and client.stdout is not None
    served = int(client.stdout.readline())
    if ending == "closed":
        client.stdin.close()
        assert client.wait(timeout=60) == 0
    else:
        client.send_signal(signal.SIGKILL)
        client.wait()
    late = time.monotonic() + 60
    while state_of(served) != "Z":
        assert time.monotonic() < late, "the server is still there"
        time.sleep(0.05)


def state_of(process: int) -> str:
    """The state of a process; `Z` when it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_what_is_not_a_message_is_refused_and_the_next_one_answered(tmp_path: Path) -> None:
    lines = [
        "not json",
        "[]",
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}',
        '{"jsonrpc": "2.0", "id": 2, "method": "no/such"}',
        "",
        '{"jsonrpc": "2.0", "id": 3, "method": "ping"}',
    ]
    command = [os.environ["BOUGH"], "mcp", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [answer["error"]["code"] for answer in answers[:2]] == [-32700, -32600]
    by_id = {answer["id"]: answer for answer in answers[2:]}
    assert "initialize" in by_id[1]["error"]["message"]
    assert by_id[3]["result"] == {}


def test_http_is_guarded_and_keeps_to_the_protocol(server: Server) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    assert server.post(ping) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert server.post(ping, host="evil.example")[0] == 421
    assert server.post(ping, origin="http://evil.example")[0] == 403
    assert server.post(ping, content_type="text/plain")[0] == 415
    assert server.post(b"{")[0] == 400
    assert server.post(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}') == (202, None)
    for method in ("GET", "DELETE"):
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, server.mcp]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "405"


def test_a_token_decides_what_is_offered(tmp_path: Path) -> None:
    command = [os.environ["BOUGH"], "token", "create", "--data-dir", str(tmp_path), "--rights", "read", "--json"]
    made = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    server = bough(tmp_path)
    try:
        listing = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
        assert server.post(listing)[0] == 401
        bearer = {"authorization": f"Bearer {made['token']}"}
        names = [tool["name"] for tool in server.post(listing, **bearer)[1]["result"]["tools"]]
        assert "search" in names and "append_message" not in names
        call = {"name": "create_session", "arguments": {}}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        result = server.post(json.dumps(body).encode(), **bearer)[1]["result"]
        assert result["isError"] and "token" in result["content"][0]["text"]
    finally:
        server.stop()
