"""The first request to each issuer, at the start of a listener, before any token has to be checked.

The operator learns of a wrong or unreachable issuer from the log and from `/readyz`, not from the first user.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio

from ..errors import AuthError

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 5.0, 60.0
"""Seconds between two requests to an issuer that does not answer: they double each time."""


class FirstContact:
    """The issuers of a listener that have not answered yet."""

    def __init__(self, requests: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
        """`requests` are the first requests to issuers, by their URLs. They raise AuthError."""
        self._requests = requests
        self._is_made = not requests

    @property
    def unreached(self) -> str | None:
        """A description of the issuers if none of them has answered yet."""
        return None if self._is_made else f"no answer yet from the issuer {', '.join(self._requests)}"

    async def make(self) -> None:
        """Contact each issuer until it has answered once."""
        async with anyio.create_task_group() as tasks:
            for request in self._requests.values():
                tasks.start_soon(partial(self._reach, request))

    async def _reach(self, request: Callable[[], Awaitable[object]]) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await request()
            except AuthError:  # the issuer has logged it
                await anyio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
            else:
                self._is_made = True
                return
