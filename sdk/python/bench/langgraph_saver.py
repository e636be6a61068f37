"""Measures the LangGraph saver beside the framework's saver in SQLite: stored bytes, and the time of `get_tuple`.

    BOUGH=target/release/bough PYTHONPATH=sdk/python/src:sdk/python/tests python sdk/python/bench/langgraph_saver.py

The agent answers each message of a kilobyte with another one, so that a turn is two kilobytes of text and three checkpoints.
SQLite reads within the process; Bough answers over HTTP, so its time has a round trip in it, which is measured too.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from bough_server import Server
from boughdb import Bough
from boughdb.langgraph import BoughSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}
_MESSAGE_BYTES = 1000
_REPEATS = 50


class State(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]


class Texts:
    """Texts of a kilobyte, always the same ones."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self.total = 0

    def next(self) -> str:
        text = self._random.randbytes(_MESSAGE_BYTES // 2).hex()
        self.total += len(text)
        return text


def run_agent(saver: Any, turns: int) -> int:
    """Runs the agent and returns how many bytes were said."""
    texts = Texts()
    graph = StateGraph(State)
    graph.add_node("agent", lambda _state: {"messages": [AIMessage(texts.next())]})  # pyright: ignore
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    app: Any = graph.compile(checkpointer=saver)
    for _ in range(turns):
        app.invoke({"messages": [HumanMessage(texts.next())]}, THREAD)
    return texts.total


def milliseconds(call: Callable[[], Any]) -> float:
    """The median time of a call."""
    times: list[float] = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1000


def get_tuple_time(saver: Any, by_id: bool) -> float:
    config = saver.get_tuple(THREAD).config if by_id else THREAD
    return milliseconds(lambda: saver.get_tuple(config))


def bytes_below(folder: Path, pattern: str) -> int:
    return sum(file.stat().st_size for file in folder.rglob(pattern) if file.is_file())


def measure_growth(folder: Path, turns: int) -> None:
    server = Server(folder / "growth")
    text = run_agent(BoughSaver(server.url), turns)
    server.stop()
    for what, pattern in (("log", "*.seg"), ("log and its indexes", "sessions/**/*"), ("whole directory", "*")):
        stored = bytes_below(server.folder, pattern)
        print(f"growth, {turns} turns, {what}: {stored} bytes, {stored / text:.2f} times the text")
    database = folder / "growth.sqlite"
    with SqliteSaver.from_conn_string(str(database)) as sqlite:
        run_agent(sqlite, turns)
    stored = bytes_below(folder, "growth.sqlite*")
    print(f"growth, {turns} turns, SQLite: {stored} bytes, {stored / text:.2f} times the text")


def measure_reads(folder: Path, turns: int) -> None:
    server = Server(folder / "reads")
    saver = BoughSaver(server.url)
    with SqliteSaver.from_conn_string(str(folder / "reads.sqlite")) as sqlite, Bough(server.url) as bough:
        for one in (saver, sqlite):
            run_agent(one, turns)
        trip = milliseconds(lambda: bough.send("GET", "/v1/sessions/t"))
        print(f"get_tuple, {3 * turns} checkpoints; a round trip takes {trip:.2f} ms")
        for what in ("newest", "by id"):
            ours, theirs = (get_tuple_time(one, what == "by id") for one in (saver, sqlite))
            ratio = (ours - trip) / theirs
            print(f"get_tuple, {what}: {ours:.2f} ms, SQLite {theirs:.2f} ms; without the round trip {ratio:.2f} times")
        fresh = milliseconds(lambda: BoughSaver(bough).get_tuple(THREAD))
        print(f"get_tuple, newest, of a saver that knows nothing yet: {fresh:.2f} ms")
    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth-turns", type=int, default=400)
    parser.add_argument("--read-turns", type=int, default=334)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure_growth(Path(folder), arguments.growth_turns)
        measure_reads(Path(folder), arguments.read_turns)


if __name__ == "__main__":
    main()
