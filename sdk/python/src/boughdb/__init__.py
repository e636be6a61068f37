"""A client of Bough, the session store for AI agents.

`Bough` is the blocking client and `AsyncBough` its asynchronous twin, for asyncio and trio, with the same methods.

>>> with Bough(url) as bough:
...     session = bough.create("Weather")
...     asked = session.append("Will it rain?")
...     [item["message"]["content"][0]["text"] for item in session.messages()]
['Will it rain?']
"""

from ._async.client import AsyncBough
from ._async.documents import AsyncDocuments
from ._async.recording import AsyncRecording
from ._async.reply import AsyncReply
from ._async.session import AsyncSession
from ._async.watch import AsyncWatch
from ._errors import (
    ApiError,
    BoughError,
    Conflict,
    ConnectionFailed,
    DocumentConflict,
    Forbidden,
    InvalidRequest,
    LeafConflict,
    NotFound,
    StartFailed,
    Unavailable,
)
from ._requests import Retries
from ._sync.client import Bough
from ._sync.documents import Documents
from ._sync.recording import Recording
from ._sync.reply import Reply
from ._sync.session import Session
from ._sync.watch import Watch
from ._types import (
    Appended,
    Branch,
    Compaction,
    Context,
    Custom,
    Document,
    DocumentRemoval,
    Entry,
    EntryPage,
    Event,
    Format,
    FormattedConversation,
    NewDocument,
    NewEntry,
    Role,
    SearchHit,
    SearchResult,
    SessionMeta,
    SessionUsage,
    Status,
    StopReason,
    UndoneCompaction,
    Usage,
    WrittenDocuments,
)

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "Appended",
    "AsyncBough",
    "AsyncDocuments",
    "AsyncRecording",
    "AsyncReply",
    "AsyncSession",
    "AsyncWatch",
    "Bough",
    "BoughError",
    "Branch",
    "Compaction",
    "Conflict",
    "ConnectionFailed",
    "Context",
    "Custom",
    "Document",
    "DocumentConflict",
    "DocumentRemoval",
    "Documents",
    "Entry",
    "EntryPage",
    "Event",
    "Forbidden",
    "Format",
    "FormattedConversation",
    "InvalidRequest",
    "LeafConflict",
    "NewDocument",
    "NewEntry",
    "NotFound",
    "Recording",
    "Reply",
    "Retries",
    "Role",
    "SearchHit",
    "SearchResult",
    "Session",
    "SessionMeta",
    "SessionUsage",
    "StartFailed",
    "Status",
    "StopReason",
    "Unavailable",
    "UndoneCompaction",
    "Usage",
    "Watch",
    "WrittenDocuments",
]
