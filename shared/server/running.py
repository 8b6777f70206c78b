"""`Running`: one server, opened with its settings. Whatever changes while it is served is here.

One declaration may run several times at once. Each run has features of its own, a copy of what was declared, and its
own state, limits, changes and calls. It lives in one event loop.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError

from ..auth.policy import ALL_OTHERS
from ..contracts import Blobs, Observer, Quota
from ..errors import DeclarationError, LimitExceeded
from ..protocol.identity import Identity, Principal, Span
from ..protocol.methods import Method, MethodTable, method_table
from ..protocol.session.events import Call, Change, Outgoing
from ..protocol.session.server import ServerSession
from ..protocol.signing import Signer
from ..protocol.types.base import Implementation
from ..protocol.types.client import LogLevel
from ..protocol.types.tools import CallToolParams
from ..protocol.wire.jsonrpc import Message
from .dispatch.changes import Changes
from .dispatch.conditions import Conditions
from .dispatch.connection import Connection
from .dispatch.context import Context
from .dispatch.handlers import CORE, Listings
from .dispatch.limits import CallLimits, Limits
from .dispatch.scoped_blobs import RunBlobs
from .dispatch.thread_limiter import Turns
from .extension import Extension, Passes
from .features import Features, Handler
from .tools import call_tool, call_tool_at_once

if TYPE_CHECKING:
    from ..contracts import Replica
    from .dispatch.calls import Calls
    from .server import Server

__all__ = ["Opening", "Running"]

State = TypeVar("State")

AtOnce = Callable[[Context[Any], CallToolParams], dict[str, Any] | None]
"""What a tool gives at once; None where it has to be called. Raises like a handler."""

_CALL = "tools/call"


class Running(Generic[State]):
    """A server that serves, made by `Server.open`. One process may serve many peers with it."""

    def __init__(self, server: "Server[State]", settings: Any, limits: Limits, budget: CallLimits) -> None:
        self.server = server
        self.settings = settings
        self.limits = limits
        self.budget = budget
        self.task_limits, self.page_size = server.task_limits, server.page_size
        self.state: Any = None
        """What the lifespan yielded."""
        self.features = Features[State]()
        self.extensions: list[Extension[Any]] = []
        self.extend(CORE)
        self.features.include(server)
        for extension in server.extensions:
            self.extend(extension)
        self.changes = self._new_changes()
        self.conditions = Conditions(server.implementation.name, self.changes.announce)
        self.listings = Listings()
        self.turns, self.brief_turns = Turns(), Turns()
        self.calls: Calls
        self.trace: Observer | None = None
        self.greeters: list[Callable[[Connection], None]] = []
        """Who hears of each peer that has shaken hands. They neither wait nor raise."""
        self.is_there: Callable[[], bool] = lambda: True
        """Whether what it stands for can be reached, where that is elsewhere."""
        self.meter: Callable[[], Observer] | None = None
        """Makes what counts for a new connection, where somebody wants the counts."""
        self.quota: Quota | None = None
        """Says how many calls each client may have under way, where somebody does."""
        self.on_refused: Callable[[Call, LimitExceeded], None] | None = None
        """Hears of calls that are refused before anybody is asked, where somebody writes them down."""
        self.replica: Replica | None = None
        """What it shares with other runs of the server; None where it is alone."""
        self.run = ""
        """Whom alone it serves of those whom its replica serves: the name by which it was narrowed."""
        self.opened: dict[str, Any] = {}
        """What the lifespan of each extension has given, by the name of the extension."""
        self.stoppers: list[Callable[[], None]] = []
        """Who hears that it is about to stop, while its clients are still there. They neither wait nor raise."""
        self.added: Sequence[Extension[Any]] = ()
        """What whoever has opened it added to the extensions of its author."""
        self.narrowed: dict[str, Running[State]] = {}
        """The runs for single principals, by the names of these; `*` is all others. Who has a name and nothing of
        its own there is served by this one."""
        self._is_stopping = False
        self.questions = count(1)
        """The ids of what its peers are asked, where replicas share them."""
        self._said: Identity | None = None
        self.endpoints: list[tuple[str, int]] = []
        """The addresses and ports that its HTTP transport listens on."""

    def extend(self, extension: Extension[Any]) -> None:
        """Has it speak `extension` as well. Raises DeclarationError for what there is already."""
        if any(one.name == extension.name for one in self.extensions):
            raise DeclarationError(f"there is an extension {extension.name!r} already")
        self.features.include(extension)
        self.extensions.append(extension)

    @cached_property
    def handlers(self) -> dict[str, Handler]:
        """Who handles each method; settled, like all that follows, when the first peer comes."""
        rows = {row.handler: row for row in self.features.methods}
        return {name: self.surrounded(rows[name], handler) for name, handler in self.features.handlers.items()}

    def surrounded(self, row: Method, handler: Handler) -> Handler:
        """`handler` of the method of this `row`, within all that the extensions do around it."""
        for extension in sorted(self.extensions, key=lambda one: one.outermost):
            if extension.around is not None:
                handler = extension.around(row, handler)
        return handler

    @cached_property
    def at_once(self) -> AtOnce | None:
        """What answers calls of tools that have their value at once, before there is a task; None where an extension
        is around the calls of tools that lets none of them by."""
        row = next((row for row in self.features.methods if row.handler == _CALL), None)
        if row is None or self.features.handlers[_CALL] is not call_tool:
            return None
        passes: list[Passes] = []
        for one in self.extensions:
            if one.around is not None and one.around(row, call_tool) is not call_tool:
                if one.passes is None:
                    return None
                passes.append(one.passes)

        def answer(context: Context[Any], params: CallToolParams) -> dict[str, Any] | None:
            for goes_by in passes:
                if not goes_by(self, context.call, params):
                    return None
            return call_tool_at_once(self, context, params)

        return answer

    def stop(self) -> None:
        """It is about to stop: no more is read from its clients, and what belongs to none of them ends now."""
        if not self._is_stopping:
            self._is_stopping = True
            for hear in self.stoppers:
                hear()

    def describe(
        self,
        capabilities: Mapping[str, Any],
        instructions: str | None,
        info: Mapping[str, Any] | None = None,
        *,
        spans: Mapping[tuple[str, ...], Span] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        """Has those who come from now on be told these capabilities and instructions, and as the server's name and
        version `info`, in place of what is declared. It may be said again. `spans` is as in `Identity`; `log_level`
        is the mildest that they get before they ask for one, where it is not the server's."""
        implementation = self.server.implementation if info is None else _implementation(info)
        level, standing = log_level or self.server.log_level, self.conditions.standing
        self._said = Identity(implementation, instructions, dict(capabilities), spans or {}, level, standing)
        for name in ("identity", "method_table"):
            self.__dict__.pop(name, None)

    @cached_property
    def signer(self) -> Signer:
        """Signs cursors and request states: with MCP_STATE_KEY, which several processes of this server may share,
        with what its stores have for that, or with a key of this run alone."""
        given = os.environ.get("MCP_STATE_KEY", "")
        # What one server has signed is nothing to another one that has the same key.
        if given:
            return Signer(f"{self.server.implementation.name}\0{given}".encode())
        return Signer(os.urandom(32) if self.replica is None else self.replica.secret)

    @cached_property
    def identity(self) -> Identity:
        """What the server says of itself."""
        if self._said is not None:
            return self._said
        capabilities: dict[str, Any] = dict(self.server.capabilities)
        spans: dict[tuple[str, ...], Span] = {}
        for one in (one for extension in self.extensions for one in extension.declares):
            value = one.value(self)
            if value is not None:
                capabilities, spans[one.path] = _declared(capabilities, one.path, value), one.span
        server, standing = self.server, self.conditions.standing
        return Identity(server.implementation, server.instructions, capabilities, spans, server.log_level, standing)

    @cached_property
    def method_table(self) -> MethodTable:
        """The methods it understands."""
        return method_table(self.identity, self.features.methods)

    def join(self, replica: "Replica") -> None:
        """Shares what it knows, and what changes, with the other replicas, as one of which it was opened."""
        self.replica = replica
        self.changes.share = partial(replica.bus.publish, "")
        replica.bus.hear(self._heard)
        replica.watch(self)

    def _heard(self, run: str, change: Change) -> None:
        named = self.narrowed.get(run, self)
        for running in [named] if run else self.all:
            running.changes.heard(change)

    def lost(self) -> None:
        """Whatever the others tell of, it does not hear."""

    def returned(self) -> None:
        """It hears again what the others tell of, and has missed something."""
        for running in self.all:
            running.changes.look_again()

    def left(self) -> None:
        """Another replica is gone."""

    def narrow(self, name: str, running: "Running[State]") -> None:
        """Has principals of that name be served by `running`: this one, or another that is open as long."""
        self.narrowed[name] = running
        if running is not self:
            running.run = name
            running.questions = self.questions
            if self.replica is not None:
                running.changes.share = partial(self.replica.bus.publish, name)
                self.replica.bus.hear(self._heard)  # it stands for all of them
            self.stoppers.append(running.stop)

    def for_principal(self, principal: Principal | None) -> "Running[State]":
        """The run that serves `principal`: this one, or one that is narrowed."""
        return self.for_name("" if principal is None else principal.name)

    def for_name(self, name: str) -> "Running[State]":
        """The run that serves principals of that name."""
        if not self.narrowed:
            return self
        found = self.narrowed.get(name) if name else None
        return found or self.narrowed.get(ALL_OTHERS, self)

    @property
    def all(self) -> "list[Running[State]]":
        """This one, and those that are narrowed."""
        return [self, *(one for one in self.narrowed.values() if one is not self)]

    def connect(self, principal: Principal | None, due: Callable[[], None], client: str = "") -> Connection:
        """A new peer, which is nobody in particular without a `principal`. `due` is called whenever something waits
        for it, and may be called in vain. `client` names who shares the server with others; "" is alone."""
        serving = self.for_principal(principal)
        if serving is not self:
            serving.trace, serving.meter, serving.quota = self.trace, self.meter, self.quota
            serving.endpoints, serving.on_refused = self.endpoints, self.on_refused
            return serving.connect(principal, due, client)
        number = 0 if self.replica is None else self.replica.number
        session = ServerSession(
            self.identity, self.method_table, self.signer, principal=principal, now=time.time, replica=number
        )
        if self.replica is not None:
            session.share_ids(self.questions)
        return Connection(self, session, due, client)

    def observer(self) -> Observer | None:
        """Who sees all messages of a new connection, where anybody does."""
        if self.meter is None:
            return self.trace
        return self.meter() if self.trace is None else _Both(self.trace, self.meter())

    def _new_changes(self) -> Changes:
        changes, server = Changes(), self.server
        changes.on_subscribe = server.subscribe
        if (unsubscribe := server.unsubscribe) is not None:
            changes.on_unsubscribe = lambda key: unsubscribe(self, key)
        if (wanted := server.wanted) is not None:
            changes.on_wanted = lambda: wanted(self)
        return changes


