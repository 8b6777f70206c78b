"""`CachedRequests` over a server that answers when it is told to: what is asked of it, and what is not."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from shared import Context
from shared.client.cache import ResponseCache
from shared.client.cached import CachedRequests
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.client.permit import Act
from shared.client.subscription import Change, Kind
from shared.errors import InvalidResult, PeerError
from shared.protocol.types.client import Root
from shared.protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED
from tests.shared.client.small import Small, listening

HOUR = {"ttlMs": 3_600_000}
MISSED = Change("missed")
TOOLS = Change("tools")
Answer = dict[str, Any] | Exception


class Asked:
    """A request under way."""

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self.method = method
        self.params = params
        self.answer: Answer | None = None
        self.answered = anyio.Event()
        self.is_cancelled = False

    def say(self, answer: Answer) -> None:
        self.answer = answer
        self.answered.set()


class Peer:
    """Takes requests. It answers at once with `answer`, or else waits until each is told what to `say`."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.asked: list[Asked] = []

    async def request(
        self, method: str, params: Any = None, *, timeout: float | None = 60, on_progress: Any = None
    ) -> dict[str, Any]:
        asked = Asked(method, dict(params or {}))
        self.asked.append(asked)
        if self.answer is not None:
            asked.say(self.answer)
        try:
            with anyio.fail_after(timeout):
                await asked.answered.wait()
        except anyio.get_cancelled_exc_class():
            asked.is_cancelled = True
            raise
        if isinstance(asked.answer, Exception):
            raise asked.answer
        return dict(asked.answer or {})


def _cached(peer: Peer, cache: ResponseCache | None = None, server: str | None = None) -> CachedRequests:
    return CachedRequests(peer.request, ResponseCache() if cache is None else cache, server=server)


@asynccontextmanager
async def _callers() -> AsyncIterator[TaskGroup]:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            yield tasks


LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
CACHEABLE = [*((method, {}) for method in LISTS), ("resources/read", {"uri": "a"})]


@pytest.mark.parametrize(("method", "params"), CACHEABLE)
async def test_what_holds_is_asked_once(method: str, params: dict[str, Any]) -> None:
    peer = Peer(HOUR)
    request = _cached(peer)
    assert await request(method, params) == await request(method, params) == HOUR
    assert [(one.method, one.params) for one in peer.asked] == [(method, params)]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "add"}),
        ("prompts/get", {"name": "plan"}),
        ("completion/complete", {}),
        ("ping", {}),
        ("skills/list", {}),
        ("resources/read", {"uri": "a", "requestState": "s"}),
        ("resources/read", {"uri": "a", "inputResponses": {}}),
        ("resources/read", {"uri": ["a"]}),
        ("tools/list", {"_meta": {"a": 1}}),
    ],
)
async def test_anything_else_is_asked_each_time(method: str, params: dict[str, Any]) -> None:
    peer = Peer(HOUR)
    request = _cached(peer)
    for _ in range(2):
        await request(method, params)
    assert [one.params for one in peer.asked] == [params, params]


async def test_each_page_and_each_resource_is_its_own() -> None:
    peer = Peer(HOUR)
    request = _cached(peer)
    for params in ({}, {"cursor": ""}, {"cursor": "b"}):
        await request("tools/list", params)
        await request("tools/list", params)
    for uri in ("a", "b"):
        await request("resources/read", {"uri": uri})
    assert len(peer.asked) == 5


async def test_no_bytes_mean_no_cache() -> None:
    peer = Peer(HOUR)
    request = _cached(peer, ResponseCache(0))
    for _ in range(2):
        await request("tools/list")
    assert len(peer.asked) == 2


async def test_without_a_cache_nobody_waits_for_others() -> None:
    peer = Peer()
    request = _cached(peer, ResponseCache(0))
    async with _callers() as tasks:
        tasks.start_soon(request, "tools/list")
        tasks.start_soon(request, "tools/list")
        await anyio.wait_all_tasks_blocked()
        for asked in peer.asked:
            asked.say(HOUR)
    assert len(peer.asked) == 2


