"""A checkpointer and a store for LangGraph.

    from boughdb.langgraph import BoughSaver

    graph = builder.compile(checkpointer=BoughSaver("http://127.0.0.1:7717"))

A thread is a session of Bough with the same id. The messages of the graph's state are its messages, stored once, so that a
run is read, searched and watched as a conversation; checkpoints are custom entries that refer to them.
"""

from ._import import import_threads
from ._saver import BoughSaver

__all__ = ["BoughSaver", "import_threads"]
