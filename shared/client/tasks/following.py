"""Follows a server's task to completion, in either of the two forms of tasks. All messages go through a
`TaskChannel`, so that clients and gateways can use this module.

    the extension        tasks/get ──▶ working ──▶ (pause) ──▶ tasks/get ──▶ completed, with the result
                                   ──▶ input_required ──▶ tasks/update, once for each input request
    2025-11-25           tasks/result ──▶ the result, when there is one; until then, input requests arrive as usual
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
"""Seconds between two requests for the status if the server specifies no interval."""
MIN_POLL_SECONDS = 0.02
MAX_POLL_SECONDS = 60.0
CANCEL_SECONDS = 2.0
"""Time limit in seconds for the cancellation of a task that is no longer needed."""
MAX_RESULT_TRIES = 3
"""Maximum number of attempts to get the result of a finished task, if no usable answer arrives."""
MAX_INPUT_REQUESTS = 100
"""The maximum number of simultaneous input requests of a task. Each may require a person, or a model that costs
money."""

_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
_FINAL = frozenset({"completed", "failed", "cancelled"})
_PERCENT = re.compile(r"\b(\d{1,2}|100)%$")
"""The percentage at the end of a status message, as the servers of this library write it: "importing, 40%"."""


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task, as its server reported it."""

    id: str
    status: TaskStatus
    message: str | None
    """The server's description of the state for people, which is untrusted text."""
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
        """The percentage at the end of the message, from 0 to 100; None if there is none."""
        percentage = _PERCENT.search(self.message or "")
        return None if percentage is None else int(percentage[1])


OnTask = Callable[[TaskState], None]
"""Receives the first state of a task, and each new state. It must neither block nor raise."""


InputRequests = Mapping[str, tuple[str, dict[str, Any]]]
"""The input requests of a task: the method and the params of each, by key."""


