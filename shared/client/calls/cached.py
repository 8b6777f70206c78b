"""Requests with cached results: one request to the server for any number of simultaneous callers.

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

_KEY_PARAMS = {
    "tools/list": "cursor",
    "prompts/list": "cursor",
    "resources/list": "cursor",
    "resources/templates/list": "cursor",
    "resources/read": "uri",
}
"""The methods with cacheable results, and the one param on which a cached result may depend. Skills are requested
each time, because their entries must not be older than the files that they vouch for."""
_CHANGED: dict[Kind, tuple[str, ...]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}


class _Flight:
    """One pending request, and all callers that wait for its result.

    The first caller makes the request in its own task, and leads; the others follow. If the leader gives up, because
    it is cancelled or its time is up, one of the others leads the next request.
    """

    def __init__(self) -> None:
        self._ended = anyio.Event()
        self._result: dict[str, Any] | None = None
        self._error: McpError | OSError | None = None

    async def lead(self, request: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Make the request for all callers. Raises the same errors as the request."""
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
        """Wait for the leader. Returns a separate copy of the result; None if the leader gave up. Raises the same
        errors as the request."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return deepcopy(self._result)


_NO_FLIGHT: tuple[Pending | None, _Flight | None] = (None, None)


class CachedRequests:
    """A `Requester` for one client that uses the results in `cache`. Simultaneous callers with the same question
    share one request, unless they follow its progress."""

    def __init__(self, request: Requester, cache: ResponseCache, *, server: Hashable | None = None) -> None:
        """`server` identifies the server in a shared cache; None shares nothing."""
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
        """Return the result, as an object that belongs to the caller. Raises the same errors as `request`, and
        TimeoutError if no answer arrives in `timeout` seconds."""
        question = self._question(method, params or {})
        if question is None:
            return await self._request(method, params, timeout=timeout, on_progress=on_progress)
        entry = self._cache.find(question)
        if entry is not None and self._cache.is_fresh(entry):
            return entry.result()
        if on_progress is not None:
            with self._cache.asking(question) as pending:
                return await self._ask(pending, partial(self._request, timeout=timeout, on_progress=on_progress))
        return await self._share(question, timeout)

    # Notifications from the client

    def on_change(self, change: Change) -> None:
        """Handle a change on the server."""
        uri = change.uri
        if change.kind == "missed":
            self._changed(lambda question: question.owner in (None, self._owner))
        elif uri is not None:
            self._changed(lambda question: question.method == "resources/read" and _overlap(question.of or "", uri))
        else:
            self._changed(lambda question: question.method in _CHANGED.get(change.kind, ()))

    def on_input_required(self, method: str, params: Mapping[str, Any]) -> None:
        """Handle an answer that consists of questions: the next result depends on the client's answers, and is valid
        only for them."""
        question = self._question(method, params)
        if question is not None:
            self._changed(lambda candidate: candidate == question)

    def on_invalid_result(self, method: str) -> None:
        """Handle an unusable result of a method: cached results are neither used nor revalidated by their etags."""
        self._cache.forget(lambda question: question.server == self._server and question.method == method)

    def questioned(self) -> None:
        """Handle a question that the server asks before it answers. The handler may make any request, and must not
        wait for a pending one that may itself wait for the handler's answer."""
        self._flights.clear()

    def closed(self) -> None:
        """Evict the results that are private to the client, which has closed."""
        self._cache.forget(lambda question: question.owner is self._owner)

    def _changed(self, concerns: Callable[[Question], bool]) -> None:
        self._cache.changed(lambda question: question.server == self._server and concerns(question))

    # Requests

    def _question(self, method: str, params: Mapping[str, Any]) -> Question | None:
        """Return the question of a request; None if its result depends on other params, and can't be cached."""
        param = _KEY_PARAMS.get(method)
        if param is None or not self._cache.max_bytes:
            return None
        of = params.get(param)
        if len(params) > (param in params) or not isinstance(of, str | None):
            return None
        return Question(self._server, self._owner, method, of)

    async def _share(self, question: Question, seconds: float | None) -> dict[str, Any]:
        deadline = math.inf if seconds is None else anyio.current_time() + seconds
        while True:
            pending, flight = self._flights.get(question, _NO_FLIGHT)
            remaining = None if seconds is None else deadline - anyio.current_time()
            # A result that was requested before a change is not for callers that ask after it.
            if pending is None or flight is None or pending.is_stale:
                return await self._lead(question, remaining)
            with anyio.move_on_after(remaining) as patience:
                result = await flight.follow()
            if patience.cancelled_caught:
                raise TimeoutError(f"the server did not answer within {seconds:g} s")
            if result is not None:
                return result

    async def _lead(self, question: Question, seconds: float | None) -> dict[str, Any]:
        flight = _Flight()
        with self._cache.asking(question) as pending:
            self._flights[question] = registered = (pending, flight)
            try:
                return await flight.lead(lambda: self._ask(pending, partial(self._request, timeout=seconds)))
            finally:
                if self._flights.get(question) is registered:
                    del self._flights[question]

    async def _ask(self, pending: Pending, request: Callable[..., Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        question, entry = pending.question, self._cache.find(pending.question)
        param = _KEY_PARAMS[question.method]
        params: dict[str, Any] = {} if question.of is None else {param: question.of}
        if entry is not None and entry.etag is not None and question.method == "resources/read":
            params["_meta"] = {ETAG: entry.etag}
        try:
            result = await request(question.method, params)
        except PeerError:
            if param == "cursor" and question.of is not None:  # the earlier pages belong to an outdated list
                self._changed(lambda candidate: candidate.method == question.method)
            raise
        meta = result.get("_meta")
        if entry is not None and isinstance(meta, dict) and meta.get(NOT_MODIFIED) is True:
            hints = {"ttlMs": result.get("ttlMs", 0), "cacheScope": result.get("cacheScope", "private")}
            result = {**entry.result(), **hints}
            if not hints["ttlMs"]:  # the entry stays as it is; large contents need not be serialized again
                return result
        pending.keep(result)
        return result


def _overlap(uri: str, other: str) -> bool:
    """Return True if two URIs are equal, or one lies below the other: a reported resource may be a part of one that
    was read, or contain it (2025-11-25, Resources)."""
    return uri == other or uri.startswith(other.rstrip("/") + "/") or other.startswith(uri.rstrip("/") + "/")
