"""Requests whose results are cached. Simultaneous callers with the same request share one request to the server.

typed calls ──▶ CachedRequests ──▶ Client's own requests ──▶ server
                     │  ▲
                     ▼  │
                ResponseCache
"""

import math
from collections.abc import Awaitable, Callable, Hashable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import anyio

from ...errors import McpError, PeerError
from ...protocol.types.resources import ETAG, NOT_MODIFIED
from ..cache import CacheKey, PendingRequest, ResponseCache
from ..connection.subscription import Change, ChangeKind
from ..options import Progress
from .raw_calls import Requester

_KEY_PARAMS = {
    "tools/list": "cursor",
    "prompts/list": "cursor",
    "resources/list": "cursor",
    "resources/templates/list": "cursor",
    "resources/read": "uri",
}
"""The methods with cacheable results, and the one param on which a cached result may depend. Lists of
skills are never cached, because they must not be older than the files whose hashes they contain."""
_LIST_METHODS: dict[ChangeKind, tuple[str, ...]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}


class _SharedRequest:
    """A pending request, and all callers that wait for its result.

    The first caller is the leader, and makes the request in its own task; the others follow. If the leader is
    cancelled or its time is up, one of the others makes the next request as the leader.
    """

    def __init__(self) -> None:
        self._ended = anyio.Event()
        self._result: dict[str, Any] | None = None
        self._error: McpError | OSError | None = None

    async def lead(self, request: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Make the request for all callers. Raises the same errors as the request."""
        try:
            self._result = await request()
        except TimeoutError:  # the others may have more time
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


_NO_SHARED_REQUEST: tuple[PendingRequest | None, _SharedRequest | None] = (None, None)


class CachedRequests:
    """A `Requester` for one client that uses the results in `cache`. Simultaneous callers with the same cache key
    share one request, unless they follow its progress."""

    def __init__(self, request: Requester, cache: ResponseCache, *, server: Hashable | None = None) -> None:
        """`server` identifies the server in a shared cache; if None, nothing is shared."""
        self._request = request
        self._cache = cache
        self._owner = object()
        self._server = self._owner if server is None else server
        self._shared_requests: dict[CacheKey, tuple[PendingRequest, _SharedRequest]] = {}

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = 60,  # noqa: ASYNC109 - part of the interface
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Return the result, as an object that belongs to the caller. Raises the same errors as `request`, and
        TimeoutError if no answer arrives in `timeout` seconds."""
        cache_key = self._cache_key(method, params or {})
        if cache_key is None:
            return await self._request(method, params, timeout=timeout, on_progress=on_progress)
        entry = self._cache.find(cache_key)
        if entry is not None and self._cache.is_fresh(entry):
            return entry.result()
        if on_progress is not None:
            with self._cache.track(cache_key) as pending:
                return await self._send(pending, partial(self._request, timeout=timeout, on_progress=on_progress))
        deadline = math.inf if timeout is None else anyio.current_time() + timeout
        while True:
            shared_pending, shared_request = self._shared_requests.get(cache_key, _NO_SHARED_REQUEST)
            remaining = None if timeout is None else deadline - anyio.current_time()
            # The result of a request that was sent before a change must not be given to callers that came after the
            # change.
            if shared_pending is None or shared_request is None or shared_pending.is_stale:
                return await self._lead(cache_key, remaining)
            with anyio.move_on_after(remaining) as timeout_scope:
                result = await shared_request.follow()
            if timeout_scope.cancelled_caught:
                raise TimeoutError(f"the server did not answer within {timeout:g} s")
            if result is not None:
                return result

    # Events that the client reports

    def on_change(self, change: Change) -> None:
        """Handle a change on the server."""
        uri = change.uri
        if change.kind == "missed":
            self._expire(lambda cache_key: cache_key.owner in (None, self._owner))
        elif uri is not None:
            self._expire(
                lambda cache_key: cache_key.method == "resources/read" and _overlap(cache_key.target or "", uri)
            )
        else:
            self._expire(lambda cache_key: cache_key.method in _LIST_METHODS.get(change.kind, ()))

    def on_input_required(self, method: str, params: Mapping[str, Any]) -> None:
        """Handle a response that requires input: the result, which depends on the client's answers, is not cached."""
        cache_key = self._cache_key(method, params)
        if cache_key is not None:
            self._expire(lambda candidate: candidate == cache_key)

    def forget_results(self, method: str) -> None:
        """Forget the cached results of a method, so that they are neither used nor revalidated by their etags."""
        self._cache.forget(lambda cache_key: cache_key.server == self._server and cache_key.method == method)

    def on_server_request(self) -> None:
        """Handle a request from the server. The handler that answers it may send requests itself. If they joined a
        pending request that waits for this handler, both would deadlock, so pending requests are no longer shared."""
        self._shared_requests.clear()

    def on_close(self) -> None:
        """Evict the results that are private to the client, which has been closed."""
        self._cache.forget(lambda cache_key: cache_key.owner is self._owner)

    def _expire(self, is_affected: Callable[[CacheKey], bool]) -> None:
        self._cache.expire(lambda cache_key: cache_key.server == self._server and is_affected(cache_key))

    # Requests

    def _cache_key(self, method: str, params: Mapping[str, Any]) -> CacheKey | None:
        """Return the cache key of a request; None if its result can't be cached, because the method is not
        cacheable or the result depends on more params."""
        param = _KEY_PARAMS.get(method)
        if param is None or not self._cache.max_bytes:
            return None
        target = params.get(param)
        # Any other param could affect the result too.
        if len(params) > (param in params) or not isinstance(target, str | None):
            return None
        return CacheKey(self._server, self._owner, method, target)

    async def _lead(self, cache_key: CacheKey, seconds: float | None) -> dict[str, Any]:
        shared_request = _SharedRequest()
        with self._cache.track(cache_key) as pending:
            self._shared_requests[cache_key] = registered = (pending, shared_request)
            try:
                return await shared_request.lead(lambda: self._send(pending, partial(self._request, timeout=seconds)))
            finally:
                if self._shared_requests.get(cache_key) is registered:
                    del self._shared_requests[cache_key]

    async def _send(
        self, pending: PendingRequest, request: Callable[..., Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        cache_key, entry = pending.cache_key, self._cache.find(pending.cache_key)
        param = _KEY_PARAMS[cache_key.method]
        params: dict[str, Any] = {} if cache_key.target is None else {param: cache_key.target}
        if entry is not None and entry.etag is not None and cache_key.method == "resources/read":
            params["_meta"] = {ETAG: entry.etag}
        try:
            result = await request(cache_key.method, params)
        except PeerError:
            # The list has changed, so its earlier pages are outdated.
            if param == "cursor" and cache_key.target is not None:
                self._expire(lambda candidate: candidate.method == cache_key.method)
            raise
        meta = result.get("_meta")
        if entry is not None and isinstance(meta, dict) and meta.get(NOT_MODIFIED) is True:
            hints = {"ttlMs": result.get("ttlMs", 0), "cacheScope": result.get("cacheScope", "private")}
            result = {**entry.result(), **hints}
            if not hints["ttlMs"]:  # the entry stays stale, so storing it again would be wasted work
                return result
        pending.store(result)
        return result


def _overlap(uri: str, other: str) -> bool:
    """Return True if two URIs are equal, or one is below the other: the resource that has changed may be a part of
    the one that was read, or contain it (2025-11-25, Resources)."""
    return uri == other or uri.startswith(other.rstrip("/") + "/") or other.startswith(uri.rstrip("/") + "/")
