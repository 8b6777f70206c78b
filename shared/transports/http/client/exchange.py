"""POSTs that use the connections of an aiohttp session directly, in half the time of the session's own POSTs.

For each request, the session handles cookies, redirects, proxies and traces, and encodes the URL and the body, with
the same result for all requests of a client. Here the head is built once; aiohttp opens the connections and parses
the responses.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from .pool import MAX_HEADER_BYTES, TIMEOUT


class Reply(Protocol):
    """A response whose headers have arrived."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def reason(self) -> str | None:
        """The reason phrase after the status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, whose names are case-insensitive."""

    @property
    def content(self) -> aiohttp.StreamReader:
        """The decoded body."""

    def close(self) -> None:
        """Close the connection, and do not reuse it. May be called twice."""


ReplyContext = AbstractAsyncContextManager[Reply]
"""A context manager that sends a request, yields the reply when its headers have arrived, and releases the connection
at the end."""


class DirectPosts:
    """POSTs to `url` on connections of `session`. `headers`, whose names are in lower case, are sent with each."""

    def __init__(self, url: URL, session: aiohttp.ClientSession, headers: Mapping[str, str]) -> None:
        self._session = session
        self._request = aiohttp.ClientRequest("POST", url, loop=asyncio.get_running_loop())
        session_headers = {name.lower(): value for name, value in session.headers.items()}
        self._fixed_headers = {"host": self._request.headers["host"], **session_headers, **headers}
        self._request_line = f"POST {url.raw_path_qs} HTTP/1.1\r\n"
        self._fixed_head = f"{self._request_line}{_format_headers(self._fixed_headers)}"

    def post(self, body: bytes, headers: Mapping[str, str]) -> "_Exchange":
        """Send a short `body` with `headers`, which must consist of visible ASCII and spaces, and which replace
        headers of `DirectPosts` with the same names."""
        # Usually no header is replaced, and the encoded part of the head is used unchanged.
        if self._fixed_headers.keys().isdisjoint(headers):
            head_start = f"{self._fixed_head}{_format_headers(headers)}"
        else:
            head_start = f"{self._request_line}{_format_headers({**self._fixed_headers, **headers})}"
        head = f"{head_start}content-length: {len(body)}\r\n\r\n"
        return _Exchange(self._session, self._request, head.encode("ascii") + body)


def _format_headers(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


class _Exchange:
    """A context manager that sends one request, and yields itself as the reply."""

    def __init__(self, session: aiohttp.ClientSession, request: aiohttp.ClientRequest, data: bytes) -> None:
        self._session = session
        self._request = request
        self._data = data
        self._connection: Connection | None = None
        self.status = 0
        self.reason: str | None = None
        self.headers: Mapping[str, str] = {}
        self.content: aiohttp.StreamReader = aiohttp.streams.EMPTY_PAYLOAD

    async def __aenter__(self) -> Self:
        if self._session.connector is None:
            raise RuntimeError("the HTTP session is closed")
        connection = await self._connect(self._session.connector)
        try:
            protocol = connection.protocol
            if protocol is None or protocol.transport is None:
                raise aiohttp.ServerDisconnectedError
            protocol.set_response_params(
                read_until_eof=True, max_line_size=MAX_HEADER_BYTES, max_field_size=MAX_HEADER_BYTES
            )
            protocol.transport.write(self._data)
            while True:
                message, self.content = await protocol.read()
                # Skip informational responses, which precede the final response (RFC 9110, section 15.2). 101 is
                # final, since it ends HTTP on the connection.
                if message.code >= 200 or message.code == 101:
                    break
            self.status, self.reason, self.headers = message.code, message.reason, message.headers
            self._connection = connection
        finally:
            if self._connection is None:
                connection.close()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # aiohttp closes the connection if the reply was not read to its end.
        if self._connection is not None:
            self._connection.release()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    async def _connect(self, connector: aiohttp.BaseConnector) -> Connection:
        try:
            connection = await connector.connect(self._request, [], TIMEOUT)
            # `connection.protocol` is truthy if data has arrived without a request. Read as the answer to this
            # request, it would shift every later answer to the next request.
            while connection.protocol:
                connection.close()
                connection = await connector.connect(self._request, [], TIMEOUT)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError from error
        return connection