def _declared(capabilities: Mapping[str, Any], path: Sequence[str], value: Mapping[str, Any]) -> dict[str, Any]:
    """These capabilities with `value` at `path`."""
    name, rest = path[0], path[1:]
    return {**capabilities, name: _declared(capabilities.get(name, {}), rest, value) if rest else value}


def _implementation(info: Mapping[str, Any]) -> Implementation:
    """What another server calls itself, as far as it is well formed."""
    try:
        return Implementation.model_validate(info)
    except ValidationError:
        name, version = (str(info.get(key) or "unknown")[:200] for key in ("name", "version"))
        return Implementation(name=name, version=version)


class _Both:
    """Two observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def received(self, message: Message) -> None:
        for observer in self._observers:
            observer.received(message)

    def sent(self, outgoing: Sequence[Outgoing]) -> None:
        for observer in self._observers:
            observer.sent(outgoing)


class Opening:
    """What a lifespan sees of the run that it opens."""

    def __init__(self, running: Running[Any]) -> None:
        self._running = running

    @property
    def settings(self) -> Any:
        """The settings of this run: an instance of the server's model."""
        return self._running.settings

    @property
    def changes(self) -> Changes:
        """Where changes are told."""
        return self._running.changes

    @property
    def conditions(self) -> Conditions:
        """Where it is said what keeps this run from working as its user expects."""
        return self._running.conditions

    @property
    def features(self) -> Features[Any]:
        """What this run offers. It may be changed as long as the run lasts; say so by `changes`."""
        return self._running.features

    @property
    def limits(self) -> Limits:
        """What one peer may take."""
        return self._running.limits

    @property
    def page_size(self) -> int:
        """How many entries a page of a list has."""
        return self._running.page_size

    @property
    def signer(self) -> Signer:
        """What signs the cursors of lists."""
        return self._running.signer

    @property
    def blobs(self) -> Blobs | None:
        """What its replicas keep for each other, once the lifespan has yielded; None where it is alone."""
        replica = self._running.replica
        return None if replica is None else RunBlobs(self._running, replica.blobs)

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """The addresses and ports that the HTTP transport listens on, once it does."""
        return self._running.endpoints

    def describe(
        self,
        capabilities: Mapping[str, Any],
        instructions: str | None,
        info: Mapping[str, Any] | None = None,
        *,
        spans: Mapping[tuple[str, ...], Span] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        """Has those who come from now on be told this in place of what is declared, as `Running.describe` does."""
        self._running.describe(capabilities, instructions, info, spans=spans, log_level=log_level)

    def greet(self, greeter: Callable[[Connection], None]) -> None:
        """Has `greeter`, which neither waits nor raises, hear of each client that has shaken hands."""
        self._running.greeters.append(greeter)

    def stand_for(self, is_there: Callable[[], bool]) -> None:
        """Says that this run stands for something elsewhere, of which `is_there` tells whether it can be reached; it
        neither waits nor raises."""
        self._running.is_there = is_there

    def extend(self, extension: Extension[Any]) -> None:
        """Has this run speak `extension` as well, which must be said before the lifespan yields. Raises
        DeclarationError for what there is already."""
        self._running.extend(extension)
