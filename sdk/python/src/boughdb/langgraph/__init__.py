"""A checkpointer and a store for LangGraph.

    from boughdb.langgraph import BoughSaver, BoughStore

    url = "http://127.0.0.1:7717"
    graph = builder.compile(checkpointer=BoughSaver(url), store=BoughStore(url))

A thread is a session of Bough with the same id. The messages of the graph's state are its messages, stored once, so that a
run is read, searched and watched as a conversation; checkpoints are custom entries that refer to them. The store's items are
documents by key.
"""

from ._import import import_threads
from ._saver import BoughSaver
from ._store import BoughStore

__all__ = ["BoughSaver", "BoughStore", "import_threads"]