async def test_errors_are_not_kept() -> None:
    peer = Peer(PeerError("no", code=-1))
    request = _cached(peer)
    for _ in range(2):
        with pytest.raises(PeerError):
            await request("tools/list")
    assert len(peer.asked) == 2


async def test_a_cursor_that_is_refused_takes_all_pages_along() -> None:
    peer = Peer(HOUR)
    request = _cached(peer)
    await request("tools/list")
    await request("prompts/list")
    peer.answer = PeerError("bad cursor", code=-32602)
    with pytest.raises(PeerError):
        await request("tools/list", {"cursor": "b"})
    peer.answer = HOUR
    await request("tools/list")
    await request("prompts/list")
    assert [one.method for one in peer.asked] == ["tools/list", "prompts/list", "tools/list", "tools/list"]


def test_what_tells_servers_apart_is_not_shown() -> None:
    assert "s3cret" not in repr(ClientOptions(cache_key=("serve", frozenset({("TOKEN", "s3cret")}))))


# Changes


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        ("tools", ["tools/list"]),
        ("prompts", ["prompts/list"]),
        ("resources", ["resources/list", "resources/templates/list"]),
        ("resource", []),
        ("missed", LISTS),
    ],
)
async def test_a_list_that_changed_is_asked_for_again(kind: Kind, methods: list[str]) -> None:
    peer = Peer(HOUR)
    request = _cached(peer)
    for method in LISTS:
        await request(method)
    del peer.asked[:]
    request.heard(Change(kind))
    for method in LISTS:
        await request(method)
    assert [one.method for one in peer.asked] == methods


async def test_a_resource_that_changed_is_read_again_and_what_lies_below_and_above() -> None:
    peer, uris = Peer(HOUR), ["file:///", "file:///d", "file:///d/a", "file:///d/a/x", "file:///d/ab", "file:///e"]
    request = _cached(peer)
    for uri in uris:
        await request("resources/read", {"uri": uri})
    del peer.asked[:]
    request.heard(Change("resource", "file:///d/a"))
    for uri in uris:
        await request("resources/read", {"uri": uri})
    assert [one.params["uri"] for one in peer.asked] == ["file:///", "file:///d", "file:///d/a", "file:///d/a/x"]


async def test_a_lost_connection_ends_all_that_is_fresh() -> None:
    peer = Peer(HOUR)
    request = _cached(peer)
    for method, params in CACHEABLE:
        await request(method, params)
    request.heard(MISSED)
    for method, params in CACHEABLE:
        await request(method, params)
    assert len(peer.asked) == 2 * len(CACHEABLE)


async def test_who_asks_after_a_change_hears_no_answer_from_before() -> None:
    peer, results = Peer(), dict[str, Any]()
    request = _cached(peer)

    async def ask(name: str) -> None:
        results[name] = await request("tools/list")

    async with _callers() as tasks:
        tasks.start_soon(ask, "before")
        await anyio.wait_all_tasks_blocked()
        request.heard(TOOLS)
        tasks.start_soon(ask, "after")
        await anyio.wait_all_tasks_blocked()
        peer.asked[0].say({**HOUR, "tools": ["old"]})
        peer.asked[1].say({**HOUR, "tools": ["new"]})
    assert {name: result["tools"] for name, result in results.items()} == {"before": ["old"], "after": ["new"]}
    assert (await request("tools/list"))["tools"] == ["new"]


async def test_what_was_answered_after_questions_is_not_kept() -> None:
    peer = Peer()
    request = _cached(peer)
    async with _callers() as tasks:
        tasks.start_soon(request, "resources/read", {"uri": "a"})
        await anyio.wait_all_tasks_blocked()
        request.asked_back("resources/read", {"uri": "a"})
        peer.asked[0].say(HOUR)
    peer.answer = HOUR
    await request("resources/read", {"uri": "a"})
    assert len(peer.asked) == 2


async def test_what_was_no_use_is_not_used_again() -> None:
    peer = Peer({"contents": "none", "_meta": {ETAG: "1"}, **HOUR})
    request = _cached(peer)
    await request("resources/read", {"uri": "a"})
    await request("tools/list")
    request.distrust("resources/read")
    await request("resources/read", {"uri": "a"})
    await request("tools/list")
    assert [(one.method, one.params) for one in peer.asked[2:]] == [("resources/read", {"uri": "a"})]


