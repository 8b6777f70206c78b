"""A plain `def` as a coroutine function: it runs in a thread.

A call that is cancelled, or whose time is up, ends at once. Its thread can't be stopped: it continues to the end of
the function, or to `anyio.from_thread.check_cancelled`, and holds its place among the running threads until then.
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
"""Maximum number of such threads; further calls wait for a place."""
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
            # The thread gets a limiter of its own, since AnyIO releases a place when the thread is abandoned.
            value = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=CapacityLimiter(1))
        finally:
            if has_begun.acquire(blocking=False):  # cancelled before the thread has begun
                release()
        # The wrapper that a decorator makes of an `async def` is often a plain `def`.
        return await value if isawaitable(value) else value

    return call


def _run_unless_cancelled(function: Callable[[], Any], release: Callable[[], None], has_begun: Lock) -> Any:
    if not has_begun.acquire(blocking=False):
        return None
    try:
        return function()
    finally:
        with suppress(RuntimeError):  # the loop is closed, and with it its limiter
            from_thread.run_sync(release)
