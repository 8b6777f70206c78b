"""Follows a server's task to its end, in either of the two forms of tasks. It has no I/O of its own, so that clients
and gateways can use it.

    the extension        tasks/get ──▶ working ──▶ (pause) ──▶ tasks/get ──▶ completed, with the result
                                   ──▶ input_required ──▶ tasks/update, each question once
    2025-11-25 alone     tasks/result ──▶ the result, when there is one; meanwhile the server asks questions as usual
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import anyio
from anyio.abc import TaskGroup

from ...concurrency import background, first_error
from ...errors import InputRequired, InvalidParams, InvalidResult, McpError, PeerError, TaskCancelled, TaskLost
from ...protocol.types.tasks import TaskStatus

POLL_SECONDS = 1.0
"""Seconds between status requests if the server specifies no interval."""
MIN_POLL_SECONDS = 0.02
MAX_POLL_SECONDS = 60.0
CANCEL_SECONDS = 2.0
"""Time limit in seconds for notifying the server that a task is no longer needed."""
MAX_RESULT_TRIES = 3
"""Maximum number of attempts to get the result of a finished task, if no usable answer arrives."""
MAX_QUESTIONS = 100
"""The maximum number of simultaneous questions of a task: each may require a person, or a model that costs money."""

_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
_FINAL = frozenset({"completed", "failed", "cancelled"})
_PERCENT = re.compile(r"\b(\d{1,2}|100)%$")
"""The progress at the end of a status message, as the servers of this library write it: "importing, 40%"."""


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task, as its server reported it."""

    id: str
    status: TaskStatus
    message: str | None
    """The server's description of the state, for people: untrusted."""
    poll_seconds: float
    """Seconds to wait before the next request."""
    report: Mapping[str, Any]
    """The whole report, as on the wire."""

    @property
    def is_over(self) -> bool:
        """True if the task has ended."""
        return self.status in _FINAL

    @property
    def percent(self) -> int | None:
        """The progress at the end of the message, from 0 to 100; None if there is none."""
        share = _PERCENT.search(self.message or "")
        return None if share is None else int(share[1])


OnTask = Callable[[TaskState], None]
"""Receives the first state of a task, and each new state. It must neither block nor raise."""


Questions = Mapping[str, tuple[str, dict[str, Any]]]
"""The questions of a task, by key: method and params."""


@dataclass(frozen=True, slots=True)
class TaskChannel:
    """The channel for following a task: requests to its server, and answers to its questions."""

    ask: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """Makes a request, given its method and params, repeats it where that helps, and returns the result;
    `tasks/result` takes as long as the task. Raises PeerError, ConnectionError and TimeoutError."""
    answer: Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """Returns the answer to a question of the task, given its key, method and params. It is cancelled when the task
    no longer needs the answer; its exceptions end `follow`. The questions of 2025-11-25 arrive differently."""
    is_experimental: bool = False
    """True if the task is one of 2025-11-25."""
    on_task: OnTask | None = None
    pause: Callable[[float], Awaitable[None]] = anyio.sleep
    """Waits for `seconds`, or until the connection is lost."""
    answer_all: Callable[[Questions], Awaitable[dict[str, dict[str, Any]]]] | None = None
    """Returns the answers to all new questions at once, by key, instead of `answer`: for callers that pass them
    on."""


def read_state(method: str, report: Mapping[str, Any]) -> TaskState:
    """Return the state in an answer to `method`. Raises InvalidResult if it contains none."""
    id_, message = report.get("taskId"), report.get("statusMessage")
    if not isinstance(id_, str) or not id_:
        raise InvalidResult(method, "taskId", "a task has one", dict(report))
    status = next((known_status for known_status in _STATUSES if known_status == report.get("status")), None)
    if status is None:
        raise InvalidResult(method, "status", "a task can't have it", dict(report))
    text = message if isinstance(message, str) else None
    milliseconds, seconds = report.get("pollIntervalMs", report.get("pollInterval")), POLL_SECONDS
    if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool) and milliseconds > 0:
        # An integer may be too large for a float.
        seconds = max(MIN_POLL_SECONDS, min(milliseconds, MAX_POLL_SECONDS * 1_000) / 1_000)
    return TaskState(id_, status, text, seconds, report)


