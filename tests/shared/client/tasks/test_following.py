"""The client following a task of a server, whose answers the test sets."""

from collections.abc import Iterable, Mapping
from typing import Any

import anyio
import pytest

from shared.client.tasks import following
from shared.client.tasks.following import TaskChannel, TaskState, follow, read_state
from shared.errors import InputRequired, InvalidParams, InvalidResult, PeerError, TaskCancelled, TaskLost

ASKING = {"status": "input_required", "inputRequests": {"name": {"method": "elicitation/create", "params": {}}}}
DONE = {"status": "completed", "result": {"content": []}}


class TaskServer:
    """A server that answers tasks/get with the given states in order, and repeats the last."""

    def __init__(self, *states: Mapping[str, Any] | Exception) -> None:
        self._states = list(states)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answered = anyio.Event()
        self.was_cancelled = anyio.Event()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answers requests about the task."""
        await anyio.lowlevel.checkpoint()
        if method != "tasks/get":
            self.asked.append((method, params))
            self.answered.set()
            return {}
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if isinstance(state, Exception):
            raise state
        return {"taskId": "t", "pollIntervalMs": 20, **state}

    async def answer(self, key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answers a question of the task."""
        return {"action": "accept"}

    async def followed(self, **how: Any) -> dict[str, Any]:
        """The result of the task."""
        with anyio.fail_after(30):
            return await follow(
                "t", TaskChannel(**{"request": self.ask, "answer": self.answer, "pause": _turn, **how})
            )

    @property
    def methods(self) -> Iterable[str]:
        """The methods of all requests but tasks/get."""
        return [method for method, _ in self.asked]


