"""`Run`: one run of a server, the object that handlers, extensions, telemetry and transports use.

A declared server may run several times at once. Each run has its own state, limits, changes and calls, and its own
features, which begin as a copy of the declared ones. A run belongs to one event loop.

`running.py` assembles a run from its components. Other code observes the run with `hooks`; `replication` is what it
shares with other processes, and `parts` are the runs for principals with their own settings. This module imports
declarations, contexts, connections and calls, and none of these imports this module, so there are no circular
imports.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol

from pydantic import BaseModel

from ..auth.policy import ALL_OTHERS
from ..protocol.identity import Audience, Identity, Principal
from ..protocol.methods import Method, MethodTable, method_table
from ..protocol.session.server import ServerSession
from ..protocol.signing import Signer
from .dispatch.changes import Changes
from .dispatch.conditions import Conditions
from .dispatch.connection import Connection
from .dispatch.hooks import Hooks
from .extension import Extension
from .features import AtOnce, Features, Handler, State
from .replication import Replication

if TYPE_CHECKING:
    from ..contracts import Stores
    from .declaration import Declaration
    from .dispatch.calls import Calls


class Reopen(Protocol):
    """A function that opens the server of a run again, with other settings but the same limits and extensions."""

    def __call__(
        self, settings: BaseModel, stores: "Stores | None", *, without_extension: str
    ) -> "AbstractAsyncContextManager[Run[Any]]":
        """Return a context manager that opens the run for its block, without the extension of that name."""


class Run(Generic[State]):
    """One run of a server, created by `Server.open`. It may serve many peers."""

    def __init__(self, server: "Declaration[State]", settings: Any) -> None:
        self.server = server
        self.settings = settings
        self.state: Any = None
        """The value that the lifespan yielded."""
        self.features = Features[State]()
        self.extensions: list[Extension[Any]] = []
        self.opened: dict[str, Any] = {}
        """The value that the lifespan of each extension yielded, by the name of the extension."""
        self.changes = Changes()
        self.conditions = Conditions(server.implementation.name, self.changes.announce)
        self.calls: Calls
        """The calls in progress."""
        self.hooks = Hooks()
        self.replication = Replication(self.changes)
        self.parts = Parts(self)
        self.is_log_warned = False
        """True once the author has been warned that the log messages of handlers reach no client."""

    # Its identity and its handlers

    @cached_property
    def signer(self) -> Signer:
        """The signer of cursors and request states. Its key comes from the environment variable MCP_STATE_KEY, which
        several processes of this server may share; or else from the stores; or else it is a key of this run only."""
        key = os.environ.get("MCP_STATE_KEY", "")
        # The name of the server is part of the key, so a signature of one server is invalid for another.
        if key:
            return Signer(f"{self.server.implementation.name}\0{key}".encode())
        replica = self.replication.replica
        return Signer(os.urandom(32) if replica is None else replica.secret)

    @cached_property
    def identity(self) -> Identity:
        """The server's description of itself for clients."""
        capabilities: dict[str, Any] = dict(self.server.capabilities)
        audiences: dict[tuple[str, ...], Audience] = {}
        for capability in (capability for extension in self.extensions for capability in extension.declares):
            value = capability.value(self)
            if value is not None:
                capabilities, audiences[capability.path] = (
                    _merge_capability(capabilities, capability.path, value),
                    capability.audience,
                )
        server, active = self.server, self.conditions.active
        return Identity(server.implementation, server.instructions, capabilities, audiences, server.log_level, active)

    def replace_identity(self, identity: Identity) -> None:
        """Describe the server by `identity` to clients that connect from now on."""
        self.identity = identity
        self.__dict__.pop("method_table", None)

    @cached_property
    def method_table(self) -> MethodTable:
        """The methods that the server supports."""
        return method_table(self.identity, self.features.methods)

    @cached_property
    def handlers(self) -> dict[str, Handler]:
        """The handler of each method, wrapped by the extensions. Computed once, when the first peer connects."""
        layers = self._layers
        return {name: layers[name][-1][1] if layers[name] else own for name, own in self.features.handlers.items()}

    @cached_property
    def _layers(self) -> dict[str, list[tuple[Extension[Any], Handler]]]:
        """For each method, the extensions that wrap its handler, innermost first, each with the handler that results.
        `Extension.around` is called only once per method, because some extensions rely on that."""
        methods = {method.handler: method for method in self.features.methods}
        return {name: self._wrap(methods[name], handler) for name, handler in self.features.handlers.items()}

    def _wrap(self, row: Method, handler: Handler) -> list[tuple[Extension[Any], Handler]]:
        layers: list[tuple[Extension[Any], Handler]] = []
        for extension in sorted(self.extensions, key=lambda other: other.rank):
            outer_handler = handler if extension.around is None else extension.around(row, handler)
            if outer_handler is not handler:
                layers.append((extension, outer_handler))
            handler = outer_handler
        return layers

    def wrap(self, row: Method, handler: Handler) -> Handler:
        """Return `handler`, a handler for the method `row`, wrapped by the extensions."""
        layers = self._wrap(row, handler)
        return layers[-1][1] if layers else handler

    def wrap_at_once(self, row: Method, at_once: AtOnce | None) -> AtOnce | None:
        """Return `at_once`, which answers requests of the method `row` at once, wrapped by the extensions; None if an
        extension can't answer at once."""
        for extension, _ in self._layers[row.handler]:
            wrap = extension.around_at_once
            at_once = None if wrap is None or at_once is None else wrap(row, at_once)
        return at_once

    # Its peers

    def connect(self, principal: Principal | None, on_outgoing: Callable[[], None], client: str = "") -> Connection:
        """Return the connection for a new peer, which is anonymous if there is no `principal`. `on_outgoing` is
        called whenever there may be messages to send to the peer. `client` is the name under which the peer's use is
        counted; "" if the server has only one client."""
        run = self.parts.for_principal(principal)
        if run is not self:
            run.hooks.copy_from(self.hooks)
            return run.connect(principal, on_outgoing, client)
        replica = self.replication.replica
        number = 0 if replica is None else replica.number
        session = ServerSession(
            self.identity, self.method_table, self.signer, principal=principal, now=time.time, replica=number
        )
        if replica is not None:
            session.number_questions(self.replication.question_ids)
        session.on_unhandled = self.hooks.on_unhandled
        return Connection(self.calls, self.changes, session, on_outgoing, client)

    def stop(self) -> None:
        """Prepare to stop: read nothing more from clients, and end work that belongs to no client."""
        self.hooks.stop()


