"""`Declaration`: what an author declares of a server, which `Server` opens.

It is frozen once it was opened: to declare raises. What differs from run to run is the business of the lifespan,
which has the features of its own run in `opening.features`, and may change them as long as that lasts.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

from pydantic import BaseModel

from ..concurrency import first_error
from ..contracts import TaskLimits
from ..errors import DeclarationError, InputRequired, InternalError, McpError
from ..protocol.types.base import Implementation
from ..protocol.types.client import LogLevel
from .dispatch.limits import CallLimits, Limits
from .extension import Extension
from .features import AnyRun, Features

log = logging.getLogger("shared.server")

State = TypeVar("State")
F = TypeVar("F", bound=Callable[..., Any])

MAX_INSTRUCTIONS = 2_048
"""Bytes of instructions that hosts show their models."""


class NoSettings(BaseModel):
    """The settings of a server that has none."""


class Declaration(Features[State]):
    """What a server is, its features, and the state they share."""

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
        self.unsubscribe: Callable[[AnyRun, str], Awaitable[None]] | None = None
        self.wanted: Callable[[AnyRun], Awaitable[None]] | None = None
        self.health: Callable[[AnyRun], Mapping[str, Any]] | None = None
        self.ready: Callable[[AnyRun], Awaitable[str | None]] | None = None
        self._lifespan: Callable[[Any], AbstractAsyncContextManager[State]] | None = None
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
        """Has this function know when the last subscription under a key has ended: it takes the run and the
        key."""
        self.require_changeable()
        self.unsubscribe = hook
        return hook

    def on_wanted(self, hook: F) -> F:
        """Has this function know when a client first takes an interest in the list of resources. This and the hooks
        below take the run."""
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

    def freeze(self) -> None:
        """Ends declaring: the server is opened."""
        self._is_frozen = True

    def living(self, opening: Any) -> AbstractAsyncContextManager[State | None]:
        """What the lifespan has open for the run of this `Opening`: the state."""
        return nullcontext() if self._lifespan is None else self._lifespan(opening)

    # What clients are told of errors

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