async def _turn(_seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


async def test_an_input_request_is_answered_once() -> None:
    server = TaskServer(*[ASKING] * 20, DONE)
    assert await server.followed() == {"content": []}
    assert server.asked == [("tasks/update", {"taskId": "t", "inputResponses": {"name": {"action": "accept"}}})]


async def test_a_withdrawn_input_request_is_not_answered() -> None:
    question = ASKING["inputRequests"]["name"]  # type: ignore[index]
    both = {**ASKING, "inputRequests": {"name": question, "queued": question}}
    server, is_asked = TaskServer(both, {"status": "working"}, {"status": "working"}, DONE), anyio.Event()
    keys: list[str] = []

    async def never(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        keys.append(key)
        is_asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            server.was_cancelled.set()
        return {}

    moments = [is_asked, server.was_cancelled, server.was_cancelled]

    async def pause(_seconds: float) -> None:
        await moments.pop(0).wait()  # and not only at the end of the task

    assert await server.followed(answer=never, pause=pause) == {"content": []}
    assert (keys, server.asked) == (["name"], [])


async def test_a_failed_answer_raises_and_cancels_the_task() -> None:
    async def fail(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise InvalidParams("no")

    server = TaskServer(ASKING)
    with pytest.raises(InvalidParams, match="no"):
        await server.followed(answer=fail)
    assert server.methods == ["tasks/cancel"]


async def test_an_answer_that_requires_input_does_not_cancel_the_task() -> None:
    async def end(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise InputRequired({})

    server = TaskServer(ASKING)
    with pytest.raises(InputRequired):
        await server.followed(answer=end)
    assert server.methods == []


@pytest.mark.parametrize("error", [ConnectionError("it is lost"), TimeoutError("it is slow")], ids=repr)
async def test_a_task_of_an_unreachable_server_is_not_cancelled(error: Exception) -> None:
    server = TaskServer({"status": "working"}, error)
    with pytest.raises(type(error), match=str(error)):
        await server.followed()
    assert server.methods == []


async def test_a_failed_task_raises_its_error() -> None:
    server = TaskServer({"status": "failed", "error": {"code": -32603, "message": "it broke", "data": [1]}})
    with pytest.raises(PeerError, match="it broke") as error:
        await server.followed()
    assert (error.value.code, error.value.data) == (-32603, [1])
    assert server.methods == []


async def test_a_task_cancelled_by_others_raises_the_reason() -> None:
    with pytest.raises(TaskCancelled, match="by the operator"):
        await TaskServer({"status": "cancelled", "statusMessage": "by the operator"}).followed()


@pytest.mark.parametrize("is_experimental", [False, True])
async def test_a_forgotten_task_is_lost(is_experimental: bool) -> None:
    server = TaskServer(PeerError("no longer has this task", code=-32602))

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tasks/result":
            raise PeerError("no longer has this task", code=-32602)
        return await server.ask(method, params)

    with pytest.raises(TaskLost, match="no longer has this task"):
        await server.followed(is_experimental=is_experimental, request=ask)
    assert server.methods == []


async def test_the_result_is_requested_again_after_a_lost_connection() -> None:
    server, lost = TaskServer({"status": "working"}), [ConnectionError("lost"), ConnectionError("lost again")]

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != "tasks/result":
            return await server.ask(method, params)
        if lost:
            raise lost.pop()
        return {"content": []}

    assert await server.followed(is_experimental=True, request=ask) == {"content": []}


@pytest.mark.parametrize("answer", [{}, {"content": "none"}])
async def test_a_cancelled_task_without_a_result_raises_task_cancelled(answer: dict[str, Any]) -> None:
    server = TaskServer({"status": "cancelled"})

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tasks/result" and answer:
            raise PeerError("no result stored", code=-32603)
        return {"_meta": {}} if method == "tasks/result" else await server.ask(method, params)

    with pytest.raises(TaskCancelled):
        await server.followed(is_experimental=True, request=ask)


@pytest.mark.parametrize(
    "state",
    [
        {"status": "submitted"},
        {"status": ["working"]},
        {"taskId": "another", "status": "working"},
        {"taskId": 1, "status": "working"},
        {"status": "completed"},
        {"status": "failed", "error": "broken"},
        {"status": "input_required", "inputRequests": []},
        {"status": "input_required", "inputRequests": {"a": {"method": 1}}},
        {"status": "input_required", "inputRequests": {str(n): {"method": "roots/list"} for n in range(101)}},
    ],
)
async def test_an_invalid_task_is_an_invalid_result(state: dict[str, Any]) -> None:
    with pytest.raises(InvalidResult) as caught:
        await TaskServer(state).followed()
    assert " " not in caught.value.path


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [(None, 1.0), (0, 1.0), (-5, 1.0), ("5", 1.0), (True, 1.0), (1, 0.02), (250.5, 0.2505), (10**400, 60.0)],
)
def test_the_poll_interval_of_the_server_is_bounded(wanted: Any, seconds: float) -> None:
    state: TaskState = read_state("tasks/get", {"taskId": "t", "status": "working", "pollIntervalMs": wanted})
    assert state.poll_seconds == seconds


async def test_an_unusable_result_is_requested_a_limited_number_of_times() -> None:
    server, tries = TaskServer(DONE), 0

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal tries
        if method == "tasks/result":
            tries += 1
            raise ConnectionError("no answer that can be used")
        return await server.ask(method, params)

    with pytest.raises(ConnectionError, match="can be used"):
        await server.followed(request=ask, is_experimental=True)
    assert tries == following.MAX_RESULT_TRIES + 1


async def test_a_refused_tasks_result_does_not_end_a_working_task() -> None:
    server = TaskServer({"status": "working"})
    answers: list[Any] = [PeerError("ask on another connection", code=-32603), {"content": []}]

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != "tasks/result":
            return await server.ask(method, params)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    assert await server.followed(request=ask, is_experimental=True) == {"content": []}
    assert server.methods == []


async def test_concurrent_failed_requests_raise_one_error() -> None:
    server, both = TaskServer(ASKING), [anyio.Event(), anyio.Event()]
    looks = 0

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal looks
        if method == "tasks/get" and not looks:
            looks += 1
            return await server.ask(method, params)
        mine = both[method == "tasks/update"]
        mine.set()
        for one in both:
            await one.wait()
        raise ConnectionError("lost")

    with pytest.raises(ConnectionError, match="lost"):
        await server.followed(request=ask)


async def test_an_unfinished_update_does_not_delay_cancellation() -> None:
    server = TaskServer(ASKING)

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tasks/update":
            server.answered.set()
            await anyio.sleep_forever()
        return await server.ask(method, params)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: server.followed(request=ask))
            await server.answered.wait()
            tasks.cancel_scope.cancel()
    assert server.methods == ["tasks/cancel"]
