"""The client transport of 2024-11-05: one event stream from the server, and POSTs to it (HTTP+SSE).

    GET url ──▶ event: endpoint, the URL for POSTs ──▶ event: message, for each message
    POST endpoint ──▶ 202; the answer arrives on the stream

The stream can't be resumed: the session ends with the stream. The endpoint must have the origin of the URL, or a
server could redirect the token and the requests of its user to another server. For the same reason, no redirect is
followed.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from io import BytesIO

import aiohttp
import anyio
from yarl import URL

from ....concurrency import TaskSet
from ....contracts import Credentials
from ....errors import PeerError
from ....protocol.http.rules import EVENT_STREAM, JSON
from ....protocol.session.events import Outgoing
from ....protocol.wire.codec import MAX_MESSAGE, Codec
from ....protocol.wire.framing import Oversized, ServerSentEvent
from ....protocol.wire.jsonrpc import Failure, Gap, Message, Notification, Request, Response
from ....protocol.wire.sse import EventStream
from .answers import attribute_answer, drain, is_stream, read_answer, retry_after_data
from .authorized import MAX_ATTEMPTS, AuthorizedRequest
from .exchange import ReplyContext
from .inbox import Inbox
from .pool import FAILURES, MAX_PENDING_POSTS, MAX_POSTS_AT_ONCE, TIMEOUT, Pool, failed_exchange, parse_url, reason_of

ENDPOINT_SECONDS = 30.0
"""Seconds that a server may take to open the stream, and then to name its endpoint."""
CLOSING_SECONDS = 2.0
"""Seconds for sending the remaining messages when the transport is closed."""
ACCEPT_SECONDS = 30.0
"""Seconds that a server may take to accept a notification or an answer."""


class SseTransport:
    """The messages from a server, on the `stream` at `url`, and to it, at the endpoint that the stream names."""

    def __init__(
        self,
        url: URL,
        stream: aiohttp.ClientResponse,
        http: aiohttp.ClientSession,
        headers: Mapping[str, str],
        credentials: Credentials | None = None,
        dialect: str | None = None,
    ) -> None:
        self._url = url
        self._stream = stream
        self._http = http
        self._headers = {**headers, "content-type": JSON}
        self._credentials = credentials
        self._endpoint: URL | None = None
        self._codec = Codec(is_client=True, line_end=b"", dialect=dialect)
        self._events = EventStream(MAX_MESSAGE)
        self._inbox = Inbox()
        self._tasks = TaskSet(self._inbox.end)
        self._background_posts = TaskSet(self._inbox.end)
        self._post_slots = asyncio.Semaphore(MAX_POSTS_AT_ONCE)

    async def open(self) -> None:
        """Read until the endpoint is named, and continue to read in the background.

        Raises ConnectionError if the stream ends before that, or names another origin.
        """
        while self._endpoint is None:
            try:
                chunk = await self._stream.content.readany()
            except FAILURES:
                chunk = b""
            if not chunk:
                raise ConnectionError("the event stream ended before it named an endpoint")
            await self._handle_chunk(chunk)
        self._tasks.start(self._read())

    async def receive(self) -> Sequence[Message]:
        """Return the next messages. Raises BrokenResourceError when the stream has ended, EndOfStream after
        `aclose`."""
        return await self._inbox.take()

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Begin a POST for each message, and wait for the message that completes the handshake, which no other may
        overtake.

        Raises BrokenResourceError if that message can't be delivered.
        """
        for item in outgoing:
            match item.message:
                case Request() as request:
                    self._tasks.start(self._request(request))
                case Notification("notifications/initialized") as message:
                    await self._post_message(message)
                case Response() | Failure() if len(self._background_posts) >= MAX_PENDING_POSTS:
                    pass  # dropped: the server sends requests, but does not accept the answers
                case Notification() | Response() | Failure() as message:
                    self._background_posts.start(self._post_message(message))

    async def aclose(self) -> None:
        """End the stream, and with it the session."""
        with anyio.CancelScope(shield=True):
            self._inbox.close()
            await self._background_posts.finish(CLOSING_SECONDS)
            await self._background_posts.stop()
            self._stream.close()
            await self._tasks.stop()

    async def _post_message(self, message: Message) -> None:
        try:
            async with asyncio.timeout(ACCEPT_SECONDS), self._post_slots, self._post(message) as reply:
                await drain(reply)
        except (*FAILURES, TimeoutError):
            raise anyio.BrokenResourceError from None

    def _post(self, message: Message) -> ReplyContext:
        endpoint, data = self._endpoint or self._url, self._codec.encode(message)

        def send(credential_headers: Mapping[str, str]) -> ReplyContext:
            headers, body = {**self._headers, **credential_headers}, BytesIO(data)
            return self._http.post(endpoint, data=body, headers=headers, allow_redirects=False, timeout=TIMEOUT)

        credentials = self._credentials
        return send({}) if credentials is None else AuthorizedRequest(credentials, "POST", str(endpoint), send)

    async def _request(self, request: Request) -> None:
        """Make a request; if the request is refused or fails, deliver an error as its answer."""
        answer: Message
        try:
            async with self._post(request) as reply:
                if 200 <= reply.status < 300:
                    await drain(reply)
                    return
                answer = await read_answer(self._codec, reply, request)
        except FAILURES as error:
            answer = failed_exchange(request.id, error)
        await self._inbox.put(attribute_answer(answer, request))

    async def _read(self) -> None:
        with suppress(*FAILURES):
            while chunk := await self._stream.content.readany():
                await self._handle_chunk(chunk)
        self._inbox.end(anyio.BrokenResourceError())

    async def _handle_chunk(self, chunk: bytes) -> None:
        for event in self._events.feed(chunk):
            match event:
                case Oversized():
                    await self._inbox.put(Gap())
                case ServerSentEvent(data, "endpoint") if self._endpoint is None:
                    self._endpoint = _endpoint(self._url, data)
                case ServerSentEvent(data, "message"):
                    await self._inbox.put(self._codec.decode_body(data))


