"""One endpoint of Streamable HTTP: the three requests that a client makes of it, each with its headers."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from io import BytesIO

import aiohttp

from ...protocol.http.client_headers import ClientHeaders
from ...protocol.http.rules import EVENT_STREAM, LAST_EVENT_ID
from ...protocol.wire.codec import Codec
from ...protocol.wire.jsonrpc import Failure, Notification, Request, Response
from .client_pool import PATIENCE, parse_url

__all__ = ["Answering", "Site", "body_of"]

Answering = AbstractAsyncContextManager[aiohttp.ClientResponse]
"""An exchange: it begins and ends with a block, and gives the response as soon as its headers are there."""

_AT_ONCE = 1_048_576
"""Bytes up to which a body is written in one piece."""


class Site:
    """The endpoint at `url`. `fixed` are headers of every request."""

    def __init__(self, url: str, http: aiohttp.ClientSession, fixed: Mapping[str, str]) -> None:
        self.headers = ClientHeaders()
        self.codec = Codec(is_client=True, line_end=b"")
        self.is_forgotten = False
        """Whether the server has said that it does not know our session."""
        self._url = parse_url(url)
        self._http = http
        self._fixed = dict(fixed)

    def post(self, message: Request | Notification | Response | Failure) -> Answering:
        """Brings a message."""
        body = body_of(self.codec.encode(message))
        headers = {**self._fixed, **self.headers.of_post(message)}
        return self._http.post(self._url, data=body, headers=headers, allow_redirects=False, timeout=PATIENCE)

    def get(self, last_id: str | None) -> Answering:
        """Opens a stream, which begins after the event `last_id` where there is one."""
        resume = {LAST_EVENT_ID: last_id} if last_id else {}
        headers = {**self._fixed, "accept": EVENT_STREAM, **self.headers.of_session(), **resume}
        return self._http.get(self._url, headers=headers, allow_redirects=False, timeout=PATIENCE)

    def delete(self) -> Answering:
        """Ends the session."""
        headers = {**self._fixed, **self.headers.of_session()}
        return self._http.delete(self._url, headers=headers, allow_redirects=False, timeout=PATIENCE)

    def forgets(self, response: aiohttp.ClientResponse) -> bool:
        """Whether `response` says that the server does not know our session, which is noted (2025-11-25, Streamable
        HTTP, Session Management)."""
        says_so = response.status == 404 and self.headers.session_id is not None
        self.is_forgotten |= says_so
        return says_so


def body_of(data: bytes) -> bytes | BytesIO:
    """`data` to be sent; what is long in pieces, so that nobody else waits for it."""
    return data if len(data) <= _AT_ONCE else BytesIO(data)