class Parts(Generic[State]):
    """The main run of a server, and the runs for principals with their own settings, which belong to it."""

    def __init__(self, main: Run[State]) -> None:
        self.reopen: Reopen
        self._main = main
        self._by_name: dict[str, Run[State]] = {}

    def narrow(self, name: str, run: Run[State]) -> None:
        """Make `run` the run for principals with that name: the main run, or another one that stays open as long. The
        name `*` stands for all names without a run, which are served by the main run by default."""
        self._by_name[name] = run
        self._main.replication.add_part(name, run.replication)
        if run is not self._main:
            run.calls.use_memory(self._main.calls.memory)
            self._main.hooks.stoppers.append(run.stop)

    def for_principal(self, principal: Principal | None) -> Run[State]:
        """Return the run that serves `principal`."""
        return self.for_name("" if principal is None else principal.name)

    def for_name(self, name: str) -> Run[State]:
        """Return the run that serves principals with that name."""
        if not self._by_name:
            return self._main
        run = self._by_name.get(name) if name else None
        return run or self._by_name.get(ALL_OTHERS, self._main)

    @property
    def all(self) -> list[Run[State]]:
        """The main run, followed by the others."""
        return [self._main, *(run for run in self._by_name.values() if run is not self._main)]


def _merge_capability(
    capabilities: Mapping[str, Any], path: Sequence[str], value: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `capabilities` with `value` at `path`."""
    name, rest = path[0], path[1:]
    return {**capabilities, name: _merge_capability(capabilities.get(name, {}), rest, value) if rest else value}
