"""Requests, and the steps that lead to their results: input requests are answered, URLs are visited, lost connections
are reopened, and safe requests are repeated.

    Requests ──▶ rounds ──▶ attempts ──▶ Connection.call

A request has another round if the server answers with input requests, and a round has another attempt if the previous
attempt has failed.
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
from ..connection.retry import RetryPolicy, is_header_mismatch
from ..options import Progress
from ..relay import Caller
from ..tasks.following import OnTask, TaskChannel, TaskState, follow, read_state
from ..tasks.tool_task import TaskSupport
from .handlers import Handlers
from .raw_calls import RawCalls
from .url_elicitation import required_visits

OnNotification = Callable[[Notified], None]


class Requests:
    """A `Requester` over `link`, for callers that have already checked that a request is permitted.
    `on_input_required` is called for each request that the server answers with input requests."""

    def __init__(
        self, link: Link, handlers: Handlers, on_input_required: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        self._link = link
        self._handlers = handlers
        self._on_input_required = on_input_required
        self._retries = RetryPolicy()
        self._task_support = TaskSupport()

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
        on_task: OnTask | None = None,
    ) -> dict[str, Any]:
        """Return the result. Raises the same errors as `Client.request`."""
        reports = None if on_progress is None else _ProgressReports(on_progress)
        on_notification = None if reports is None else reports.on_notification
        request: dict[str, Any] = {} if params is None else {**params}
        if method != "tools/call":
            return await self._run_rounds(method, request, timeout, on_notification)
        try:
            return await self._call_tool(request, timeout, reports, on_task)
        except PeerError as error:
            if not await self._runs_as_task_only(request, error, timeout):
                raise
        return await self._call_tool(request, timeout, reports, on_task)

    # Calls that become tasks

    async def _call_tool(
        self,
        call: dict[str, Any],
        timeout_seconds: float | None,
        reports: "_ProgressReports | None",
        on_task: OnTask | None,
    ) -> dict[str, Any]:
        """Return the result of a tool call. If the call becomes a task, wait for its end."""
        on_notification = None if reports is None else reports.on_notification
        connection = await self._link.current(timeout_seconds)
        is_stateless = connection.session.stateless
        with ExitStack() as stack:
            if is_stateless or not self._can_request_task or self._task_support.find(call) != "required":
                result, state = await self.begin_call(call, timeout_seconds, None, on_notification)
                if reports is not None and on_task is None and is_stateless:
                    on_task = reports.on_task
            else:
                if on_notification is not None:
                    # The answer to the call is only its task, after which progress notifications still arrive.
                    token = stack.enter_context(connection.listen_for_progress(on_notification))
                    call = {**call, "_meta": {**call.get("_meta", {}), "progressToken": token}}
                result, state = await self.begin_call(call, timeout_seconds, {})
            if state is None:
                return result
            return await follow(state.id, self.task_channel(timeout_seconds, on_task), state)

    async def begin_call(
        self,
        call: dict[str, Any],
        timeout_seconds: float | None,
        task: dict[str, Any] | None,
        on_notification: OnNotification | None = None,
    ) -> tuple[dict[str, Any], TaskState | None]:
        """Return the answer to a tool call, and the task that continues the call, if any. The server creates a task
        by itself, or because `task` requests one. Raises the same errors as `Client.request`."""
        params = call if task is None else {**call, "task": task}
        result = await self._run_rounds("tools/call", params, timeout_seconds, on_notification)
        if self._link.connection.session.stateless:
            created = result if result.get("resultType") == "task" else None
        else:
            created = result.get("task") if task is not None else None
        return result, read_state("tools/call", created) if isinstance(created, dict) else None

    def task_channel(self, timeout_seconds: float | None, on_task: OnTask | None = None) -> TaskChannel:
        """Return the channel through which the task of a call is followed. Each answer may take `timeout_seconds`."""

        async def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
            result = await self._round(method, params, None if method == "tasks/result" else timeout_seconds, None)
            assert isinstance(result, dict)  # requests about tasks have only one round
            return result

        async def answer_input(key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
            answers = await self._link.connection.answer_inputs(InputWanted(0, {key: (method, params)}, None))
            result: dict[str, Any] = answers["inputResponses"][key]
            return result

        return TaskChannel(request, answer_input, not self._link.connection.session.stateless, on_task, self._pause)

    async def _pause(self, timeout_seconds: float) -> None:
        with anyio.move_on_after(timeout_seconds):
            await self._link.connection.gone.wait()

    @property
    def _can_request_task(self) -> bool:
        server = self._link.connection.session.server
        return self._link.options.tasks and server is not None and server.runs_tools_as_tasks

    async def find_task_support(self, call: Mapping[str, Any], timeout_seconds: float | None) -> str | None:
        """Return "optional" if the called tool may be run as a task, "required" if it must be, and otherwise
        "forbidden" or None. The tools are listed first, within `timeout_seconds`, if the tool is unknown."""
        await self._link.current(timeout_seconds)
        if not self._can_request_task:
            return None
        if self._task_support.find(call) is None:
            with anyio.move_on_after(timeout_seconds):
                await RawCalls(self).list_tools()
        return self._task_support.find(call)

    async def _runs_as_task_only(
        self, call: Mapping[str, Any], error: PeerError, timeout_seconds: float | None
    ) -> bool:
        """Return True if a call was refused because its tool runs only as a task, which the client did not know
        because it had not listed the tools."""
        if error.code != MethodNotFound.code or "task" in call or self._task_support.find(call) is not None:
            return False
        with suppress(McpError, OSError):
            return await self.find_task_support(call, timeout_seconds) == "required"
        return False

    # Rounds

    async def _run_rounds(
        self,
        method: str,
        request: dict[str, Any],
        timeout_seconds: float | None,
        on_notification: OnNotification | None,
    ) -> dict[str, Any]:
        answer_params: dict[str, Any] = {}
        has_visited = False
        for _ in range(MAX_ROUNDS):
            try:
                result = await self._round(
                    method,
                    {**request, **answer_params} if answer_params else request,
                    timeout_seconds,
                    on_notification,
                )
            except PeerError as error:
                if has_visited or not await self._visit_urls(error, timeout_seconds):
                    raise
                has_visited = True
                continue
            if not isinstance(result, InputWanted):
                self._learn(method, result)
                return result
            self._on_input_required(method, request)
            answer_params = await self._link.connection.answer_inputs(result)
        raise McpError(f"{method} was not completed within {MAX_ROUNDS} rounds")

    async def exchange(
        self, method: str, params: dict[str, Any], caller: Caller, timeout_seconds: float | None
    ) -> dict[str, Any] | InputWanted:
        """Make one round of a request. Raises the same errors as `Client.exchange`."""
        result = await self._round(method, params, timeout_seconds, None, caller)
        if isinstance(result, dict):
            self._learn(method, result)
        return result

    def _learn(self, method: str, result: dict[str, Any]) -> None:
        if method == "tools/list":
            self._retries.remember_idempotent_tools(result)
            self._task_support.learn(result)

    async def _visit_urls(self, error: PeerError, timeout_seconds: float | None) -> bool:
        """Have the user visit the URLs that the server requires before the request. Returns True if the user has
        visited all of them."""
        visits = required_visits(error)
        if visits is None or self._link.options.elicit_url is None:
            return False
        answers = (await self._link.connection.answer_inputs(visits))["inputResponses"]
        if any(answer["action"] != "accept" for answer in answers.values()):
            return False
        await self._handlers.visits.wait(answers, timeout_seconds)
        return True

    async def _round(
        self,
        method: str,
        params: dict[str, Any],
        timeout_seconds: float | None,
        on_notification: OnNotification | None,
        caller: Caller | None = None,
    ) -> dict[str, Any] | InputWanted:
        failures, remaining, has_listed_tools = 0, timeout_seconds, False
        deadline = None if timeout_seconds is None else anyio.current_time() + timeout_seconds
        while True:
            try:
                connection = await self._link.current(remaining)
                return await connection.call(
                    method, params, timeout_seconds=remaining, on_notification=on_notification, caller=caller
                )
            except (OSError, PeerError) as error:
                failures += 1
                remaining = None if deadline is None else deadline - anyio.current_time()
                # In the handshake era this error code has no defined meaning, and the tool may have run.
                is_stateless = self._link.connection.session.stateless
                lists_tools_first = not has_listed_tools and is_stateless and is_header_mismatch(method, error)
                pause = (
                    0.0
                    if lists_tools_first
                    else self._retries.retry_delay(method, params, error, failures, remaining)
                )
                if pause is None or not self._link.is_usable:
                    raise
            await anyio.sleep(pause)
            if lists_tools_first:
                has_listed_tools = True
                # If listing the tools fails, the repeated call raises the error.
                with anyio.move_on_after(remaining), suppress(McpError, OSError):
                    await RawCalls(self).list_tools()
            remaining = None if deadline is None else deadline - anyio.current_time()
            if remaining is not None and remaining <= 0:
                raise TimeoutError(f"the server did not answer within {timeout_seconds:g} s")


class _ProgressReports:
    """Reports the progress of a call: first its notifications, then the states of its task. A state has only a text;
    a percentage in it is converted to the scale of the notifications."""

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._progress = 0.0
        self._total: float | None = None

    def on_notification(self, notification: Notified) -> None:
        """Report a notification, unless its progress is not a valid number."""
        report = read_progress(notification.params)
        if report is not None:
            self._progress, self._total, _ = report
            self._report(*report)

    def on_task(self, state: TaskState) -> None:
        """Report the text of a task that has not ended. The progress is the percentage in the text or, if it has
        none, the last reported progress."""
        if state.is_over or not state.message:
            return
        if state.percent is not None:
            self._total = self._total or 100
            # The percentage is rounded, so it may be lower than the last progress.
            self._progress = max(self._progress, self._total * state.percent / 100)
        self._report(self._progress, self._total, state.message)


def read_progress(params: Mapping[str, Any]) -> tuple[float, float | None, str | None] | None:
    """Return the progress, the total and the message of a progress notification; an invalid total or message is None.
    Returns None if the progress is not a number."""
    progress, total, message = _number(params.get("progress")), _number(params.get("total")), params.get("message")
    return None if progress is None else (progress, total, message if isinstance(message, str) else None)


def _number(value: object) -> float | None:
    """Return the value as a number; None for JSON numbers outside the range of a float, and for other values."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if abs(value) <= sys.float_info.max else None
