"""`Run`: one run of a server, as handlers, extensions, telemetry and transports see it.

One declaration may run several times at once. Each run has its own features, a copy of the declared ones, and its own
state, limits, changes and calls. It lives in one event loop.

`running.py` assembles it, and is the only module that knows all its parts. Other code observes a run by its `hooks`,
`replication` is the state shared with other processes, and `parts` are the runs that serve some principals only. A
run imports declarations, contexts, connections and calls, and none of these imports a run: so there are no circular
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
    """Opens the server of a run a second time, with other settings and the same limits and extensions."""

    def __call__(
        self, settings: BaseModel, stores: "Stores | None", *, without: str
    ) -> "AbstractAsyncContextManager[Run[Any]]":
        """Open the second run for the duration of the block, without the extension named `without`."""


class Run(Generic[State]):
    """A running server, created by `Server.open`. One process may serve many peers with it."""

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
        self.hooks = Hooks()
        self.replication = Replication(self.changes)
        self.parts = Parts(self)
        self.is_log_warned = False
        """True once the author has been warned about log messages that no client receives."""

    # Its identity and its handlers

    @cached_property
    def signer(self) -> Signer:
        """Sign cursors and request states: with MCP_STATE_KEY, which several processes of this server may share,
        with the key of its stores, or with a key of this run only."""
        key = os.environ.get("MCP_STATE_KEY", "")
        # A signature of one server is invalid for another one with the same key.
        if key:
            return Signer(f"{self.server.implementation.name}\0{key}".encode())
        replica = self.replication.replica
        return Signer(os.urandom(32) if replica is None else replica.secret)

    @cached_property
    def identity(self) -> Identity:
        """The description of the server for clients."""
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

    def present(self, identity: Identity) -> None:
        """Present `identity` to later clients instead of the declared one. It may be called again."""
        self.identity = identity
        self.__dict__.pop("method_table", None)

    @cached_property
    def method_table(self) -> MethodTable:
        """The methods that the server serves."""
        return method_table(self.identity, self.features.methods)

    @cached_property
    def handlers(self) -> dict[str, Handler]:
        """The handler of each method; fixed, like everything that depends on it, when the first peer connects."""
        layers = self._layers
        return {name: layers[name][-1][1] if layers[name] else own for name, own in self.features.handlers.items()}

    @cached_property
    def _layers(self) -> dict[str, list[tuple[Extension[Any], Handler]]]:
        """The extensions that wrap the handler of each method, innermost first, with the wrapped handlers.
        `Extension.around` is called once per method, because some extensions count their runs with it."""
        methods = {method.handler: method for method in self.features.methods}
        return {name: self._wrap(methods[name], handler) for name, handler in self.features.handlers.items()}

    def _wrap(self, row: Method, handler: Handler) -> list[tuple[Extension[Any], Handler]]:
        layers: list[tuple[Extension[Any], Handler]] = []
        for extension in sorted(self.extensions, key=lambda extension_: extension_.rank):
            outer_handler = handler if extension.around is None else extension.around(row, handler)
            if outer_handler is not handler:
                layers.append((extension, outer_handler))
            handler = outer_handler
        return layers

    def wrap(self, row: Method, handler: Handler) -> Handler:
        """Return `handler`, which serves the method of `row`, wrapped by the extensions."""
        layers = self._wrap(row, handler)
        return layers[-1][1] if layers else handler

    def wrap_at_once(self, row: Method, at_once: AtOnce | None) -> AtOnce | None:
        """Return `at_once`, which answers instead of the handler for the method of `row`, wrapped by the extensions;
        None if an extension must wait."""
        for extension, _ in self._layers[row.handler]:
            wrap = extension.around_at_once
            at_once = None if wrap is None or at_once is None else wrap(row, at_once)
        return at_once

    # Its peers

    def connect(self, principal: Principal | None, due: Callable[[], None], client: str = "") -> Connection:
        """Create the connection of a new peer, which is anonymous if there is no `principal`. `due` is called
        whenever messages may wait for the peer. `client` is the client's name among the clients that share the
        server; "" means that there is only one."""
        run = self.parts.for_principal(principal)
        if run is not self:
            run.hooks.copy_from(self.hooks)
            return run.connect(principal, due, client)
        replica = self.replication.replica
        number = 0 if replica is None else replica.number
        session = ServerSession(
            self.identity, self.method_table, self.signer, principal=principal, now=time.time, replica=number
        )
        if replica is not None:
            session.number_questions(self.replication.questions)
        session.on_unhandled = self.hooks.on_unhandled
        return Connection(self.calls, self.changes, session, due, client)

    def stop(self) -> None:
        """Prepare to stop: nothing more is read from clients, and work that belongs to no client ends now."""
        self.hooks.stop()


class Parts(Generic[State]):
    """The runs that serve only principals with certain names, under their own settings, and the whole run to which
    they belong."""

    def __init__(self, whole: Run[State]) -> None:
        self.reopen: Reopen
        self._whole = whole
        self._by_name: dict[str, Run[State]] = {}

    def narrow(self, name: str, run: Run[State]) -> None:
        """Serve principals with that name through `run`: the whole run, or another run that is open as long. `*`
        means all names without their own run, which the whole run serves by default."""
        self._by_name[name] = run
        self._whole.replication.narrow(name, run.replication)
        if run is not self._whole:
            self._whole.hooks.stoppers.append(run.stop)

    def for_principal(self, principal: Principal | None) -> Run[State]:
        """Return the run that serves `principal`: the whole run or a narrowed one."""
        return self.for_name("" if principal is None else principal.name)

    def for_name(self, name: str) -> Run[State]:
        """Return the run that serves principals with that name."""
        if not self._by_name:
            return self._whole
        run = self._by_name.get(name) if name else None
        return run or self._by_name.get(ALL_OTHERS, self._whole)

    @property
    def all(self) -> list[Run[State]]:
        """The whole run, and the narrowed runs."""
        return [self._whole, *(run for run in self._by_name.values() if run is not self._whole)]


def _merge_capability(
    capabilities: Mapping[str, Any], path: Sequence[str], value: Mapping[str, Any]
) -> dict[str, Any]:
    """Return these capabilities with `value` at `path`."""
    name, rest = path[0], path[1:]
    return {**capabilities, name: _merge_capability(capabilities.get(name, {}), rest, value) if rest else value}
