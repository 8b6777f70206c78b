"""A request with all that it takes to have its result: questions are answered, pages visited, lost connections opened
again, and what is safe to repeat is repeated.

    Requests ──▶ a round ──▶ one attempt, or several ──▶ Connection.call
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

import anyio

from ...errors import McpError, MethodNotFound, PeerError
from ...protocol.session.client_events import InputWanted, Notified
from ...protocol.session.questions import MAX_ROUNDS
from ..connection.link import Link
from ..connection.retry import Retries, is_unlisted
from ..options import Progress
from ..relay import Caller
from ..tasks.following import OnTask, TaskState, Way, follow, read_state
from ..tasks.tool_task import TaskSupport
from .handlers import Handlers
from .raw_calls import PlainCalls
from .url_elicitation import visits_wanted

OnNotice = Callable[[Notified], None]


class Requests:
    """A `Requester` over `link`, for who has asked whether a request is permitted. `asked_back` hears of each request
    that the server has answered with questions."""

    def __init__(self, link: Link, handlers: Handlers, asked_back: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._link = link
        self._handlers = handlers
        self._asked_back = asked_back
        self._retries = Retries()
        self._support = TaskSupport()

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
        on_task: OnTask | None = None,
    ) -> dict[str, Any]:
        """The result. Raises what `Client.request` does."""
        on_notice = None if on_progress is None else _reporting(on_progress)
        asked: dict[str, Any] = {} if params is None else {**params}
        if method != "tools/call":
            return await self._settled(method, asked, timeout, on_notice)
        try:
            return await self._called(asked, timeout, on_notice, on_task)
        except PeerError as error:
            if not await self._runs_as_task_only(asked, error, timeout):
                raise
        return await self._called(asked, timeout, on_notice, on_task)

    # Calls that are tasks

    async def _called(
        self, asked: dict[str, Any], seconds: float | None, on_notice: OnNotice | None, on_task: OnTask | None
    ) -> dict[str, Any]:
        """The result of a tool, at the end of its task where it is one."""
        connection = await self._link.current(seconds)
        if connection.session.stateless or not self._may_ask_for_task or self._support.of(asked) != "required":
            result, state = await self.begun(asked, seconds, None, on_notice)
            return result if state is None else await follow(state.id, self.way(seconds, on_task), state)
        with ExitStack() as stack:
            if on_notice is not None:
                # Its progress goes on when the call is answered by its task.
                token = stack.enter_context(connection.listening(on_notice))
                asked = {**asked, "_meta": {**asked.get("_meta", {}), "progressToken": token}}
            result, state = await self.begun(asked, seconds, {})
            return result if state is None else await follow(state.id, self.way(seconds, on_task), state)

    async def begun(
        self,
        asked: dict[str, Any],
        seconds: float | None,
        task: dict[str, Any] | None,
        on_notice: OnNotice | None = None,
    ) -> tuple[dict[str, Any], TaskState | None]:
        """What a call of a tool is answered, and the task that it is from then on, if any: where the server makes one
        of it, or is asked to, as `task` says. Raises what `Client.request` does."""
        params = asked if task is None else {**asked, "task": task}
        result = await self._settled("tools/call", params, seconds, on_notice)
        if self._link.connection.session.stateless:
            told = result if result.get("resultType") == "task" else None
        else:
            told = result.get("task") if task is not None else None
        return result, read_state("tools/call", told) if isinstance(told, dict) else None

    def way(self, seconds: float | None, on_task: OnTask | None = None) -> Way:
        """How the task of a call is followed; each answer may take so many seconds."""

        async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            result = await self._round(method, params, None if method == "tasks/result" else seconds, None)
            assert isinstance(result, dict)  # no others have rounds
            return result

        async def answer(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
            inputs = await self._link.connection.inputs(InputWanted(0, {key: (method, params)}, None))
            result: dict[str, Any] = inputs["inputResponses"][key]
            return result

        return Way(ask, answer, not self._link.connection.session.stateless, on_task, self._pause)

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._link.connection.gone.wait()

    @property
    def _may_ask_for_task(self) -> bool:
        server = self._link.connection.session.server
        return self._link.options.tasks and server is not None and server.runs_tools_as_tasks

    async def support(self, asked: Mapping[str, Any], seconds: float | None) -> str | None:
        """Whether the tool that is called may be asked for a task ("optional"), or has to be ("required"); the list
        is read where it is not known, in so many seconds."""
        await self._link.current(seconds)
        if not self._may_ask_for_task:
            return None
        if self._support.of(asked) is None:
            with anyio.move_on_after(seconds):
                await PlainCalls(self).list_tools()
        return self._support.of(asked)

    async def _runs_as_task_only(self, asked: Mapping[str, Any], error: PeerError, seconds: float | None) -> bool:
        """Whether a call was refused as it was not to be a task, and as nobody had told that it has to be one."""
        if error.code != MethodNotFound.code or "task" in asked or self._support.of(asked) is not None:
            return False
        with suppress(McpError, OSError):
            return await self.support(asked, seconds) == "required"
        return False

    # Rounds

    async def _settled(
        self, method: str, asked: dict[str, Any], seconds: float | None, on_notice: OnNotice | None
    ) -> dict[str, Any]:
        inputs: dict[str, Any] = {}
        has_visited = False
        for _ in range(MAX_ROUNDS):
            try:
                result = await self._round(method, {**asked, **inputs} if inputs else asked, seconds, on_notice)
            except PeerError as error:
                if has_visited or not await self._visited(error, seconds):
                    raise
                has_visited = True
                continue
            if not isinstance(result, InputWanted):
                self._learn(method, result)
                return result
            self._asked_back(method, asked)
            inputs = await self._link.connection.inputs(result)
        raise McpError(f"{method} was not settled in {MAX_ROUNDS} rounds")

    async def exchange(
        self, method: str, params: dict[str, Any], caller: Caller, seconds: float | None
    ) -> dict[str, Any] | InputWanted:
        """One round of a request. Raises what `Client.exchange` does."""
        result = await self._round(method, params, seconds, None, caller)
        if isinstance(result, dict):
            self._learn(method, result)
        return result

    def _learn(self, method: str, result: dict[str, Any]) -> None:
        if method == "tools/list":
            self._retries.learn(result)
            self._support.learn(result)

    async def _visited(self, error: PeerError, seconds: float | None) -> bool:
        """Whether the user has visited the pages that the server refused a request for."""
        wanted = visits_wanted(error)
        if wanted is None or self._link.options.elicit_url is None:
            return False
        answers = (await self._link.connection.inputs(wanted))["inputResponses"]
        if any(answer["action"] != "accept" for answer in answers.values()):
            return False
        await self._handlers.visits.wait(answers, seconds)
        return True

    async def _round(
        self,
        method: str,
        params: dict[str, Any],
        seconds: float | None,
        on_notice: OnNotice | None,
        caller: Caller | None = None,
    ) -> dict[str, Any] | InputWanted:
        failed, left, was_listed = 0, seconds, False
        deadline = None if seconds is None else anyio.current_time() + seconds
        while True:
            try:
                connection = await self._link.current(left)
                return await connection.call(method, params, seconds=left, on_notice=on_notice, caller=caller)
            except (OSError, PeerError) as error:
                failed += 1
                left = None if deadline is None else deadline - anyio.current_time()
                # Outside of the stateless era this code is the server's own, and the tool may have run.
                is_stateless = self._link.connection.session.stateless
                list_first = not was_listed and is_stateless and is_unlisted(method, error)
                pause = 0.0 if list_first else self._retries.pause(method, params, error, failed, left)
                if pause is None or not self._link.lasts:
                    raise
            await anyio.sleep(pause)
            if list_first:
                was_listed = True
                # Where this fails, the call says once more what it lacks.
                with anyio.move_on_after(left), suppress(McpError, OSError):
                    await PlainCalls(self).list_tools()
            left = None if deadline is None else deadline - anyio.current_time()
            if left is not None and left <= 0:
                raise TimeoutError(f"the server gave no answer in {seconds:g} s")


def _reporting(report: Progress) -> OnNotice:
    """Takes progress notifications; those without a number are ignored, and a total and a message that are none."""

    def take(notice: Notified) -> None:
        progress, total = _number(notice.params.get("progress")), _number(notice.params.get("total"))
        message = notice.params.get("message")
        if progress is not None:
            report(progress, total, message if isinstance(message, str) else None)

    return take


def _number(value: object) -> float | None:
    """A number that can be counted with; JSON has others, which no float holds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if abs(value) <= sys.float_info.max else None
