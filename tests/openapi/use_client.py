"""Uses the client that openapi-python-client made: create, append a document and a message, list, read, a conflict.

The arguments are the folder that holds the package, and the address of a server.
"""

import sys

sys.path.insert(0, sys.argv[1])

from bough_client import Client  # noqa: E402
from bough_client.api.sessions import append_entry, ensure_session, get_entry, list_messages, list_sessions  # noqa: E402
from bough_client.models import AppendEntryRequest, EnsureRequest, MessageInFormat, OpaqueBody, Problem  # noqa: E402

SESSION = "python"
MESSAGE = {"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1}


def main(server):
    client = Client(base_url=server)
    created = ensure_session.sync(SESSION, client=client, body=EnsureRequest(title="From Python"))
    assert created.created is True

    note = OpaqueBody(custom_type="note", data={"n": 1})
    document = append_entry.sync(SESSION, client=client, body=AppendEntryRequest(custom=note))
    kept = get_entry.sync(SESSION, document.entry_id, client=client).entry
    assert kept.custom.to_dict() == note.to_dict()

    message = MessageInFormat.from_dict(MESSAGE)
    appended = append_entry.sync(SESSION, client=client, body=AppendEntryRequest(message=message))

    sessions = list_sessions.sync(client=client, limit=10).sessions
    assert SESSION in [session.session_id for session in sessions]
    messages = list_messages.sync(SESSION, client=client).messages
    assert [item.entry_id for item in messages] == [appended.entry_id]
    entry = get_entry.sync(SESSION, appended.entry_id, client=client)
    assert entry.entry.message.to_dict() == MESSAGE

    stale = append_entry.sync_detailed(SESSION, client=client, body=AppendEntryRequest(message=message, expected_leaf="another"))
    assert stale.status_code == 409
    assert isinstance(stale.parsed, Problem) and stale.parsed.code == "session/leaf_conflict"
    described = client.get_httpx_client().get(stale.parsed.type_)
    assert described.status_code == 200 and "session/leaf_conflict" in described.text


main(sys.argv[2])
