"""Calls that become tasks, with a slow store: events during its operations are not lost."""

import gc
import logging
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest
from pydantic import BaseModel

from shared import Context, Implementation, Server
from shared.contracts import TaskLimits
from shared.errors import Unavailable
from shared.extensions.tasks import hosted, tasks
from shared.extensions.tasks.hosted import Report
from shared.extensions.tasks.runner import STOPPED, log_failure, tasks_of
from shared.protocol.types.tasks import TASKS
from shared.server.dispatch.limits import Limits
from tests.clock import forward
from tests.shared.extensions.tasks.slow_store import SlowTasks
from tests.shared.server.peer import PATIENCE, STATELESS, talking

CAPABILITIES = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}


class Name(BaseModel):
    name: str


class Hosting:
    """A server with tools that become tasks, its client, and records of the calls."""

    def __init__(self, *, slow=True, after_seconds=0.5, **limits):
        self.limits = TaskLimits(**limits)
        self.slow = SlowTasks(self.limits) if slow else None
        self.began, self.go, self.ended = anyio.Event(), anyio.Event(), anyio.Event()
        self.app = Server(
            Implementation(name="hosting", version="1"), extensions=[tasks(after_seconds=after_seconds)]
        )
        self.app.task_limits = self.limits
        self.app.tool(task="required")(self.work)
        self.app.tool(task="optional")(self.maybe)
        self.app.tool(task="required")(self.ask)
        self.app.tool(task="required")(self.hurry)

    async def work(self, ctx: Context[None]) -> str:
        """Work until the test lets the call end."""
        self.began.set()
        try:
            await self.go.wait()
        finally:
            self.ended.set()
        await ctx.progress(3, 4, "nearly")
        return "done"

    async def keep(self, ctx: Context[None], text: str) -> str:
        """Work with a text."""
        return await self.work(ctx)

    async def maybe(self, ctx: Context[None]) -> str:
        """The same."""
        return await self.work(ctx)

    async def ask(self, ctx: Context[None]) -> str:
        """Ask, with a bound of its own to the first answer."""
        self.began.set()
        with anyio.move_on_after(5):
            return (await ctx.ask("name", "Who?", Name)).data.name
        return (await ctx.ask("name", "Who, at last?", Name)).data.name

    async def hurry(self, ctx: Context[None], reports: int) -> str:
        """Report fast."""
        for number in range(reports):
            await ctx.progress(number + 1, reports)
        self.began.set()
        await self.go.wait()
        return "done"

    @asynccontextmanager
    async def open(self):
        async with self.app.open() as self.running:
            self.tasks = tasks_of(self.running)
            if self.slow is not None:
                self.tasks.store = self.slow
            with anyio.fail_after(PATIENCE + 100):
                async with talking(self.running, STATELESS, CAPABILITIES) as self.peer:
                    yield self

    async def task(self, tool="work", **arguments):
        """The id of a new task, whose work has begun."""
        made = (await self.peer.call(tool, **arguments))["result"]
        await self.began.wait()
        return made["taskId"]

    async def get(self, id):
        return (await self.peer.request("tasks/get", {"taskId": id}))["result"]

    async def until(self, id, *statuses):
        while (task := await self.get(id))["status"] not in statuses:
            await anyio.lowlevel.checkpoint()
        return task

    async def idle(self):
        """Waits until no operation of the store is pending."""
        while len(self.tasks.background):
            await anyio.lowlevel.checkpoint()


async def test_a_task_completes_with_a_slow_store():
    async with Hosting().open() as end:
        id_ = await end.task()
        end.go.set()
        assert (await end.until(id_, "completed"))["result"]["content"][0]["text"] == "done"
        await end.idle()
        assert not end.tasks.local_tasks


async def test_the_arguments_of_a_task_count_as_memory_until_it_ends():
    end = Hosting(slow=False)
    end.app.limits = Limits(call_bytes=300_000)
    end.app.tool(task="required")(end.keep)
    async with end.open():
        id_ = await end.task("keep", text="x" * 200_000)
        error = (await end.peer.call("keep", text="x" * 200_000))["error"]
        assert "too much memory" in error["message"]
        end.go.set()
        await end.until(id_, "completed")
        assert await end.task("keep", text="x" * 200_000)


