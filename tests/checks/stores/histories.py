"""Replicas at work at the same time, on ways to Redis that break and with leases that run out, and what each saw."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from math import inf
from typing import Any

from shared.contracts import Replica, SessionRecord
from shared.errors import Unavailable
from shared.protocol.session.handshake import NEW
from shared.stores.redis.stores import RedisReplica
from tests.checks.stores.linearizing import UNKNOWN, History, Operation
from tests.clock import forward
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Proxy, fresh, plain, proxied, until

__all__ = ["IDS", "Plan", "SessionsAtWork", "Step", "run"]
REPLICAS = 3
IDS = ("s", "t")


Step = tuple[int, str, tuple[Any, ...]]
"""After how many turns of the loop what is done, with what."""


Plan = Sequence[tuple[int, Sequence[Step]]]
"""Who works at the same time: which replica, and what it does one after another. -1 is what goes wrong."""


async def _done(replica: Replica) -> None:
    """Waits until what was only told is done."""
    link: Any = getattr(replica, "link", None)
    if link is not None:
        await link.ask("look")


async def _enter(replica: Replica, key: str, ids: tuple[int, ...]) -> tuple[int, bool] | None:
    came = await replica.sessions.enter(key, None, ids)
    return None if came is None else (came[0].snapshot.roots_changed, came[1])


async def _leave(replica: Replica, key: str, ids: tuple[int, ...]) -> None:
    replica.sessions.leave(key, ids)
    await _done(replica)


async def _serving_replica(replica: Replica, key: str, id_: int) -> int | None:
    return await replica.sessions.serving_replica(key, id_)


async def _update(replica: Replica, key: str) -> None:
    await replica.sessions.update(key, NEW, replace(NEW, roots_changed=1))


async def _watch(replica: Replica, key: str, uri: str, is_watched: bool) -> None:
    replica.sessions.watch(key, uri, is_watched=is_watched)
    await _done(replica)


async def _adopt(replica: Replica, key: str) -> tuple[str, ...]:
    return tuple(sorted(await replica.sessions.adopt(key)))


async def _lapse(replica: Replica, key: str, busy: bool) -> bool:
    return await replica.sessions.lapse(key, is_busy=busy)


async def _release(replica: Replica, key: str) -> None:
    replica.sessions.release(key)
    await _done(replica)


async def _delete(replica: Replica, key: str) -> None:
    replica.sessions.delete(key)
    await _done(replica)


OF_SESSION: dict[str, Callable[..., Any]] = {
    "enter": _enter,
    "leave": _leave,
    "serving replica": _serving_replica,
    "update": _update,
    "watch": _watch,
    "adopt": _adopt,
    "lapse": _lapse,
    "release": _release,
    "delete": _delete,
}


class AtWork:
    """Replicas, and what is seen of what they do."""

    def __init__(self, server: RedisServer, proxy: Proxy, replicas: Sequence[RedisReplica]) -> None:
        self.server = server
        self.proxy = proxy
        self.replicas = replicas
        self.history = History()

    async def prepare(self) -> None:
        """What there is before."""

    async def act(self, replica: RedisReplica, name: str, *arguments: Any) -> None:
        """One operation of a replica."""

    async def look(self) -> None:
        """What there is after."""

    async def work(self, replica: int, steps: Sequence[Step]) -> None:
        """What one does, one thing after another."""
        for turns, name, arguments in steps:
            for _ in range(turns):
                await asyncio.sleep(0)
            if replica < 0:
                await self.go_wrong(name, *arguments)
            else:
                await self.act(self.replicas[replica], name, *arguments)

    async def go_wrong(self, name: str, at: int) -> None:
        """A connection breaks, or one of the replicas is given up."""
        replica = self.replicas[at]
        if name == "kill":
            with plain(self.server) as client:
                client.client_kill_filter(_type="normal", skipme=True)
        elif name == "lose":
            replica.link.give_up_lease("the test says so")
        elif name == "die":
            called, number = self.history.now(), replica.number
            with plain(self.server) as client:
                client.delete(f"{replica.link.prefix}replica:{number}")
            for key in IDS:
                self.history.note(key, Operation("die", number, (), called, None, self.history.now()))
        elif name == "deliver":
            await self.proxy.deliver_all()
        else:
            self.proxy.to_break.append(name)

    async def heal(self) -> None:
        """Nothing breaks any more, and all are replicas."""
        self.proxy.to_break.clear()
        await self.proxy.deliver_all()
        for one in self.replicas:
            one.link.poll_inbox()
        while True:
            try:
                await rest(*self.replicas)
            except Unavailable:
                await self.recover()
            else:
                return

    async def recover(self) -> None:
        """Waits until those that were lost have come back."""
        forward(0.1)
        await until(lambda: all(one.link.is_joined for one in self.replicas))

    async def see(
        self,
        replica: RedisReplica,
        key: str,
        name: str,
        arguments: tuple[Any, ...],
        call: Callable[[], Awaitable[Any]],
    ) -> Any:
        """Calls something, and notes what came of it; what nobody knows is noted as well."""
        was_joined = replica.link.is_joined
        seen = Operation(name, replica.number, arguments, self.history.now())
        try:
            result = await call()
        except Unavailable:
            if was_joined:
                self.history.note(key, seen)
            await self.recover()
            return UNKNOWN
        self.history.note(key, replace(seen, result=result, answered=self.history.now()))
        return result


class SessionsAtWork(AtWork):
    """Replicas that share sessions."""

    def __init__(self, server: RedisServer, proxy: Proxy, replicas: Sequence[RedisReplica]) -> None:
        super().__init__(server, proxy, replicas)
        self._cancelled: list[tuple[str, RedisReplica, Operation]] = []

    async def prepare(self) -> None:
        for key, replica in zip(IDS, self.replicas, strict=False):
            record = SessionRecord(key, None, "", 60, NEW)
            await self.see(replica, key, "create", (), lambda: replica.sessions.create(record))  # noqa: B023
            for one in self.replicas:
                await self.act(one, "enter", key, ())

    async def act(self, replica: RedisReplica, name: str, *arguments: Any) -> None:
        key, *rest_ = arguments
        if name in {"update", "watch", "release"} and key not in replica.sessions._cached:
            return  # it does not have the session, which no question of the contract tells
        if name == "cancelled enter":
            await self._cancel(replica, key, rest_[0])
        else:
            await self.see(replica, key, name, tuple(rest_), lambda: OF_SESSION[name](replica, key, *rest_))

    async def look(self) -> None:
        for key, replica, cancelled in self._cancelled:
            # One that was lost takes nothing back: what it has claimed is free when its lease has expired.
            answered = self.history.now() if replica.number == cancelled.number else inf
            done = replace(cancelled, result=None, answered=answered)
            self.history.note(key, done)
            self.history.note(key, replace(done, name="take back", arguments=(done,)))
        for key in IDS:
            for id_ in (1, 2):
                await self.act(self.replicas[0], "serving replica", key, id_)
            for replica in self.replicas:
                await self.act(replica, "enter", key, ())
            await self.act(self.replicas[1], "adopt", key)

    async def _cancel(self, replica: RedisReplica, key: str, ids: tuple[int, ...]) -> None:
        if not replica.link.is_joined:
            return
        seen = Operation("cancelled enter", replica.number, (ids,), self.history.now())
        asked = asyncio.create_task(OF_SESSION["enter"](replica, key, ids))
        for _ in range(3):
            await asyncio.sleep(0)
        asked.cancel()
        (came,) = await asyncio.gather(asked, return_exceptions=True)
        if isinstance(came, asyncio.CancelledError):
            self._cancelled.append((key, replica, seen))
        elif isinstance(came, Unavailable):
            self.history.note(key, replace(seen, name="enter"))
        else:
            self.history.note(key, replace(seen, name="enter", result=came, answered=self.history.now()))


async def run(
    kind: Callable[[RedisServer, Proxy, Sequence[RedisReplica]], AtWork], server: RedisServer, plan: Plan
) -> History:
    """Has replicas do what the plan says; what was seen."""
    async with proxied(server) as proxy, AsyncExitStack() as leaving:
        stores = fresh(server, proxy.url)
        replicas = [await leaving.enter_async_context(stores.join()) for _ in range(REPLICAS)]
        made = kind(server, proxy, replicas)
        await made.prepare()
        async with asyncio.timeout(60):
            await asyncio.gather(*[made.work(replica, steps) for replica, steps in plan])
            await made.heal()
            await made.look()
        return made.history