# Several callers


async def test_who_wants_the_same_waits_for_the_same() -> None:
    peer, results = Peer(), list[Any]()
    request = _cached(peer)

    async def ask() -> None:
        results.append(await request("tools/list"))

    async with _callers() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        peer.asked[0].say({"tools": []})
    assert results == [{"tools": []}] * 5
    results[0]["tools"].append("mine")
    assert [result["tools"] for result in results[1:]] == [[]] * 4
    assert len(peer.asked) == 1


async def test_an_error_goes_to_all_who_wait() -> None:
    peer, errors = Peer(), list[str]()
    request = _cached(peer)

    async def ask() -> None:
        with pytest.raises(ConnectionError) as caught:
            await request("tools/list")
        errors.append(str(caught.value))

    async with _callers() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        peer.asked[0].say(ConnectionError("gone"))
    assert errors == ["gone"] * 3


async def test_a_caller_that_gives_up_stops_no_other() -> None:
    peer, results = Peer(), list[Any]()
    request = _cached(peer)

    async def ask() -> None:
        results.append(await request("tools/list"))

    first = anyio.CancelScope()

    async def ask_first() -> None:
        with first:
            await ask()

    async with _callers() as tasks:
        tasks.start_soon(ask_first)
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        assert [one.is_cancelled for one in peer.asked] == [True, False]
        peer.asked[1].say(HOUR)
    assert results == [HOUR, HOUR]


async def test_a_caller_without_time_leaves_the_others_theirs() -> None:
    peer, results = Peer(), list[Any]()
    request = _cached(peer)

    async def ask(seconds: float | None) -> None:
        try:
            results.append(await request("tools/list", timeout=seconds))
        except TimeoutError:
            results.append("late")
            peer.asked[-1].say(HOUR)

    async with _callers() as tasks:
        tasks.start_soon(ask, None)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask, 0.01)
    assert results == ["late", HOUR]
    assert len(peer.asked) == 1


async def test_a_leader_without_time_leaves_the_others_theirs() -> None:
    peer, results = Peer(), list[Any]()
    request = _cached(peer)

    async def ask(seconds: float | None) -> None:
        try:
            results.append(await request("tools/list", timeout=seconds))
        except TimeoutError:
            results.append("late")
            peer.answer = HOUR

    async with _callers() as tasks:
        tasks.start_soon(ask, 0.01)
        tasks.start_soon(ask, None)
    assert results == ["late", HOUR]


async def test_who_wants_progress_asks_alone() -> None:
    peer = Peer()
    request = _cached(peer)
    async with _callers() as tasks:
        tasks.start_soon(request, "tools/list")
        tasks.start_soon(lambda: request("tools/list", on_progress=lambda *_: None))
        await anyio.wait_all_tasks_blocked()
        for asked in peer.asked:
            asked.say(HOUR)
    assert len(peer.asked) == 2
    await request("tools/list", on_progress=lambda *_: None)
    assert len(peer.asked) == 2


# Several clients


async def test_clients_share_what_is_public() -> None:
    cache, one, two, other = ResponseCache(), Peer({**HOUR, "cacheScope": "public"}), Peer(HOUR), Peer(HOUR)
    await _cached(one, cache, "https://a")("tools/list")
    await _cached(two, cache, "https://a")("tools/list")
    await _cached(other, cache, "https://b")("tools/list")
    await _cached(other, cache)("tools/list")
    assert (len(two.asked), len(other.asked)) == (0, 2)


async def test_a_change_that_one_client_hears_of_ends_it_for_all() -> None:
    cache, peers = ResponseCache(), [Peer({**HOUR, "cacheScope": "public"}) for _ in range(2)]
    one, two = (_cached(peer, cache, "https://a") for peer in peers)
    await one("tools/list")
    two.heard(TOOLS)
    await one("tools/list")
    assert len(peers[0].asked) == 2


