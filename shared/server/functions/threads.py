"""Calls of a plain `def` in a thread.

A call that is cancelled, or whose time is up, ends at once. But its thread can't be stopped: it continues until the
function returns or calls `anyio.from_thread.check_cancelled`, and counts as a running thread until then.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from inspect import isawaitable
from threading import Lock
from typing import Any

from anyio import CapacityLimiter, from_thread, to_thread
from anyio.lowlevel import RunVar

_MAX_THREADS = 40
"""Maximum number of running threads; further calls wait."""
_limiter: RunVar[CapacityLimiter] = RunVar("places for functions in threads")


def in_thread(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function that calls `function` in a thread."""

    @wraps(function)
    async def call(**arguments: Any) -> Any:
        limiter = _limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(_MAX_THREADS)
            _limiter.set(limiter)
        borrower, has_begun = object(), Lock()
        await limiter.acquire_on_behalf_of(borrower)
        release = partial(limiter.release_on_behalf_of, borrower)
        try:
            work = partial(_run_unless_cancelled, partial(function, **arguments), release, has_begun)
            # AnyIO releases its limiter as soon as a thread is abandoned, so it must not be given ours.
            value = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=CapacityLimiter(1))
        finally:
            if has_begun.acquire(blocking=False):  # the call was cancelled before the thread began
                release()
        # A decorator often turns an `async def` into a plain `def` that returns its coroutine.
        return await value if isawaitable(value) else value

    return call


def _run_unless_cancelled(function: Callable[[], Any], release: Callable[[], None], has_begun: Lock) -> Any:
    if not has_begun.acquire(blocking=False):
        return None
    try:
        return function()
    finally:
        with suppress(RuntimeError):  # the event loop was closed, so its limiter is no longer needed
            from_thread.run_sync(release)
