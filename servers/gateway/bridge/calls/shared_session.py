"""One session at a server for all clients, where the operator says so: then a command is one process.

What the server says on the stream of a request, or of a task, concerns who makes it. Where nothing tells that, it
concerns the client whose calls are under way; where these are of several clients, it is told to nobody: a question is
refused, as it may show one client's user what another one does.
"""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from shared.client.options import ClientOptions
from shared.client.tasks.following import TaskState
from shared.concurrency import Crew
from shared.errors import InternalError, PeerError
from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Asked, Notified
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context

from ..base import Base
from ..forwarding import caller_of, params_of, settled
from ..log_level import SharedLevel
from ..tasks import UpstreamTasks, related_task, seconds_for, through_task
from .call_relay import CallRelay
from .pending_input import Parking
from .upstream_call import UpstreamCall

SHARED_CAPABILITIES: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {"listChanged": True},
}
"""What is declared for all clients: one that can't do it refuses what it is asked."""
VISITS_MOST = 1_000
"""Pages to visit of which it is remembered who visits them; the oldest are forgotten."""
_LOGGED, _VISITED = "notifications/message", "notifications/elicitation/complete"


class _Shared:
    """The relay of one call: `inner`, of which it is known whose it is."""

    def __init__(self, inner: CallRelay | UpstreamCall, link: Connection, visits: dict[str, Connection]) -> None:
        self.inner = inner
        self.link = link
        self.task: str | None = None
        """The id of the task at the server that the call has become, where it has."""
        self._visits = visits

    async def became_task(self) -> None:
        """The server has made a task of the call."""
        await self.inner.became_task()

    def said(self, task: TaskState) -> None:
        """The task is so."""
        self.task = task.id
        self.inner.said(task)

    @property
    def asks(self) -> bool:
        """Whether its client can be asked."""
        return isinstance(self.inner, CallRelay) or self.inner.asks

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client answers. Raises RpcError like `inner`."""
        id_ = asked.params.get("elicitationId")
        if isinstance(id_, str):
            self._visits[id_] = self.link
            if len(self._visits) > VISITS_MOST:
                del self._visits[next(iter(self._visits))]
        return await self.inner.answer(asked)

    def heard(self, notice: Notified | Gap) -> None:
        """Tells the client."""
        self.inner.heard(notice)


class SharedSession:
    """The place of all calls in the session of the bridge itself, and the relay of what belongs to no call there. It
    ends by `close`."""

    def __init__(self, tasks: Crew, *, parking: Parking | None = None) -> None:
        self.options = ClientOptions(capabilities=SHARED_CAPABILITIES, relay=self)
        """With which the bridge opens it."""
        self.parking = Parking() if parking is None else parking
        """The calls whose clients are away."""
        self._tasks = tasks
        self.upstream_tasks = UpstreamTasks()
        """Which tools are to be asked for tasks."""
        self._base: Base
        self._level: SharedLevel
        self._under_way: list[_Shared] = []
        self._visits: dict[str, Connection] = {}
        self._mildest = len(LOG_LEVELS)

    def join(self, base: Base, level: SharedLevel) -> None:
        """Its connection is `base`, and what is logged there is up to `level`."""
        self._base, self._level = base, level

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """The server's result. Raises like `Client.exchange`, RpcError while there is no session, and what `Parking`
        and `Context.pass_on` do."""
        if context.peer.lasts:
            relay = CallRelay(context, self._base.heard)
            try:
                return await self._exchange(context, params_of(context, params), relay)
            finally:
                relay.close()
        call = await self.parking.take_up(context)
        if call is None:
            call = UpstreamCall(context, self._base.heard)
            self._tasks.start(self._make(call, context, params_of(context, params)))
        return await self.parking.round(context, call)

    def close(self) -> None:
        """Stops the calls whose clients are away."""
        self.parking.close()

    async def _make(self, call: UpstreamCall, context: Context[Any], params: dict[str, Any]) -> None:
        await call.run(partial(self._exchange, context, params))

    async def _exchange(
        self, context: Context[Any], params: dict[str, Any], inner: CallRelay | UpstreamCall
    ) -> dict[str, Any]:
        if not context.peer.lasts and context.peer.log_level is not None:
            order = LOG_LEVELS.index(context.peer.log_level)
            if order < self._mildest:
                self._mildest = order
                with suppress(PeerError):
                    await self._level.want(self, context.peer.log_level)
        client, relay = self._base.client, _Shared(inner, context.link, self._visits)

        async def ask(method: str, sent: dict[str, Any]) -> dict[str, Any]:
            caller = caller_of(context, relay)
            return settled(await client.exchange(method, sent, caller, timeout=seconds_for(method)))

        self._under_way.append(relay)
        try:
            wanted = await self.upstream_tasks.wanted(client, context, params.get("name"))
            return await through_task(ask, context.call.method.name, params, wanted, relay)
        finally:
            self._under_way.remove(relay)

    # What the server says that belongs to no call, as far as can be told

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client answers whose task this belongs to, or else whose calls are under way. Raises RpcError
        where there are several or none, and what the client refuses with."""
        if (task := related_task(asked.params)) is not None:
            for one in self._under_way:
                if one.task == task:
                    return await one.answer(asked)
        if not self._under_way:
            raise InternalError("no call is under way that this could be asked in")
        if not self._is_of_one:
            raise InternalError("it can't be told whose question this is")
        newest = next((one for one in reversed(self._under_way) if one.asks), self._under_way[-1])
        with ExitStack() as paused:
            # It may be any of these that waits for the answer.
            for other in self._under_way:
                if other is not newest and isinstance(other.inner, CallRelay):
                    paused.enter_context(other.link.calls.paused(other.inner.context.call))
            return await newest.answer(asked)

    def heard(self, notice: Notified | Gap) -> None:
        """Tells a log message to the client whose calls are under way, and that a visit is over to whom it was asked
        of. The rest is for others."""
        if isinstance(notice, Gap):
            return
        if notice.method == _LOGGED and self._is_of_one:
            self._under_way[-1].heard(notice)
        elif notice.method == _VISITED:
            self.parking.visiting.heard(notice)
            link = self._visits.pop(str(notice.params.get("elicitationId")), None)
            if link is not None:
                link.session.tell(notice.method, notice.params)
                link.soon()

    @property
    def _is_of_one(self) -> bool:
        """Whether all calls under way are of one client."""
        return len({one.link for one in self._under_way}) == 1
