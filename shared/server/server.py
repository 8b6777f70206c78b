"""`Server`: what an author declares. It serves nobody by itself: each `open` runs it once, with settings of its own.

    server = Server[Files](Implementation(name="filesystem", version="1"), settings=Settings)

    @server.lifespan
    async def open_files(opening: Opening) -> AsyncIterator[Files]:
        async with Files.open(opening.settings.roots, opening.changes.resource) as files:
            yield files

From its first `open` on it is frozen: to declare raises. What differs from run to run is the business of the
lifespan, which has the features of its own run in `opening.features`, and may change them as long as that lasts.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from ..concurrency import first_error
from ..contracts import TaskLimits
from ..errors import DeclarationError, InputRequired, InternalError, McpError
from ..protocol.types.base import Implementation
from ..protocol.types.client import LogLevel
from ..protocol.types.tasks import TASKS
from .dispatch.calls import Calls
from .dispatch.limits import CallLimits, Limits
from .extension import Extension
from .features import Features
from .running import Opening, Running

if TYPE_CHECKING:
    from ..contracts import Stores

__all__ = ["NoSettings", "Server"]

log = logging.getLogger("shared.server")

State = TypeVar("State")
F = TypeVar("F", bound=Callable[..., Any])

MAX_INSTRUCTIONS = 2_048
"""Bytes of instructions that hosts show their models."""


class NoSettings(BaseModel):
    """The settings of a server that has none."""


class Server(Features[State]):
    """A declaration: what the server is, its features, and the state they share. It may be open several times at
    once, with different settings."""

    def __init__(
        self,
        implementation: Implementation,
        *,
        instructions: str | None = None,
        settings: type[BaseModel] = NoSettings,
        capabilities: Mapping[str, Any] | None = None,
        include: Sequence[Features[State]] = (),
        extensions: Sequence[Extension[Any]] = (),
    ) -> None:
        """`instructions` tell the model how to use the server, 2 KiB at most. `settings` is the model of its
        options. `capabilities` are declared besides those that follow from the features: `logging`,
        `experimental`, `extensions`. `include` has features that were declared elsewhere; what `extensions` offer
        comes after all others, when the server is opened."""
        super().__init__()
        if instructions is not None and len(instructions.encode()) > MAX_INSTRUCTIONS:
            raise DeclarationError(f"hosts cut instructions at {MAX_INSTRUCTIONS} bytes")
        self.implementation = implementation
        self.instructions = instructions
        self.settings_model = settings
        self.capabilities = dict(capabilities or {})
        self.extensions = tuple(extensions)
        if len({extension.name for extension in extensions}) < len(self.extensions):
            raise DeclarationError("a server has one extension of a name")
        self.budget = CallLimits()
        self.limits = Limits()
        """What a call may cost and a peer may take, where `open` is told nothing else."""
        self.task_limits = TaskLimits()
        """What its tasks may take."""
        self.page_size = 100
        self.log_level: LogLevel | None = "info"
        """The mildest level of log messages that clients with a handshake get which never asked for one; None: they
        get none."""
        self.subscribe: Callable[[Any, str], Awaitable[str]] | None = None
        self.unsubscribe: Callable[[Running[State], str], Awaitable[None]] | None = None
        self.wanted: Callable[[Running[State]], Awaitable[None]] | None = None
        self.health: Callable[[Running[State]], Mapping[str, Any]] | None = None
        self.ready: Callable[[Running[State]], Awaitable[str | None]] | None = None
        self._lifespan: Callable[[Opening], Any] | None = None
        self._translations: dict[type[Exception], Callable[[Any], McpError]] = {}
        self._is_frozen = False
        for features in include:
            self.include(features)

    # Declaring

    def lifespan(self, function: F) -> F:
        """Runs this async generator around each run of the server: it takes an `Opening` and yields the state."""
        self.require_changeable()
        self._lifespan = asynccontextmanager(function)
        return function

    def on_subscribe(self, hook: F) -> F:
        """Has this function begin a subscription: it takes the context and the URI, and returns the key
        under which changes are published. It raises ResourceNotFound for what is not served."""
        self.require_changeable()
        self.subscribe = hook
        return hook

    def on_unsubscribe(self, hook: F) -> F:
        """Has this function know when the last subscription under a key has ended: it takes the running server and
        the key."""
        self.require_changeable()
        self.unsubscribe = hook
        return hook

    def on_wanted(self, hook: F) -> F:
        """Has this function know when a client first takes an interest in the list of resources. This and the hooks
        below take the running server."""
        self.require_changeable()
        self.wanted = hook
        return hook

    def on_health(self, hook: F) -> F:
        """Has `/healthz` say what this function gives, besides what it says of every server."""
        self.require_changeable()
        self.health = hook
        return hook

    def on_ready(self, hook: F) -> F:
        """Has `/readyz` ask this function why the server can't do its work now, which is None where it can. Whoever
        may use the server is told the reason; what the function raises goes to the log."""
        self.require_changeable()
        self.ready = hook
        return hook

    def error(self, kind: type[Exception]) -> Callable[[F], F]:
        """Has a function say what the client is told of an error of the author's own `kind`."""

        def declare(function: F) -> F:
            self.require_changeable()
            self._translations[kind] = function
            return function

        return declare

    def require_changeable(self) -> None:
        """Raises DeclarationError once the server was opened."""
        if self._is_frozen:
            raise DeclarationError(
                f"the server {self.implementation.name!r} was opened already: declare what it offers before that, or "
                "change `opening.features` in its lifespan"
            )

    # Serving

    @asynccontextmanager
    async def open(
        self,
        settings: BaseModel | None = None,
        *,
        limits: Limits | None = None,
        budget: CallLimits | None = None,
        stores: "Stores | None" = None,
        extensions: Sequence[Extension[Any]] = (),
    ) -> AsyncIterator[Running[State]]:
        """Runs the server until the end of the block, with `settings` or the defaults: opens what the lifespan opens,
        and closes it when all calls are over. Raises what the lifespan raises. All that are open with the same
        `stores` are replicas: each goes on with the sessions of the others. `extensions` are what the program adds to
        those of the author."""
        self._is_frozen = True
        running = Running(
            self,
            self.settings_model() if settings is None else settings,
            limits or self.limits,
            budget or self.budget,
        )
        running.added = extensions
        for extension in extensions:
            running.extend(extension)
        _require_tasks(running)
        joined = nullcontext() if stores is None else stores.join()
        opened = nullcontext() if self._lifespan is None else self._lifespan(Opening(running))
        async with AsyncExitStack() as stack:
            replica = await stack.enter_async_context(joined)
            if replica is not None:
                running.join(replica)
            running.state = await stack.enter_async_context(opened)
            running.calls = Calls(running)
            stack.push_async_callback(running.calls.close)
            async with _opened_extensions(running):
                yield running

    def translate(self, error: BaseException) -> McpError | InputRequired:
        """What becomes of a call that raised `error`: the client is told nothing but "internal error", unless it was
        raised to be told, or the author said more. Raises what no handler may raise."""
        told = self.told(error)
        if told is not None:
            return told
        error = first_error(error)
        if not isinstance(error, Exception):
            raise error
        log.error("a handler failed", exc_info=error)
        return InternalError("internal error")

    def told(self, error: BaseException) -> McpError | InputRequired | None:
        """What the client is told of `error` as it was raised to be told, or as the author said; None for neither."""
        # Where a task group failed, what it failed of first counts: authors may raise a ToolError, or ask, in a task.
        error = first_error(error)
        if isinstance(error, McpError | InputRequired) and not isinstance(error, DeclarationError):
            return error
        for kind in type(error).__mro__ if isinstance(error, Exception) else ():
            if kind in self._translations:
                return self._translations[kind](error)
        return None


@asynccontextmanager
async def _opened_extensions(running: Running[Any]) -> AsyncIterator[None]:
    """As long as the block all extensions of `running` have what their lifespans open."""
    async with AsyncExitStack() as stack:
        for extension in running.extensions:
            if extension.lifespan is not None:
                running.opened[extension.name] = await stack.enter_async_context(extension.lifespan(running))
        try:
            yield
        finally:
            running.stop()


def _require_tasks(running: Running[Any]) -> None:
    """Raises DeclarationError where a tool may run as a task, and nobody makes tasks."""
    for tool in running.features.tools.all():
        if tool.options.task is not None and all(one.name != TASKS for one in running.extensions):
            raise DeclarationError(f"tool {tool.name!r} may run as a task: give the server the extension `tasks()`")
