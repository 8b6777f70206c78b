"""A request with all that it takes to have its result: questions are answered, pages visited, lost connections opened
again, and what is safe to repeat is repeated.

    Requests ──▶ a round ──▶ one attempt, or several ──▶ Connection.call
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio

from ..errors import McpError, PeerError
from ..protocol.session.client_events import InputWanted, Notified
from ..protocol.session.questions import MAX_ROUNDS
from .handlers import Handlers
from .link import Link
from .options import Progress
from .plain import PlainCalls
from .relay import Caller
from .retry import Retries, is_unlisted
from .visits import visits_wanted

__all__ = ["Requests"]

OnNotice = Callable[[Notified], None]


class Requests:
    """A `Requester` over `link`, for who has asked whether a request is permitted. `asked_back` hears of each request
    that the server has answered with questions."""

    def __init__(self, link: Link, handlers: Handlers, asked_back: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._link = link
        self._handlers = handlers
        self._asked_back = asked_back
        self._retries = Retries()

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The result. Raises what `Client.request` does."""
        on_notice = None if on_progress is None else _reporting(on_progress)
        asked: dict[str, Any] = {} if params is None else {**params}
        inputs: dict[str, Any] = {}
        has_visited = False
        for _ in range(MAX_ROUNDS):
            try:
                result = await self._round(method, {**asked, **inputs} if inputs else asked, timeout, on_notice)
            except PeerError as error:
                if has_visited or not await self._visited(error, timeout):
                    raise
                has_visited = True
                continue
            if not isinstance(result, InputWanted):
                if method == "tools/list":
                    self._retries.learn(result)
                return result
            self._asked_back(method, asked)
            inputs = await self._link.connection.inputs(result)
        raise McpError(f"{method} was not settled in {MAX_ROUNDS} rounds")

    async def exchange(
        self, method: str, params: dict[str, Any], caller: Caller, seconds: float | None
    ) -> dict[str, Any] | InputWanted:
        """One round of a request. Raises what `Client.exchange` does."""
        result = await self._round(method, params, seconds, None, caller)
        if method == "tools/list" and isinstance(result, dict):
            self._retries.learn(result)
        return result

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
