"""`Run`: one run of a server, as handlers, extensions, telemetry and transports see it.

One declaration may run several times at once. Each run has features of its own, a copy of what was declared, and its
own state, limits, changes and calls. It lives in one event loop.

`running.py` puts it together, and alone knows all that it is made of. Others follow a run by its `hooks`,
`replication` is what it shares with other processes, and `parts` are the runs that serve some principals only. A run
knows what is declared, contexts, connections and calls, and none of these knows a run: so nothing here imports in a
circle.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol

from pydantic import BaseModel

from ..auth.policy import ALL_OTHERS
from ..protocol.identity import Identity, Principal, Span
from ..protocol.methods import Method, MethodTable, method_table
from ..protocol.session.server import ServerSession
from ..protocol.signing import Signer
from .dispatch.changes import Changes
from .dispatch.conditions import Conditions
from .dispatch.connection import Connection
from .dispatch.hooks import Hooks
from .extension import Extension
from .features import Features, Handler, State
from .replication import Replication

if TYPE_CHECKING:
    from ..contracts import Stores
    from .declaration import Declaration
    from .dispatch.calls import Calls


class Reopen(Protocol):
    """Opens the server of a run once more, with other settings and the same limits and extensions."""

    def __call__(
        self, settings: BaseModel, stores: "Stores | None", *, without: str
    ) -> "AbstractAsyncContextManager[Run[Any]]":
        """The other run, as long as the block lasts, without the extension of that name."""


class Run(Generic[State]):
    """A server that serves, made by `Server.open`. One process may serve many peers with it."""

    def __init__(self, server: "Declaration[State]", settings: Any) -> None:
        self.server = server
        self.settings = settings
        self.state: Any = None
        """What the lifespan yielded."""
        self.features = Features[State]()
        self.extensions: list[Extension[Any]] = []
        self.opened: dict[str, Any] = {}
        """What the lifespan of each extension has given, by the name of the extension."""
        self.changes = Changes()
        self.conditions = Conditions(server.implementation.name, self.changes.announce)
        self.calls: Calls
        self.hooks = Hooks()
        self.replication = Replication(self.changes)
        self.parts = Parts(self)

    # What it says and whom it asks

    @cached_property
    def signer(self) -> Signer:
        """Signs cursors and request states: with MCP_STATE_KEY, which several processes of this server may share,
        with what its stores have for that, or with a key of this run alone."""
        given = os.environ.get("MCP_STATE_KEY", "")
        # What one server has signed is nothing to another one that has the same key.
        if given:
            return Signer(f"{self.server.implementation.name}\0{given}".encode())
        replica = self.replication.replica
        return Signer(os.urandom(32) if replica is None else replica.secret)

    @cached_property
    def identity(self) -> Identity:
        """What the server says of itself."""
        capabilities: dict[str, Any] = dict(self.server.capabilities)
        spans: dict[tuple[str, ...], Span] = {}
        for one in (one for extension in self.extensions for one in extension.declares):
            value = one.value(self)
            if value is not None:
                capabilities, spans[one.path] = _declared(capabilities, one.path, value), one.span
        server, standing = self.server, self.conditions.standing
        return Identity(server.implementation, server.instructions, capabilities, spans, server.log_level, standing)

    def present(self, identity: Identity) -> None:
        """Has those who come from now on be told `identity` in place of what is declared. It may be said again."""
        self.identity = identity
        self.__dict__.pop("method_table", None)

    @cached_property
    def method_table(self) -> MethodTable:
        """The methods it understands."""
        return method_table(self.identity, self.features.methods)

    @cached_property
    def handlers(self) -> dict[str, Handler]:
        """Who handles each method; settled, like all that depends on it, when the first peer comes."""
        rows = {row.handler: row for row in self.features.methods}
        return {name: self.surrounded(rows[name], handler) for name, handler in self.features.handlers.items()}

    def surrounded(self, row: Method, handler: Handler) -> Handler:
        """`handler` of the method of this `row`, within all that the extensions do around it."""
        for extension in sorted(self.extensions, key=lambda one: one.outermost):
            if extension.around is not None:
                handler = extension.around(row, handler)
        return handler

    # Its peers

    def connect(self, principal: Principal | None, due: Callable[[], None], client: str = "") -> Connection:
        """A new peer, which is nobody in particular without a `principal`. `due` is called whenever something waits
        for it, and may be called in vain. `client` names who shares the server with others; "" is alone."""
        serving = self.parts.for_principal(principal)
        if serving is not self:
            serving.hooks.follow(self.hooks)
            return serving.connect(principal, due, client)
        replica = self.replication.replica
        number = 0 if replica is None else replica.number
        session = ServerSession(
            self.identity, self.method_table, self.signer, principal=principal, now=time.time, replica=number
        )
        if replica is not None:
            session.share_ids(self.replication.questions)
        session.on_settled = self.hooks.on_settled
        return Connection(self.calls, self.changes, session, due, client)

    def stop(self) -> None:
        """It is about to stop: no more is read from its clients, and what belongs to none of them ends now."""
        self.hooks.stop()


class Parts(Generic[State]):
    """The runs that serve principals of some names only, by other settings, and the run that they belong to."""

    def __init__(self, whole: Run[State]) -> None:
        self.reopen: Reopen
        self._whole = whole
        self._by_name: dict[str, Run[State]] = {}

    def narrow(self, name: str, run: Run[State]) -> None:
        """Has principals of that name be served by `run`: the whole, or another that is open as long. `*` is all who
        have none of their own; who has a name and nothing there is served by the whole."""
        self._by_name[name] = run
        self._whole.replication.narrow(name, run.replication)
        if run is not self._whole:
            self._whole.hooks.stoppers.append(run.stop)

    def for_principal(self, principal: Principal | None) -> Run[State]:
        """The run that serves `principal`: the whole, or one that is narrowed."""
        return self.for_name("" if principal is None else principal.name)

    def for_name(self, name: str) -> Run[State]:
        """The run that serves principals of that name."""
        if not self._by_name:
            return self._whole
        run = self._by_name.get(name) if name else None
        return run or self._by_name.get(ALL_OTHERS, self._whole)

    @property
    def all(self) -> list[Run[State]]:
        """The whole, and those that are narrowed."""
        return [self._whole, *(run for run in self._by_name.values() if run is not self._whole)]


def _declared(capabilities: Mapping[str, Any], path: Sequence[str], value: Mapping[str, Any]) -> dict[str, Any]:
    """These capabilities with `value` at `path`."""
    name, rest = path[0], path[1:]
    return {**capabilities, name: _declared(capabilities.get(name, {}), rest, value) if rest else value}