def _endpoint(url: URL, data: bytes) -> URL:
    try:
        endpoint = url.join(URL(data.decode()))
        has_other_origin = endpoint.origin() != url.origin()
    except ValueError:
        raise ConnectionError("the server names an endpoint that is not a URL") from None
    # The server chooses the path, but not the origin: the client's headers, including a token, are sent there.
    if has_other_origin:
        raise ConnectionError("the server names an endpoint of another origin")
    # The user name and the password in `url` come from the user: a server must not replace them.
    return endpoint.with_user(url.user).with_password(url.password)


@asynccontextmanager
async def open_sse(
    url: str,
    headers: Mapping[str, str],
    pool: Pool,
    credentials: Credentials | None = None,
    dialect: str | None = None,
    *,
    endpoint_timeout: float = ENDPOINT_SECONDS,
) -> AsyncIterator[SseTransport]:
    """Open the event stream at `url` for the duration of the block. `headers`, and the headers from `credentials`,
    are sent with every request; `dialect` is as in `ClientOptions`. The server may take `endpoint_timeout` seconds to
    open the stream, and as many again to name its endpoint; obtaining credentials, for example by a login, does not
    count.

    Raises PeerError if the server has no stream there, with the HTTP status as its code; TimeoutError if it takes too
    long; and ConnectionError if it can't be reached, or its endpoint must not be used.
    """
    async with AsyncExitStack() as stack:
        parsed_url = parse_url(url)
        stream = await _get(parsed_url, headers, pool.session, credentials, endpoint_timeout)
        transport = SseTransport(parsed_url, stream, pool.session, headers, credentials, dialect)
        stack.push_async_callback(transport.aclose)
        if credentials is not None:
            # Credentials count how often they are refused, so they must learn that they were accepted.
            await credentials.answered("GET", str(parsed_url), stream.status, stream.headers)
        async with _limit_time(endpoint_timeout):
            await transport.open()
        yield transport


@asynccontextmanager
async def _limit_time(endpoint_timeout: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(endpoint_timeout):
            yield
    except TimeoutError:
        raise TimeoutError(f"the server did not announce its endpoint within {endpoint_timeout:g} s") from None


async def _get(
    url: URL,
    headers: Mapping[str, str],
    http: aiohttp.ClientSession,
    credentials: Credentials | None,
    endpoint_timeout: float,
) -> aiohttp.ClientResponse:
    attempts = 0
    while True:
        attempts += 1
        credential_headers = {} if credentials is None else await credentials.headers("GET", str(url))
        sent_headers = {**headers, **credential_headers, "accept": EVENT_STREAM}
        async with _limit_time(endpoint_timeout):
            try:
                response = await http.get(url, headers=sent_headers, allow_redirects=False, timeout=TIMEOUT)
            except FAILURES as error:
                raise ConnectionError(reason_of(error)) from None
        if is_stream(response):
            return response
        response.close()
        status, data = response.status, retry_after_data(response)
        has_new_credentials = credentials is not None and await credentials.answered(
            "GET", str(url), status, response.headers
        )
        if not has_new_credentials or attempts == MAX_ATTEMPTS:
            raise PeerError(f"HTTP {status}: not an event stream of HTTP+SSE", code=status, data=data)
