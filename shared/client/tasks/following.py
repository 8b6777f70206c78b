"""A task of a server, followed to its end in either of its forms: without I/O of its own, for a client and for what
stands between one and a server.

    the extension        tasks/get ──▶ working ──▶ (pause) ──▶ tasks/get ──▶ completed, with the result
                                   ──▶ input_required ──▶ tasks/update, each question once
    2025-11-25 alone     tasks/result ──▶ the result, when there is one; the server asks meanwhile as it always does
"""

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
"""How often a server is asked how a task is that does not say how often it wants to be."""
MIN_POLL_SECONDS = 0.02
MAX_POLL_SECONDS = 60.0
CANCEL_SECONDS = 2.0
"""Time for the server to hear that nobody wants a task any more."""
RESULT_TRIES = 3
"""How often the result of a task that is over is asked for again, where no answer comes that can be used."""
MAX_QUESTIONS = 100
"""That a task may ask at once: each of them may need a person, or a model that costs money."""

_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
_FINAL = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class TaskState:
    """How a task is, as its server told it."""

    id: str
    status: TaskStatus
    message: str | None
    """What the server says of that, for people: untrusted."""
    poll_seconds: float
    """How long to wait before asking again."""
    told: Mapping[str, Any]
    """All that was told, as on the wire."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.status in _FINAL


OnTask = Callable[[TaskState], None]
"""Takes how a task is, first and whenever it has changed. It must neither block nor raise."""


Questions = Mapping[str, tuple[str, dict[str, Any]]]
"""What a task asks, by key: method and params."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the server of a task is asked, and who answers it."""

    ask: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """The result of a request, by method and params, which is repeated as far as that helps; that of `tasks/result`
    takes as long as the task. Raises PeerError, ConnectionError and TimeoutError."""
    answer: Callable[[str, str, dict[str, Any]], Awaitable[dict[str, Any]]]
    """What is answered to a question of the task, by key, method and params. It is cancelled where the task needs no
    answer any more; what it raises ends the following. The questions of 2025-11-25 come on another way."""
    is_experimental: bool = False
    """Whether the task is one of 2025-11-25."""
    on_task: OnTask | None = None
    pause: Callable[[float], Awaitable[None]] = anyio.sleep
    """Waits for so many seconds, or until the connection is lost."""
    answer_all: Callable[[Questions], Awaitable[dict[str, dict[str, Any]]]] | None = None
    """What is answered to all new questions at once, by key, in place of `answer`: for whoever asks somebody else."""


def read_state(method: str, told: Mapping[str, Any]) -> TaskState:
    """The task that an answer to `method` tells of. Raises InvalidResult where it tells of none."""
    id_, message = told.get("taskId"), told.get("statusMessage")
    if not isinstance(id_, str) or not id_:
        raise InvalidResult(method, "taskId", "a task has one", dict(told))
    status = next((one for one in _STATUSES if one == told.get("status")), None)
    if status is None:
        raise InvalidResult(method, "status", "it is none that a task can have", dict(told))
    said = message if isinstance(message, str) else None
    return TaskState(id_, status, said, _poll_seconds(told), told)


def _poll_seconds(told: Mapping[str, Any]) -> float:
    wanted = told.get("pollIntervalMs", told.get("pollInterval"))
    if not isinstance(wanted, int | float) or isinstance(wanted, bool) or not wanted > 0:
        return POLL_SECONDS
    # An integer may be one that no float holds.
    return max(MIN_POLL_SECONDS, min(wanted, MAX_POLL_SECONDS * 1_000) / 1_000)


async def look(way: Way, id: str) -> TaskState:
    """How the task is now. Raises TaskLost where its server does not know it, and what `Way.ask` raises."""
    try:
        state = read_state("tasks/get", await way.ask("tasks/get", {"taskId": id}))
    except PeerError as error:
        # -32602 is what both forms have servers answer to an id that they don't know.
        if error.code != InvalidParams.code:
            raise
        raise TaskLost(f"the server has no such task any more: {error.message}") from error
    if state.id != id:
        raise InvalidResult("tasks/get", "taskId", "it is that of another task", dict(state.told))
    return state


async def follow(id: str, way: Way, first: TaskState | None = None, *, cancels: bool = True) -> dict[str, Any]:
    """The result of the task, which is cancelled where that is waited for no more, unless it is to go on. `first` is
    how it is, where that is known.

    Raises PeerError where the task failed, TaskCancelled, TaskLost where its server does not know it any more,
    InvalidResult for what is no task, and what `Way.ask` and `Way.answer` raise.
    """
    following = _Following(id, way)
    try:
        with _single_error():
            return await (following.experimental(first) if way.is_experimental else following.extension(first))
    except (ConnectionError, TimeoutError, TaskLost, InputRequired):
        # There is nobody to be told, or it may only be slow, or another round of the call comes back to it.
        following.is_over = True
        raise
    finally:
        if cancels and not following.is_over:
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(McpError, OSError):
                await cancel(way, id)


async def cancel(way: Way, id: str) -> None:
    """Has the server cancel the task. Raises what `Way.ask` raises; PeerError too where it is over already, as some
    servers do."""
    await way.ask("tasks/cancel", {"taskId": id})


