"""Requests whose results may be used again: asked of the server once, by however many callers.

typed calls ──▶ CachedRequests ──▶ Client's own requests ──▶ server
                     │  ▲
                     ▼  │  ResponseCache
"""

import math
from collections.abc import Awaitable, Callable, Hashable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import anyio

from ...errors import McpError, PeerError
from ...protocol.types.resources import ETAG, NOT_MODIFIED
from ..cache import Pending, Question, ResponseCache
from ..connection.subscription import Change, Kind
from ..options import Progress
from .raw_calls import Requester

_ASKED_BY = {
    "tools/list": "cursor",
    "prompts/list": "cursor",
    "resources/list": "cursor",
    "resources/templates/list": "cursor",
    "resources/read": "uri",
}
"""The methods whose results say how long they hold, and the only param that a result may be kept for. Skills are
asked for each time: their entries are to be no older than the files that they vouch for."""
_CHANGED: dict[Kind, tuple[str, ...]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}


class _Flight:
    """One request under way, and all who wait for its result.

    The first caller makes the request in its own task, and leads; the others follow. Where the leader gives up, by
    being cancelled or for want of time, one of them leads the next.
    """

    def __init__(self) -> None:
        self._ended = anyio.Event()
        self._result: dict[str, Any] | None = None
        self._error: McpError | OSError | None = None

    async def lead(self, request: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Makes the request for everybody. Raises what it raises."""
        try:
            self._result = await request()
        except TimeoutError:  # others may have more time
            raise
        except (McpError, OSError) as error:
            self._error = error
            raise
        finally:
            self._ended.set()
        return self._result

    async def follow(self) -> dict[str, Any] | None:
        """Waits for the leader, and gives a result of its own; None where the leader gave up. Raises what the request
        raised."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return deepcopy(self._result)


_NOBODY: tuple[Pending | None, _Flight | None] = (None, None)


class CachedRequests:
    """A `Requester` for one client: what `request` gives, or what `cache` has. Callers that want the same at once
    wait for one request, unless they want to hear of its progress."""

    def __init__(self, request: Requester, cache: ResponseCache, *, server: Hashable | None = None) -> None:
        """`server` tells the server from others where the cache is shared; None shares nothing."""
        self._request = request
        self._cache = cache
        self._owner = object()
        self._server = self._owner if server is None else server
        self._flights: dict[Question, tuple[Pending, _Flight]] = {}

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - every request has a limit, asked for or not
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """The result, which is the caller's own. Raises what `request` raises, and TimeoutError when nothing came in
        `timeout` seconds."""
        question = self._question(method, params or {})
        if question is None:
            return await self._request(method, params, timeout=timeout, on_progress=on_progress)
        kept = self._cache.find(question)
        if kept is not None and self._cache.is_fresh(kept):
            return kept.result()
        if on_progress is not None:
            with self._cache.asking(question) as pending:
                return await self._ask(pending, partial(self._request, timeout=timeout, on_progress=on_progress))
        return await self._share(question, timeout)

    # What the client hears

    def heard(self, change: Change) -> None:
        """Hears that something has changed at the server."""
        uri = change.uri
        if change.kind == "missed":
            self._changed(lambda one: one.owner in (None, self._owner))
        elif uri is not None:
            self._changed(lambda one: one.method == "resources/read" and _overlap(one.of or "", uri))
        else:
            self._changed(lambda one: one.method in _CHANGED.get(change.kind, ()))

    def asked_back(self, method: str, params: Mapping[str, Any]) -> None:
        """Hears that the server has answered a request with questions: what it says next is about our answers, and
        holds for them alone."""
        question = self._question(method, params)
        if question is not None:
            self._changed(lambda one: one == question)

    def distrust(self, method: str) -> None:
        """Hears that results of a method were no use: what was kept is neither used nor read by its etag again."""
        self._cache.forget(lambda one: one.server == self._server and one.method == method)

    def questioned(self) -> None:
        """Hears that the server asks something before it answers. Who answers that may make any request, and is not
        to wait for one that may be waiting for the answer."""
        self._flights.clear()

    def closed(self) -> None:
        """Hears that the client is closed: what it alone was told is not kept."""
        self._cache.forget(lambda one: one.owner is self._owner)

    def _changed(self, concerns: Callable[[Question], bool]) -> None:
        self._cache.changed(lambda one: one.server == self._server and concerns(one))

    # Requests

    def _question(self, method: str, params: Mapping[str, Any]) -> Question | None:
        """What may be kept; None for what may not, as it depends on more."""
        by = _ASKED_BY.get(method)
        if by is None or not self._cache.max_bytes:
            return None
        of = params.get(by)
        if len(params) > (by in params) or not isinstance(of, str | None):
            return None
        return Question(self._server, self._owner, method, of)

    async def _share(self, question: Question, seconds: float | None) -> dict[str, Any]:
        until = math.inf if seconds is None else anyio.current_time() + seconds
        while True:
            pending, flight = self._flights.get(question, _NOBODY)
            left = None if seconds is None else until - anyio.current_time()
            # What was asked before something changed is not for those who ask after it.
            if pending is None or flight is None or pending.is_stale:
                return await self._lead(question, left)
            with anyio.move_on_after(left) as patience:
                result = await flight.follow()
            if patience.cancelled_caught:
                raise TimeoutError(f"the server gave no answer in {seconds:g} s")
            if result is not None:
                return result

    async def _lead(self, question: Question, seconds: float | None) -> dict[str, Any]:
        flight = _Flight()
        with self._cache.asking(question) as pending:
            self._flights[question] = ours = (pending, flight)
            try:
                return await flight.lead(lambda: self._ask(pending, partial(self._request, timeout=seconds)))
            finally:
                if self._flights.get(question) is ours:
                    del self._flights[question]

    async def _ask(self, pending: Pending, request: Callable[..., Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        question, kept = pending.question, self._cache.find(pending.question)
        by = _ASKED_BY[question.method]
        params: dict[str, Any] = {} if question.of is None else {by: question.of}
        if kept is not None and kept.etag is not None and question.method == "resources/read":
            params["_meta"] = {ETAG: kept.etag}
        try:
            result = await request(question.method, params)
        except PeerError:
            if by == "cursor" and question.of is not None:  # the pages before it belong to another list by now
                self._changed(lambda one: one.method == question.method)
            raise
        meta = result.get("_meta")
        if kept is not None and isinstance(meta, dict) and meta.get(NOT_MODIFIED) is True:
            hints = {"ttlMs": result.get("ttlMs", 0), "cacheScope": result.get("cacheScope", "private")}
            result = {**kept.result(), **hints}
            if not hints["ttlMs"]:  # it is kept as it is; big contents need not be written again
                return result
        pending.keep(result)
        return result


def _overlap(one: str, other: str) -> bool:
    """Whether two URIs are the same, or one lies below the other: what is told of may be a part of what was read, and
    the other way round (2025-11-25, Resources)."""
    return one == other or one.startswith(other.rstrip("/") + "/") or other.startswith(one.rstrip("/") + "/")
