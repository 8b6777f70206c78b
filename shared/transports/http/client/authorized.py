"""A request with credentials, which is sent again if the server requires other credentials."""

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from ....contracts import Credentials
from .answers import drain
from .exchange import Reply, ReplyContext

MAX_ATTEMPTS = 6
"""Maximum number of times that a request is sent. Each time the server may require something else: a new token, a
proof, a nonce in the proof, or more scopes."""
FRESH_SECONDS = 1.0
"""If obtaining credentials takes more seconds than this, the connection is not reused."""


class AuthorizedRequest:
    """A context manager that sends one request with `credentials`, and yields its reply. `send` sends the request
    with the headers of the credentials, which it receives; it is called for each attempt."""

    def __init__(
        self, credentials: Credentials, method: str, url: str, send: Callable[[Mapping[str, str]], ReplyContext]
    ) -> None:
        self._credentials = credentials
        self._method, self._url = method, url
        self._send = send
        self._exchange: ReplyContext | None = None

    async def __aenter__(self) -> Reply:
        """Send the request and return its reply. Raises AuthError if no credentials can be obtained, and the errors
        of the exchange."""
        attempts = 0
        while True:
            attempts += 1
            exchange = self._send(await self._credentials.headers(self._method, self._url))
            reply = await exchange.__aenter__()
            began = time.monotonic()
            try:
                has_new_credentials = await self._credentials.answered(
                    self._method, self._url, reply.status, reply.headers
                )
                if not has_new_credentials or attempts == MAX_ATTEMPTS:
                    self._exchange = exchange
                    return reply
                # While a person was logging in, the server may have closed the idle connection.
                if time.monotonic() - began > FRESH_SECONDS:
                    reply.close()
                else:
                    await drain(reply)
            finally:
                if self._exchange is None:
                    await exchange.__aexit__(*sys.exc_info())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._exchange is not None:
            await self._exchange.__aexit__(kind, error, traceback)
