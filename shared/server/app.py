"""`Server`: what an author declares, and what the rest of the package asks of it.

    app = Server[Files]("filesystem", settings=Settings)

    @app.lifespan
    async def open_files(settings: Settings) -> AsyncIterator[Files]:
        yield Files(settings.roots)

    @app.tool(read_only=True)
    async def read_text_file(ctx: Context[Files], path: str) -> str:
        \"\"\"Read a text file as UTF-8.\"\"\"
        return await ctx.state.read_text(path)

The decorators give the function back unchanged, so it can be called in a test without any server.
"""

import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from ..errors import DeclarationError, InputRequired, InternalError, McpError
from ..protocol.identity import Identity
from ..protocol.methods import SKILLS, Method, MethodTable, method_table
from ..protocol.session.server import ServerSession
from ..protocol.signing import Seal
from ..protocol.types.base import Implementation, Params
from .budget import Budget
from .calls import Calls
from .changes import Changes
from .completion import Completer, Completions
from .context import Context
from .limits import Limits
from .listings import Listings
from .observers import Observer, Observers
from .prompts import Prompts, PromptSource, RegisteredPrompt
from .resources import Lister, RegisteredResource, ResourceOptions, Resources
from .tools import RegisteredTool, ToolOptions, Tools
from .turns import Turns

if TYPE_CHECKING:
    from .skills import Skills

__all__ = ["NoSettings", "Server"]

log = logging.getLogger("shared.server")

State = TypeVar("State")
F = TypeVar("F", bound=Callable[..., Any])

MAX_INSTRUCTIONS = 2_048
"""Bytes of instructions that hosts show their models."""


class NoSettings(BaseModel):
    """The settings of a server that has none."""


