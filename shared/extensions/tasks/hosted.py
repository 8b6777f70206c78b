"""A call that may become a task, and the call of a task.

hosted ──▶ over                                 it ended in time: its peer is answered as ever
       ──▶ detached ──▶ ended, failed           its peer has the id; what comes of it goes to the store
                    ──▶ cancelled, expired      the store says so, and the work is given up
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...contracts import TaskRecord
from ...errors import InputRequired, InternalError, PeerError, RpcError
from ...kit.tasks import Signal
from ...protocol.session.events import Call, Outcome
from ...protocol.session.questions import Question, requests_of
from ...protocol.shaping import settle
from ...protocol.types.tasks import TaskStatus
from ...server.context import Context
from . import states
from .runner import Tasks, principal_of

__all__ = ["Form", "HostedCall", "Report"]

REASON_CHARACTERS = 200
REPORT_SECONDS = 0.2
"""What is reported sooner after the last report does not reach the store."""


class Report(NamedTuple):
    """How far a call is."""

    progress: float
    total: float | None
    message: str | None

    def __str__(self) -> str:
        """In words: `importing, 40%`; where no total is known, the message alone."""
        if not self.total:
            return self.message or f"{self.progress:g}"
        share = f"{min(self.progress / self.total, 1):.0%}"
        return f"{self.message}, {share}" if self.message else share


class Form(Protocol):
    """How a task is told of: as the extension does, or as 2025-11-25 does."""

    name: str

    def created(self, task: TaskRecord) -> dict[str, Any]:
        """The result of the request that has become `task`."""

    def status_of(self, result: Mapping[str, Any]) -> TaskStatus:
        """How a task has ended that came to `result`."""

    def reported(self, context: Context[Any], id: str, report: Report) -> None:
        """Tells the peer of `context` besides how far its task is, where it wants that. Never waits."""

    def moved(self, context: Context[Any], task: TaskRecord) -> None:
        """Tells the peer of `context` besides that the status of its task is another one. Never waits."""


class HostedCall:
    """A `CallTask`, and the outlet of its call once that is a task."""

    def __init__(self, tasks: Tasks, context: Context[Any], form: Form, seconds: float) -> None:
        """The task is kept for so many `seconds`."""
        self.is_detached = False
        self.id = secrets.token_urlsafe(24)
        self._tasks = tasks
        self._context = context
        self._form = form
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._is_writing = False
        self._moved = Signal()
        self._unhear: Callable[[], None] | None = None
        self._keys: set[str] = set()
        self._text: str | None = None
        self._reported = 0.0

    # Becoming a task

    def detach_after(self, seconds: float) -> None:
        """Makes a task of the call where it still runs then."""
        self._timer = asyncio.get_running_loop().call_later(seconds, self._detach_soon)

    def stay(self) -> None:
        """The call is over, or to be answered as it is: it becomes no task any more by itself."""
        if self._timer is not None:
            self._timer.cancel()

    def _detach_soon(self) -> None:
        self._tasks.crew.start(self._detach_late())

    async def _detach_late(self) -> None:
        await self.detach()

    async def detach(self) -> bool:
        """Makes a task of the call, which is answered by that; False where there are too many, or it is over."""
        if self.is_detached:
            return True
        context, store, now = self._context, self._tasks.store, time.time()
        call, link = context.call, context.link
        task = TaskRecord(
            *(self.id, self._form.name, principal_of(call.peer), context.owner, now, now, self._seconds),
            message=self._text,
        )
        # It is kept before its peer hears of it (SEP-2663, Durable Creation).
        if call.is_over or not await store.create(task):
            return False
        if call.is_over:
            await store.forget(self.id)
            return False
        self.is_detached = True
        link.session.finish(call, self._form.created(task))
        link.calls.detach(call, self)
        self._tasks.at_work[self.id] = self
        self._unhear = store.hear(self.id, self._heard)
        return True

    # What the call says

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Takes note of how far the call is; of reports that come close together the first is kept."""
        report, now = Report(progress, total, message), asyncio.get_running_loop().time()
        self._text = str(report)
        if self.id not in self._tasks.at_work:
            return
        self._form.reported(self._context, self.id, report)
        if now >= self._reported + REPORT_SECONDS:
            self._reported = now
            await self._change(partial(_report, self._text))

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """What is answered to `questions`, by key, as it came."""
        keys = {self._fresh(key): key for key in questions}
        requests = requests_of({fresh: questions[key] for fresh, key in keys.items()}, self._context.peer)
        await self._change(lambda task, now: states.asked(task, requests, now))
        try:
            answers = await self._answers(set(requests))
        finally:
            self._tasks.crew.start(self._withdraw(requests))
        return {key: _result_in(answers[fresh]) for fresh, key in keys.items()}

    def _fresh(self, key: str) -> str:
        """A key that this task has not used before."""
        number, fresh = 1, key
        while fresh in self._keys:
            number += 1
            fresh = f"{key}-{number}"
        self._keys.add(fresh)
        return fresh

    async def _answers(self, keys: set[str]) -> Mapping[str, Any]:
        while True:
            task = await self._tasks.store.get(self.id)
            if task is not None and keys <= task.answers.keys():
                return task.answers
            # One that is cancelled or gone is about to be given up.
            await self._moved.wait()

    async def _withdraw(self, keys: Mapping[str, Any]) -> None:
        await self._change(lambda task, now: states.withdrawn(task, keys, now))

    # What comes of it

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Takes what came of the call."""
        if isinstance(outcome, InputRequired):
            outcome = InternalError("the call asked for input when it had become a task; call again")
        told = settle(outcome, call.method, call.peer)
        if isinstance(told, RpcError):
            self._tasks.crew.start(self._end("failed", _error_of(told), told.message))
        else:
            status = self._form.status_of(told)
            self._tasks.crew.start(self._end(status, {"result": told}, _reason(told) if status == "failed" else None))

    async def fail(self, reason: str) -> None:
        """Gives the call up, and says why."""
        await self._end("failed", _error_of(InternalError(reason)), reason)
        self._give_up()

    async def _end(self, status: TaskStatus, outcome: Mapping[str, Any], message: str | None = None) -> None:
        try:
            await self._change(lambda task, now: states.ended(task, status, outcome, now, message))
        except OverflowError as error:
            text = str(error)
            await self._change(lambda task, now: states.ended(task, "failed", _error(text), now, text))
        finally:
            self._close()

    async def _change(self, change: Callable[[TaskRecord, float], TaskRecord]) -> TaskRecord | None:
        self._is_writing = True
        try:
            before = await self._tasks.store.get(self.id)
            task = await self._tasks.change(self.id, change)
        finally:
            self._is_writing = False
        if task is not None and before is not None and task.status != before.status:
            self._form.moved(self._context, task)
        return task

    # What others say of it

    def _heard(self) -> None:
        if not self._is_writing:
            self._tasks.crew.start(self._look())

    async def _look(self) -> None:
        task = await self._tasks.store.get(self.id)
        if task is None or states.is_over(task):
            if task is not None and self.id in self._tasks.at_work:
                self._form.moved(self._context, task)
            self._give_up()
        else:
            self._moved.wake()

    def _give_up(self) -> None:
        self._context.link.calls.cancel(self._context.call)
        self._close()

    def _close(self) -> None:
        self._tasks.at_work.pop(self.id, None)
        if self._unhear is not None:
            self._unhear()


def _reason(result: Mapping[str, Any]) -> str | None:
    """Why a tool has failed, as its result says."""
    texts = [block["text"] for block in result.get("content", ()) if block.get("type") == "text"]
    return texts[0][:REASON_CHARACTERS] if texts else None


def _report(text: str, task: TaskRecord, now: float) -> TaskRecord:
    return states.reported(task, text, now)


def _result_in(answer: Mapping[str, Any]) -> Any:
    if "error" in answer:
        error = answer["error"]
        raise PeerError(error["message"], code=error["code"], data=error.get("data"))
    return answer["result"]


def _error_of(error: RpcError) -> dict[str, Any]:
    data = {} if error.data is None else {"data": error.data}
    return {"error": {"code": error.code, "message": error.message, **data}}


def _error(text: str) -> dict[str, Any]:
    return _error_of(InternalError(text))
