"""Coroutines of a context that must be awaited. If a coroutine is never awaited, its call fails: a tool that forgets
to await a question would otherwise act without consent."""

import logging
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ...errors import InternalError
from ...protocol.session.events import Call, Outcome

Args = ParamSpec("Args")
Value = TypeVar("Value")

log = logging.getLogger("shared.server.dispatch.coroutines")

_KINDS = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}


class _OfCall(Protocol):
    @property
    def call(self) -> Call: ...


Owner = TypeVar("Owner", bound=_OfCall)
Method = Callable[Concatenate[Owner, Args], Coroutine[Any, Any, Value]]


def must_be_awaited(method: Method[Owner, Args, Value]) -> Method[Owner, Args, Value]:
    """Make the call of an object fail if a coroutine of this method is never awaited."""

    @wraps(method)
    def begin(owner: Owner, /, *args: Args.args, **keywords: Args.kwargs) -> Coroutine[Any, Any, Value]:
        return _Awaited(method(owner, *args, **keywords), owner.call, method.__name__)

    return begin


class _Awaited(Coroutine[Any, Any, Value]):
    """A coroutine that notices its end."""

    __slots__ = ("_call", "_name", "_work")

    def __init__(self, work: Coroutine[Any, Any, Value], call: Call, name: str) -> None:
        self._work = work
        self._name = name
        self._call = call

    def send(self, value: Any) -> Any:
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Value]:
        # A generator, so that this object lives as long as the caller waits.
        return (yield from self._work.__await__())

    def __del__(self) -> None:
        if getcoroutinestate(self._work) != CORO_CREATED:
            return
        self._work.close()
        name = self._name
        log.error(
            "ctx.%s was not awaited in %s, so its call fails: write `await ctx.%s(...)` in an `async def`",
            name,
            _name_of(self._call),
            name,
        )
        if self._call.outlet is not None:
            self._call.outlet = _Failed(self._call.outlet)


def _name_of(call: Call) -> str:
    """Return the feature that `call` uses, such as "tool 'move'"; its method once the call is over."""
    params, method = call.params, call.method.name
    name = getattr(params, "uri" if method == "resources/read" else "name", None)
    return method if name is None else f"{_KINDS.get(method, method)} {name!r}"


class _Failed:
    """The outlet of a call that has already failed, regardless of its outcome."""

    def __init__(self, outlet: Any) -> None:
        self._outlet = outlet

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Answer `call` with an error."""
        self._outlet.finish(call, outcome if isinstance(outcome, InternalError) else InternalError("internal error"))
