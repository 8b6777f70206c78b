"""One endpoint of Streamable HTTP: the three kinds of requests to it, each with its headers."""

from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO

from ....contracts import Credentials
from ....protocol.http.client_headers import ClientHeaders
from ....protocol.http.rules import EVENT_STREAM, LAST_EVENT_ID
from ....protocol.wire.codec import Codec
from ....protocol.wire.jsonrpc import Failure, Notification, Request, Response
from ....tracing.trace_context import trace_meta
from .authorized import AuthorizedRequest
from .exchange import Answering, DirectPosts, Reply
from .pool import TIMEOUT, Pool, parse_url

_MAX_PIECE_BYTES = 65_536
"""The maximum length of a body that is written in one piece, whether or not the server reads it."""


class Site:
    """The endpoint at `url`. The `fixed` headers, and the headers from the `credentials`, are sent with every
    request."""

    def __init__(
        self,
        url: str,
        pool: Pool,
        fixed: Mapping[str, str],
        credentials: Credentials | None = None,
        dialect: str | None = None,
    ) -> None:
        """`dialect` is the dialect to speak with the server. Raises ValueError for an invalid URL, and for an unknown
        dialect."""
        self.headers = ClientHeaders(has_dialect=dialect is not None)
        self.codec = Codec(is_client=True, line_end=b"", dialect=dialect)
        self.is_forgotten = False
        """True if the server has reported that it does not know the client's session."""
        self._url = parse_url(url)
        self._http = pool.session
        self._fixed = dict(fixed)
        self._credentials = credentials
        self._direct = DirectPosts(self._url, self._http, fixed) if pool.is_plain and self._url.user is None else None

    def post(self, message: Request | Notification | Response | Failure) -> Answering:
        """Send a message."""
        data, headers = self.codec.encode(message), self.headers.of_post(message)
        if isinstance(message, Request) and (trace := trace_meta(message.params)):
            headers |= trace
        if self._credentials is None:
            return self._post(data, headers, {})
        return self._authorized("POST", self._credentials, partial(self._post, data, headers))

    def get(self, last_id: str | None) -> Answering:
        """Open a stream, after the event `last_id` if given."""
        resume = {LAST_EVENT_ID: last_id} if last_id else {}
        return self._plain("GET", {"accept": EVENT_STREAM, **self.headers.of_session(), **resume})

    def delete(self) -> Answering:
        """End the session."""
        return self._plain("DELETE", self.headers.of_session())

    def _post(self, data: bytes, headers: Mapping[str, str], own: Mapping[str, str]) -> Answering:
        if self._direct is not None and len(data) <= _MAX_PIECE_BYTES:
            return self._direct.post(data, {**headers, **own} if own else headers)
        sent = {**self._fixed, **headers, **own}
        return self._http.post(self._url, data=BytesIO(data), headers=sent, allow_redirects=False, timeout=TIMEOUT)

    def _plain(self, method: str, headers: Mapping[str, str]) -> Answering:
        def send(own: Mapping[str, str]) -> Answering:
            sent = {**self._fixed, **headers, **own}
            return self._http.request(method, self._url, headers=sent, allow_redirects=False, timeout=TIMEOUT)

        return send({}) if self._credentials is None else self._authorized(method, self._credentials, send)

    def _authorized(
        self, method: str, credentials: Credentials, send: Callable[[Mapping[str, str]], Answering]
    ) -> Answering:
        return AuthorizedRequest(credentials, method, str(self._url), send)

    def forgets(self, response: Reply) -> bool:
        """Return True if `response` says that the server does not know the client's session, and record that
        (2025-11-25, Streamable HTTP, Session Management)."""
        says_so = response.status == 404 and self.headers.session_id is not None
        self.is_forgotten |= says_so
        return says_so
