"""An exchange that says who we are, and is sent again where other credentials are wanted than those it had."""

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from ....contracts import Credentials
from .answers import drain
from .exchange import Answering, Reply

MAX_SENT = 6
"""How often a request is sent at most: a token may have expired, want a proof, that a nonce, and then more scopes."""
FRESH_SECONDS = 1.0
"""How long credentials may take to be had until the connection is no longer used."""


class Authorized:
    """One request with `credentials`, and its reply as long as the block. `send` begins it with the headers that they
    give, anew each time."""

    def __init__(
        self, credentials: Credentials, method: str, url: str, send: Callable[[Mapping[str, str]], Answering]
    ) -> None:
        self._credentials = credentials
        self._method, self._url = method, url
        self._send = send
        self._exchange: Answering | None = None

    async def __aenter__(self) -> Reply:
        """Raises AuthError where there are no credentials to be had, and what the exchange raises."""
        sent = 0
        while True:
            sent += 1
            exchange = self._send(await self._credentials.headers(self._method, self._url))
            reply = await exchange.__aenter__()
            began = time.monotonic()
            try:
                again = await self._credentials.answered(self._method, self._url, reply.status, reply.headers)
                if not again or sent == MAX_SENT:
                    self._exchange = exchange
                    return reply
                # A person may have logged in meanwhile, and servers close a connection that is silent for so long.
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
