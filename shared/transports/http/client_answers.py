"""What a client makes of an HTTP response: a stream of events, a message, or an error with its status."""

from dataclasses import replace

import anyio
import httpx

from ...errors import ParseError
from ...protocol.http.rules import EVENT_STREAM
from ...protocol.session.envelope import claims_envelope
from ...protocol.wire.codec import MAX_MESSAGE, Codec
from ...protocol.wire.jsonrpc import Batch, Failure, Malformed, Message, Request, Response, failure

__all__ = ["attributed", "drain", "is_stream", "read_answer"]

DRAINED = 65_536
"""Bytes of a body without meaning that are read, as then its connection can be used again."""
DRAIN_SECONDS = 1.0
_TELLING = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.METHOD_NOT_ALLOWED)


def is_stream(response: httpx.Response) -> bool:
    """Whether the server answers with an event stream."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.status_code == httpx.codes.OK and media_type == EVENT_STREAM


async def read_answer(codec: Codec, response: httpx.Response, request: Request) -> Message:
    """The message in the body. Where there is none, and where only the status says what is wrong, an error with
    the HTTP status as its code: not let in, no POSTs here, or a session that is over."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_MESSAGE:
            return Malformed(failure(request.id, ParseError(f"an answer of more than {MAX_MESSAGE:,} bytes")))
    message, status = codec.decode_body(body), response.status_code
    said = message.message if isinstance(message, Failure) else response.reason_phrase
    if status in _TELLING or (status == httpx.codes.NOT_FOUND and not claims_envelope(request.params)):
        return Failure(request.id, status, f"HTTP {status}: {said}")
    if isinstance(message, Response | Failure | Batch):
        return message
    if response.is_success:
        return Malformed(failure(request.id, ParseError("the body of the HTTP response is no answer")))
    return Failure(request.id, status, f"HTTP {status}: {said}")


async def drain(response: httpx.Response) -> None:
    """Reads a body that nobody wants to its end where that is near: what says no more than "accepted" is short."""
    left = DRAINED
    if response.is_stream_consumed:  # by a hook of whoever lent the client
        return
    with anyio.move_on_after(DRAIN_SECONDS):
        async for chunk in response.aiter_raw():
            left -= len(chunk)
            if left < 0:
                return


def attributed(message: Message, request: Request) -> Message:
    """An error that names no request is about the one it answers."""
    return replace(message, id=request.id) if isinstance(message, Failure) and message.id is None else message
