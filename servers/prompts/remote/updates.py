"""Updates of git libraries while the server is running."""

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
"""Maximum total time in seconds that clients wait for libraries that were never fetched. Their own limit is a
minute."""
_SECONDS = 600.0
"""The time limit for git in the background, in seconds."""


class Updates:
    """Fetches libraries. Call `begin` first, and then `run` in a task."""

    def __init__(self, checkouts: Sequence[Checkout], minutes: float) -> None:
        self._checkouts = checkouts
        self._minutes = minutes

    async def begin(self) -> None:
        """Fetch the libraries that were never fetched, as far as the time limit allows."""
        until = time.monotonic() + _FIRST_SECONDS
        for checkout in self._checkouts:
            await to_thread.run_sync(checkout.load)
            remaining = until - time.monotonic()
            if checkout.commit is None and remaining > 0:
                await self._update(checkout, remaining)

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Look for new commits until cancelled: at once, and then every given number of minutes (0: only once). Call
        `changed` when the contents or the failure of a library has changed."""
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
            # After a cancellation the thread continues, and kills git within a moment.
            stop.set()
        if changed:
            log.info("%s: commit %s", checkout.address, checkout.commit)
        return changed
