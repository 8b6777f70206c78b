"""The models by which stores of replicas are judged, held against those in memory: what one does after another."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contracts import Replica, SessionRecord, TaskRecord, TaskStore
from shared.protocol.session.handshake import NEW
from shared.stores import memory
from tests.checks.stores.calls import LIMITS, OF_SESSION, after, seen_of
from tests.checks.stores.histories import IDS
from tests.checks.stores.linearizing import History, Operation, is_linearizable
from tests.checks.stores.models import Sessions, Tasks, after_session, after_task
from tests.checks.stores.test_linearizable import CHANGING, CLAIMING, ENDING, OF_TASKS

DIE = st.tuples(st.just(0), st.just("die"), st.just(()))


class InOrder:
    """Replicas in memory, one of which does something after the other, until one is gone."""

    def __init__(self, stores: memory.Stores) -> None:
        self.stores = stores
        self.replicas: list[tuple[Replica, AsyncExitStack]] = []
        self.history = History()

    async def join(self) -> None:
        leaving = AsyncExitStack()
        self.replicas.append((await leaving.enter_async_context(self.stores.join()), leaving))

    async def leave(self, at: int) -> None:
        replica, leaving = self.replicas.pop(at)
        called = self.history.now()
        await leaving.aclose()
        for key in IDS:
            self.history.note(key, Operation("die", replica.number, (), called, None, self.history.now()))
        await self.join()

    async def see(self, replica: Replica, key: str, name: str, words: tuple[Any, ...], call: Any) -> None:
        called = self.history.now()
        result = await call
        self.history.note(key, Operation(name, replica.number, words, called, result, self.history.now()))


async def may(replica: Any, name: str, key: str, arguments: list[Any]) -> bool:
    """Whether this is something that a replica does: only with sessions that it has, and requests that it serves."""
    session = replica._stores.sessions.get(key)  # who has it is no question of the contract
    if name == "leave":
        return {await replica.sessions.owner(key, id_) for id_ in arguments[0]} <= {None, replica.number}
    return name not in {"update", "watch", "release"} or (session is not None and replica.number in session.holders)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(CLAIMING, CHANGING, ENDING, DIE)), max_size=20))
def test_sessions_in_memory_fit_the_model(plan: list[Any]) -> None:
    async def run() -> History:
        made = InOrder(memory.Stores())
        for _ in range(3):
            await made.join()
        for key in IDS:
            replica = made.replicas[0][0]
            record = SessionRecord(key, None, "", 60, NEW)
            await made.see(replica, key, "create", (), replica.sessions.create(record))
        for at, (_, name, words) in plan:
            replica = made.replicas[at][0]
            if name == "die":
                await made.leave(at)
                continue
            key, *arguments = words
            if name != "cancelled enter" and await may(replica, name, key, arguments):
                await made.see(replica, key, name, tuple(arguments), OF_SESSION[name](replica, key, *arguments))
        return made.history

    history = asyncio.run(run())
    for key in IDS:
        assert is_linearizable(history.seen[key], Sessions(), after_session), history.text(key)


async def _get(store: TaskStore, key: str) -> Any:
    return seen_of(await store.get(key))


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 2), OF_TASKS), max_size=20))
def test_tasks_in_memory_fit_the_model(plan: list[Any]) -> None:
    async def run() -> History:
        made = InOrder(memory.Stores())
        for _ in range(3):
            await made.join()
        for key in IDS:
            task = TaskRecord(key, "extension", "ada", "ada", 0.0, 0.0, 60.0)
            replica = made.replicas[0][0]
            await made.see(replica, key, "create", (), replica.tasks(LIMITS).create(task))
        for at, (_, name, words) in plan:
            replica = made.replicas[at][0]
            store = replica.tasks(LIMITS)
            before = await store.get(words[0]) if words else None
            if name == "replace" and before is not None:
                _, text, is_over = words
                call = store.replace(before, after(before, text, is_over=is_over))
                await made.see(replica, words[0], name, (before.revision, text, is_over), call)
            elif name == "forget":
                await made.see(replica, words[0], name, (), store.forget(words[0]))
            for key in IDS:
                await made.see(replica, key, "get", (), _get(store, key))
        made.stores.tasks(LIMITS).close()
        return made.history

    history = asyncio.run(run())
    for key in IDS:
        assert is_linearizable(history.seen[key], Tasks(), after_task), history.text(key)
