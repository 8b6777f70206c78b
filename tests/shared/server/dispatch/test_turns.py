"""Slots for long work: limited, round robin by client, never all for one client."""

from contextlib import AsyncExitStack

import anyio
import pytest

from shared.server.dispatch.turns import Turns
from tests.quiet import quiet

PATIENCE = 20.0


class Crowd:
    """Clients that work until the test stops them, in the order of their start."""

    def __init__(self, turns, tasks):
        self.turns = turns
        self.tasks = tasks
        self.began = []
        self.scopes = {}
        self.done = {}

    def ask(self, client, name):
        self.done[name] = anyio.Event()
        self.scopes[name] = anyio.CancelScope()
        self.tasks.start_soon(self.work, client, name)

    async def work(self, client, name):
        with self.scopes[name]:
            async with self.turns.acquire(client):
                self.began.append(name)
                await self.done[name].wait()

    async def end(self, name):
        self.done[name].set()
        await quiet()


@pytest.fixture
def turns():
    return Turns(3)


async def crowd(stack, turns):
    stack.enter_context(anyio.fail_after(PATIENCE))
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)
    return Crowd(turns, tasks)


async def test_a_single_unnamed_client_gets_all_slots(turns):
    async with AsyncExitStack() as stack:
        those = await crowd(stack, turns)
        for name in "abcd":
            those.ask("", name)
        await quiet()
        assert those.began == ["a", "b", "c"]
        await those.end("b")
        assert those.began == ["a", "b", "c", "d"]


async def test_one_slot_is_reserved_for_other_clients(turns):
    async with AsyncExitStack() as stack:
        those = await crowd(stack, turns)
        for number in range(5):
            those.ask("one", f"a{number}")
        await quiet()
        assert those.began == ["a0", "a1"]
        those.ask("two", "b0")
        await quiet()
        assert those.began == ["a0", "a1", "b0"]


async def test_the_slots_of_a_client_are_limited():
    for at_once, each, most in ((1, None, 1), (2, None, 1), (3, None, 2), (3, 1, 1), (3, 0, 1), (3, 9, 3)):
        async with AsyncExitStack() as stack:
            those = await crowd(stack, Turns(at_once, each))
            for number in range(5):
                those.ask("one", number)
            await quiet()
            assert len(those.began) == most


async def test_waiting_calls_are_served_round_robin_by_client(turns):
    async with AsyncExitStack() as stack:
        those = await crowd(stack, turns)
        for number in range(5):
            those.ask("one", f"a{number}")
        for number in range(3):
            those.ask("two", f"b{number}")
        await quiet()
        assert those.began == ["a0", "a1", "b0"]
        for name in ("a0", "a1", "b0", "a2"):
            await those.end(name)
        assert those.began == ["a0", "a1", "b0", "a2", "b1", "a3", "b2"]


async def test_the_reserved_slot_is_not_given_to_a_waiting_call_of_the_same_client(turns):
    async with AsyncExitStack() as stack:
        those = await crowd(stack, turns)
        for number in range(3):
            those.ask("one", f"a{number}")
        those.ask("two", "b0")
        await quiet()
        await those.end("b0")
        assert those.began == ["a0", "a1", "b0"]
        await those.end("a0")
        assert those.began == ["a0", "a1", "b0", "a2"]


async def test_cancellation_frees_the_slot_or_the_wait(turns):
    async with AsyncExitStack() as stack:
        those = await crowd(stack, turns)
        for name in "abcdef":
            those.ask("", name)
        await quiet()
        those.scopes["d"].cancel()
        await quiet()
        assert turns.waiting == 2
        those.scopes["a"].cancel()
        await quiet()
        assert those.began == ["a", "b", "c", "e"]
        # A turn that comes in the moment in which nobody wants it any more goes to the next.
        those.done["b"].set()
        those.scopes["f"].cancel()
        await quiet()
        those.ask("", "g")
        await quiet()
        assert those.began == ["a", "b", "c", "e", "g"]


async def test_an_exception_frees_the_slot(turns):
    for _ in range(5):
        with pytest.raises(ValueError, match="no"):
            async with turns.acquire("one"):
                raise ValueError("no")
    async with turns.acquire("one"), turns.acquire("one"):
        pass
