"""A request with credentials, which is sent again if the server requires other credentials."""

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from ....contracts import Credentials
from .answers import drain
from .exchange import Reply, ReplyContext

MAX_ATTEMPTS = 6
"""Maximum number of times that a request is sent: a token may have expired, require a proof, then a nonce, and then
more scopes."""
FRESH_SECONDS = 1.0
"""Seconds that obtaining credentials may take before the connection is not reused."""


class AuthorizedRequest:
    """One request with `credentials`, and its reply during the block. Each call of `send` sends the request with the
    current headers of the credentials."""

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
        sent = 0
        while True:
            sent += 1
            exchange = self._send(await self._credentials.headers(self._method, self._url))
            reply = await exchange.__aenter__()
            began = time.monotonic()
            try:
                again = await self._credentials.answered(self._method, self._url, reply.status, reply.headers)
                if not again or sent == MAX_ATTEMPTS:
                    self._exchange = exchange
                    return reply
                # A person's login may have taken a long time, and servers close connections that are silent for too
                # long.
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
