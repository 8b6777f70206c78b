"""One endpoint of Streamable HTTP as a client sees it: POST, GET and DELETE requests with their headers."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO

from ....contracts import Credentials
from ....protocol.http.client_headers import ClientHeaders
from ....protocol.http.rules import EVENT_STREAM, LAST_EVENT_ID
from ....protocol.wire.codec import Codec
from ....protocol.wire.jsonrpc import Failure, Message, Notification, Request, Response, id_as_number
from ....tracing.trace_context import trace_meta
from .authorized import AuthorizedRequest
from .exchange import DirectPosts, Reply, ReplyContext
from .pool import TIMEOUT, Pool, parse_url

_MAX_DIRECT_BYTES = 65_536
"""The maximum length of a body that is written at once, without waiting for the server to read it."""
_ABOUT_SESSION = re.compile(r"session|not initialized", re.IGNORECASE)


class Site:
    """The endpoint at `url`. The `fixed_headers`, and those from the `credentials`, are sent with every request."""

    def __init__(
        self,
        url: str,
        pool: Pool,
        fixed_headers: Mapping[str, str],
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
        self._fixed_headers = dict(fixed_headers)
        self._credentials = credentials
        self._direct_posts = (
            DirectPosts(self._url, self._http, fixed_headers) if pool.is_plain and self._url.user is None else None
        )

    def post(self, message: Request | Notification | Response | Failure) -> ReplyContext:
        """Send a message."""
        data, headers = self.codec.encode(message), self.headers.post_headers(message)
        if isinstance(message, Request) and (trace := trace_meta(message.params)):
            headers |= trace
        if self._credentials is None:
            return self._post(data, headers, {})
        return self._authorize("POST", self._credentials, partial(self._post, data, headers))

    def get(self, last_id: str | None) -> ReplyContext:
        """Open a stream of the server's messages; it resumes after the event `last_id`, if given."""
        resume = {LAST_EVENT_ID: last_id} if last_id else {}
        return self._request("GET", {"accept": EVENT_STREAM, **self.headers.session_headers(), **resume})

    def delete(self) -> ReplyContext:
        """End the session."""
        return self._request("DELETE", self.headers.session_headers())

    def _post(self, data: bytes, headers: Mapping[str, str], credential_headers: Mapping[str, str]) -> ReplyContext:
        if self._direct_posts is not None and len(data) <= _MAX_DIRECT_BYTES:
            return self._direct_posts.post(data, {**headers, **credential_headers} if credential_headers else headers)
        all_headers = {**self._fixed_headers, **headers, **credential_headers}
        return self._http.post(
            self._url, data=BytesIO(data), headers=all_headers, allow_redirects=False, timeout=TIMEOUT
        )

    def _request(self, method: str, headers: Mapping[str, str]) -> ReplyContext:
        def send(credential_headers: Mapping[str, str]) -> ReplyContext:
            all_headers = {**self._fixed_headers, **headers, **credential_headers}
            return self._http.request(method, self._url, headers=all_headers, allow_redirects=False, timeout=TIMEOUT)

        return send({}) if self._credentials is None else self._authorize(method, self._credentials, send)

    def _authorize(
        self, method: str, credentials: Credentials, send: Callable[[Mapping[str, str]], ReplyContext]
    ) -> ReplyContext:
        return AuthorizedRequest(credentials, method, str(self._url), send)

    def check_forgotten(self, reply: Reply, answer: Message | None = None) -> bool:
        """Return True if `reply` says that the server does not know the client's session, and record that
        (2025-11-25, Streamable HTTP, Session Management). `answer` is the message in its body, if that was read."""
        is_forgotten = reply.status == 404 or (reply.status == 400 and _is_about_session(answer))
        is_forgotten &= self.headers.session_id is not None
        self.is_forgotten |= is_forgotten
        return is_forgotten


def _is_about_session(answer: Message | None) -> bool:
    """Return True if `answer` is an error about the session, and not the answer to a request."""
    # Many servers, among them those that follow the examples of the official SDKs, answer 400 instead of 404 after a
    # restart. A server that has dispatched the request would repeat its id.
    return (
        isinstance(answer, Failure)
        and not isinstance(None if answer.id is None else id_as_number(answer.id), int)
        and _ABOUT_SESSION.search(answer.message) is not None
    )