@pytest.mark.parametrize("place", ["get", "replace", "after get", "after replace"])
async def test_a_cancellation_during_a_write_stops_the_call(place):
    async with Hosting().open() as end:
        id_ = await end.task("hurry", reports=1)
        await end.idle()
        call = end.tasks.local_tasks[id_]
        end.slow.holds[place] = anyio.Event()
        await call.report(2, 4, None)
        forward(hosted.REPORT_SECONDS)
        await end.slow.reached.wait()
        task = await end.slow.inner.get(id_)
        end.slow.holds.pop(place).set()
        await end.slow.inner.replace(task, hosted.states.cancel(task, task.updated))
        await end.idle()
        assert not end.tasks.local_tasks
        await end.running.calls.drain()
        assert (await end.get(id_))["status"] == "cancelled"


async def test_a_call_cancelled_while_its_task_is_created_leaves_no_task():
    async with Hosting().open() as end:
        hold = end.slow.holds["create"] = anyio.Event()
        asked = await end.peer.start("work")
        await end.slow.reached.wait()
        await end.peer.cancel(asked)
        await end.running.calls.drain()
        hold.set()
        await end.idle()
        assert not len(end.slow.inner)
        assert not end.tasks.local_tasks


async def test_a_call_that_ends_while_its_task_is_created_returns_its_result():
    async with Hosting(after_seconds=0).open() as end:
        hold = end.slow.holds["after create"] = anyio.Event()
        asked = await end.peer.start("maybe")
        await end.slow.reached.wait()
        end.go.set()
        assert (await end.peer.answer(asked))["result"]["content"][0]["text"] == "done"
        hold.set()
        await end.idle()
        assert not len(end.slow.inner)
        assert not end.tasks.local_tasks


async def test_a_task_cancelled_before_the_client_has_its_id_stops():
    async with Hosting().open() as end:
        hold = end.slow.holds["after create"] = anyio.Event()
        asked = await end.peer.start("work")
        await end.slow.reached.wait()
        (task,) = end.slow.created
        await end.slow.inner.replace(task, hosted.states.cancel(task, task.updated))
        hold.set()
        id_ = (await end.peer.answer(asked))["result"]["taskId"]
        await end.running.calls.drain()
        assert (await end.get(id_))["status"] == "cancelled"


