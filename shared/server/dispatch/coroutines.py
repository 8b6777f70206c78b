"""Methods of `Context` whose coroutines must be awaited. If the author forgets that, the call fails: otherwise a tool
that does not await `ctx.confirm(...)` would act without consent."""

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


class _HasCall(Protocol):
    @property
    def call(self) -> Call: ...


Owner = TypeVar("Owner", bound=_HasCall)
Method = Callable[Concatenate[Owner, Args], Coroutine[Any, Any, Value]]


def require_await(method: Method[Owner, Args, Value]) -> Method[Owner, Args, Value]:
    """Decorate a method of an object that has a call: if a coroutine of it is never awaited, the call fails."""

    @wraps(method)
    def start(owner: Owner, /, *args: Args.args, **keywords: Args.kwargs) -> Coroutine[Any, Any, Value]:
        return _CheckedCoroutine(method(owner, *args, **keywords), owner.call, method.__name__)

    return start


class _CheckedCoroutine(Coroutine[Any, Any, Value]):
    """A coroutine that makes its call fail if it is deleted without having been awaited."""

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
        # This method is a generator so that its frame keeps this object alive while the caller waits.
        return (yield from self._work.__await__())

    def __del__(self) -> None:
        if getcoroutinestate(self._work) != CORO_CREATED:
            return
        self._work.close()
        # The message names the feature, as in "tool 'move'". A call that is over has no params, so only its method is
        # known.
        params, method = self._call.params, self._call.method.name
        name = getattr(params, "uri" if method == "resources/read" else "name", None)
        log.error(
            "ctx.%s was not awaited in %s, so its call fails: write `await ctx.%s(...)` in an `async def`",
            self._name,
            method if name is None else f"{_KINDS.get(method, method)} {name!r}",
            self._name,
        )
        if self._call.outlet is not None:
            self._call.outlet = _FailingOutlet(self._call.outlet)


class _FailingOutlet:
    """The outlet of a call that fails, whatever its outcome is."""

    def __init__(self, outlet: Any) -> None:
        self._outlet = outlet

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Answer `call` with an error."""
        self._outlet.finish(call, outcome if isinstance(outcome, InternalError) else InternalError("internal error"))