@contextmanager
def _single_error() -> Iterator[None]:
    """Where several requests about a task fail at once, as they do when the connection is lost, raises the first
    error."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise first_error(group) from None


class _Following:
    """One task, to its end."""

    def __init__(self, id: str, way: Way) -> None:
        self.is_over = False
        self._id = id
        self._way = way
        self._seen: tuple[str, str | None] | None = None
        self._failed = 0
        """How often no result could be had of the task that is over."""

    def _note(self, state: TaskState) -> None:
        self.is_over = state.is_over
        seen = (state.status, state.message)
        if self._way.on_task is not None and seen != self._seen:
            self._way.on_task(state)
        self._seen = seen

    async def _look(self) -> TaskState:
        state = await look(self._way, self._id)
        self._note(state)
        return state

    # The extension

    async def extension(self, first: TaskState | None) -> dict[str, Any]:
        """What `tasks/get` tells at last."""
        if first is not None:
            self._note(first)
        async with background() as tasks:
            answers = _Answers(self._id, self._way, tasks)
            # What the answer to a call says of an end lacks the result.
            if first is not None and not first.is_over:
                await self._way.pause(first.poll_seconds)
            while not (state := await self._look()).is_over:
                answers.wanted(_questions(state))
                await self._way.pause(state.poll_seconds)
        if state.status == "cancelled":
            raise TaskCancelled(f"the task was cancelled{f': {state.message}' if state.message else ''}")
        name = "result" if state.status == "completed" else "error"
        outcome = state.told.get(name)
        if not isinstance(outcome, dict):
            raise InvalidResult("tasks/get", name, f"a task that is {state.status} has one", dict(state.told))
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

    async def experimental(self, first: TaskState | None) -> dict[str, Any]:
        """What `tasks/result` gives."""
        if first is not None:
            self._note(first)
        async with background() as tasks:
            if self._way.on_task is not None:
                tasks.start_soon(self._watch, 0.0 if first is None else first.poll_seconds)
            while True:
                result = await self._attempt()
                if result is not None:
                    self.is_over = True
                    return result

    async def _attempt(self) -> dict[str, Any] | None:
        """The result; None where there was none, be it that the connection was lost, and the task goes on."""
        try:
            result = await self._way.ask("tasks/result", {"taskId": self._id})
        except (ConnectionError, PeerError) as error:
            state = await self._look()
            if state.status == "cancelled":  # servers have various words for that
                raise TaskCancelled("the task was cancelled") from None
            if state.is_over:
                self._failed += 1
            if state.is_over and (isinstance(error, PeerError) or self._failed > RESULT_TRIES):
                raise
            await self._way.pause(state.poll_seconds)
            return None
        if "content" not in result and (await self._look()).status == "cancelled":
            raise TaskCancelled("the task was cancelled")
        return result

    async def _watch(self, seconds: float) -> None:
        while not self.is_over:
            await self._way.pause(seconds)
            with suppress(McpError, OSError):  # who waits for the result hears of it
                seconds = (await self._look()).poll_seconds


class _Answers:
    """Has the questions of a task answered, each once: one after another, or all that come together."""

    def __init__(self, id: str, way: Way, tasks: TaskGroup) -> None:
        self._id = id
        self._way = way
        self._tasks = tasks
        self._known: set[str] = set()
        self._due: dict[str, tuple[str, dict[str, Any]]] = {}
        self._open: dict[anyio.CancelScope, set[str]] = {}
        self._current: tuple[str, anyio.CancelScope] | None = None

    def wanted(self, questions: Questions) -> None:
        """Takes all that the task asks now."""
        if self._way.answer_all is not None:
            for scope, keys in self._open.items():
                if keys.isdisjoint(questions):
                    scope.cancel()
            fresh = {key: one for key, one in questions.items() if key not in self._known}
            self._known |= questions.keys()
            if fresh:
                self._tasks.start_soon(self._work_at_once, fresh)
            return
        self._due = {key: one for key, one in self._due.items() if key in questions}
        self._due |= {key: one for key, one in questions.items() if key not in self._known}
        self._known |= questions.keys()
        if self._current is None and self._due:
            key = next(iter(self._due))
            self._current = (key, anyio.CancelScope())
            self._tasks.start_soon(self._work)
        elif self._current is not None and self._current[0] not in questions:
            self._current[1].cancel()

    async def _work(self) -> None:
        while self._due:
            key = next(iter(self._due))
            method, params = self._due.pop(key)
            answer: dict[str, Any] | None = None
            with anyio.CancelScope() as scope:
                self._current = (key, scope)
                answer = await self._way.answer(key, method, params)
            if answer is not None:  # and the question was not taken back
                await self._way.ask("tasks/update", {"taskId": self._id, "inputResponses": {key: answer}})
        self._current = None

    async def _work_at_once(self, questions: Questions) -> None:
        assert self._way.answer_all is not None
        answers: dict[str, dict[str, Any]] | None = None
        with anyio.CancelScope() as scope:
            self._open[scope] = set(questions)
            try:
                answers = await self._way.answer_all(questions)
            finally:
                del self._open[scope]
        if answers is not None:
            await self._way.ask("tasks/update", {"taskId": self._id, "inputResponses": answers})


def _questions(state: TaskState) -> dict[str, tuple[str, dict[str, Any]]]:
    """What the task asks, by key. Raises InvalidResult where that can't be read."""
    asked = state.told.get("inputRequests", {}) if state.status == "input_required" else {}
    fault = partial(InvalidResult, "tasks/get", "inputRequests", result=dict(state.told))
    if not isinstance(asked, dict) or len(asked) > MAX_QUESTIONS:
        raise fault(fault=f"it is not an object of at most {MAX_QUESTIONS} questions")
    questions = {}
    for key, one in asked.items():
        method, params = (one.get("method"), one.get("params", {})) if isinstance(one, dict) else (None, None)
        if not isinstance(method, str) or not isinstance(params, dict):
            raise fault(fault="it has something that is not a question")
        questions[key] = (method, params)
    return questions