async def test_what_one_client_hears_leaves_other_servers_alone() -> None:
    cache, peers = ResponseCache(), [Peer(HOUR), Peer(HOUR)]
    one, two = _cached(peers[0], cache, "https://a"), _cached(peers[1], cache, "https://b")
    await one("tools/list")
    two.heard(TOOLS)
    await one("tools/list")
    assert len(peers[0].asked) == 1


async def test_a_lost_connection_leaves_alone_what_others_were_told() -> None:
    cache, peers = ResponseCache(), [Peer(HOUR), Peer(HOUR)]
    one, two = (_cached(peer, cache, "https://a") for peer in peers)
    await one("tools/list")
    two.heard(MISSED)
    await one("tools/list")
    assert len(peers[0].asked) == 1


async def test_a_client_that_is_closed_leaves_what_is_public() -> None:
    cache, peer = ResponseCache(), Peer({**HOUR, "cacheScope": "public"})
    request = _cached(peer, cache, "https://a")
    await request("tools/list")
    peer.answer = HOUR
    await request("prompts/list")
    size = cache.size
    request.closed()
    assert 0 < cache.size < size


# Reading again


async def test_what_was_not_modified_is_given_again() -> None:
    peer = Peer({"contents": [{"uri": "a", "text": "long"}], "_meta": {ETAG: "1"}})
    request = _cached(peer)
    first = await request("resources/read", {"uri": "a"})
    peer.answer = {"contents": [], "_meta": {ETAG: "1", NOT_MODIFIED: True}, **HOUR}
    assert (await request("resources/read", {"uri": "a"}))["contents"] == first["contents"]
    assert peer.asked[1].params == {"uri": "a", "_meta": {ETAG: "1"}}
    assert (await request("resources/read", {"uri": "a"}))["contents"] == first["contents"]
    assert len(peer.asked) == 2


async def test_only_reads_say_an_etag() -> None:
    peer = Peer({"tools": [], "_meta": {ETAG: "1"}})
    request = _cached(peer)
    for _ in range(2):
        await request("tools/list")
    assert [one.params for one in peer.asked] == [{}, {}]


async def test_what_was_modified_takes_the_place() -> None:
    peer = Peer({"contents": ["old"], "_meta": {ETAG: "1"}})
    request = _cached(peer)
    await request("resources/read", {"uri": "a"})
    peer.answer = {"contents": ["new"], "_meta": {ETAG: "2"}}
    assert (await request("resources/read", {"uri": "a"}))["contents"] == ["new"]
    await request("resources/read", {"uri": "a"})
    assert peer.asked[2].params["_meta"] == {ETAG: "2"}


async def test_a_resource_that_changed_is_read_by_its_etag() -> None:
    peer = Peer({"contents": ["old"], "_meta": {ETAG: "1"}, **HOUR})
    request = _cached(peer)
    await request("resources/read", {"uri": "a"})
    request.heard(Change("resource", "a"))
    await request("resources/read", {"uri": "a"})
    assert peer.asked[1].params["_meta"] == {ETAG: "1"}


async def test_what_was_not_modified_may_be_forgotten_meanwhile() -> None:
    peer, results = Peer({"contents": ["old"], "_meta": {ETAG: "1"}}), list[Any]()
    cache = ResponseCache()
    request = _cached(peer, cache)
    await request("resources/read", {"uri": "a"})
    peer.answer = None

    async def ask() -> None:
        results.append(await request("resources/read", {"uri": "a"}))

    async with _callers() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        cache.forget(lambda one: True)
        peer.asked[1].say({"contents": [], "_meta": {NOT_MODIFIED: True}})
    assert results[0]["contents"] == ["old"]


# In a client


class Counted:
    """What a small server answers to lists and reads; `more` is added to the latter."""

    def __init__(self, small: Small, more: Mapping[str, Any] | None = None) -> None:
        self.results: list[dict[str, Any]] = []
        handlers = small.running.handlers
        handlers["tools/list"] = self._counting(handlers["tools/list"], {})
        handlers["resources/read"] = self._counting(handlers["resources/read"], more or {})

    def _counting(self, handler: Any, more: Mapping[str, Any]) -> Any:
        async def handle(*given: Any) -> Any:
            result = await handler(*given)
            self.results.append(result)
            return {**result, **more}

        return handle


