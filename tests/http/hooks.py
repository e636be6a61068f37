"""What schemathesis must know of the API beside its document."""

import uuid

import schemathesis

# Values that only the server makes: an invented one is refused, as it should be, and says nothing about the rest of the request.
OPAQUE = {"query": ["cursor", "after"], "headers": ["If-Match", "If-None-Match", "Last-Event-ID"]}
KEY = "Idempotency-Key"


@schemathesis.hook
def before_call(context, case, kwargs):
    """A call that asks to wait for events is answered when the wait is over; the tests have no time for that."""
    query = case.query or {}
    if isinstance(query.get("wait_ms"), (int, float)) and query["wait_ms"] > 50:
        query["wait_ms"] = 50
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    for place, names in OPAQUE.items():
        values = getattr(case, place) or {}
        for name in names:
            values.pop(name, None)
    # A key means one request: the same one for another request is 422.
    if case.headers and KEY in case.headers:
        case.headers[KEY] = uuid.uuid4().hex


@schemathesis.serializer("application/x-ndjson")
def lines_of_json(context, value):
    """Lines of JSON are sent as the text that they are; schemathesis knows no such body."""
    return value.encode() if isinstance(value, str) else str(value).encode()
