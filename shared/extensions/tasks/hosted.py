"""A call that may become a task, and the call of a task.

    hosted ──▶ over                              the call has ended before it became a task; it is answered as usual
           ──▶ detached ──▶ completed, failed    the client has received the task; the outcome goes to the store
                        ──▶ cancelled, expired   the store reports this, and the call is cancelled

`server/dispatch/calls.py` runs the call in all these states.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from ...concurrency import Signal
from ...contracts import TaskRecord
from ...errors import InputRequired, InternalError, PeerError, RpcError
from ...protocol.session.events import Call, Outcome
from ...protocol.session.questions import Question, write_requests
from ...protocol.shaping import outcome_for_peer
from ...protocol.types.tasks import TaskStatus
from ...server.dispatch.context import Context
from . import states
from .runner import Tasks, log_failure, principal_of

MAX_REASON_LENGTH = 200
MAX_MESSAGE_LENGTH = 1_000
"""Maximum number of characters in the reason for a failure, and in a status message. Every answer to a request for
the task contains it."""
REPORT_SECONDS = 0.2
"""Minimum number of seconds between two writes of a task's progress to the store."""


class Report(NamedTuple):
    """The progress of a call."""

    progress: float
    total: float | None
    message: str | None

    def __str__(self) -> str:
        """Return the progress as text, such as `importing, 40%`; only the message if the total is unknown."""
        if not self.total:
            return self.message or f"{self.progress:g}"
        share = f"{min(self.progress / self.total, 1):.0%}"
        return f"{self.message}, {share}" if self.message else share


class Form(Protocol):
    """The messages for tasks in one of the two forms: that of SEP-2663, or that of 2025-11-25."""

    name: str

    def create_result(self, task: TaskRecord) -> dict[str, Any]:
        """Return the result that answers the request which has become `task`."""

    def status_of(self, result: Mapping[str, Any]) -> TaskStatus:
        """Return the final status of a task whose call has that `result`."""

    def send_progress(self, context: Context[Any], id: str, report: Report) -> None:
        """Send the progress of the task `id` to the peer of `context`, if it wants that. Never waits."""

    def send_status(self, context: Context[Any], task: TaskRecord) -> None:
        """Send the new status of a task to the peer of `context`. Never waits."""


