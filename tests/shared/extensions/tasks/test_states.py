"""States of a task: properties of the pure functions, and a model of what a call and its clients do concurrently."""

import asyncio
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from shared import Context, Implementation, RpcError, Server
from shared.contracts import TaskLimits, TaskRecord
from shared.extensions.tasks import states, tasks
from shared.extensions.tasks.runner import STOPPED, tasks_of
from shared.protocol.types.tasks import TASKS
from tests.clock import forward
from tests.shared.extensions.tasks.slow_store import SlowTasks
from tests.shared.server.peer import PATIENCE, STATELESS, Json, Peer, talking

KEYS = st.sets(st.sampled_from("abc"))
TEXTS = st.sampled_from(["", "half", "done"])
FINAL = ("completed", "failed", "cancelled")
QUIET = settings(database=None, deadline=None)


def steps() -> st.SearchStrategy[tuple[Any, ...]]:
    """Changes of a task: the name of a function, and its arguments without the task and the time."""
    return st.one_of(
        st.tuples(st.just("report"), TEXTS),
        st.tuples(st.just("ask"), KEYS.map(lambda keys: dict.fromkeys(keys, "?"))),
        st.tuples(st.just("answer"), KEYS.map(lambda keys: dict.fromkeys(keys, "!"))),
        st.tuples(st.just("withdraw"), KEYS),
        st.tuples(st.just("end"), st.sampled_from(["completed", "failed"]), st.just({"result": {}})),
        st.tuples(st.just("cancel")),
    )


def done(task: TaskRecord, step: tuple[Any, ...], now: float) -> TaskRecord:
    name, *arguments = step
    if name == "end":
        return states.end(task, *arguments, now)
    after: TaskRecord = getattr(states, name)(task, *arguments, now)
    return after


@settings(QUIET, max_examples=40)
@given(st.lists(st.tuples(steps(), st.floats(0, 10))))
def test_any_sequence_of_changes_leaves_a_valid_task(happened: list[tuple[tuple[Any, ...], float]]) -> None:
    task, used = TaskRecord("id", "form", None, "client", 5.0, 5.0, 60.0), set[str]()
    for step, now in happened:
        if step[0] == "ask":
            for key in used:
                step[1].pop(key, None)
            used |= step[1].keys()
        after = done(task, step, now)
        assert (after is task) == (after == task)
        assert after.revision == task.revision + (after is not task)
        assert after.updated >= task.updated
        assert after is task or task.status not in FINAL
        assert (after.status == "input_required") == bool(after.questions)
        assert not after.questions.keys() & after.answers.keys()
        assert (after.outcome is not None) <= (after.status in FINAL)
        assert not (after.status in FINAL and (after.questions or after.answers))
        task = after


# The implementation and its model


class Said(BaseModel):
    word: str