@pytest.mark.parametrize(("mode", "asked"), [("stateless", 1), ("handshake", 3)])
async def test_the_typed_calls_use_what_holds(mode: str, asked: int) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        counted = Counted(small)
        first = await client.list_tools()
        assert await client.list_tools() == await client.list_tools() == first
        assert len(counted.results) == asked
        await client.plain.list_tools()
        assert len(counted.results) == asked + 1


@pytest.mark.parametrize("mode", ["stateless", "handshake"])
async def test_what_is_read_again_is_not_sent_again(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        counted = Counted(small)
        for _ in range(2):
            assert (await client.read_resource("memo://one")).text == "the text"
        assert [len(result["contents"]) for result in counted.results] == [1, 0]


def _lists_once(small: Small, tools: Any) -> None:
    """Has a small server list `tools` the first time that it is asked."""
    handlers = small.running.handlers
    handler, first = handlers["tools/list"], [tools]

    async def list_tools(*given: Any) -> Any:
        result = await handler(*given)
        return {**result, "tools": first.pop()} if first else result

    handlers["tools/list"] = list_tools


async def test_a_list_that_can_not_be_read_is_asked_for_again() -> None:
    small = Small()
    async with small.connected(mode="stateless") as client:
        _lists_once(small, [{"name": 1}])
        with pytest.raises(InvalidResult):
            await client.list_tools()
        assert "add" in [tool.name for tool in await client.list_tools()]


async def test_arguments_are_not_refused_for_a_list_that_is_old() -> None:
    small = Small()
    async with small.connected(mode="stateless", check_arguments=True) as client:
        _lists_once(small, [{"name": "add", "inputSchema": {"type": "object", "required": ["c"]}}])
        await client.list_tools()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_changes_and_reconnections_end_what_holds() -> None:
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


async def test_what_holds_is_permitted_each_time() -> None:
    async def permit(act: Act) -> None:
        acts.append(act.name)

    small, acts = Small(), list[str]()
    async with small.connected(mode="stateless", permit=permit) as client:
        counted = Counted(small, HOUR)
        for _ in range(2):
            await client.read_resource("memo://one")
    assert (len(counted.results), acts) == (1, ["memo://one"] * 2)


async def test_answers_to_our_answers_do_not_hold() -> None:
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
async def test_who_answers_a_question_may_make_the_request_that_it_is_about(mode: str) -> None:
    async def roots() -> list[Root]:
        asked.append("roots")
        if len(asked) == 1:
            asked.append((await client.read_resource("memo://who")).text)
        return [Root(uri="file:///a")]

    async def who(ctx: Context[None]) -> str:
        """Ask for the roots."""
        return " ".join(root.uri for root in await ctx.roots())

    small, asked = Small(), list[str]()
    small.app.resource("memo://who")(who)
    async with small.connected(mode=mode, roots=roots) as client:
        assert (await client.read_resource("memo://who")).text == "file:///a"
    assert asked == ["roots", "roots", "file:///a"]


async def test_clients_of_one_url_share_a_cache() -> None:
    small, cache = Small(), ResponseCache()
    async with listening(small) as (address, _):
        counted = Counted(small)
        for _ in range(2):
            async with connect_http(f"http://{address}/mcp", ClientOptions(cache=cache)) as client:
                await client.list_tools()
        assert len(counted.results) == 1


async def test_a_client_leaves_nothing_of_its_own_in_a_shared_cache() -> None:
    small, cache = Small(), ResponseCache()
    async with small.connected(cache=cache) as client:
        await client.read_resource("memo://one")
        assert cache.size > 0
    assert cache.size == 0


@pytest.mark.parametrize(("size", "declared"), [(1, {CONDITIONAL_READS: {}, "x/y": {}}), (0, {"x/y": {}})])
def test_conditional_reads_are_declared_where_there_is_a_cache(size: int, declared: dict[str, Any]) -> None:
    options = ClientOptions(cache_bytes=size, capabilities={"extensions": {"x/y": {}}})
    assert options.identity().capabilities["extensions"] == declared
    assert replace(options, cache=ResponseCache(size), cache_bytes=1 - size).identity() == options.identity()
