"""Two calls in every order: one is suspended at one of its awaits, the other runs, and the first continues or is
cancelled.

A scenario is an async generator. It sets up its state, yields the two calls, and is resumed with their results, which
are exceptions where they raised. What it asserts then must be true in every order:

    async def scenario() -> Scenario:
        lock = Lock()
        first, second = yield lock.use(), lock.use()
        assert not lock.is_held

`in_every_order` runs it once for each await of each call: with the other call in between, with a cancellation, and
with both. Calls must be the same each time, and wait only for each other, for timers and for threads.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing, suppress
from itertools import count, product
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from tests.quiet import quiet

Scenario = AsyncGenerator[tuple[Coroutine[Any, Any, Any], Coroutine[Any, Any, Any]], Sequence[Any]]

MAX_AWAITS = 200
SECONDS = 5.0
"""Time limit of one order."""
CONTINUED, CANCELLED, CANCELLED_LATER = "continued", "was cancelled", "was cancelled after the other one"


class _Suspended:
    """Awaits `call`, but stops at its await number `at` until `resume`."""

    def __init__(self, call: Coroutine[Any, Any, Any], at: int) -> None:
        self._call = call
        self._at = at
        self.reached = asyncio.Event()
        """Set when the call is suspended, or has ended before."""
        self.is_suspended = False
        self.place = ""
        self._gate = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        if not self._gate.done():
            self._gate.set_result(None)

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        try:
            for number in count():
                try:
                    waited = self._call.send(None) if error is None else self._call.throw(error)
                except StopIteration as end:
                    return end.value
                error = None
                try:
                    if number == self._at:
                        self.is_suspended, self.place = True, _place_of(self._call)
                        self.reached.set()
                        yield from self._gate
                    yield waited
                except BaseException as thrown:  # noqa: BLE001 - passed on to the call
                    # A task that is cancelled cancels what it waits for.
                    if isinstance(waited, asyncio.Future) and isinstance(thrown, asyncio.CancelledError):
                        waited.cancel()
                    error = thrown
        finally:
            self.reached.set()


def _place_of(call: Any) -> str:
    """Returns the innermost line of this project at which `call` waits."""
    place = ""
    while (frame := getattr(call, "cr_frame", None) or getattr(call, "ag_frame", None)) is not None:
        if any(f"/{part}/" in frame.f_code.co_filename for part in ("shared", "servers")):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        call = getattr(call, "cr_await", None) or getattr(call, "ag_await", None)
    return place


async def in_every_order(make: Callable[[], Scenario], *, patience: float = 0.0) -> int:
    """Runs the scenario in all orders, and returns their number. The other call continues until it has ended, or
    waits for the suspended one: after `patience` seconds, if it also waits for something else.

    Raises AssertionError, with the order in a note, if what the scenario asserts is false, if a call does not end, or
    if no call has an await, since then nothing was tried.
    """
    orders = 0
    for is_swapped, mode in product((False, True), (CONTINUED, CANCELLED, CANCELLED_LATER)):
        for at in range(MAX_AWAITS):
            place = await _run_order(make, at, mode, patience, is_swapped=is_swapped)
            if place is None:
                break
            orders += 1
        else:
            raise AssertionError(f"a call has more than {MAX_AWAITS} awaits")
    assert orders, "neither call has an await"
    return orders


async def _run_order(
    make: Callable[[], Scenario], at: int, mode: str, patience: float, *, is_swapped: bool
) -> str | None:
    """Runs the scenario in one order. Returns the place of the await; None if the call has fewer awaits."""
    suspended: _Suspended | None = None
    try:
        async with asyncio.timeout(SECONDS), aclosing(make()) as scenario:
            calls = await anext(scenario)
            suspended = _Suspended(calls[is_swapped], at)
            results = await _run_calls(suspended, calls[not is_swapped], mode, patience)
            with suppress(StopAsyncIteration):
                await scenario.asend(results[::-1] if is_swapped else results)
    except BaseException as error:
        place = "" if suspended is None else suspended.place
        order = f"call {2 if is_swapped else 1} was suspended at its await {at} ({place}), and {mode}"
        if isinstance(error, TimeoutError):
            raise AssertionError(f"a call does not end: {order}") from error
        error.add_note(order)
        raise
    return suspended.place if suspended.is_suspended else None


async def _run_calls(suspended: _Suspended, other: Coroutine[Any, Any, Any], mode: str, patience: float) -> list[Any]:
    scope = anyio.CancelScope()
    first, reached = asyncio.create_task(_settle(suspended, scope)), asyncio.create_task(suspended.reached.wait())
    await _wait_for(reached, patience)
    second = asyncio.create_task(_settle(other, anyio.CancelScope()))
    await reached  # if it has not been reached yet, the call waits for the other one first
    if mode != CANCELLED:
        await _wait_for(second, patience)
    if mode != CONTINUED:
        scope.cancel()
    suspended.resume()
    return list(await asyncio.gather(first, second))


async def _wait_for(task: "asyncio.Task[Any]", patience: float) -> None:
    await quiet()
    if not task.done():
        await asyncio.wait([task], timeout=patience)


async def _settle(call: Awaitable[Any], scope: anyio.CancelScope) -> Any:
    """Returns the result of `call`, its exception, or `CANCELLED`."""
    with scope:
        try:
            return await call
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - a result
            return error
    return CANCELLED


class Alone:
    """A block, with an await in it, that no two tasks may be in at the same time."""

    def __init__(self) -> None:
        self._is_entered = False

    async def __aenter__(self) -> None:
        assert not self._is_entered
        self._is_entered = True
        try:
            await checkpoint()
        except BaseException:
            self._is_entered = False
            raise

    async def __aexit__(self, *_: object) -> None:
        self._is_entered = False