@pytest.mark.parametrize("slow", [False, True])
async def test_an_answer_to_an_input_request_is_not_lost(slow):
    async with Hosting(slow=slow).open() as end:
        id_ = await end.task("ask")
        (key,) = (await end.until(id_, "input_required"))["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
        await end.peer.request("tasks/update", {"taskId": id_, "inputResponses": answers})
        assert (await end.until(id_, "completed"))["result"]["content"][0]["text"] == "Ada"


async def test_an_input_request_that_times_out_is_withdrawn():
    async with Hosting().open() as end:
        id_ = await end.task("ask")
        (first,) = (await end.until(id_, "input_required"))["inputRequests"]
        forward(6)
        while list(found := (await end.get(id_)).get("inputRequests", ())) in ([], [first], [first, "name-2"]):
            await anyio.lowlevel.checkpoint()
        assert list(found) == ["name-2"]


async def test_an_older_state_does_not_replace_a_newer_one():
    async with Hosting(slow=False).open() as end:
        id_ = await end.task("ask")
        await end.until(id_, "input_required")
        task, call = await end.tasks.store.get(id_), end.tasks.local_tasks[id_]
        call._update(replace(task, status="working", revision=task.revision - 1))
        assert call._task == task


async def test_of_many_fast_reports_the_last_is_stored():
    async with Hosting(slow=False).open() as end:
        id_ = await end.task("hurry", reports=1_000)
        forward(hosted.REPORT_SECONDS)
        while (await end.get(id_)).get("statusMessage") != "100%":
            await anyio.lowlevel.checkpoint()
        task = await end.tasks.store.get(id_)
        assert task.revision <= 3


async def test_a_report_does_not_fail_if_the_store_fails(caplog):
    async with Hosting().open() as end:
        id_ = await end.task()
        with caplog.at_level(logging.CRITICAL, "shared.tasks"):
            end.slow.fails = {"replace"}
            await end.tasks.local_tasks[id_].report(1, 2, None)
            await end.idle()
        end.slow.fails = set()
        end.go.set()
        assert (await end.until(id_, "completed"))["result"]["content"][0]["text"] == "done"


async def test_without_a_store_an_optional_task_stays_a_call(caplog):
    async with Hosting(after_seconds=0).open() as end:
        end.slow.fails = {"create"}
        asked = await end.peer.start("maybe")
        await end.began.wait()
        while not caplog.records:
            await anyio.lowlevel.checkpoint()
        end.go.set()
        assert (await end.peer.answer(asked))["result"]["content"][0]["text"] == "done"
        assert [one.message for one in caplog.records] == ["a task could not be stored"]


async def test_without_a_store_a_required_task_fails(caplog):
    async with Hosting().open() as end:
        end.slow.fails = {"create"}
        assert (await end.peer.call("work"))["error"]["code"] == -32603
        assert not end.began.is_set()


async def test_an_end_that_cannot_be_stored_is_logged(caplog):
    async with Hosting().open() as end:
        await end.task()
        end.slow.fails = {"replace"}
        end.go.set()
        await end.running.calls.drain()
        await end.idle()
        assert not end.tasks.local_tasks
        assert "a task could not be stored" in caplog.messages


@pytest.mark.parametrize(("error", "traces"), [(Unavailable(), 0), (OSError("a fault"), 1)])
def test_only_unexpected_store_failures_are_logged_with_a_traceback(caplog, error, traces):
    log_failure("a task could not be stored", error)
    assert len([one for one in caplog.records if one.exc_info]) == traces
    assert len(caplog.records) == 1


async def test_working_tasks_fail_with_a_reason_when_the_server_stops():
    async with Hosting().open() as end:
        id_ = await end.task()
        end.running.stop()
        task = await end.until(id_, "failed")
        assert (task["statusMessage"], task["error"]["message"]) == (STOPPED, STOPPED)
        await end.ended.wait()


async def test_a_finished_task_stays_completed_when_the_server_stops():
    async with Hosting().open() as end:
        id_ = await end.task()
        hold = end.slow.holds["replace"] = anyio.Event()
        end.go.set()
        await end.running.calls.drain()
        end.running.stop()
        hold.set()
        assert (await end.until(id_, "completed", "failed"))["status"] == "completed"


async def test_no_call_becomes_a_task_after_the_server_stops():
    async with Hosting().open() as end:
        end.running.stop()
        assert (await end.peer.call("work"))["error"]["message"] == STOPPED


async def test_a_task_that_expires_is_stopped():
    async with Hosting(slow=False, seconds=60.0).open() as end:
        id_ = await end.task()
        forward(61)
        await end.ended.wait()
        assert (await end.peer.request("tasks/get", {"taskId": id_}))["error"]["code"] == -32602
        assert not end.tasks.local_tasks
        assert not len(end.tasks.store)


async def test_a_call_without_a_task_leaves_no_objects():
    async with Hosting(slow=False).open() as end:
        end.go.set()
        gc.collect()
        gc.disable()
        try:
            assert "result" in await end.peer.call("maybe")
            await end.running.calls.drain()
            await anyio.lowlevel.checkpoint()
            assert [one for one in gc.get_objects() if isinstance(one, hosted.HostedCall)] == []
        finally:
            gc.enable()


async def test_tasks_beyond_the_limit_are_refused_or_stay_calls():
    async with Hosting(slow=False, after_seconds=0, of_one_client=1, total=7).open() as end:
        await end.task()
        assert "1 for one client and 7 for all" in (await end.peer.call("work"))["error"]["message"]
        asked = await end.peer.start("maybe")
        await end.peer.request("server/discover")
        end.go.set()
        assert (await end.peer.answer(asked))["result"]["content"][0]["text"] == "done"


async def test_an_error_is_stored_even_if_results_exceed_the_limit():
    async with Hosting(slow=False, result_bytes=1).open() as end:
        id_ = await end.task()
        end.go.set()
        assert (await end.until(id_, "failed"))["error"][
            "message"
        ] == "storing this result would exceed the limit of 1 bytes for task results"


async def test_listeners_get_the_end_of_a_task_before_their_stream_ends():
    async with Hosting().open() as end:
        id_ = await end.task()
        link = end.tasks.local_tasks[id_]._context.link  # the link of a stateless client is not public
        stream = await end.peer.begin("subscriptions/listen", {"notifications": {"taskIds": [id_]}})
        assert (await end.peer.other("notifications/tasks"))["params"]["status"] == "working"
        hold = end.slow.holds["replace"] = anyio.Event()
        end.running.stop()
        link.finish()
        await end.slow.reached.wait()
        hold.set()
        await end.peer.answer(stream)
        notifications = [one for one in end.peer.others if one["method"] == "notifications/tasks"]
        assert [one["params"]["status"] for one in notifications] == ["failed"]


def test_progress_with_a_total_is_reported_as_a_percentage() -> None:
    words = {
        Report(4, 10, "importing"): "importing, 40%",
        Report(4, 10, None): "40%",
        Report(11, 10, None): "100%",
        Report(1_200, None, "1,200 rows"): "1,200 rows",
        Report(1_200, None, None): "1200",
    }
    assert {report: str(report) for report in words} == words