class HostedCall:
    """The `CallTask` of one call, and the outlet of the call after it has become a task."""

    __slots__ = (
        "__weakref__",
        "_changed",
        "_context",
        "_creation",
        "_form",
        "_has_outcome",
        "_is_reloading",
        "_keys",
        "_message",
        "_report_timer",
        "_reported_at",
        "_task",
        "_tasks",
        "_timer",
        "_unlisten",
        "id",
        "is_detached",
        "tool",
    )

    def __init__(self, tasks: Tasks, context: Context[Any], form: Form, seconds: float) -> None:
        """If the call becomes a task, it is stored for `seconds`."""
        # 192 random bits, since unauthenticated clients need only the id to access the task (SEP-2663, Security).
        self.id = secrets.token_hex(24)
        now = time.time()
        self._tasks = tasks
        self._context = context
        self._form = form
        self._task = TaskRecord(
            *(self.id, form.name, principal_of(context.call.peer), context.owner, now, now, seconds)
        )
        """The newest state of the task that was read from the store."""
        self._changed = Signal()
        self._timer: asyncio.TimerHandle | None = None
        self._creation: asyncio.Task[None] | None = None
        self.is_detached = False
        self.tool = ""
        """The name of the tool, after the call has become a task. The call has no params then."""
        self._is_reloading = False
        self._has_outcome = False
        self._unlisten: Callable[[], None] | None = None
        self._keys: tuple[str, ...] = ()  # few tasks have many questions
        self._message: str | None = None
        self._reported_at = 0.0
        self._report_timer: asyncio.TimerHandle | None = None

    # Becoming a task

    def detach_after(self, seconds: float) -> None:
        """Turn the call into a task if it still runs after `seconds`."""
        self._timer = asyncio.get_running_loop().call_later(seconds, self._detach_soon)

    def cancel_detach(self) -> None:
        """Cancel the timer of `detach_after`."""
        if self._timer is not None:
            self._timer.cancel()

    async def detach(self) -> bool:
        """Turn the call into a task, and answer its request with the task. Return False if there are too many tasks,
        the call is over, or the server stops. Raises the exceptions of the store."""
        if not self.is_detached:
            # Shielded: if the call is cancelled here, it must not leave a task behind for which nothing works.
            await asyncio.shield(self._detach_soon())
        return self.is_detached

    def _detach_soon(self) -> asyncio.Task[None]:
        if self._creation is None or self._creation.done():
            self._creation = self._tasks.background.start(self._create_task())
        return self._creation

    async def _create_task(self) -> None:
        context, tasks, now = self._context, self._tasks, time.time()
        call, link = context.call, context.link
        task = replace(self._task, created=now, updated=now, message=self._message, scopes=call.scopes)
        # The task must be stored before the client receives it (SEP-2663, Durable Creation).
        if self.is_detached or self._is_too_late() or not await tasks.store.create(task):
            return
        if self._is_too_late():
            await tasks.store.forget(self.id)
            return
        self._task, self.is_detached, self._creation, self._timer = task, True, None, None
        self.tool = str(getattr(call.params, "name", ""))
        # The client is answered after all this, since its next message may cancel the task.
        self._unlisten = tasks.store.listen(self.id, self._on_change)
        tasks.local_tasks[self.id] = self
        # `finish` would stop counting the memory of the arguments, which the work still uses.
        release, call.release = call.release, None
        link.session.finish(call, self._form.create_result(task))
        call.release = release
        link.calls.detach(call, self)
        await self._reload()  # another client may have found the task in a list, and cancelled it already

    def _is_too_late(self) -> bool:
        return self._context.call.is_over or self._tasks.is_stopping

    # Progress and questions of the call

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Record the progress of the call. Of several reports in quick succession, only the last one is stored."""
        self.note(progress, total, message)

    def note(self, progress: float, total: float | None, message: str | None) -> None:
        """Record the progress like `report`. Never waits."""
        report = Report(progress, total, message)
        if self.id in self._tasks.local_tasks:
            self._form.send_progress(self._context, self.id, report)
        self.set_message(str(report))

    def set_message(self, text: str) -> None:
        """Set the status message to `text`, which is cut at `MAX_MESSAGE_LENGTH`. Never waits: it is stored later."""
        self._message = text = text[:MAX_MESSAGE_LENGTH]
        if self.id in self._tasks.local_tasks and self._report_timer is None:
            loop = asyncio.get_running_loop()
            due = self._reported_at + REPORT_SECONDS
            if loop.time() < due:
                self._report_timer = loop.call_at(due, self._write_report)
            else:
                self._write_report()

    def _write_report(self) -> None:
        # In the background, since the call must not wait for the store, nor fail because of it.
        self._report_timer, self._reported_at = None, asyncio.get_running_loop().time()
        message = self._message or ""
        self._tasks.background.start(self._change(lambda task, now: states.report(task, message, now)))

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask the client the `questions`, and return its raw answers, by key."""
        keys = {self._make_key(key): key for key in questions}
        requests = write_requests({task_key: questions[key] for task_key, key in keys.items()}, self._context.peer)
        try:
            await self._change(lambda task, now: states.ask(task, requests, now))
            # The answers may arrive one by one, in several requests (SEP-2663, tasks/update).
            while not requests.keys() <= self._task.answers.keys():
                await self._changed.wait()  # if the task ends, the call is cancelled here
            answers = self._task.answers
        finally:
            self._tasks.background.start(self._change(lambda task, now: states.withdraw(task, requests, now)))
        results: dict[str, Any] = {}
        for task_key, key in keys.items():
            answer = answers[task_key]
            if "error" in answer:
                error = answer["error"]
                raise PeerError(error["message"], code=error["code"], data=error.get("data"))
            results[key] = answer["result"]
        return results

    def _make_key(self, key: str) -> str:
        """Return `key`, or a similar one if this task has used it before."""
        number, task_key = 1, key
        while task_key in self._keys:
            number += 1
            task_key = f"{key}-{number}"
        self._keys = (*self._keys, task_key)
        return task_key

    # The outcome of the call

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Store the outcome of the call."""
        self._has_outcome = True
        if isinstance(outcome, InputRequired):
            outcome = InternalError("the call asked for input after it had become a task; call again")
        answer = outcome_for_peer(outcome, call.method, call.peer)
        if isinstance(answer, RpcError):
            self._tasks.background.start(self._end("failed", _error_of(answer), answer.message[:MAX_REASON_LENGTH]))
        else:
            status, reason = self._form.status_of(answer), None
            if status == "failed":  # the first text in the result becomes the reason
                content = answer.get("content")
                blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
                texts = [block.get("text") for block in blocks if block.get("type") == "text"]
                reason = next((text[:MAX_REASON_LENGTH] for text in texts if isinstance(text, str)), None)
            self._tasks.background.start(self._end(status, {"result": answer}, reason))

    async def fail(self, reason: str) -> None:
        """End the task as failed, with a reason, and cancel its call. Does nothing if the call has ended."""
        if not self._has_outcome:
            await self._end("failed", _error_of(InternalError(reason)), reason)

    async def _end(self, status: TaskStatus, outcome: Mapping[str, Any], message: str | None = None) -> None:
        try:
            await self._change(lambda task, now: states.end(task, status, outcome, now, message))
        except (OverflowError, OSError, ValueError) as error:
            # The result can't be stored, because it is too large or not JSON, or the store can't be reached. The task
            # must not stay "working" forever.
            if not isinstance(error, OverflowError):
                log_failure("the result of a task can't be stored", error)
            text = str(error) if isinstance(error, OverflowError) else "internal error"
            failure = _error_of(InternalError(text))
            await self._change(lambda task, now: states.end(task, "failed", failure, now, text))
        finally:
            self.give_up()

    async def _change(self, change: Callable[[TaskRecord, float], TaskRecord]) -> None:
        self._update(await self._tasks.change(self.id, change))

    # Changes made elsewhere

    def _on_change(self) -> None:
        # A read that has not begun yet will see this change too.
        if not self._is_reloading:
            self._is_reloading = True
            self._tasks.background.start(self._reload())

    async def _reload(self) -> None:
        self._is_reloading = False
        self._update(await self._tasks.store.get(self.id))

    def _update(self, task: TaskRecord | None) -> None:
        """Handle a state of the task that was read from the store; None if the task no longer exists."""
        if task is None:
            self.give_up()
        # Reads can overtake each other, so an older state may arrive after a newer one.
        elif task.revision > self._task.revision:
            before, self._task = self._task, task
            if task.status != before.status:
                self._form.send_status(self._context, task)
            if states.is_over(task):
                self.give_up()
            else:
                self._changed.wake()

    def give_up(self) -> None:
        """Stop working on the task, which has ended: cancel its call, and all timers."""
        self._tasks.local_tasks.pop(self.id, None)
        if self._unlisten is not None:
            self._unlisten()
        if self._report_timer is not None:
            self._report_timer.cancel()
        if not self._has_outcome:
            self._context.link.calls.cancel(self._context.call)


def _error_of(error: RpcError) -> dict[str, Any]:
    data = {} if error.data is None else {"data": error.data}
    return {"error": {"code": error.code, "message": error.message, **data}}
