"""The interpretation of an HTTP response by a client: a stream of events, a message, or an error with its status."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace

from ....errors import ParseError
from ....protocol.http.retry_after import RETRYABLE, retry_data
from ....protocol.http.rules import EVENT_STREAM
from ....protocol.session.envelope import claims_envelope
from ....protocol.wire.codec import MAX_MESSAGE, Codec
from ....protocol.wire.jsonrpc import Batch, Failure, Malformed, Message, Request, Response, failure
from ....text import escape
from .exchange import Reply
from .pool import FAILURES

MAX_DRAINED_BYTES = 65_536
"""Maximum number of bytes of an unneeded body that are read so that its connection can be reused."""
DRAIN_SECONDS = 1.0
"""Maximum number of seconds for reading an unneeded body."""
_DECISIVE_STATUSES = (401, 403, 405)
"""The statuses that explain a failure better than the body: not admitted (401, 403), or no POST accepted (405)."""


def is_stream(reply: Reply) -> bool:
    """Return True if the server answers with an event stream."""
    media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    return reply.status == 200 and media_type == EVENT_STREAM


async def read_answer(codec: Codec, reply: Reply, request: Request) -> Message:
    """Return the message in the body. If the body contains no message, or if the status explains the failure better,
    return an error with the HTTP status as its code. For a redirect, its data is the `location`."""
    body = await _read_body(reply)
    if body is None:
        return Malformed(failure(request.id, ParseError(f"an answer of more than {MAX_MESSAGE:,} bytes")))
    message, status = codec.decode_body(body), reply.status
    if 300 <= status < 400 and (location := reply.headers.get("location")):
        text = f"HTTP {status}: the server is at {escape(location.partition('?')[0])[:200]}"  # a query may be secret
        return Failure(request.id, status, text, {"location": location})
    reason = message.message if isinstance(message, Failure) else reply.reason
    # The status takes precedence over a body that a proxy has written. In the stateless era (2026-07-28), the body of
    # a 404 says that the server does not know the method; before, a 404 meant an unknown session or URL.
    if status in _DECISIVE_STATUSES or status in RETRYABLE or (status == 404 and not claims_envelope(request.params)):
        return Failure(request.id, status, f"HTTP {status}: {reason}", retry_after_data(reply))
    if isinstance(message, Response | Failure | Batch):
        return message
    if 200 <= status < 300:
        return Malformed(failure(request.id, ParseError("the body of the HTTP response is not an answer")))
    return Failure(request.id, status, f"HTTP {status}: {reason}")


async def _read_body(reply: Reply) -> bytes | bytearray | None:
    """Return the whole body; None if it is longer than a message may be."""
    content = reply.content
    # Nearly every answer has arrived completely: then nothing is copied.
    first = await content.readany()
    if content.at_eof():
        return first
    body = bytearray(first)
    while len(body) <= MAX_MESSAGE:
        if not (chunk := await content.readany()):
            return body
        body += chunk
    return None


def retry_after_data(reply: Reply) -> dict[str, float] | None:
    """Return the pause that the server requests, as the data of an error."""
    return retry_data(reply.status, reply.headers.get("retry-after"), time.time())


async def drain(reply: Reply) -> None:
    """Read a short unneeded body, such as the body of a 202, to its end."""
    remaining, content = MAX_DRAINED_BYTES, reply.content
    if content.at_eof():
        return
    # An incomplete body is ignored, because the status is enough.
    with suppress(*FAILURES, TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while not content.at_eof() and remaining >= 0:
                remaining -= len(await content.readany())


def attribute_answer(message: Message, request: Request) -> Message:
    """Return `message`, with the id of `request` if it is an error without an id, or if its id is a string in place
    of the number."""
    lacks_id = isinstance(message, Failure) and message.id is None
    if isinstance(message, Response | Failure) and (lacks_id or message.id == str(request.id)):
        return replace(message, id=request.id)
    return message
