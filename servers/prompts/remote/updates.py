"""Libraries in git, looked at for new commits while the server runs."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from threading import Event

import anyio
from anyio import to_thread

from servers.prompts.errors import PromptError
from servers.prompts.remote.cache import Checkout

log = logging.getLogger("servers.prompts")

_FIRST_SECONDS = 20.0
"""How long clients are kept waiting where nothing is there yet, all libraries together; they wait for a minute."""
_SECONDS = 600.0
"""How long git may take while nobody waits for it."""


class Updates:
    """Fetches libraries. `begin` comes first, and then `run` in a task."""

    def __init__(self, checkouts: Sequence[Checkout], minutes: float) -> None:
        self._checkouts = checkouts
        self._minutes = minutes

    async def begin(self) -> None:
        """Fetches the libraries of which nothing is there yet, as far as that takes no long time."""
        until = time.monotonic() + _FIRST_SECONDS
        for checkout in self._checkouts:
            await to_thread.run_sync(checkout.load)
            left = until - time.monotonic()
            if checkout.commit is None and left > 0:
                await self._update(checkout, left)

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Looks for other commits, at once and then every so many minutes (0: once), until it is cancelled; calls
        `changed` when there is something else to serve or to say."""
        while True:
            for checkout in self._checkouts:
                before = checkout.failure
                is_new = await self._update(checkout, _SECONDS)
                if is_new or checkout.failure != before:
                    await changed()
            if not self._minutes:
                return
            await anyio.sleep(self._minutes * 60)

    async def _update(self, checkout: Checkout, seconds: float) -> bool:
        stop = Event()
        try:
            changed = await to_thread.run_sync(checkout.update, stop, seconds, abandon_on_cancel=True)
        except PromptError as error:
            log.warning("%s", error.reason)
            return False
        finally:
            # Where this was cancelled the thread goes on, and ends git within a moment.
            stop.set()
        if changed:
            log.info("%s: commit %s", checkout.address, checkout.commit)
        return changed
