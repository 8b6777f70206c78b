"""A server behind a URL of 2024-11-05: one event stream that brings everything, and POSTs that take it (HTTP+SSE).

    GET url ──▶ event: endpoint, the URL for POSTs ──▶ event: message, again and again
    POST endpoint ──▶ 202; what it answers comes on the stream

The stream can't be resumed: where it ends, the session does. The endpoint must be of the origin that was asked, or a
server could have the token, and the requests of its user, sent to another one; nor is any redirect followed.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TypeVar

import anyio
import httpx
from anyio.abc import TaskGroup

from ...errors import PeerError
from ...kit.tasks import background
from ...protocol.http.rules import EVENT_STREAM, JSON
from ...protocol.session.events import Outgoing
from ...protocol.wire.codec import MAX_MESSAGE, Codec
from ...protocol.wire.framing import Oversized, ServerSentEvent
from ...protocol.wire.jsonrpc import Failure, Fate, Message, Notification, Request, Response, Unanswered
from ...protocol.wire.sse import EventStream
from .client_answers import attributed, drain, is_stream, read_answer

__all__ = ["SseTransport", "open_sse"]

ENDPOINT_SECONDS = 30.0
"""How long a server may take to open the stream, and then to name its endpoint."""
T = TypeVar("T")


class SseTransport:
    """Messages with one server, from its `stream` and to the endpoint that this names."""

    def __init__(
        self, stream: httpx.Response, http: httpx.AsyncClient, tasks: TaskGroup, headers: Mapping[str, str]
    ) -> None:
        self._stream = stream
        self._http = http
        self._tasks = tasks
        self._headers = {**headers, "content-type": JSON}
        self._endpoint: httpx.URL | None = None
        self._codec = Codec(is_client=True, line_end=b"")
        self._events = EventStream(MAX_MESSAGE)
        self._outbox, self._inbox = anyio.create_memory_object_stream[Message](256)

    async def open(self) -> None:
        """Reads until the endpoint is named, and on from there meanwhile.

        Raises ConnectionError where the stream ends before, or names another origin.
        """
        chunks = self._stream.aiter_bytes()
        try:
            while self._endpoint is None:
                await self._take(await anext(chunks))
        except (StopAsyncIteration, httpx.HTTPError):
            raise ConnectionError("the event stream ended before it named an endpoint") from None
        self._tasks.start_soon(self._read, chunks)

    async def receive(self) -> Sequence[Message]:
        """The next message. Raises BrokenResourceError when the stream has ended, EndOfStream after `aclose`."""
        try:
            return [await self._inbox.receive()]
        except anyio.ClosedResourceError:
            raise anyio.EndOfStream from None
        except anyio.EndOfStream:
            raise anyio.BrokenResourceError from None

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Begins a POST for each request; waits until the server has taken each other message.

        Raises BrokenResourceError when a message that is no request can't be delivered.
        """
        for one in outgoing:
            match one.message:
                case Request() as request:
                    self._tasks.start_soon(self._ask, request)
                case Notification() | Response() | Failure() as message:
                    await self._tell(message)

    async def aclose(self) -> None:
        """Ends the stream, and by that the session."""
        self._outbox.close()
        self._inbox.close()
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()

    async def _tell(self, message: Message) -> None:
        try:
            async with self._post(message) as response:
                await drain(response)
        except httpx.HTTPError:
            raise anyio.BrokenResourceError from None

    def _post(self, message: Message) -> AbstractAsyncContextManager[httpx.Response]:
        endpoint = self._endpoint or self._stream.url
        body = self._codec.encode(message)
        return self._http.stream("POST", endpoint, content=body, headers=self._headers, follow_redirects=False)

    async def _ask(self, request: Request) -> None:
        """Delivers an error in place of the answer that will not come."""
        try:
            async with self._post(request) as response:
                if response.is_success:
                    await drain(response)
                    return
                answer = await read_answer(self._codec, response, request)
        except httpx.HTTPError as error:
            fate: Fate = "unreached" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else "unknown"
            answer = Unanswered(request.id, f"{type(error).__name__}: {error}", fate)
        await self._deliver(attributed(answer, request))

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        with suppress(httpx.HTTPError, httpx.StreamError):
            async for chunk in chunks:
                await self._take(chunk)
        self._outbox.close()

    async def _take(self, chunk: bytes) -> None:
        for event in self._events.feed(chunk):
            match event:
                case Oversized():
                    pass
                case ServerSentEvent(data, "endpoint") if self._endpoint is None:
                    self._endpoint = _endpoint(self._stream.request.url, data)
                case ServerSentEvent(data, "message"):
                    await self._deliver(self._codec.decode_body(data))

    async def _deliver(self, message: Message) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._outbox.send(message)


def _endpoint(url: httpx.URL, named: bytes) -> httpx.URL:
    try:
        endpoint = url.join(named.decode())
    except (UnicodeDecodeError, httpx.InvalidURL):
        raise ConnectionError("the server names an endpoint that is no URL") from None
    if (endpoint.scheme, endpoint.host, endpoint.port) != (url.scheme, url.host, url.port):
        raise ConnectionError("the server names an endpoint of another origin")
    return endpoint


@asynccontextmanager
async def open_sse(
    url: str, headers: Mapping[str, str], http: httpx.AsyncClient, *, seconds: float = ENDPOINT_SECONDS
) -> AsyncIterator[SseTransport]:
    """A transport to `url`, which opens the event stream, as long as the block. `headers` go with every request. The
    server may take `seconds` to open the stream, and as long to name its endpoint.

    Raises PeerError where the server has no stream there, with the HTTP status as its code; TimeoutError where it
    takes too long; and ConnectionError where it is not reached, or its endpoint is not to be used.
    """
    async with background() as tasks:
        transport = SseTransport(await _soon(_get(url, headers, http), seconds), http, tasks, headers)
        try:
            await _soon(transport.open(), seconds)
            yield transport
        finally:
            await transport.aclose()


async def _soon(step: Awaitable[T], seconds: float) -> T:
    with anyio.move_on_after(seconds):
        return await step
    raise TimeoutError(f"the server named no endpoint in {seconds:g} s")


async def _get(url: str, headers: Mapping[str, str], http: httpx.AsyncClient) -> httpx.Response:
    request = http.build_request("GET", url, headers={**headers, "accept": EVENT_STREAM})
    try:
        response = await http.send(request, stream=True, follow_redirects=False)
    except httpx.HTTPError as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from None
    if is_stream(response):
        return response
    await response.aclose()
    status = response.status_code
    raise PeerError(f"HTTP {status}: no event stream of HTTP+SSE", code=status)
