"""The first request to each issuer, which a listener sends when it starts, before it has to check a token.

So the log and `/readyz` show the operator a wrong or unreachable issuer before a user notices it.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio

from ..errors import AuthError

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 5.0, 60.0
"""Seconds between two requests to an issuer that does not answer: the first pause, which doubles each time, and the
longest."""


class FirstContact:
    """Sends the first requests to the issuers of a listener."""

    def __init__(self, requests: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
        """`requests` are functions that send the first request to an issuer and raise AuthError if it fails, by the
        URL of the issuer."""
        self._requests = requests
        self._has_answered = not requests

    @property
    def unreached(self) -> str | None:
        """A message that names the issuers while none of them has answered; None after the first answer."""
        return None if self._has_answered else f"no answer yet from the issuer {', '.join(self._requests)}"

    async def reach_issuers(self) -> None:
        """Contact each issuer until it has answered once."""
        async with anyio.create_task_group() as tasks:
            for request in self._requests.values():
                tasks.start_soon(partial(self._retry, request))

    async def _retry(self, request: Callable[[], Awaitable[object]]) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await request()
            except AuthError:  # the issuer has logged it
                await anyio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
            else:
                self._has_answered = True
                return
