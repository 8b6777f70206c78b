"""`Declaration`: an author's description of a server, which `Server` opens.

`Server.open` freezes it: from then on, declarations raise. A run that needs different features changes its own copy,
`opening.features`, in the lifespan.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from inspect import Parameter, isasyncgenfunction, isroutine, signature, unwrap
from typing import Any, TypeVar

from pydantic import BaseModel

from ..concurrency import first_error
from ..contracts import TaskLimits
from ..errors import DeclarationError, InputRequired, InternalError, McpError
from ..protocol.types.base import Implementation
from ..protocol.types.client import LogLevel
from .dispatch.limits import CallLimits, Limits
from .extension import Extension
from .features import AnyRun, Features, require_coroutine
from .functions.location import locate_errors

log = logging.getLogger("shared.server")

State = TypeVar("State")
F = TypeVar("F", bound=Callable[..., Any])

MAX_INSTRUCTIONS = 2_048
"""Maximum size, in bytes, of instructions; hosts cut longer ones off."""


class NoSettings(BaseModel, defer_build=True):
    """The settings of a server without settings."""


class Declaration(Features[State]):
    """The definition of a server, its features, and the state they share."""

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
        """`instructions` explain to the language model how to use the server, in at most 2 KiB. `settings` is the
        pydantic model of the server's options. `capabilities`, such as `logging` or `experimental`, are declared in
        addition to those that follow from the features. `include` is features that were declared elsewhere. When the
        server is opened, the features of `extensions` are added after all others."""
        super().__init__()
        if not isinstance(implementation, Implementation):
            raise DeclarationError(
                'a server must have a name and a version: Implementation(name="notes", version="1.0.0")'
            )
        if instructions is not None and len(instructions.encode()) > MAX_INSTRUCTIONS:
            raise DeclarationError(f"hosts truncate instructions at {MAX_INSTRUCTIONS} bytes")
        self.implementation = implementation
        self.instructions = instructions
        self.settings_model = settings
        self.capabilities = dict(capabilities or {})
        self.extensions = tuple(extensions)
        if len({extension.name for extension in extensions}) < len(self.extensions):
            raise DeclarationError("two extensions have the same name")
        self.budget = CallLimits()
        """The limits on one call, unless `open` receives others."""
        self.limits = Limits()
        """The limits on one peer, unless `open` receives others."""
        self.task_limits = TaskLimits()
        """The limits on tasks."""
        self.page_size = 100
        """The number of entries in a page of a list."""
        self.log_level: LogLevel | None = "info"
        """The lowest level of log messages that a client with a handshake receives before it sets a level; None for
        no messages at all."""
        self.subscribe: Callable[[Any, str], Awaitable[str]] | None = None
        self.unsubscribe: Callable[[AnyRun, str], Awaitable[None]] | None = None
        self.wanted: Callable[[AnyRun], Awaitable[None]] | None = None
        self.health: Callable[[AnyRun], Mapping[str, Any]] | None = None
        self.ready: Callable[[AnyRun], Awaitable[str | None]] | None = None
        self._lifespan: Callable[[Any], AbstractAsyncContextManager[State] | AsyncIterator[State]] | None = None
        self._translations: dict[type[Exception], Callable[[Any], McpError]] = {}
        self._is_frozen = False
        for features in include:
            self.include(features)

    # Declaring

    def include(self, other: Features[State]) -> None:
        """Add all features of `other`. Raises DeclarationError for duplicates, for a second source of prompts, and if
        `other` is a server that has more than features, such as a lifespan."""
        if isinstance(other, Declaration) and (parts := other.list_other_parts()):
            with locate_errors(None):
                raise DeclarationError(
                    f"include adds features only, and the server {other.implementation.name!r} also has "
                    f"{', '.join(parts)}: declare its tools, resources and prompts with `Features()`, and include "
                    "those"
                )
        super().include(other)

    def list_other_parts(self) -> list[str]:
        """Return what this server has besides features, in words."""
        parts = {
            "a lifespan": self._lifespan,
            "settings": self.settings_model is not NoSettings,
            "instructions": self.instructions,
            "capabilities": self.capabilities,
            "extensions": self.extensions,
            "@error handlers": self._translations,
            "@on_subscribe": self.subscribe,
            "@on_unsubscribe": self.unsubscribe,
            "@on_wanted": self.wanted,
            "@on_health": self.health,
            "@on_ready": self.ready,
        }
        return [name for name, part in parts.items() if part]

    def lifespan(self, function: F) -> F:
        """Declare the lifespan of the server: an async generator that accepts an `Opening`, and yields the state of
        one run. What follows its `yield` is executed when the run ends. It may already be an
        `@asynccontextmanager`."""
        self._require_first(function, "@lifespan", self._lifespan)
        with locate_errors(function):
            # A lambda is accepted, because it may return the generator of another function.
            is_generator = isasyncgenfunction(unwrap(function)) or function.__name__ == "<lambda>"
            if isroutine(function) and not (is_generator and _accepts_opening(function)):
                raise DeclarationError(
                    "@lifespan takes an `async def` that yields the state once, with the opening as its parameter: "
                    "`async def open_state(opening): ...; yield state`"
                )
        self._lifespan = function
        return function

    def on_subscribe(self, hook: F) -> F:
        """Declare the function that begins a subscription. It accepts the context and the URI, and returns the key of
        the resource, with which its changes are published. It raises ResourceNotFound if the server has no such
        resource."""
        self._require_first(hook, "@on_subscribe", self.subscribe)
        require_coroutine(hook, "@on_subscribe")
        self.subscribe = hook
        return hook

    def on_unsubscribe(self, hook: F) -> F:
        """Declare the function that is called with the run and a key when the last subscription to it has ended."""
        self._require_first(hook, "@on_unsubscribe", self.unsubscribe)
        require_coroutine(hook, "@on_unsubscribe")
        self.unsubscribe = hook
        return hook

    def on_wanted(self, hook: F) -> F:
        """Declare the function that is called with the run when a client first requests the list of resources."""
        self._require_first(hook, "@on_wanted", self.wanted)
        require_coroutine(hook, "@on_wanted")
        self.wanted = hook
        return hook

    def on_health(self, hook: F) -> F:
        """Declare a function that accepts the run, and returns what `/healthz` reports about this server."""
        self._require_first(hook, "@on_health", self.health)
        self.health = hook
        return hook

    def on_ready(self, hook: F) -> F:
        """Declare a function that `/readyz` calls with the run. It returns the reason why the server can't work now,
        or None if it can. Only users of the server see the reason; an exception of the function is logged."""
        self._require_first(hook, "@on_ready", self.ready)
        require_coroutine(hook, "@on_ready")
        self.ready = hook
        return hook

    def error(self, kind: type[Exception]) -> Callable[[F], F]:
        """Declare the function that translates exceptions of the class `kind`: it accepts one, and returns the error
        for the client, such as a ToolError."""

        with locate_errors(None):
            if Exception not in getattr(kind, "__mro__", ()):
                raise DeclarationError(
                    f"@error takes a class of exceptions, as in `@app.error(KeyError)`, not {kind!r}"
                )

        def declare(function: F) -> F:
            self._require_first(function, f"@error({kind.__name__})", self._translations.get(kind))
            self._translations[kind] = function
            return function

        return declare

    def require_changeable(self) -> None:
        """Raise DeclarationError once the server has been opened."""
        if self._is_frozen:
            raise DeclarationError(
                f"the server {self.implementation.name!r} has already been opened: declare its features before that, "
                "or change `opening.features` in its lifespan"
            )

    def _require_first(self, function: Any, decorator: str, existing: Any) -> None:
        """Raise DeclarationError if the server was opened, or has the function `existing` for `decorator` already."""
        self.require_changeable()
        if existing is not None:
            name = getattr(existing, "__name__", type(existing).__name__)
            with locate_errors(function):
                raise DeclarationError(
                    f"{decorator} is already set, to {name!r}: a server has one such function, which can call others"
                )

    def freeze(self) -> None:
        """Refuse all further declarations, because the server is being opened."""
        self._is_frozen = True

    def open_lifespan(self, opening: Any) -> AbstractAsyncContextManager[State | None]:
        """Return the context manager of the lifespan, which yields the state of the run of this `Opening`."""
        if self._lifespan is None:
            return nullcontext()
        manager = self._lifespan(opening)
        return manager if isinstance(manager, AbstractAsyncContextManager) else asynccontextmanager(lambda: manager)()

    # Errors sent to clients

    def translate(self, error: BaseException) -> McpError | InputRequired:
        """Return the error to answer for a call that raised `error`: "internal error", which is logged, unless
        `error` was raised for the client, or the author has declared a translation. Exceptions that must end the
        program are raised again."""
        answer = self.error_for_client(error)
        if answer is not None:
            return answer
        error = first_error(error)
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise error
        log.error("a handler failed", exc_info=error)
        return InternalError("internal error")

    def error_for_client(self, error: BaseException) -> McpError | InputRequired | None:
        """Return the error for the client, if `error` was raised for the client or the author has declared a
        translation; otherwise None."""
        # If a task group failed, its first error counts: an author may raise ToolError in a task of the group.
        error = first_error(error)
        if isinstance(error, McpError | InputRequired) and not isinstance(error, DeclarationError):
            return error
        for kind in type(error).__mro__ if isinstance(error, Exception) else ():
            if kind in self._translations:
                return self._apply_translation(kind, error)
        return None

    def _apply_translation(self, kind: type[Any], error: BaseException) -> McpError | None:
        """Return the translation of `error` by the function that the author declared for `kind`. If the function
        fails, log that and return None."""
        try:
            answer = self._translations[kind](error)
        except McpError as raised:
            return raised
        except Exception as failure:
            log.error("the @error function for %s failed", kind.__name__, exc_info=failure)
            _add_note(error, f"the @error function for {kind.__name__} failed: {failure!r}")
            return None
        if isinstance(answer, McpError):
            return answer
        fault = f"the @error function for {kind.__name__} returned {answer!r}, not an error such as ToolError"
        log.error(fault)
        _add_note(error, fault)
        return None


def _add_note(error: BaseException, note: str) -> None:
    """Add `note` to the end of the traceback of `error`, unless it has it. The command `call` shows only the last
    traceback, so a separate log message would not be seen there."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _accepts_opening(function: Callable[..., Any]) -> bool:
    """Return True if the lifespan can be called with the opening as its only argument."""
    own_signature = signature(function, follow_wrapped=False)
    # A wrapper, such as one of `asynccontextmanager`, accepts any arguments, so the wrapped function decides.
    is_wrapper = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in own_signature.parameters.values())
    try:
        (signature(function) if is_wrapper else own_signature).bind(None)
    except TypeError:
        return False
    return True