async def fetch_state(channel: TaskChannel, id: str) -> TaskState:
    """Return the current state of the task. Raises TaskLost if the server does not know the task, and the same errors
    as `TaskChannel.ask`."""
    try:
        state = read_state("tasks/get", await channel.ask("tasks/get", {"taskId": id}))
    except PeerError as error:
        # In both forms servers answer -32602 to an unknown id.
        if error.code != InvalidParams.code:
            raise
        raise TaskLost(f"the server no longer has this task: {error.message}") from error
    if state.id != id:
        raise InvalidResult("tasks/get", "taskId", "it belongs to another task", dict(state.report))
    return state


async def follow(
    id: str, channel: TaskChannel, first: TaskState | None = None, *, cancels: bool = True
) -> dict[str, Any]:
    """Wait for the task and return its result. If the wait is cancelled, so is the task, unless `cancels` is False.
    `first` is the state of the task, if known.

    Raises PeerError if the task failed, TaskCancelled, TaskLost if the server no longer knows the task, InvalidResult
    for an invalid state, and the same errors as `TaskChannel.ask` and `TaskChannel.answer`.
    """
    follower = _Follower(id, channel)
    try:
        with _raise_first_error():
            return await (
                follower.follow_experimental(first) if channel.is_experimental else follower.follow_extension(first)
            )
    except (ConnectionError, TimeoutError, TaskLost, InputRequired):
        # The task can't be cancelled, or it may only be slow, or another round of the call returns to it.
        follower.is_over = True
        raise
    finally:
        if cancels and not follower.is_over:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(McpError, OSError):
                await cancel(channel, id)


async def cancel(channel: TaskChannel, id: str) -> None:
    """Ask the server to cancel the task. Raises the same errors as `TaskChannel.ask`; some servers refuse with
    PeerError if the task has already ended."""
    await channel.ask("tasks/cancel", {"taskId": id})


