"""Updates libraries from git repositories and packages while the server is running."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from threading import Event

import anyio
from anyio import to_thread

from ..errors import PromptError
from .cache import Checkout

log = logging.getLogger("servers.prompts")

_FIRST_SECONDS = 20.0
"""Maximum total time in seconds that clients wait for libraries that were never fetched. Many clients give up after a
minute."""
_UPDATE_SECONDS = 600.0
"""The time limit for git in the background, in seconds."""


class Updates:
    """Fetches libraries at startup and every `minutes` minutes. Call `begin` first, and then `run` in a task."""

    def __init__(self, checkouts: Sequence[Checkout], minutes: float) -> None:
        self._checkouts = checkouts
        self._minutes = minutes

    async def begin(self) -> None:
        """Fetch the libraries that were never fetched, as far as the time limit allows."""
        deadline = time.monotonic() + _FIRST_SECONDS
        for checkout in self._checkouts:
            await to_thread.run_sync(checkout.load)
            remaining = deadline - time.monotonic()
            if checkout.commit is None and remaining > 0:
                await self._update(checkout, remaining)

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Look for new commits at once, and then at intervals until cancelled (with 0 minutes only once). Call
        `changed` after each change of a library's contents, or of the reason why it can't be fetched."""
        while True:
            for checkout in self._checkouts:
                before = checkout.failure
                is_new = await self._update(checkout, _UPDATE_SECONDS)
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
            # Cancellation does not end the thread. Make it kill git, so that it ends within a moment.
            stop.set()
        if changed:
            log.info("%s: commit %s", checkout.address, checkout.commit)
        return changed
