"""Copies the threads of LangGraph's savers into Bough.

    python -m boughdb.langgraph import checkpoints.sqlite
    python -m boughdb.langgraph import postgresql://user@host/database --server http://127.0.0.1:7717

It can be repeated: what was copied before is left alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from .._errors import BoughError
from ._import import import_threads
from ._saver import BoughSaver

# The progress is shown at every step of this many checkpoints, and at the end.
_SHOWN_EVERY = 100


class Refused(Exception):
    """What the person has to change."""


@contextmanager
def open_source(place: str) -> Generator[BaseCheckpointSaver[Any], None, None]:
    """The saver at a place: the address of a PostgreSQL database, or the path of a SQLite file."""
    if place.startswith(("postgresql://", "postgres://")):
        try:
            from langgraph.checkpoint.postgres import PostgresSaver
        except ImportError as error:
            raise Refused(f"{error}; install langgraph-checkpoint-postgres and psycopg[binary]") from error
        with PostgresSaver.from_conn_string(place) as saver:
            yield saver
        return
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise Refused(f"{error}; install langgraph-checkpoint-sqlite") from error
    # SQLite would make an empty file of that name.
    if not Path(place).is_file():
        raise Refused(f"there is no file {place}; give the path of a SQLite file, or postgresql://user@host/database")
    with SqliteSaver.from_conn_string(place) as saver:
        yield saver


def _show(number: int, total: int) -> None:
    if number % _SHOWN_EVERY == 0 or number == total:
        print(f"{number} of {total} checkpoints", file=sys.stderr)


def _parse(words: list[str] | None) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "python -m boughdb.langgraph", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("import", help="copy threads with their whole history")
    command.add_argument("source", help="the path of a SQLite file, or postgresql://user@host/database")
    command.add_argument("--server", help="the server [default: BOUGH_SERVER, or http://127.0.0.1:7717]")
    command.add_argument("--prefix", default="", help="what the ids of the sessions begin with, before the id of the thread")
    command.add_argument("--thread", action="append", help="only this thread; may be given several times")
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Does what the command line asks for; returns the exit code."""
    arguments = _parse(words)
    try:
        with open_source(arguments.source) as source:
            target = BoughSaver(arguments.server, prefix=arguments.prefix)
            copied = import_threads(source, target, arguments.thread, progress=_show)
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BoughError as error:
        print(f"error: {error}; what was copied is kept, and the command can be repeated", file=sys.stderr)
        return 1
    except Exception as error:
        # What the drivers of databases raise has no common class.
        print(f"error: {arguments.source} cannot be read: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"copied": copied}) if arguments.json else f"{copied} checkpoints were copied")
    return 0


if __name__ == "__main__":
    sys.exit(main())
