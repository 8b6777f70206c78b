"""Tasks of a server with replicas: each replica answers requests about all tasks."""

from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest
from pydantic import BaseModel

from shared import Context, Implementation, Server
from shared.extensions.tasks import tasks
from shared.extensions.tasks.runner import STOPPED, tasks_of
from shared.protocol.types.tasks import TASKS
from shared.stores.memory import Stores
from shared.testing import replicas
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, talking

CAPABILITIES = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}


class Name(BaseModel):
    name: str


class Two:
    """Two replicas, and a client of each. Calls run at the first."""

    def __init__(self):
        self.began, self.go, self.ended = anyio.Event(), anyio.Event(), anyio.Event()
        self.app = Server(Implementation(name="two", version="1"), extensions=[tasks()])
        self.app.tool(task="required")(self.work)
        self.app.tool(task="required")(self.ask)

    async def work(self, ctx: Context[None]) -> str:
        """Work until it may end."""
        self.began.set()
        try:
            await self.go.wait()
        finally:
            self.ended.set()
        return "done"

    async def ask(self, ctx: Context[None]) -> str:
        """Ask for a name."""
        answer = await ctx.ask("name", "Who?", Name)
        return answer.data.name

    @asynccontextmanager
    async def open(self, version=STATELESS):
        with anyio.fail_after(PATIENCE):
            async with replicas(self.app, 2) as (self.one, self.other), AsyncExitStack() as stack:
                here = await stack.enter_async_context(talking(self.one, version, CAPABILITIES))
                self.there = await stack.enter_async_context(talking(self.other, version, CAPABILITIES))
                self.here = here
                yield self

    async def task(self, tool="work"):
        legacy = {} if self.here.version == STATELESS else {"task": {}}
        answer = await self.here.request("tools/call", {"name": tool, "arguments": {}, **legacy})
        found = answer["result"].get("task") or answer["result"]
        return found["taskId"]

    async def until(self, id, *statuses):
        """The task from the other replica, when it has one of these statuses."""
        while (found := (await self.there.request("tasks/get", {"taskId": id}))["result"])["status"] not in statuses:
            await anyio.lowlevel.checkpoint()
        return found


@pytest.mark.parametrize("version", [STATELESS, NEWEST_HANDSHAKE])
async def test_a_task_can_be_cancelled_at_another_replica(version):
    two = Two()
    async with two.open(version):
        id_ = await two.task()
        await two.began.wait()
        assert "result" in await two.there.request("tasks/cancel", {"taskId": id_})
        await two.ended.wait()
        assert (await two.until(id_, "cancelled", "completed"))["status"] == "cancelled"
        assert not tasks_of(two.one).local_tasks


async def test_an_input_request_can_be_answered_at_another_replica():
    two = Two()
    async with two.open():
        id_ = await two.task("ask")
        (key,) = (await two.until(id_, "input_required"))["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
        await two.there.request("tasks/update", {"taskId": id_, "inputResponses": answers})
        assert (await two.until(id_, "completed"))["result"]["content"][0]["text"] == "Ada"


async def test_another_replica_notifies_listeners_of_a_task():
    two = Two()
    async with two.open():
        id_ = await two.task()
        await two.there.begin("subscriptions/listen", {"notifications": {"taskIds": [id_]}})
        told = [(await two.there.other("notifications/tasks"))["params"]["status"]]
        two.go.set()
        told.append((await two.there.other("notifications/tasks"))["params"]["status"])
        assert told == ["working", "completed"]


async def test_tasks_result_can_wait_at_another_replica():
    two = Two()
    async with two.open(NEWEST_HANDSHAKE):
        id_ = await two.task()
        asked = await two.there.begin("tasks/result", {"taskId": id_})
        two.go.set()
        assert (await two.there.answer(asked))["result"]["content"][0]["text"] == "done"


async def test_a_stopping_replica_fails_only_its_own_tasks():
    two, stores = Two(), Stores()
    async with two.app.open(stores=stores) as other, talking(other, STATELESS, CAPABILITIES) as two.there:
        async with two.app.open(stores=stores) as one, talking(one, STATELESS, CAPABILITIES) as two.here:
            id_ = await two.task()
            two.here, left = two.there, two.here
            others_id = await two.task()
            one.stop()
            assert (await two.until(id_, "failed"))["statusMessage"] == STOPPED
            del left
        assert (await two.until(others_id, "working"))["status"] == "working"