@contextmanager
def _raise_first_error() -> Iterator[None]:
    """Raise the first error if several requests about a task fail at once, as they do when the connection is lost."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise first_error(group) from None


class _Follower:
    """Follows one task to its end."""

    def __init__(self, id: str, channel: TaskChannel) -> None:
        self.is_over = False
        self._id = id
        self._channel = channel
        self._last_reported: tuple[str, str | None] | None = None
        self._failed = 0
        """The number of failed attempts to get the result of the finished task."""

    def _report(self, state: TaskState) -> None:
        self.is_over = state.is_over
        seen = (state.status, state.message)
        if self._channel.on_task is not None and seen != self._last_reported:
            self._channel.on_task(state)
        self._last_reported = seen

    async def _fetch_state(self) -> TaskState:
        state = await fetch_state(self._channel, self._id)
        self._report(state)
        return state

    # The extension

    async def follow_extension(self, first: TaskState | None) -> dict[str, Any]:
        """Return the outcome from the last `tasks/get`."""
        if first is not None:
            self._report(first)
        async with background() as tasks:
            answerer = _Answerer(self._id, self._channel, tasks)
            # The first answer to a call may report an end, but lacks the result.
            if first is not None and not first.is_over:
                await self._channel.pause(first.poll_seconds)
            while not (state := await self._fetch_state()).is_over:
                answerer.on_questions(_questions(state))
                await self._channel.pause(state.poll_seconds)
        if state.status == "cancelled":
            raise TaskCancelled(f"the task was cancelled{f': {state.message}' if state.message else ''}")
        name = "result" if state.status == "completed" else "error"
        outcome = state.report.get(name)
        if not isinstance(outcome, dict):
            raise InvalidResult("tasks/get", name, f"a task that is {state.status} has one", dict(state.report))
        if name == "result":
            return outcome
        code, message = outcome.get("code"), outcome.get("message")
        is_code = isinstance(code, int) and not isinstance(code, bool)
        raise PeerError(
            message if isinstance(message, str) else state.message or "the task failed",
            code=code if is_code else None,
            data=outcome.get("data"),
        )

    # 2025-11-25

    async def follow_experimental(self, first: TaskState | None) -> dict[str, Any]:
        """Return the answer to `tasks/result`."""
        if first is not None:
            self._report(first)
        async with background() as tasks:
            if self._channel.on_task is not None:
                tasks.start_soon(self._watch, 0.0 if first is None else first.poll_seconds)
            while True:
                result = await self._try_result()
                if result is not None:
                    self.is_over = True
                    return result

    async def _try_result(self) -> dict[str, Any] | None:
        """Return the result; None if there was none, perhaps because the connection was lost, and the task
        continues."""
        try:
            result = await self._channel.ask("tasks/result", {"taskId": self._id})
        except (ConnectionError, PeerError) as error:
            state = await self._fetch_state()
            if state.status == "cancelled":  # servers use different words for this
                raise TaskCancelled("the task was cancelled") from None
            if state.is_over:
                self._failed += 1
            if state.is_over and (isinstance(error, PeerError) or self._failed > MAX_RESULT_TRIES):
                raise
            await self._channel.pause(state.poll_seconds)
            return None
        if "content" not in result and (await self._fetch_state()).status == "cancelled":
            raise TaskCancelled("the task was cancelled")
        return result

    async def _watch(self, seconds: float) -> None:
        while not self.is_over:
            await self._channel.pause(seconds)
            with suppress(McpError, OSError):  # the caller that waits for the result gets the error
                seconds = (await self._fetch_state()).poll_seconds


class _Answerer:
    """Answers each question of a task once: one after another, or all simultaneous questions together."""

    def __init__(self, id: str, channel: TaskChannel, tasks: TaskGroup) -> None:
        self._id = id
        self._channel = channel
        self._tasks = tasks
        self._seen_keys: set[str] = set()
        self._due: dict[str, tuple[str, dict[str, Any]]] = {}
        self._open: dict[anyio.CancelScope, set[str]] = {}
        self._current: tuple[str, anyio.CancelScope] | None = None

    def on_questions(self, questions: Questions) -> None:
        """Handle all questions that are open now."""
        if self._channel.answer_all is not None:
            for scope, keys in self._open.items():
                if keys.isdisjoint(questions):
                    scope.cancel()
            fresh = {key: question for key, question in questions.items() if key not in self._seen_keys}
            self._seen_keys |= questions.keys()
            if fresh:
                self._tasks.start_soon(self._answer_together, fresh)
            return
        self._due = {key: question for key, question in self._due.items() if key in questions}
        self._due |= {key: question for key, question in questions.items() if key not in self._seen_keys}
        self._seen_keys |= questions.keys()
        if self._current is None and self._due:
            key = next(iter(self._due))
            self._current = (key, anyio.CancelScope())
            self._tasks.start_soon(self._answer_each)
        elif self._current is not None and self._current[0] not in questions:
            self._current[1].cancel()

    async def _answer_each(self) -> None:
        while self._due:
            key = next(iter(self._due))
            method, params = self._due.pop(key)
            answer: dict[str, Any] | None = None
            with anyio.CancelScope() as scope:
                self._current = (key, scope)
                answer = await self._channel.answer(key, method, params)
            if answer is not None:  # and the question was not withdrawn
                await self._channel.ask("tasks/update", {"taskId": self._id, "inputResponses": {key: answer}})
        self._current = None

    async def _answer_together(self, questions: Questions) -> None:
        assert self._channel.answer_all is not None
        answers: dict[str, dict[str, Any]] | None = None
        with anyio.CancelScope() as scope:
            self._open[scope] = set(questions)
            try:
                answers = await self._channel.answer_all(questions)
            finally:
                del self._open[scope]
        if answers is not None:
            await self._channel.ask("tasks/update", {"taskId": self._id, "inputResponses": answers})


def _questions(state: TaskState) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the questions of the task, by key. Raises InvalidResult if they can't be read."""
    requests = state.report.get("inputRequests", {}) if state.status == "input_required" else {}
    fault = partial(InvalidResult, "tasks/get", "inputRequests", result=dict(state.report))
    if not isinstance(requests, dict) or len(requests) > MAX_QUESTIONS:
        raise fault(fault=f"it is not an object of at most {MAX_QUESTIONS} questions")
    questions = {}
    for key, question in requests.items():
        method, params = (
            (question.get("method"), question.get("params", {})) if isinstance(question, dict) else (None, None)
        )
        if not isinstance(method, str) or not isinstance(params, dict):
            raise fault(fault="it contains something that is not a question")
        questions[key] = (method, params)
    return questions
