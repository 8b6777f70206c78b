"""`CachedRequests`: which requests reach the server, and which are answered from the cache."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from shared import Context
from shared.client.approval import Act
from shared.client.cache import ResponseCache
from shared.client.calls.cached import CachedRequests
from shared.client.connect import connect_http
from shared.client.connection.subscription import Change, ChangeKind
from shared.client.options import ClientOptions
from shared.errors import InvalidResult, PeerError
from shared.protocol.types.client import Root
from shared.protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED
from tests.shared.client.small import Small, listening

HOUR = {"ttlMs": 3_600_000}
MISSED = Change("missed")
TOOLS = Change("tools")
Answer = dict[str, Any] | Exception


class Pending:
    """A request in progress."""

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self.method = method
        self.params = params
        self.answer: Answer | None = None
        self.answered = anyio.Event()
        self.is_cancelled = False

    def reply(self, answer: Answer) -> None:
        self.answer = answer
        self.answered.set()


class Peer:
    """A server behind `CachedRequests` (`ask`). It answers at once with `answer`. Without an answer, each
    request waits until `reply`."""

    def __init__(
        self, answer: Answer | None = None, *, cache: ResponseCache | None = None, server: str | None = None
    ) -> None:
        self.answer = answer
        self.requests: list[Pending] = []
        self.ask = CachedRequests(self._request, ResponseCache() if cache is None else cache, server=server)
        self.results: list[Any] = []

    async def _request(
        self, method: str, params: Any = None, *, timeout: float | None = 60, on_progress: Any = None
    ) -> dict[str, Any]:
        pending = Pending(method, dict(params or {}))
        self.requests.append(pending)
        if self.answer is not None:
            pending.reply(self.answer)
        try:
            with anyio.fail_after(timeout):
                await pending.answered.wait()
        except anyio.get_cancelled_exc_class():
            pending.is_cancelled = True
            raise
        if isinstance(pending.answer, Exception):
            raise pending.answer
        return dict(pending.answer or {})

    async def collect(self, method: str = "tools/list", params: Any = None, *, seconds: float | None = 60) -> None:
        """Sends a request, and records its result or the text of its error."""
        try:
            self.results.append(await self.ask(method, params, timeout=seconds))
        except OSError as error:
            self.results.append(str(error))

    async def read(self, uri: str = "a") -> dict[str, Any]:
        return await self.ask("resources/read", {"uri": uri})

    @property
    def methods(self) -> list[str]:
        return [one.method for one in self.requests]


@asynccontextmanager
async def _callers(*callers: Callable[[], Awaitable[Any]]) -> AsyncIterator[TaskGroup]:
    """Starts `callers` in order, each when the ones before it wait."""
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for caller in callers:
                tasks.start_soon(caller)
                await anyio.wait_all_tasks_blocked()
            yield tasks


LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
READ = "resources/read"
CACHEABLE: list[tuple[str, dict[str, Any]]] = [*((method, {}) for method in LISTS), (READ, {"uri": "a"})]


async def test_a_fresh_result_is_requested_once() -> None:
    for method, params in CACHEABLE:
        peer = Peer(HOUR)
        assert await peer.ask(method, params) == await peer.ask(method, params) == HOUR
        assert [(one.method, one.params) for one in peer.requests] == [(method, params)]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "add"}),
        ("prompts/get", {"name": "plan"}),
        ("completion/complete", {}),
        ("ping", {}),
        ("skills/list", {}),
        (READ, {"uri": "a", "requestState": "s"}),
        (READ, {"uri": "a", "inputResponses": {}}),
        (READ, {"uri": ["a"]}),
        ("tools/list", {"_meta": {"a": 1}}),
    ],
)
async def test_other_requests_are_sent_each_time(method: str, params: dict[str, Any]) -> None:
    peer = Peer(HOUR)
    for _ in range(2):
        await peer.ask(method, params)
    assert [one.params for one in peer.requests] == [params, params]


async def test_each_page_and_each_resource_is_cached_separately() -> None:
    peer = Peer(HOUR)
    for _ in range(2):
        for params in ({}, {"cursor": ""}, {"cursor": "b"}):
            await peer.ask("tools/list", params)
        for uri in ("a", "b"):
            await peer.read(uri)
    assert len(peer.requests) == 5


async def test_a_cache_of_size_0_stores_nothing_and_shares_no_requests() -> None:
    peer = Peer(cache=ResponseCache(0))
    async with _callers(peer.collect, peer.collect):
        for pending in peer.requests:
            pending.reply(HOUR)
    assert len(peer.requests) == 2


async def test_errors_are_not_cached() -> None:
    peer = Peer(PeerError("no", code=-1))
    for _ in range(2):
        with pytest.raises(PeerError):
            await peer.ask("tools/list")
    assert len(peer.requests) == 2


async def test_a_refused_cursor_removes_all_pages_of_its_list() -> None:
    peer = Peer(HOUR)
    await peer.ask("tools/list")
    await peer.ask("prompts/list")
    peer.answer = PeerError("bad cursor", code=-32602)
    with pytest.raises(PeerError):
        await peer.ask("tools/list", {"cursor": "b"})
    peer.answer = HOUR
    await peer.ask("tools/list")
    await peer.ask("prompts/list")
    assert peer.methods == ["tools/list", "prompts/list", "tools/list", "tools/list"]


def test_the_repr_of_options_hides_the_cache_key() -> None:
    assert "s3cret" not in repr(ClientOptions(cache_key=("serve", frozenset({("TOKEN", "s3cret")}))))


# Changes


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        ("tools", ["tools/list"]),
        ("prompts", ["prompts/list"]),
        ("resources", ["resources/list", "resources/templates/list"]),
        ("resource", []),
        ("missed", [*LISTS, READ]),
    ],
)
async def test_a_changed_list_is_requested_again(kind: ChangeKind, methods: list[str]) -> None:
    peer = Peer(HOUR)
    for method, params in CACHEABLE:
        await peer.ask(method, params)
    del peer.requests[:]
    peer.ask.on_change(Change(kind))
    for method, params in CACHEABLE:
        await peer.ask(method, params)
    assert peer.methods == methods


async def test_a_changed_resource_is_read_again_with_its_parents_and_children() -> None:
    peer, uris = Peer(HOUR), ["file:///", "file:///d", "file:///d/a", "file:///d/a/x", "file:///d/ab", "file:///e"]
    for uri in uris:
        await peer.read(uri)
    del peer.requests[:]
    peer.ask.on_change(Change("resource", "file:///d/a"))
    for uri in uris:
        await peer.read(uri)
    assert [one.params["uri"] for one in peer.requests] == ["file:///", "file:///d", "file:///d/a", "file:///d/a/x"]


async def test_a_result_that_required_input_is_not_cached() -> None:
    peer = Peer()
    async with _callers(peer.read):
        peer.ask.on_input_required(READ, {"uri": "a"})
        peer.requests[0].reply(HOUR)
    peer.answer = HOUR
    await peer.read()
    assert len(peer.requests) == 2


async def test_an_invalid_result_is_removed_from_the_cache() -> None:
    peer = Peer({"contents": "none", "_meta": {ETAG: "1"}, **HOUR})
    await peer.read()
    await peer.ask("tools/list")
    peer.ask.forget_results(READ)
    await peer.read()
    await peer.ask("tools/list")
    assert [(one.method, one.params) for one in peer.requests[2:]] == [(READ, {"uri": "a"})]


# Several callers


async def test_concurrent_equal_requests_are_sent_once() -> None:
    peer = Peer()
    async with _callers(*[peer.collect] * 5):
        peer.requests[0].reply({"tools": []})
    assert peer.results == [{"tools": []}] * 5
    peer.results[0]["tools"].append("mine")
    assert [result["tools"] for result in peer.results[1:]] == [[]] * 4
    assert len(peer.requests) == 1


async def test_an_error_reaches_all_waiting_callers() -> None:
    peer = Peer()
    async with _callers(*[peer.collect] * 3):
        peer.requests[0].reply(ConnectionError("gone"))
    assert peer.results == ["gone"] * 3


@pytest.mark.parametrize(("seconds", "count"), [((None, 0.01), 1), ((0.01, None), 2)])
async def test_the_timeout_of_a_caller_does_not_end_the_wait_of_others(
    seconds: tuple[float | None, ...], count: int
) -> None:
    """Whether the caller with the timeout sent the request itself, or waits for the request of another."""
    peer = Peer()
    async with _callers(*(partial(peer.collect, seconds=one) for one in seconds)):
        while not peer.results:
            await anyio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()
        peer.requests[-1].reply(HOUR)
    assert len(peer.requests) == count
    assert peer.results[1:] == [HOUR]
    assert isinstance(peer.results[0], str)


async def test_a_request_with_progress_is_not_shared() -> None:
    peer = Peer()
    asking = partial(peer.ask, "tools/list", on_progress=lambda *_: None)
    async with _callers(peer.collect, asking):
        for pending in peer.requests:
            pending.reply(HOUR)
    assert len(peer.requests) == 2
    await asking()
    assert len(peer.requests) == 2


# Several clients

PUBLIC = {**HOUR, "cacheScope": "public"}


async def test_clients_of_the_same_server_share_public_results() -> None:
    cache = ResponseCache()
    one, two = Peer(PUBLIC, cache=cache, server="https://a"), Peer(HOUR, cache=cache, server="https://a")
    other, unnamed = Peer(HOUR, cache=cache, server="https://b"), Peer(HOUR, cache=cache)
    for peer in (one, two, other, unnamed):
        await peer.ask("tools/list")
    assert [len(peer.requests) for peer in (one, two, other, unnamed)] == [1, 0, 1, 1]
    # Public results stay when a client is closed.
    one.answer = HOUR
    await one.ask("prompts/list")
    size = cache.size
    one.ask.on_close()
    assert 0 < cache.size < size


@pytest.mark.parametrize(
    ("answer", "server", "change", "count"),
    [(PUBLIC, "https://a", TOOLS, 2), (HOUR, "https://b", TOOLS, 1), (HOUR, "https://a", MISSED, 1)],
    ids=["of that server", "of another server", "a lost connection of its own"],
)
async def test_a_change_seen_by_one_client_expires_public_results_of_its_server(
    answer: dict[str, Any], server: str, change: Change, count: int
) -> None:
    cache = ResponseCache()
    one, two = Peer(answer, cache=cache, server="https://a"), Peer(answer, cache=cache, server=server)
    await one.ask("tools/list")
    two.ask.on_change(change)
    await one.ask("tools/list")
    assert len(one.requests) == count


# Reading again


async def test_not_modified_returns_the_stored_contents() -> None:
    peer = Peer({"contents": [{"uri": "a", "text": "long"}], "_meta": {ETAG: "1"}})
    first = await peer.read()
    peer.answer = {"contents": [], "_meta": {ETAG: "1", NOT_MODIFIED: True}, **HOUR}
    for _ in range(2):
        assert (await peer.read())["contents"] == first["contents"]
    assert [one.params for one in peer.requests[1:]] == [{"uri": "a", "_meta": {ETAG: "1"}}]


async def test_only_reads_send_an_etag() -> None:
    peer = Peer({"tools": [], "_meta": {ETAG: "1"}})
    for _ in range(2):
        await peer.ask("tools/list")
    assert [one.params for one in peer.requests] == [{}, {}]


async def test_a_modified_resource_replaces_the_stored_one() -> None:
    peer = Peer({"contents": ["old"], "_meta": {ETAG: "1"}, **HOUR})
    await peer.read()
    peer.ask.on_change(Change("resource", "a"))
    peer.answer = {"contents": ["new"], "_meta": {ETAG: "2"}}
    assert (await peer.read())["contents"] == ["new"]
    await peer.read()
    assert [one.params["_meta"] for one in peer.requests[1:]] == [{ETAG: "1"}, {ETAG: "2"}]


async def test_not_modified_after_an_eviction_returns_the_contents() -> None:
    cache = ResponseCache()
    peer = Peer({"contents": ["old"], "_meta": {ETAG: "1"}}, cache=cache)
    await peer.read()
    peer.answer = None
    async with _callers(partial(peer.collect, READ, {"uri": "a"})):
        cache.forget(lambda one: True)
        peer.requests[1].reply({"contents": [], "_meta": {NOT_MODIFIED: True}})
    assert peer.results[0]["contents"] == ["old"]


# In a client


def handlers_of(small: Small) -> Any:
    """The mutable handlers of a small server."""
    small.running.calls._work.at_once.pop("tools/list", None)
    return small.running.handlers


class Counted:
    """Records the results of lists and reads of a small server; `more` is added to each read."""

    def __init__(self, small: Small, more: Mapping[str, Any] | None = None) -> None:
        self.results: list[dict[str, Any]] = []
        handlers = handlers_of(small)
        handlers["tools/list"] = self._counting(handlers["tools/list"], {})
        handlers["resources/read"] = self._counting(handlers["resources/read"], more or {})

    def _counting(self, handler: Any, more: Mapping[str, Any]) -> Any:
        async def handle(*given: Any) -> Any:
            result = await handler(*given)
            self.results.append(result)
            return {**result, **more}

        return handle


@pytest.mark.parametrize(("mode", "count"), [("stateless", 1), ("handshake", 3)])
async def test_typed_calls_use_cached_results(mode: str, count: int) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        counted = Counted(small)
        first = await client.list_tools()
        assert await client.list_tools() == await client.list_tools() == first
        assert len(counted.results) == count
        await client.raw.list_tools()
        assert len(counted.results) == count + 1


@pytest.mark.parametrize("mode", ["stateless", "handshake"])
async def test_a_repeated_read_transfers_no_contents(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        counted = Counted(small)
        for _ in range(2):
            assert (await client.read_resource("memo://one")).text == "the text"
        assert [len(result["contents"]) for result in counted.results] == [1, 0]


def _lists_once(small: Small, tools: Any) -> None:
    """Makes a small server answer the first tools/list with `tools`."""
    handlers = handlers_of(small)
    handler, first = handlers["tools/list"], [tools]

    async def list_tools(*given: Any) -> Any:
        result = await handler(*given)
        return {**result, "tools": first.pop()} if first else result

    handlers["tools/list"] = list_tools


async def test_an_invalid_list_is_requested_again() -> None:
    small = Small()
    async with small.connected(mode="stateless") as client:
        _lists_once(small, [{"name": 1}])
        with pytest.raises(InvalidResult):
            await client.list_tools()
        assert "add" in [tool.name for tool in await client.list_tools()]


async def test_arguments_are_not_refused_because_of_an_outdated_list() -> None:
    small = Small()
    async with small.connected(mode="stateless", check_arguments=True) as client:
        _lists_once(small, [{"name": "add", "inputSchema": {"type": "object", "required": ["c"]}}])
        await client.list_tools()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_changes_and_reconnections_remove_cached_results() -> None:
    small = Small()
    async with small.connected(mode="stateless", reconnect=True) as client, client.changes() as changes:
        counted = Counted(small)
        await client.list_tools()
        small.running.changes.tools()
        assert await anext(changes) == Change("tools")
        await client.list_tools()
        assert len(counted.results) == 2
        await small.lines[-1].aclose()
        assert await anext(changes) == Change("missed")
        await client.list_tools()
        assert len(counted.results) == 3


async def test_cached_results_need_permission_each_time() -> None:
    async def permit(act: Act) -> None:
        acts.append(act.name)

    small, acts = Small(), list[str]()
    async with small.connected(mode="stateless", permit=permit) as client:
        counted = Counted(small, HOUR)
        for _ in range(2):
            await client.read_resource("memo://one")
    assert (len(counted.results), acts) == (1, ["memo://one"] * 2)


async def test_results_that_depend_on_client_input_are_not_cached() -> None:
    async def who(ctx: Context[None]) -> str:
        """Ask for the roots."""
        return " ".join(root.uri for root in await ctx.roots())

    small = Small()
    small.app.resource("memo://who")(who)
    async with small.connected(mode="stateless", roots=[Root(uri="file:///a")]) as client:
        counted = Counted(small, HOUR)
        for _ in range(2):
            await client.read_resource("memo://who")
        assert len(counted.results) == 2


@pytest.mark.parametrize("mode", ["stateless", "handshake"])
async def test_a_handler_may_send_the_request_that_waits_for_its_answer(mode: str) -> None:
    async def roots() -> list[Root]:
        calls.append("roots")
        if len(calls) == 1:
            calls.append((await client.read_resource("memo://who")).text)
        return [Root(uri="file:///a")]

    async def who(ctx: Context[None]) -> str:
        """Ask for the roots."""
        return " ".join(root.uri for root in await ctx.roots())

    small, calls = Small(), list[str]()
    small.app.resource("memo://who")(who)
    async with small.connected(mode=mode, roots=roots) as client:
        assert (await client.read_resource("memo://who")).text == "file:///a"
    assert calls == ["roots", "roots", "file:///a"]


async def test_clients_of_the_same_url_share_a_cache() -> None:
    small, cache = Small(), ResponseCache()
    async with listening(small) as (address, _):
        counted = Counted(small)
        for _ in range(2):
            async with connect_http(f"http://{address}/mcp", ClientOptions(cache=cache)) as client:
                await client.list_tools()
        assert len(counted.results) == 1


async def test_a_closed_client_leaves_no_private_results_in_a_shared_cache() -> None:
    small, cache = Small(), ResponseCache()
    async with small.connected(cache=cache) as client:
        await client.read_resource("memo://one")
        assert cache.size > 0
    assert cache.size == 0


@pytest.mark.parametrize(("size", "declared"), [(1, {CONDITIONAL_READS: {}, "x/y": {}}), (0, {"x/y": {}})])
def test_conditional_reads_are_declared_only_with_a_cache(size: int, declared: dict[str, Any]) -> None:
    options = ClientOptions(cache_bytes=size, capabilities={"extensions": {"x/y": {}}})
    assert options.identity().capabilities["extensions"] == declared
    assert replace(options, cache=ResponseCache(size), cache_bytes=1 - size).identity() == options.identity()
