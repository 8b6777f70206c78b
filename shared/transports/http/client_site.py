"""One endpoint of Streamable HTTP: the three requests that a client makes of it, each with its headers."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from io import BytesIO

from ...protocol.http.client_headers import ClientHeaders
from ...protocol.http.rules import EVENT_STREAM, LAST_EVENT_ID
from ...protocol.wire.codec import Codec
from ...protocol.wire.jsonrpc import Failure, Notification, Request, Response
from .client_exchange import Direct, Reply
from .client_pool import PATIENCE, Pool, parse_url

__all__ = ["Answering", "Site"]

Answering = AbstractAsyncContextManager[Reply]
"""An exchange: it begins and ends with a block, and gives the response as soon as its headers are there."""

_AT_ONCE = 65_536
"""Bytes up to which a body is written in one piece, whether or not the server takes it."""


class Site:
    """The endpoint at `url`. `fixed` are headers of every request."""

    def __init__(self, url: str, pool: Pool, fixed: Mapping[str, str]) -> None:
        """Raises ValueError for no URL."""
        self.headers = ClientHeaders()
        self.codec = Codec(is_client=True, line_end=b"")
        self.is_forgotten = False
        """Whether the server has said that it does not know our session."""
        self._url = parse_url(url)
        self._http = pool.session
        self._fixed = dict(fixed)
        self._direct = Direct(self._url, self._http, fixed) if pool.is_plain and self._url.user is None else None

    def post(self, message: Request | Notification | Response | Failure) -> Answering:
        """Brings a message."""
        data, headers = self.codec.encode(message), self.headers.of_post(message)
        if self._direct is not None and len(data) <= _AT_ONCE:
            return self._direct.post(data, headers)
        headers = {**self._fixed, **headers}
        return self._http.post(
            self._url, data=BytesIO(data), headers=headers, allow_redirects=False, timeout=PATIENCE
        )

    def get(self, last_id: str | None) -> Answering:
        """Opens a stream, which begins after the event `last_id` where there is one."""
        resume = {LAST_EVENT_ID: last_id} if last_id else {}
        headers = {**self._fixed, "accept": EVENT_STREAM, **self.headers.of_session(), **resume}
        return self._http.get(self._url, headers=headers, allow_redirects=False, timeout=PATIENCE)

    def delete(self) -> Answering:
        """Ends the session."""
        headers = {**self._fixed, **self.headers.of_session()}
        return self._http.delete(self._url, headers=headers, allow_redirects=False, timeout=PATIENCE)

    def forgets(self, response: Reply) -> bool:
        """Whether `response` says that the server does not know our session, which is noted (2025-11-25, Streamable
        HTTP, Session Management)."""
        says_so = response.status == 404 and self.headers.session_id is not None
        self.is_forgotten |= says_so
        return says_so
