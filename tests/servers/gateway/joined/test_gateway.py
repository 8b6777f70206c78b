"""Joined servers as one, while members open and close."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from servers.gateway.bridge import bridge
from servers.gateway.joined.gateway import gateway
from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules
from shared import Opening
from shared.extensions.tasks import tasks
from shared.protocol.identity import LogMessage
from shared.protocol.session.events import Change
from shared.protocol.types.tasks import TASKS
from shared.server.extension import Capability, Extension
from shared.telemetry.audit import Audit, audit_calls
from tests.servers.gateway.bridge.upstreams import NEW, Behind, Endless
from tests.servers.gateway.changes import hear_lists, listening
from tests.servers.gateway.joined.members import (
    Door,
    both_eras,
    joined,
    names,
    opened,
    prompt,
    small,
    vendors,
    with_tools,
)
from tests.servers.gateway.tasks import FORMS, OURS, Working, outcome, started, text_in, until
from tests.shared.client.small import Small
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, talking


def test_duplicate_and_invalid_member_names_are_refused() -> None:
    with pytest.raises(ValueError, match="two servers have the same name: a, a"):
        gateway([with_tools("a", "a_tool"), with_tools("a", "a_tool")])
    with pytest.raises(ValueError, match="a_b"):
        gateway([with_tools("a_b")])


@both_eras
async def test_clients_hear_of_members_that_open_and_close(version: str) -> None:
    late = with_tools("b", "b_tool")
    async with joined(with_tools("a", "a_tool"), closed=(late,)) as running, talking(running, version) as peer:
        await listening(peer)
        assert await names(peer) == ["a_tool"]
        await late.open()
        await hear_lists(peer)
        assert await names(peer) == ["a_tool", "b_tool"]
        await late.close()
        await hear_lists(peer)
        assert await names(peer) == ["a_tool"]
        await late.open()
        assert await names(peer) == ["a_tool", "b_tool"]


@pytest.mark.parametrize("what", ["tools", "prompts"])
async def test_a_list_change_of_a_member_is_announced(what: str) -> None:
    server = small("a")
    server.prompt(name="first")(prompt)
    server.tool(name="first")(prompt)
    door = Door("a", server)
    async with joined(door) as running, talking(running) as peer:
        await peer.request(f"{what}/list")
        declare = opened(door).features.tool if what == "tools" else opened(door).features.prompt
        declare(name="second")(prompt)
        getattr(opened(door).changes, what)()
        await peer.other(f"notifications/{what}/list_changed")
        listed = (await peer.request(f"{what}/list"))["result"][what]
        assert [one["name"] for one in listed] == ["first", "second"]


@both_eras
async def test_setting_a_level_reports_the_conditions_of_members(version: str) -> None:
    door = with_tools("a", "a_tool", capabilities={"logging": {}})
    async with joined(door) as running, talking(running, version) as peer:
        opened(door).conditions.begin("disk", "warning", "the disk is full")
        if version == NEWEST_HANDSHAKE:
            await peer.request("logging/setLevel", {"level": "info"})
        else:
            await peer.request("server/discover", **{"io.modelcontextprotocol/logLevel": "info"})
        assert (await peer.other("notifications/message"))["params"]["data"] == "the disk is full"


async def test_a_new_condition_of_a_member_is_reported_to_all_with_that_level() -> None:
    door = with_tools("a", "a_tool", capabilities={"logging": {}})
    async with joined(door) as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "info"})
        opened(door).conditions.begin("disk", "warning", "the disk is full")
        assert (await peer.other("notifications/message"))["params"]["logger"] == "a"


async def test_members_hear_of_each_client_after_its_handshake() -> None:
    server, met = small("a"), []

    @server.lifespan
    async def open_state(opening: Opening) -> AsyncIterator[None]:
        opening.on_handshake(met.append)
        yield

    async with joined(Door("a", server)) as running, talking(running) as peer:
        await peer.request("ping")
        assert len(met) == 1


# Tasks: the outermost server has them, whichever works on them


@pytest.mark.parametrize("version", FORMS)
async def test_a_task_of_a_member_completes_or_is_cancelled(version: str) -> None:
    """Under the original and the new name of its tool."""
    work, other = Working("a", rules(Rules(rename={"work": "toil"}))), Working("b")
    async with joined(Door("a", work.app), Door("b", other.app)) as running, talking(running, version, OURS) as peer:
        id_ = await started(peer, "toil")
        await work.began.wait()
        assert (await until(peer, id_, "working"))["statusMessage"] == "working, 25%"
        assert work.seconds == running.server.task_limits.seconds
        work.go_on.set()
        assert text_in(await outcome(peer, id_)) == "done"
        id_ = await started(peer, "b__work")
        await other.began.wait()
        await peer.request("tasks/cancel", {"taskId": id_})
        await other.was_cancelled.wait()
        assert (await until(peer, id_, "cancelled"))["taskId"] == id_


async def test_tasks_are_declared_if_a_member_has_them() -> None:
    work = Door("working", Working().app)
    async with joined(with_tools("other", "add"), closed=(work,)) as running:
        await work.open()
        async with talking(running, STATELESS) as peer:
            told = (await peer.request("server/discover"))["result"]["capabilities"]
            assert (TASKS in told["extensions"], "tasks" in told) == (True, False)
            error = (await peer.call("work"))["error"]
            assert error["data"] == {"requiredCapabilities": OURS}


async def test_a_question_of_a_task_reaches_its_client() -> None:
    door, can = Door("working", Working().app), {**OURS, "elicitation": {"form": {}}}
    async with joined(door) as running, talking(running, STATELESS, can) as peer:
        id_ = await started(peer, "paint")
        asked = (await until(peer, id_, "input_required"))["inputRequests"]
        answers = {key: {"action": "accept", "content": {"colour": "red"}} for key in asked}
        await peer.request("tasks/update", {"taskId": id_, "inputResponses": answers})
        assert text_in(await outcome(peer, id_)) == "painted red"


async def test_a_task_fails_when_its_member_closes() -> None:
    work = Working()
    door = Door("working", work.app)
    async with joined(door) as running, talking(running, STATELESS, OURS) as peer:
        id_ = await started(peer, "work")
        await work.began.wait()
        await door.close()
        result = await outcome(peer, id_)
        assert (result["isError"], text_in(result)) == (True, "the server working is not available: it was closed")


async def test_without_members_with_tasks_none_are_declared_or_created() -> None:
    async with joined(with_tools("other", "say")) as running, talking(running, NEWEST_HANDSHAKE) as peer:
        assert "tasks" not in running.identity.capabilities
        answer = await peer.request("tools/call", {"name": "say", "arguments": {}, "task": {}})
        assert text_in(answer["result"]) == "other say"
        assert (await peer.request("tasks/get", {"taskId": "1"}))["error"]["code"] == -32601


@both_eras
async def test_a_result_that_violates_its_schema_is_not_forwarded(version: str) -> None:
    server = small("a")

    @server.tool
    async def count() -> dict[str, int]:
        """Count."""
        return {"a": "x"}  # type: ignore[dict-item]

    async with joined(Door("a", server)) as running, talking(running, version) as peer:
        result = (await peer.request("tools/call", {"name": "count", "arguments": {}}))["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("tool 'count' returned dict, but declares dict[str, int]: a: ")
    assert "structuredContent" not in result


async def test_endless_changes_are_announced_once_per_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.gateway.joined.joined_servers.PAUSE_SECONDS", 3_600.0)
    door = with_tools("a", "a_tool")
    async with joined(door) as running, talking(running) as peer:
        heard = Heard()
        running.changes.join(heard)
        opened(door).changes.tools()
        for _ in range(100):
            opened(door).changes.tools()
            opened(door).changes.prompts()
        assert heard.changes == ["tools"]
        # What clients ask for is that of today all the same.
        opened(door).features.tools.remove("a_tool")
        assert await names(peer) == []
        running.state._announce_lists()
        assert heard.changes == ["tools", "tools", "prompts"]


class Heard:
    """Listens to one server."""

    def __init__(self) -> None:
        self.changes: list[str] = []

    def on_change(self, change: Change) -> None:
        """Count a change."""
        self.changes.append(change.kind)

    def announce(self, message: LogMessage) -> None:
        """Ignore an announcement that concerns no list."""


@pytest.mark.parametrize("place", ["ours", "bridged"])
@pytest.mark.parametrize("version", FORMS)
async def test_a_task_of_a_member_has_an_audit_line(version: str, place: str) -> None:
    lines: list[dict[str, Any]] = []
    audit = Audit(Lines(lines), arguments=True)  # type: ignore[arg-type]
    server = small("a", extensions=[tasks()])

    @server.tool(task="required")
    async def write(statement: str) -> str:
        """Write."""
        return statement

    async with AsyncExitStack() as stack:
        if place == "bridged":
            server = bridge(await stack.enter_async_context(Behind(server).serving()))
        door = Door("a", server)
        door.extensions = [audit_calls(audit, "a")]
        async with joined(door) as running, talking(running, version, OURS) as peer:
            id_ = await started(peer, "write", statement="DROP")
            assert text_in(await outcome(peer, id_)) == "DROP"
    written = [line for line in lines if line["method"] == "tools/call"]
    assert [(line["tool"], line["arguments"]) for line in written] == [("write", {"statement": "DROP"})]


async def test_the_audit_line_of_a_custom_method_names_the_method() -> None:
    lines: list[dict[str, Any]] = []
    audit = Audit(Lines(lines))  # type: ignore[arg-type]
    opened = gateway([with_tools("a", "x")]).open(extensions=[audit_calls(audit, "joined")])
    async with opened as running, talking(running, STATELESS) as peer:
        assert (await vendors(peer, "example/own"))["error"]["code"] == -32601
    assert [(line["method"], line["outcome"]) for line in lines] == [("example/own", "error")]


async def test_a_call_has_one_audit_line_with_the_member_that_answered() -> None:
    lines: list[dict[str, Any]] = []
    audit = Audit(Lines(lines))  # type: ignore[arg-type]
    door = with_tools("a", "x")
    door.extensions = [audit_calls(audit, "a")]
    async with gateway([door]).open(extensions=[audit_calls(audit, "joined")]) as running:
        await door.open()
        async with talking(running, STATELESS) as peer:
            for name in ("x", "a__x", "no_such_tool"):
                await peer.call(name)
        await door.close()
    calls = [(line["server"], line["tool"]) for line in lines if line["method"] == "tools/call"]
    assert calls == [("a", "x"), ("a", "x"), ("joined", "no_such_tool")]


class Lines:
    """A file of an audit log that keeps what is written."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self._lines = lines

    def write(self, line: bytes) -> None:
        """Keep one line."""
        self._lines.append(json.loads(line))


async def test_requests_succeed_as_soon_as_a_member_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.gateway.bridge.connection.Pauses", Endless)
    behind = Behind(Small().app)
    behind.is_away = True
    async with (
        behind.serving() as upstream,
        joined(with_tools("a", "a_tool"), Door("b", bridge(upstream))) as running,
        talking(running) as peer,
    ):
        before = (await peer.request("tools/list"))["result"]["tools"]
        behind.is_away = False
        after = (await peer.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in before] == ["a_tool"]
    assert len(after) > 1


async def test_new_tools_of_a_bridged_server_that_announces_nothing_are_listed_and_called() -> None:
    server = small("b", extensions=[Extension("silent", declares=[Capability(("tools",), lambda _: {})])])
    server.tool(name="old")(prompt)
    behind = Behind(server, NEW)
    async with (
        behind.serving() as upstream,
        joined(with_tools("a", "a_tool"), Door("b", bridge(upstream))) as running,
        talking(running) as peer,
    ):
        assert await names(peer) == ["a_tool", "old"]
        behind.running.features.tool(name="new")(prompt)
        assert await peer.text("new") == "something"
        behind.running.features.tool(name="newer")(prompt)
        assert await names(peer) == ["a_tool", "old", "new", "newer"]
