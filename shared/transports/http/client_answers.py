"""What a client makes of an HTTP response: a stream of events, a message, or an error with its status."""

import httpx

from ...errors import ParseError
from ...protocol.http.rules import EVENT_STREAM
from ...protocol.session.envelope import claims_envelope
from ...protocol.wire.codec import MAX_MESSAGE, Codec
from ...protocol.wire.jsonrpc import Batch, Failure, Malformed, Message, Request, Response, failure

__all__ = ["is_stream", "read_answer"]

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
