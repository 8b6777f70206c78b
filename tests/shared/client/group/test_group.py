"""`ClientGroup`: several servers, some of which fail, hang, crash or flood."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from shared.client.approval import Act, Denied
from shared.client.client import Client
from shared.client.group.group import CLOSING_SECONDS, ClientGroup, UnknownServer
from shared.client.group.member import GroupServer, Member, ServerStatus, group_server
from shared.client.options import ClientOptions
from shared.protocol.types.client import Root
from shared.transports.memory import memory_pair
from tests.clock import forward
from tests.descriptors import left_open, settled_descriptors
from tests.quiet import quiet
from tests.shared.client.small import End, Small, listening
from tests.wire import PATIENCE

PROCESS = """
import json, os, sys, threading
answers = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}},
    "tools/list": {"tools": [{"name": "crash", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": str(os.getpid())}]},
}
for mute in sys.argv[1:]:
    answers.pop(mute, None)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("params", {}).get("name") == "crash":
        os._exit(3)
    if asked["method"] in answers:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}), flush=True)
    floods = asked["method"] == "notifications/initialized" and "flood" in sys.argv
    if floods:
        threading.Thread(target=lambda: [sys.stdin.read(), os._exit(0)]).start()
    while floods:
        print('{"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}', flush=True)
"""
"""A server that answers each tool but `crash` with its process id. It does not answer the methods in its arguments.
With `flood`, it sends only notifications after its initialization."""
HANDSHAKE = ClientOptions(mode="handshake")


def _process(*arguments: str) -> GroupServer:
    return group_server([sys.executable, "-S", "-c", PROCESS, *arguments], HANDSHAKE)


def _small(small: Small | None = None, **options: Any) -> GroupServer:
    return GroupServer((small or Small()).joined, ClientOptions(**options))


@asynccontextmanager
async def _mute(options: ClientOptions) -> AsyncIterator[Client]:
    ours, theirs = memory_pair()
    try:
        async with Client(End(ours), options) as client:
            yield client
    finally:
        theirs.close()


@asynccontextmanager
async def _entered(servers: dict[str, Any], **how: Any) -> AsyncIterator[ClientGroup]:
    """Every wait ends after 30 seconds."""
    with anyio.fail_after(30):
        async with ClientGroup(servers, **how) as group:
            yield group


def _states(group: ClientGroup) -> dict[str, str]:
    return {status.name: status.state for status in group.statuses}


class Statuses:
    """Records the statuses of a group."""

    def __init__(self) -> None:
        self.all: list[ServerStatus] = []
        self._came = anyio.Event()

    def __call__(self, status: ServerStatus) -> None:
        self.all.append(status)
        self._came.set()

    def of(self, name: str) -> list[str]:
        return [status.state for status in self.all if status.name == name]

    async def until(self, name: str, *states: str) -> None:
        while self.of(name) != list(states):
            self._came = anyio.Event()
            await self._came.wait()


async def test_lists_have_names_with_the_prefix_of_their_server() -> None:
    async with _entered({"one": _small(), "two": _small()}) as group:
        tools = await group.list_tools()
        assert [tool.name for tool in tools.items if tool.item.name == "add"] == ["one__add", "two__add"]
        assert {tool.server for tool in tools.items} == {"one", "two"}
        assert [prompt.name for prompt in (await group.list_prompts()).items] == ["one__plan", "two__plan"]
        resources = (await group.list_resources()).items
        assert [(one.server, one.name) for one in resources] == [("one", "memo://one"), ("two", "memo://one")]
        assert (await group.list_resource_templates()).items == []
        assert tools.failures == {}


async def test_calls_reach_the_server_of_the_prefix() -> None:
    one, two = Small(), Small()

    async def whose() -> str:
        """Say whose."""
        return "of two"

    two.app.tool()(whose)
    async with _entered({"one": _small(one), "two": _small(two)}) as group:
        assert (await group.call_tool("two__whose")).text == "of two"
        assert (await group.call_tool("one__add", {"a": 1, "b": 2})).text == "3"
        assert (await group.get_prompt("one__plan", {"goal": "it"})).messages[0].content.text == "Plan it."
        assert (await group.read_resource("two", "memo://one")).contents[0].text == "the text"


async def test_a_group_connects_to_urls_processes_and_memory() -> None:
    small = Small()
    servers = {"process": _process(), "memory": _small()}
    async with listening(small) as (address, _), _entered({"url": f"http://{address}/mcp", **servers}) as group:
        assert {status.state for status in group.statuses} == {"ready"}
        assert {tool.server for tool in (await group.list_tools()).items} == {"url", "process", "memory"}
        assert (await group.call_tool("url__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize("own", ["files.read", "x" * 100])
async def test_a_shortened_name_can_be_called_without_a_listing(own: str) -> None:
    small = Small()
    small.app.tool(name=own)(small.one)
    async with _entered({"one": _small(small)}) as group:
        async with _entered({"one": _small(small)}) as other:
            [name] = [tool.name for tool in (await other.list_tools()).items if tool.item.name == own]
        assert len(name) <= 64
        assert (await group.call_tool(name)).text == "the text"


async def test_a_call_that_needs_a_listing_times_out() -> None:
    async with _entered({"mute": _process("tools/list")}) as group:
        with anyio.fail_after(10), pytest.raises(TimeoutError, match="did not list its tools"):
            await group.call_tool("mute__tool-0123456789", timeout=0.01)


async def test_each_call_has_its_time_limit() -> None:
    async def never(*_: object) -> None:
        await anyio.sleep_forever()

    small = Small()
    async with _entered({"one": _small(small)}) as group:
        await group.list_tools()
        await group.list_prompts()
        for method in ("tools/call", "prompts/get", "resources/read"):
            small.running.handlers[method] = never
        for call in (
            group.call_tool("one__add", timeout=0.01),
            group.start_tool("one__add", timeout=0.01),
            group.get_prompt("one__plan", {"goal": "x"}, timeout=0.01),
            group.read_resource("one", "memo://one", timeout=0.01),
        ):
            with anyio.fail_after(PATIENCE), pytest.raises(TimeoutError, match=r"did not answer within 0\.0"):
                await call


@pytest.mark.parametrize("name", ["add", "three__add", "__add"])
async def test_a_name_of_an_unknown_server_is_refused(name: str) -> None:
    async with _entered({"one": _small()}) as group:
        with pytest.raises(UnknownServer):
            await group.call_tool(name)


def test_an_invalid_server_name_is_refused() -> None:
    with pytest.raises(ValueError, match="letters, digits and hyphens"):
        ClientGroup({"my_files": ["x"]})


# Failing servers


async def test_a_server_that_cannot_start_does_not_affect_the_others() -> None:
    async with _entered({"none": ["/no/such/program"], "one": _small()}) as group:
        assert _states(group) == {"none": "failed", "one": "ready"}
        listing = await group.list_tools()
        assert {tool.server for tool in listing.items} == {"one"}
        assert list(listing.failures) == ["none"]
        with pytest.raises(ConnectionError, match=r"none is failed: .*/no/such/program"):
            await group.call_tool("none__add")


async def test_a_server_that_never_answers_does_not_delay_the_others() -> None:
    statuses = Statuses()
    servers = {"mute": GroupServer(_mute, HANDSHAKE), "one": _small()}
    async with _entered(servers, on_status=statuses, entering_seconds=0.01) as group:
        await statuses.until("one", "connecting", "ready")
        assert _states(group) == {"mute": "connecting", "one": "ready"}
        assert isinstance((await group.list_tools()).failures["mute"], ConnectionError)
        assert (await group.call_tool("one__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.slow
async def test_a_server_without_an_answer_does_not_delay_the_other_lists() -> None:
    async with _entered({"mute": _process("tools/list"), "one": _small()}) as group:
        listing = await group.list_tools(seconds=0.5)
        assert {tool.server for tool in listing.items} == {"one"}
        assert isinstance(listing.failures["mute"], TimeoutError)


async def test_a_flooding_server_does_not_affect_the_others() -> None:
    async with _entered({"flood": _process("flood"), "one": _small()}) as group:
        assert (await group.call_tool("one__add", {"a": 1, "b": 2})).text == "3"
        assert _states(group) == {"flood": "ready", "one": "ready"}


async def test_a_server_that_crashes_during_a_call_does_not_affect_the_others() -> None:
    statuses, small = Statuses(), Small()
    async with _entered({"bad": _process(), "one": _small(small)}, on_status=statuses) as group:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(group.call_tool, "one__wait")
            await small.started.wait()
            with pytest.raises(ConnectionError):
                await group.call_tool("bad__crash")
            await statuses.until("bad", "connecting", "ready", "failed")
            assert not small.cancelled.is_set()
            tasks.cancel_scope.cancel()
        assert (await group.call_tool("one__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.usefixtures("short_pauses")
async def test_with_retry_a_failed_server_is_restarted() -> None:
    statuses = Statuses()
    async with _entered({"bad": _process()}, retry=True, on_status=statuses) as group:
        first = (await group.call_tool("bad__pid")).text
        with pytest.raises(ConnectionError):
            await group.call_tool("bad__crash")
        await statuses.until("bad", "connecting", "ready", "failed", "connecting", "ready")
        assert (await group.call_tool("bad__pid")).text != first
    assert statuses.of("bad")[-1] == "closed"


async def test_a_handler_that_raises_fails_only_its_server() -> None:
    async def roots() -> Any:
        raise ZeroDivisionError

    statuses = Statuses()
    servers = {"bad": _small(mode="handshake", roots=roots), "one": _small()}
    async with _entered(servers, on_status=statuses) as group:
        with pytest.raises((ConnectionError, ZeroDivisionError)):
            await group.call_tool("bad__roots")
        await statuses.until("bad", "connecting", "ready", "failed")
        assert isinstance(statuses.all[-1].error, ZeroDivisionError)
        assert _states(group)["one"] == "ready"


async def test_an_error_in_the_block_is_not_wrapped_in_an_exception_group() -> None:
    with pytest.raises(ZeroDivisionError):
        async with _entered({"one": _small(), "bad": _process()}):
            raise ZeroDivisionError


# Adding, removing, closing


async def test_servers_can_be_added_and_removed() -> None:
    async with _entered({}) as group:
        assert (await group.add("one", _small())).state == "ready"
        assert (await group.add("none", ["/no/such/program"])).state == "failed"
        assert (await group.call_tool("one__add", {"a": 1, "b": 2})).text == "3"
        await group.remove("one")
        await group.remove("none")
        assert group.statuses == []
        with pytest.raises(UnknownServer):
            await group.call_tool("one__add")
        assert (await group.add("one", _small())).state == "ready"
        with pytest.raises(ValueError, match="there is already a server with that name"):
            await group.add("one", _small())
    with pytest.raises(RuntimeError, match="enter the group"):
        await group.add("two", _small())


async def test_a_call_ends_when_its_server_is_removed() -> None:
    small = Small()
    async with _entered({"one": _small(small)}) as group:

        async def call() -> None:
            with pytest.raises(ConnectionError):
                await group.call_tool("one__wait")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await small.started.wait()
            await group.remove("one")


async def test_add_returns_when_its_server_is_removed() -> None:
    statuses, states = Statuses(), list[str]()

    async def add(group: ClientGroup) -> None:
        states.append((await group.add("mute", GroupServer(_mute, HANDSHAKE))).state)

    with anyio.fail_after(5):
        async with ClientGroup(on_status=statuses) as group, anyio.create_task_group() as tasks:
            tasks.start_soon(add, group)
            await statuses.until("mute", "connecting")
            await group.remove("mute")
    assert states == ["closed"]


@pytest.mark.parametrize("kind", ["ready", "mute"])
async def test_a_group_can_be_cancelled_from_outside(kind: str) -> None:
    servers = {"ready": _small(), "mute": GroupServer(_mute, HANDSHAKE)}
    group = ClientGroup({kind: servers[kind]})
    with anyio.CancelScope() as scope:
        if kind == "mute":  # the group never opens
            asyncio.get_running_loop().call_later(0.05, scope.cancel)
        async with group:
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert kind == "mute" or _states(group) == {"ready": "closed"}


async def test_closing_a_group_cancels_a_server_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.client.group.group.CLOSING_SECONDS", 0.05)  # a shorter timeout
    ended = anyio.Event()

    @asynccontextmanager
    async def clinging(options: ClientOptions) -> AsyncIterator[Client]:
        async with Small().joined(options) as client:
            yield client
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

    async with _entered({"one": GroupServer(clinging), "two": _small()}) as group:
        assert _states(group) == {"one": "ready", "two": "ready"}
    assert ended.is_set()
    assert _states(group) == {"one": "closed", "two": "closed"}


@pytest.mark.slow
async def test_failed_servers_leave_no_descriptors_or_processes() -> None:
    before, statuses = settled_descriptors(), Statuses()
    servers = {"flood": _process("flood"), "bad": _process(), "mute": _process("initialize"), "none": ["/no/such"]}
    async with _entered(servers, on_status=statuses, entering_seconds=0.1) as group:
        await statuses.until("bad", "connecting", "ready")
        with pytest.raises(ConnectionError):
            await group.call_tool("bad__crash")
    with anyio.fail_after(PATIENCE):  # the event loop closes the pipes of a process after its end
        while left_open(before):
            await anyio.sleep(0.001)


# Handlers and permits of each server


async def test_each_server_has_its_own_handlers() -> None:
    servers = {name: _small(roots=[Root(uri=f"file:///{name}")]) for name in ("one", "two")}
    async with _entered({**servers, "none": _small()}) as group:
        assert (await group.call_tool("one__roots")).text == "file:///one"
        assert (await group.call_tool("two__roots")).text == "file:///two"


async def test_the_permit_of_the_group_can_deny_acts() -> None:
    acts: list[tuple[str, str, str]] = []

    async def permit(act: Act) -> None:
        acts.append((act.server, act.kind, act.name))
        if act.kind == "read":
            raise Denied("no reads")

    async with _entered({"one": _small(), "two": _small(roots=[])}, permit=permit) as group:
        await group.call_tool("one__add", {"a": 1, "b": 2})
        await group.call_tool("two__roots")
        await group.get_prompt("one__plan", {"goal": "it"})
        with pytest.raises(Denied, match="no reads"):
            await group.read_resource("two", "memo://one")
    assert acts == [
        ("one", "call", "add"),
        ("two", "call", "roots"),
        ("two", "roots", "roots/list"),
        ("one", "prompt", "plan"),
        ("two", "read", "memo://one"),
    ]


async def test_a_server_can_have_its_own_permit_in_addition() -> None:
    asked: list[str] = []

    def say(who: str) -> Callable[[Act], Awaitable[None]]:
        async def permit(act: Act) -> None:
            asked.append(f"{who}: {act.server}")

        return permit

    async with _entered({"one": _small(permit=say("own"))}, permit=say("group")) as group:
        await group.call_tool("one__add", {"a": 1, "b": 2})
    assert asked == ["own: one", "group: one"]


async def test_a_server_that_does_not_close_is_cancelled() -> None:
    cancelled = anyio.Event()

    @asynccontextmanager
    async def stuck(options: ClientOptions) -> AsyncIterator[Client]:
        async with Small().joined(options) as client:
            yield client
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    with anyio.move_on_after(CLOSING_SECONDS + 20) as bound:
        async with ClientGroup({"stuck": GroupServer(stuck)}):
            asyncio.get_running_loop().call_later(0.1, forward, CLOSING_SECONDS)
    assert (cancelled.is_set(), bound.cancel_called) == (True, False)


async def test_a_lost_server_has_no_client() -> None:
    lost = anyio.Event()

    @asynccontextmanager
    async def connect(_: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(ended=lost.wait)

    server: Any = SimpleNamespace(connect=connect)
    member = Member("a", server, ClientOptions(), lambda _: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(member.run, retry=False))
        await member.settled.wait()
        assert member.client
        lost.set()
        await quiet()
        with pytest.raises(ConnectionError, match="a is failed: the server ended the connection"):
            _ = member.client
        member.begin_close()
