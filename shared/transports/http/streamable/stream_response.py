"""An HTTP response that sends the messages of a session's stream: as JSON if the answer comes first, otherwise as an
event stream.

The event stream begins with the first message before the answer. If a call is silent for long, its event stream
begins without a message, to show that the connection is alive, and to let the client reconnect if the connection is
lost. A client that accepts no event stream gets only the answer, so questions to it fail at once.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial

from pydantic_core import from_json

from ....errors import InvalidRequest, Unavailable
from ....protocol.http.rules import EVENT_STREAM, accepted_types, find_kind_status
from ....protocol.wire.jsonrpc import Failure
from ....server.dispatch.room import LARGE_RESULT_BYTES
from ..engine.connections import abort_answer, call_when_read
from .reply import HttpExchange, Reply, Stage, Watch
from .session import MAY_HAVE_RUN, HttpSession
from .streams import Reader

MakeHeaders = Callable[[], Awaitable[tuple[tuple[str, str], ...]]]
"""Returns additional headers of a JSON answer; called when the answer is sent."""

_UNREACHABLE = f"it can't be sent, because the Accept header of the call does not list {EVENT_STREAM}"


async def send_answer(http: HttpExchange, session: HttpSession, answer: bytes) -> None:
    """Send the encoded answer to a request without a stream."""
    try:
        await session.publish_needed_scopes()
        await http.reply.json(200, answer)
    finally:
        # Large answers count towards the limits of the client until it has read them.
        if len(answer) >= LARGE_RESULT_BYTES:
            call_when_read(http.receive, partial(session.release_room, len(answer)))


async def send_stream(
    http: HttpExchange,
    session: HttpSession,
    reader: Reader | None,
    keep_alive_seconds: float,
    headers: MakeHeaders | None = None,
) -> None:
    """Send the messages of `reader` until they end or the client disconnects. Every `keep_alive_seconds`, a comment
    keeps the connection open. Without a reader, the response is 202."""
    if reader is None:
        await http.reply.json(202, b"")
        return

    async def keep_alive() -> None:
        # A header of the answer to `initialize` contains the session's id, so this answer can't follow on an event
        # stream that has begun.
        if http.reply.stage is Stage.NEW and session.version is not None and _accepts_stream(http):
            reader.begin()
        await http.reply.comment()

    session.on_stream_opened()
    try:
        # Most requests are answered by now, so their clients need not be watched.
        is_answered = reader.stream.sole_answer is not None
        with (
            nullcontext()
            if is_answered
            else Watch(http.receive, keep_alive, keep_alive_seconds, on_gone=reader.cancel)
        ):
            await _write(http, session, reader, headers)
    finally:
        session.on_stream_closed(reader)
        # Large answers count towards the limits of the client until it has read them.
        if reader.large_answer_bytes:
            call_when_read(http.receive, partial(session.release_room, reader.large_answer_bytes))
    # The connection is aborted, because a chunked response that ends cleanly would look complete to the client.
    if reader.is_cancelled and http.reply.stage is not Stage.ENDED:
        abort_answer(http.receive)


async def _write(http: HttpExchange, session: HttpSession, reader: Reader, headers: MakeHeaders | None) -> None:
    stream, reply = reader.stream, http.reply
    await reader.wait()
    if reader.is_cancelled:
        return
    try:
        await session.publish_needed_scopes()
    except Unavailable:
        await _abort(reply, reader)
        return
    answer, failure = stream.sole_answer, session.take_failure_with_status(reader)
    if answer is None and not _accepts_stream(http):
        answer = await _take_answer(session, reader)
    status_and_headers = None if failure is None else find_kind_status(failure, http.resource)
    if answer is not None and status_and_headers is not None:
        await reply.json(status_and_headers[0], answer, status_and_headers[1])
    elif answer is not None:
        await reply.json(200, answer, () if headers is None else await headers())
    elif stream.refusal is not None and stream.is_all_sent:
        await reply.refuse(stream.refusal)
    else:
        try:
            with reader.writing_scope():
                await _write_events(reply, session, reader)
        except Unavailable:  # the other replicas could not be informed of the stream
            await _abort(reply, reader)


def _accepts_stream(http: HttpExchange) -> bool:
    return EVENT_STREAM in accepted_types(http.headers)


async def _take_answer(session: HttpSession, reader: Reader) -> bytes | None:
    """Wait for the answer, and return it; the messages before it are dropped. None if the response ends without
    it."""
    events = reader.stream.take()
    while not (reader.is_cancelled or reader.is_ending):
        for event in events:
            _refuse_question(session, event.data)
        await reader.wait()
        events = reader.stream.take() or events
    return events[-1].data if reader.stream.answered and events else None


def _refuse_question(session: HttpSession, data: bytes) -> None:
    """If `data` is a request to the client, answer it with an error, since the client can't receive it."""
    message = from_json(data)
    if "method" in message and "id" in message:
        session.process_forwarded(Failure(message["id"], InvalidRequest.code, _UNREACHABLE, kind="unreachable"))


async def _abort(reply: Reply, reader: Reader) -> None:
    """End the response because the other replicas could not be informed of what the client is about to receive."""
    if reply.stage is Stage.NEW:
        await reply.refuse(MAY_HAVE_RUN)
    else:
        reader.cancel()


async def _write_events(reply: Reply, session: HttpSession, reader: Reader) -> None:
    stream, events = reader.stream, session.begin(reader)
    while not (reader.is_cancelled or reply.stage is Stage.ENDED):
        if not reader.may_read():
            # The token of this response may no longer read the stream. Later messages wait for a reader with another
            # token.
            reader.cancel()
            return
        events += stream.take()
        if reader.retry_ms is not None and not stream.is_over:
            events.append(stream.position_event(reader.retry_ms))
        last = reader.is_ending
        session.on_caught_up()  # this may put messages on the stream that were held back for this reader
        # The other replicas are informed before the bytes are sent: a client that reconnects to another replica must
        # find the same messages there.
        await session.publish_needed_scopes()
        replicated = stream.pending_replication()
        if replicated is not None:
            await replicated
        await reply.events(events, last=last)
        await reader.wait()
        events = []