class Server(Generic[State]):
    """A server: its features, and the state they share. One process may serve many peers with it."""

    def __init__(
        self,
        implementation: Implementation,
        *,
        instructions: str | None = None,
        settings: type[BaseModel] = NoSettings,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        """`instructions` tell the model how to use the server, 2 KiB at most. `settings` is the model of its
        options. `capabilities` are declared besides those that follow from the features: `logging`,
        `experimental`, `extensions`."""
        if instructions is not None and len(instructions.encode()) > MAX_INSTRUCTIONS:
            raise DeclarationError(f"hosts cut instructions at {MAX_INSTRUCTIONS} bytes")
        self.implementation = implementation
        self.instructions = instructions
        self.settings_model = settings
        self.settings: Any = None
        self.state: Any = None
        self.tools = Tools()
        self.resources = Resources()
        self.prompts = Prompts()
        self.completions = Completions()
        self.skills: Skills | None = None
        self.changes = Changes()
        self.listings = Listings()
        self.budget = Budget()
        self.calls: Calls
        self.turns, self.brief_turns = Turns(), Turns()
        self.limits = Limits()
        self.page_size = 100
        self.trace: Observer | None = None
        self.meter: Callable[[], Observer] | None = None
        """Makes what counts for a new connection, where somebody wants the counts."""
        self.endpoints: list[tuple[str, int]] = []
        """The addresses and ports that its HTTP transport listens on."""
        self.health: Callable[[], Mapping[str, Any]] = dict
        self.ready: Callable[[], Awaitable[str | None]] | None = None
        self.handlers: dict[str, Callable[..., Any]] = {}
        self._declared = dict(capabilities or {})
        self._methods: list[Method] = []
        self._lifespan: Callable[[Any], Any] | None = None
        self._translations: dict[type[Exception], Callable[[Any], McpError]] = {}

    # Declaring

    def tool(self, **options: Any) -> Callable[[F], F]:
        """Makes a function a tool. The options are the fields of `ToolOptions`."""

        def declare(function: F) -> F:
            self.tools.add(RegisteredTool(function, ToolOptions(**options)))
            return function

        return declare

    def resource(self, uri: str, **options: Any) -> Callable[[F], F]:
        """Makes a function the reader of `uri`, which may be an RFC 6570 template. The options are the fields
        of `ResourceOptions`."""

        def declare(function: F) -> F:
            self.resources.add(RegisteredResource(uri, function, ResourceOptions(**options)))
            return function

        return declare

    def lists_resources(self, lister: Lister) -> Lister:
        """Has `resources/list` show what this function names, after the fixed resources."""
        self.resources.listers.append(lister)
        return lister

    def prompt(self, *, name: str | None = None, title: str | None = None) -> Callable[[F], F]:
        """Makes a function a prompt; its parameters are the prompt's arguments."""

        def declare(function: F) -> F:
            self.prompts.add(RegisteredPrompt(function, name, title))
            return function

        return declare

    def prompts_from(self, source: PromptSource) -> None:
        """Has the server serve the prompts of `source` as well, after those that are declared, and complete their
        arguments. Raises DeclarationError where it has a source already."""
        if self.prompts.source is not None:
            raise DeclarationError("prompts come from one source")
        self.prompts.source = source

    def completes(self, kind: str, name: str, argument: str) -> Callable[[Completer], Completer]:
        """Has a function complete an argument of the "prompt", or a variable of the "resource", called `name`."""

        def declare(completer: Completer) -> Completer:
            self.completions.add(kind, name, argument, completer)
            return completer

        return declare

    def method(self, name: str, params: type[Params] = Params) -> Callable[[F], F]:
        """Makes a function the handler of a method of this server's own: it takes the context and the params."""

        def declare(function: F) -> F:
            async def handle(_app: Any, context: Context[Any], given: Any) -> Any:
                return await function(context, given)

            self._methods.append(Method(name, params))
            self.handlers[name] = handle
            return function

        return declare

    def lifespan(self, opening: F) -> F:
        """Runs this async generator around the server's life: it takes the settings and yields the state."""
        self._lifespan = asynccontextmanager(opening)
        return opening

    def on_subscribe(self, hook: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        """Has this function begin a subscription: it takes the context and the URI, and returns the key
        under which changes are published. It raises ResourceNotFound for what is not served."""
        self.changes.on_subscribe = hook
        return hook

    def on_unsubscribe(self, hook: Callable[[str], Any]) -> Callable[[str], Any]:
        """Has this function know when the last subscription under a key has ended."""
        self.changes.on_unsubscribe = hook
        return hook

    def on_wanted(self, hook: Callable[[], Any]) -> Callable[[], Any]:
        """Has this function know when a client first takes an interest in the list of resources."""
        self.changes.on_wanted = hook
        return hook

    def on_health(self, hook: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
        """Has `/healthz` say what this function gives, besides what it says of every server."""
        self.health = hook
        return hook

    def on_ready(self, hook: Callable[[], Awaitable[str | None]]) -> Callable[[], Awaitable[str | None]]:
        """Has `/readyz` ask this function why the server can't do its work now, which is None where it can. Whoever
        may use the server is told the reason; what the function raises goes to the log."""
        self.ready = hook
        return hook

    def error(self, kind: type[Exception]) -> Callable[[F], F]:
        """Has a function say what the client is told of an error of the author's own `kind`."""

        def declare(function: F) -> F:
            self._translations[kind] = function
            return function

        return declare

    # Serving

    @asynccontextmanager
    async def running(self, settings: BaseModel | None = None) -> AsyncIterator["Server[State]"]:
        """Opens what the lifespan opens, with `settings` or the defaults; closes it at the end."""
        self.settings = self.settings_model() if settings is None else settings
        opened = nullcontext() if self._lifespan is None else self._lifespan(self.settings)
        async with opened as self.state:
            self.calls = Calls(self)
            try:
                yield self
            finally:
                await self.calls.close()

    @cached_property
    def seal(self) -> Seal:
        """Seals cursors and request states: with MCP_STATE_KEY, which several processes of this server may share, or
        with a key of this process alone."""
        given = os.environ.get("MCP_STATE_KEY", "")
        # What one server has sealed is nothing to another one that has the same key.
        return Seal(f"{self.implementation.name}\0{given}".encode() if given else os.urandom(32))

    @cached_property
    def identity(self) -> Identity:
        """What the server says of itself; settled when the first peer comes."""
        return Identity(self.implementation, self.instructions, self._capabilities())

    @cached_property
    def method_table(self) -> MethodTable:
        """The methods it understands."""
        return method_table(self.identity, self._methods)

    def session(self, principal: str | None) -> ServerSession:
        """The protocol with a new peer."""
        return ServerSession(self.identity, self.method_table, self.seal, principal=principal, now=time.time)

    def observer(self) -> Observer | None:
        """Who sees all messages of a new connection, where anybody does."""
        if self.meter is None:
            return self.trace
        return self.meter() if self.trace is None else Observers(self.trace, self.meter())

    def translate(self, error: BaseException) -> McpError | InputRequired:
        """What becomes of a call that raised `error`: the client is told nothing but "internal error", unless it was
        raised to be told, or the author said more. Raises what no handler may raise."""
        # Where a task group failed, what it failed of first counts: authors may raise a ToolError, or ask, in a task.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, McpError | InputRequired) and not isinstance(error, DeclarationError):
            return error
        if not isinstance(error, Exception):
            raise error
        for kind in type(error).__mro__:
            if kind in self._translations:
                return self._translations[kind](error)
        log.error("a handler failed", exc_info=error)
        return InternalError("internal error")

    def _capabilities(self) -> dict[str, Any]:
        capabilities: dict[str, Any] = dict(self._declared)
        if len(self.tools):
            capabilities["tools"] = {"listChanged": True}
        if len(self.resources):
            subscribe = {"subscribe": True} if self.changes.on_subscribe is not None else {}
            capabilities["resources"] = {**subscribe, "listChanged": True}
        elsewhere = self.prompts.source is not None
        if len(self.prompts) or elsewhere:
            capabilities["prompts"] = {"listChanged": True}
        if len(self.completions) or elsewhere:
            capabilities["completions"] = {}
        if self.skills is not None:
            capabilities["extensions"] = {**capabilities.get("extensions", {}), SKILLS: {"directoryRead": True}}
        return capabilities
