"""Busy clients: each does one thing after another, and checks each of them as strictly as it can be.

What they may not see, whatever becomes of the replicas: a number that is missing or comes twice, a value older
than what it has written, a write that was done twice or that was refused and done all the same, a session that is
unknown, a call that is never answered, a list with gaps. Nor an event that is kept no more: it comes back in time.
"""

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import anyio

from tests.checks.replicas.clients import AGAIN, ATTEMPTS, Call, SessionClient
from tests.checks.replicas.counting_server import LISTED
from tests.checks.replicas.failures import Failed, Lost, MayHaveRun, NotRun, PeerError
from tests.checks.replicas.figures import Figures

__all__ = ["at_work"]

NOTICE_SECONDS = 90.0
INTERNAL, INVALID = -32603, -32602


class BusyClient:
    """One client, with a counter of its own. `chance` decides what it does next."""

    def __init__(self, http: aiohttp.ClientSession, url: str, name: str, figures: Figures) -> None:
        self.client = SessionClient(http, url)
        self.name = name
        self.uri = f"counter://{name}"
        self.acknowledged = self.uncertain = 0
        """Its writes that were answered, and those of which it does not know."""
        self._figures = figures
        self._chance = random.Random(name)
        self._failed_since: float | None = None

    # Requests, as often as they may be made

    async def _once(self, ask: Callable[[Call], Awaitable[Any]], call: Call | None = None) -> Any:
        """Asks once. Raises NotRun or MayHaveRun; an error that a replica owes for another one is of the latter."""
        call = call or self.client.new_call()
        self._figures.counts["requests"] += 1
        try:
            with self._figures.timed():
                found = await ask(call)
        except (NotRun, MayHaveRun) as failed:
            self._fail(failed)
            raise
        except PeerError as error:
            if error.code != INTERNAL or error.message == "internal error":
                raise  # that says nothing, so it is a fault of the server's own
            self._fail(error)
            raise MayHaveRun(str(error)) from error
        self._note_answer()
        return found

    async def _safely(self, ask: Callable[[Call], Awaitable[Any]]) -> Any:
        """Asks until there is an answer."""
        for _ in range(ATTEMPTS):
            try:
                return await self._once(ask)
            except (NotRun, MayHaveRun):
                self._figures.counts["repeated requests"] += 1
                await anyio.sleep(AGAIN)
        raise AssertionError(f"{self.name} was not answered in {ATTEMPTS} attempts")

    def _fail(self, failed: Failed) -> None:
        if self._failed_since is None:
            self._failed_since = time.monotonic()
        self._figures.failures[f"{type(failed).__name__}: {str(failed)[:90]}"] += 1

    def _note_answer(self) -> None:
        self._figures.counts["answers"] += 1
        if self._failed_since is not None:
            self._figures.outages.append(time.monotonic() - self._failed_since)
            self._failed_since = None

    def _tool(self, tool: str, **arguments: Any) -> Callable[[Call], Awaitable[str]]:
        return lambda call: self.client.tool(tool, call, **arguments)

    def _ask(self, method: str, **params: Any) -> Callable[[Call], Awaitable[Any]]:
        return lambda call: self.client.request(method, params, call)

    # What it does

    async def open(self) -> None:
        """Opens its session, and subscribes to its counter."""
        await self._safely(lambda _call: self.client.open())
        await self._safely(self._ask("resources/subscribe", uri=self.uri))

    async def run(self, goes_on: Callable[[], bool]) -> None:
        """Does one thing after another, as long as `goes_on` says so."""
        acts = (self.echo, self.count, self.ask, self.bump, self.bump, self.page, self.job, self.level)
        while goes_on():
            try:
                await self._chance.choice(acts)()
            except (AssertionError, Failed) as fault:
                fault.add_note("\n".join([f"{self.name} did:", *self.client.link.history]))
                raise

    async def echo(self) -> None:
        """Has a text given back."""
        text = str(self._chance.random())
        assert await self._safely(self._tool("echo", text=text)) == text

    async def count(self) -> None:
        """Has numbers counted, and expects each of them once; of a call that failed those that it came to."""
        n, call = self._chance.randrange(5, 30), self.client.new_call()
        try:
            answer = await self._once(self._tool("count", n=n, pause_ms=50), call)
        except (NotRun, MayHaveRun):
            self._figures.counts["streams cut short"] += 1
            assert call.logs == list(range(1, len(call.logs) + 1)), call.logs
        else:
            assert answer == f"counted to {n}"
            assert call.logs == list(range(1, n + 1)), call.logs
        self._figures.counts["numbers"] += len(call.logs)

    async def level(self) -> None:
        """Wants no log messages, and then wants them again: what it has set holds at once, wherever it asks."""
        for level, expected in (("error", []), ("info", [1, 2, 3])):
            await self._safely(self._ask("logging/setLevel", level=level))
            call = self.client.new_call()
            try:
                await self._once(self._tool("count", n=3), call)
            except (NotRun, MayHaveRun):
                continue
            assert call.logs == expected, f"{call.logs} under level {level}"

    async def ask(self) -> None:
        """Is asked, and answers."""
        question = f"{self.name} {self._chance.random()}"
        assert await self._safely(self._tool("ask", question=question)) == f"accept: {question}"

    async def bump(self) -> None:
        """Writes, reads what was written, and hears of it."""
        heard, began = self.client.notices[self.uri], time.monotonic()
        try:
            number = int(await self._once(self._tool("bump", name=self.name)))
        except NotRun:
            return
        except MayHaveRun:
            self.uncertain += 1
            return
        self.acknowledged += 1
        assert self.acknowledged <= number <= self.acknowledged + self.uncertain, (number, *self.writes)
        assert await self.read() >= number
        await self._hear(heard, began)

    @property
    def writes(self) -> tuple[int, int]:
        """How often its counter must have been bumped, and may have been."""
        return self.acknowledged, self.acknowledged + self.uncertain

    async def _hear(self, heard: int, began: float) -> None:
        while self.client.notices[self.uri] == heard:
            assert time.monotonic() - began < NOTICE_SECONDS, f"{self.name} was not told of a change"
            await anyio.sleep(0.02)
        self._figures.lagging.append(time.monotonic() - began)

    async def read(self) -> int:
        """How often its counter was bumped."""
        found = await self._safely(self._ask("resources/read", uri=self.uri))
        return int(found["contents"][0]["text"])

    async def page(self) -> None:
        """Lists everything, page by page; begins anew where it is told that the cursor is no good any more."""
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            try:
                page = await self._safely(self._ask("resources/list", **cursor))
            except PeerError as error:
                if error.code != INVALID:
                    raise
                self._figures.counts["cursors that died"] += 1
                found, cursor = [], {}
                continue
            found += [one["uri"] for one in page["resources"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert found == [f"page://{number}" for number in range(LISTED)]
        self._figures.counts["lists in pages"] += 1

    async def job(self) -> None:
        """Has a task done, and follows it to its end."""
        params = {"name": "job", "arguments": {"label": self.name, "pause_ms": 300}, "task": {"ttl": 120_000}}
        try:
            task = (await self._once(self._ask("tools/call", **params)))["task"]["taskId"]
        except (NotRun, MayHaveRun):
            return
        status = "working"
        while status == "working":
            await anyio.sleep(AGAIN)
            status = (await self._safely(self._ask("tasks/get", taskId=task)))["status"]
        self._figures.counts[f"tasks {status}"] += 1
        assert status in ("completed", "failed"), status
        if status == "completed":
            result = await self._safely(self._ask("tasks/result", taskId=task))
            assert result["content"][0]["text"] == f"{self.name} is done"

    async def end(self) -> None:
        """Checks its counter once more, and ends its session, which is unknown then."""
        number = await self.read()
        assert self.writes[0] <= number <= self.writes[1], (number, *self.writes)
        await self._safely(lambda _call: self._close())
        try:
            await self._once(self._ask("ping"))
        except Lost:
            return
        raise AssertionError("a session that has ended is served")

    async def _close(self) -> None:
        try:
            await self.client.close()
        except Lost:  # where the first attempt came to nothing but for its answer
            assert self._failed_since is not None


async def at_work(
    http: aiohttp.ClientSession, url: str, count: int, figures: Figures, meanwhile: Callable[[], Awaitable[None]]
) -> None:
    """Has so many clients at work, until `meanwhile` is over, and each of them end its session."""
    busy = [BusyClient(http, url, f"client{number}", figures) for number in range(count)]
    is_over = False
    async with anyio.create_task_group() as listening:
        async with anyio.create_task_group() as opening:
            for one in busy:
                opening.start_soon(one.open)
        for one in busy:
            listening.start_soon(one.client.listen)
        async with anyio.create_task_group() as working:
            for one in busy:
                working.start_soon(one.run, lambda: not is_over)
            await meanwhile()
            is_over = True
        listening.cancel_scope.cancel()
    async with anyio.create_task_group() as ending:
        for one in busy:
            ending.start_soon(one.end)
    for one in busy:
        figures.counts.update({name: count for name, count in one.client.figures.items() if name != "requests"})
        figures.takeovers += one.client.takeovers