@dataclass(frozen=True, slots=True)
class TaskChannel:
    """The functions through which a task is followed: they send requests to its server, and answer its questions."""

    request: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """Makes a request with a method and params, repeats it if that may help, and returns the result; `tasks/result`
    takes as long as the task. Raises PeerError, ConnectionError and TimeoutError."""
    answer: Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """Returns the answer to an input request of the task, given its key, method and params. It is cancelled when the
    task no longer needs the answer; its exceptions end `follow`. Not used for tasks of 2025-11-25, whose input
    requests arrive like any others."""
    is_experimental: bool = False
    """True if the task is one of 2025-11-25."""
    on_task: OnTask | None = None
    pause: Callable[[float], Awaitable[None]] = anyio.sleep
    """Waits for a number of seconds, or until the connection is lost."""
    answer_inputs: Callable[[InputRequests], Awaitable[dict[str, dict[str, Any]]]] | None = None
    """Returns the answers to all new input requests together, by key; used in place of `answer` by callers that
    forward the requests."""


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
    as `TaskChannel.request`."""
    try:
        state = read_state("tasks/get", await channel.request("tasks/get", {"taskId": id}))
    except PeerError as error:
        # In both forms of tasks, -32602 is the error for an unknown id.
        if error.code != InvalidParams.code:
            raise
        raise TaskLost(f"the server no longer has this task: {error.message}") from error
    if state.id != id:
        raise InvalidResult("tasks/get", "taskId", "it belongs to another task", dict(state.report))
    return state


async def follow(
    id: str, channel: TaskChannel, first: TaskState | None = None, *, cancels: bool = True
) -> dict[str, Any]:
    """Wait for the task and return its result. If this is cancelled, the task is cancelled too, unless `cancels` is
    False. `first` is the state of the task, if known.

    Raises PeerError if the task failed, TaskCancelled, TaskLost if the server no longer knows the task, InvalidResult
    for an invalid state, and the same errors as `TaskChannel.request` and `TaskChannel.answer`.
    """
    follower = _Follower(id, channel)
    try:
        with _raise_first_error():
            return await (
                follower.follow_experimental(first) if channel.is_experimental else follower.follow_extension(first)
            )
    except (ConnectionError, TimeoutError, TaskLost, InputRequired):
        # The task is not cancelled: the server can't be reached or no longer has the task, or the server may only be
        # slow, or the next round of the call follows the task again.
        follower.is_over = True
        raise
    finally:
        if cancels and not follower.is_over:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(McpError, OSError):
                await cancel(channel, id)


async def cancel(channel: TaskChannel, id: str) -> None:
    """Ask the server to cancel the task. Raises the same errors as `TaskChannel.request`; some servers refuse with
    PeerError if the task has already ended."""
    await channel.request("tasks/cancel", {"taskId": id})


@contextmanager
def _raise_first_error() -> Iterator[None]:
    """Raise the first error if several requests about a task fail at once, as when the connection is lost."""
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
        self._failures = 0
        """The number of failed attempts to get the result of the finished task."""

    def _report(self, state: TaskState) -> None:
        self.is_over = state.is_over
        reported = (state.status, state.message)
        if self._channel.on_task is not None and reported != self._last_reported:
            self._channel.on_task(state)
        self._last_reported = reported

    async def _fetch_state(self) -> TaskState:
        state = await fetch_state(self._channel, self._id)
        self._report(state)
        return state

    # The extension

    async def follow_extension(self, first: TaskState | None) -> dict[str, Any]:
        """Follow a task of the extension. Returns the result in the last answer to `tasks/get`."""
        if first is not None:
            self._report(first)
        async with background() as tasks:
            answerer = _InputAnswerer(self._id, self._channel, tasks)
            # The answer to the call may report that the task has ended, but does not contain the result.
            if first is not None and not first.is_over:
                await self._channel.pause(first.poll_seconds)
            while not (state := await self._fetch_state()).is_over:
                answerer.on_input_requests(_read_input_requests(state))
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
        """Follow a task of 2025-11-25. Returns the answer to `tasks/result`."""
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
        """Return the result; None if there was no answer, for example because the connection was lost, and another
        attempt should be made."""
        try:
            result = await self._channel.request("tasks/result", {"taskId": self._id})
        except (ConnectionError, PeerError) as error:
            state = await self._fetch_state()
            if state.status == "cancelled":  # servers report this with different errors
                raise TaskCancelled("the task was cancelled") from None
            if state.is_over:
                self._failures += 1
            if state.is_over and (isinstance(error, PeerError) or self._failures > MAX_RESULT_TRIES):
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


class _InputAnswerer:
    """Answers each input request of a task once: one after another, or all simultaneous ones together."""

    def __init__(self, id: str, channel: TaskChannel, tasks: TaskGroup) -> None:
        self._id = id
        self._channel = channel
        self._tasks = tasks
        self._seen_keys: set[str] = set()
        self._queued: dict[str, tuple[str, dict[str, Any]]] = {}
        self._pending: dict[anyio.CancelScope, set[str]] = {}
        self._current: tuple[str, anyio.CancelScope] | None = None

    def on_input_requests(self, input_requests: InputRequests) -> None:
        """Handle the input requests that the task has now."""
        if self._channel.answer_inputs is not None:
            for scope, keys in self._pending.items():
                if keys.isdisjoint(input_requests):
                    scope.cancel()
            new_requests = {
                key: input_request for key, input_request in input_requests.items() if key not in self._seen_keys
            }
            self._seen_keys |= input_requests.keys()
            if new_requests:
                self._tasks.start_soon(self._answer_together, new_requests)
            return
        self._queued = {key: input_request for key, input_request in self._queued.items() if key in input_requests}
        self._queued |= {
            key: input_request for key, input_request in input_requests.items() if key not in self._seen_keys
        }
        self._seen_keys |= input_requests.keys()
        if self._current is None and self._queued:
            key = next(iter(self._queued))
            self._current = (key, anyio.CancelScope())
            self._tasks.start_soon(self._answer_each)
        elif self._current is not None and self._current[0] not in input_requests:
            self._current[1].cancel()

    async def _answer_each(self) -> None:
        while self._queued:
            key = next(iter(self._queued))
            method, params = self._queued.pop(key)
            answer: dict[str, Any] | None = None
            with anyio.CancelScope() as scope:
                self._current = (key, scope)
                answer = await self._channel.answer(key, method, params)
            if answer is not None:  # None if the input request was withdrawn
                await self._channel.request("tasks/update", {"taskId": self._id, "inputResponses": {key: answer}})
        self._current = None

    async def _answer_together(self, input_requests: InputRequests) -> None:
        assert self._channel.answer_inputs is not None
        answers: dict[str, dict[str, Any]] | None = None
        with anyio.CancelScope() as scope:
            self._pending[scope] = set(input_requests)
            try:
                answers = await self._channel.answer_inputs(input_requests)
            finally:
                del self._pending[scope]
        if answers is not None:
            await self._channel.request("tasks/update", {"taskId": self._id, "inputResponses": answers})


def _read_input_requests(state: TaskState) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the input requests of the task, by key. Raises InvalidResult if they can't be read."""
    requests = state.report.get("inputRequests", {}) if state.status == "input_required" else {}
    fault = partial(InvalidResult, "tasks/get", "inputRequests", result=dict(state.report))
    if not isinstance(requests, dict) or len(requests) > MAX_INPUT_REQUESTS:
        raise fault(fault=f"it is not an object of at most {MAX_INPUT_REQUESTS} input requests")
    input_requests = {}
    for key, input_request in requests.items():
        method, params = (
            (input_request.get("method"), input_request.get("params", {}))
            if isinstance(input_request, dict)
            else (None, None)
        )
        if not isinstance(method, str) or not isinstance(params, dict):
            raise fault(fault="it contains something that is not an input request")
        input_requests[key] = (method, params)
    return input_requests