class Machine:
    """One task with a slow store, the next steps of its call, and its model."""

    def __init__(self) -> None:
        self.app: Server[Any] = Server(Implementation(name="model", version="1"), extensions=[tasks()])
        self.app.task_limits = TaskLimits(seconds=1_000.0)
        self.app.tool(task="required")(self.work)
        self.orders: asyncio.Queue[str] = asyncio.Queue()
        self.taken = 0
        self.is_over = False
        self.answered: list[str] = []
        # the model
        self.status = "working"
        self.is_gone = False
        self.open: list[str] = []
        self.asked = 0
        self.given: list[str] = []

    async def work(self, ctx: Context[Any]) -> str:
        """Do the ordered steps."""
        try:
            while (order := await self.orders.get()) != "end":
                self.taken += 1
                if order == "ask":
                    answer = await ctx.ask("word", "What?", Said)
                    self.answered.append(answer.data.word if answer.data else "")
                elif order == "report":
                    await ctx.progress(self.taken)
                else:
                    raise RpcError("it broke", code=-31_000)
            return "done"
        finally:
            self.is_over = True

    @property
    def works(self) -> bool:
        return self.status in ("working", "input_required") and not self.is_gone

    async def settle(self, peer: Peer) -> None:
        """Waits until all started operations have ended."""
        kept = tasks_of(self.running)
        for _ in range(30):
            await anyio.lowlevel.checkpoint()
        while len(kept.background):
            await anyio.lowlevel.checkpoint()
        await peer.request("server/discover")

    async def step(self, peer: Peer, id: str, what: str) -> None:
        if what in ("end", "fail", "ask", "report"):
            if not self.works or self.open:
                return
            self.orders.put_nowait(what)
            if what == "ask":
                self.asked += 1
                self.open, self.status = [f"word-{self.asked}" if self.asked > 1 else "word"], "input_required"
            elif what != "report":
                self.status = "completed" if what == "end" else "failed"
        elif what == "answer":
            word = f"answer {self.asked}"
            answers = {key: {"action": "accept", "content": {"word": word}} for key in self.open or ["word"]}
            answer = await peer.request("tasks/update", {"taskId": id, "inputResponses": answers})
            assert ("error" in answer) == self.is_gone
            if self.works and self.open:
                self.given.append(word)
                self.open, self.status = [], "working"
        elif what == "cancel":
            assert ("error" in await peer.request("tasks/cancel", {"taskId": id})) == self.is_gone
            if self.works:
                self.open, self.status = [], "cancelled"
        elif what == "expire":
            forward(1_001)
            self.open, self.is_gone = [], True
        elif what == "stop":
            self.running.stop()
            if self.works:
                self.open, self.status = [], "failed"

    async def check(self, peer: Peer, id: str) -> None:
        found: Json = await peer.request("tasks/get", {"taskId": id})
        kept = tasks_of(self.running)
        assert ("error" in found) == self.is_gone
        assert bool(kept.local_tasks) == self.works == (not self.is_over)
        assert self.answered == self.given
        if not self.is_gone:
            assert found["result"]["status"] == self.status
            assert list(found["result"].get("inputRequests", ())) == self.open
            assert ("error" in found["result"]) == (self.status == "failed")
            assert ("result" in found["result"]) == (self.status == "completed")

    async def run(self, happens: list[str], *, slow: bool, settled: bool) -> None:
        capabilities = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}
        with anyio.fail_after(PATIENCE + 30_000):
            async with self.app.open() as self.running, talking(self.running, STATELESS, capabilities) as peer:
                kept = tasks_of(self.running)
                if slow:
                    kept.store = SlowTasks(kept.limits)
                id_ = (await peer.call("work"))["result"]["taskId"]
                await self.settle(peer)
                for what in happens:
                    await self.step(peer, id_, what)
                    if settled:
                        await self.settle(peer)
                        await self.check(peer, id_)
                await self.settle(peer)
                if not settled:
                    await self.check_end(peer, id_)

    async def check_end(self, peer: Peer, id: str) -> None:
        """Concurrent steps may happen in any order, but all states must agree on one order."""
        found: Json = await peer.request("tasks/get", {"taskId": id})
        local_tasks = bool(tasks_of(self.running).local_tasks)
        assert local_tasks == (not self.is_over)
        if "result" in found:
            assert local_tasks == (found["result"]["status"] not in FINAL)
            if found["result"].get("error", {}).get("message") == STOPPED:
                assert found["result"]["status"] == "failed"
        else:
            assert not local_tasks


HAPPENS = st.lists(
    st.sampled_from(["ask", "report", "answer", "end", "fail", "cancel", "expire", "stop"]), min_size=1, max_size=8
)


def play(happens: list[str], *, slow: bool, settled: bool) -> None:
    asyncio.run(Machine().run(happens, slow=slow, settled=settled))


@settings(QUIET, max_examples=8, derandomize=True)
@given(HAPPENS, st.booleans(), st.booleans())
def test_a_task_behaves_like_its_model(happens: list[str], slow: bool, settled: bool) -> None:
    play(happens, slow=slow, settled=settled)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(QUIET, max_examples=1_000, derandomize=True)
@given(HAPPENS, st.booleans(), st.booleans())
def test_a_task_behaves_like_its_model_in_many_examples(happens: list[str], slow: bool, settled: bool) -> None:
    play(happens, slow=slow, settled=settled)
