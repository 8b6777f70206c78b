"""One HTTP response that follows a stream of a session: JSON if the answer comes first, otherwise an event stream.

A call that is silent for long begins its event stream on its own, to show that the connection is alive, and so that
the client may reconnect if it is lost. Otherwise the stream begins with the first message before the answer.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial

from ....errors import Unavailable
from ....protocol.http.rules import find_kind_status
from ....server.dispatch.room import LARGE_RESULT_BYTES
from ..engine.connections import abort_answer, call_when_read
from .reply import HttpExchange, Reply, Stage, Watch
from .session import MAY_HAVE_RUN, HttpSession
from .streams import Reader

SentHeaders = Callable[[], Awaitable[tuple[tuple[str, str], ...]]]
"""Returns the headers of a JSON answer when it is sent."""


async def send_answer(http: HttpExchange, session: HttpSession, answer: bytes) -> None:
    """Send the encoded answer to a request that needed no stream."""
    try:
        await session.publish_needed_scopes()
        await http.reply.json(200, answer)
    finally:
        # As in `follow`.
        if len(answer) >= LARGE_RESULT_BYTES:
            call_when_read(http.receive, partial(session.release_room, len(answer)))


async def follow(
    http: HttpExchange, session: HttpSession, reader: Reader | None, pause: float, headers: SentHeaders | None = None
) -> None:
    """Send the messages of `reader` until it ends or the client goes away; a comment every `pause` seconds keeps the
    connection open. Without a reader, answer 202."""
    if reader is None:
        await http.reply.json(202, b"")
        return

    async def keep_alive() -> None:
        # The answer to `initialize` carries the session's id, so it can't arrive on a stream that has begun.
        if http.reply.stage is Stage.NEW and session.version is not None:
            reader.begin()
        await http.reply.comment()

    session.on_stream_opened()
    try:
        # Most requests are answered by now, and their clients need no watch.
        is_answered = reader.stream.sole_answer is not None
        with nullcontext() if is_answered else Watch(http.receive, keep_alive, pause, gone=reader.cut):
            await _write(http, session, reader, headers)
    finally:
        session.on_stream_closed(reader)
        # Large answers count towards the limits of their client until it has read them.
        if reader.large_answer_bytes:
            call_when_read(http.receive, partial(session.release_room, reader.large_answer_bytes))
    # A chunked response that ended cleanly would look complete: the client must see that it was not.
    if reader.is_cut and http.reply.stage is not Stage.ENDED:
        abort_answer(http.receive)


async def _write(http: HttpExchange, session: HttpSession, reader: Reader, headers: SentHeaders | None) -> None:
    stream, reply = reader.stream, http.reply
    await reader.wait()
    if reader.is_cut:
        return
    try:
        await session.publish_needed_scopes()
    except Unavailable:
        await _abort(reply, reader)
        return
    answer, scope_failure = stream.sole_answer, session.missing_scope_failure(reader)
    status_and_headers = None if scope_failure is None else find_kind_status(scope_failure, http.resource)
    if answer is not None and status_and_headers is not None:
        await reply.json(status_and_headers[0], answer, status_and_headers[1])
    elif answer is not None:
        await reply.json(200, answer, () if headers is None else await headers())
    elif stream.refusal is not None and stream.is_all_sent:
        await reply.refuse(stream.refusal)
    else:
        try:
            with reader.cancelled_by_cut():
                await _write_events(reply, session, reader)
        except Unavailable:  # the other replicas do not know of the stream that was to begin
            await _abort(reply, reader)


async def _abort(reply: Reply, reader: Reader) -> None:
    """End the response because the other replicas can't be told what its client would see."""
    if reply.stage is Stage.NEW:
        await reply.refuse(MAY_HAVE_RUN)
    else:
        reader.cut()


async def _write_events(reply: Reply, session: HttpSession, reader: Reader) -> None:
    stream, events = reader.stream, session.begin(reader)
    while not (reader.is_cut or reply.stage is Stage.ENDED):
        if not reader.may_read():
            # Its token no longer allows it to read the stream: the next messages wait for a reader with another.
            reader.cut()
            return
        events += stream.take()
        if reader.retry_ms is not None and not stream.is_over:
            events.append(stream.position_event(reader.retry_ms))
        last = reader.is_ending
        session.on_caught_up()  # which may put messages on the stream that were held back for this reader
        # Before the bytes are sent: a client that reconnects at another replica must find the same messages there.
        await session.publish_needed_scopes()
        settled = stream.pending_replication()
        if settled is not None:
            await settled
        await reply.events(events, last=last)
        await reader.wait()
        events = []
