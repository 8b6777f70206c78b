"""Several servers at one URL: `python -m servers serve` with `join`."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.server import app as filesystem
from servers.filesystem.settings import Narrowing
from servers.filesystem.settings import Settings as FilesystemSettings
from servers.gateway.bridge import bridge
from servers.gateway.rules.extension import rules
from servers.gateway.rules.names import Rules as Names
from servers.gateway.serve.gateway_server import make_gateway, principal_extensions, wait_until_settled
from shared import Server
from shared.auth.policy import Entitlement, Rules
from shared.auth.tokens_file import digest_of
from shared.contracts import TaskLimits
from shared.program.rules import rule_extensions
from shared.protocol.identity import Principal
from shared.server.dispatch.limits import CallLimits, Limits
from shared.server.run import Run
from shared.telemetry.supervised import SupervisedServer
from tests.servers.bundle.commands.test_serve import metrics
from tests.servers.gateway.bridge.upstreams import Behind
from tests.servers.gateway.joined.members import small
from tests.servers.gateway.serve.test_bridge_server import at_work, call, configured, listed, started, text
from tests.shared.server.peer import ERAS, STATELESS, Peer, talking


@pytest.mark.slow
async def test_joined_servers_are_served_together_and_separately(tmp_path: Path) -> None:
    others = {"filesystem": {"roots": ["."], "principal": {"ada": {"roots": ["public"]}}}, "other": started()}
    (tmp_path / "public").mkdir()
    for path in ("public/a.txt", "private.txt"):
        (tmp_path / path).write_text("hello")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[ada]\ndigest = "{digest_of("hunter2-hunter2")}"\n')
    tokens.chmod(0o600)
    config = configured(tmp_path, others=others, join=["filesystem", "other"], **{"tokens-file": str(tokens)})
    async with at_work(tmp_path, config) as (process, http):
        http.headers["Authorization"] = "Bearer hunter2-hunter2"
        assert {"read_text_file", "pid"} <= {*await listed(http, "")}
        assert "search_prompts" not in await listed(http, "")
        assert "search_prompts" in await listed(http, "prompts")
        assert await text(http, "", "pid") == await text(http, "other", "pid")
        for path, shown in (("public/a.txt", "hello"), ("private.txt", "outside_roots: ")):
            file = {"path": str(tmp_path / path)}
            one, other = [await text(http, name, "read_text_file", **file) for name in ("", "filesystem")]
            assert one == other
            assert shown in one
        told, found = (await http.get("/metrics")).text, await metrics(http)
        process.process.terminate()
        assert process.wait() == 0
        # A server that takes seconds to answer is shaken hands with, and has another process for the calls.
        assert {line.partition(" [")[2] for line in process.stderr().splitlines()} == {
            f"other]: {Path(sys.executable).name}: other: a word on stderr"
        }
    assert 'mcp_server_info{path="/mcp",server="joined"' in told
    assert found["mcp_requests_total"]["joined", "tools/call", "pid"] == 1
    assert found["mcp_server_up"]["joined",] == 1


@pytest.mark.slow
async def test_a_restarting_server_is_missing_without_affecting_others(tmp_path: Path) -> None:
    others = {"other": started()}
    async with at_work(tmp_path, configured(tmp_path, others=others, join=True, prefix="always")) as (process, http):
        first = await text(http, "", "other__pid")
        said = (await call(http, "", "other__leave")).json()
        assert "other" in json.dumps(said)
        assert "result" in (await call(http, "", "prompts__search_prompts", query="x")).json()
        answer = said
        while "error" in answer or answer["result"].get("isError"):
            await anyio.lowlevel.checkpoint()
            answer = (await call(http, "", "other__pid")).json()
        assert answer["result"]["content"][0]["text"] != first
        assert "other__pid" in await listed(http, "")
        process.process.terminate()
        assert process.wait() == 0


Member = tuple[Server[Any], Any, Rules]


@asynccontextmanager
async def joined(*members: Member) -> AsyncIterator[Run[Any]]:
    """Servers with rules, as one."""
    lives = [
        SupervisedServer(
            app.implementation.name,
            partial(
                app.open,
                settings,
                extensions=rule_extensions(rules, app.implementation.name, tokens_have_scopes=True),
            ),
        )
        for app, settings, rules in members
    ]
    for life in lives:
        life.start()
    try:
        await wait_until_settled(lives)
        app = make_gateway(lives, [app for app, _, _ in members], "auto", [])
        async with app.open(extensions=principal_extensions([rules for _, _, rules in members])) as running:
            yield running
    finally:
        for life in lives:
            await life.close(5)


def test_several_servers_have_the_most_generous_limits_of_a_call() -> None:
    apps = small("a"), small("b")
    apps[0].budget, apps[1].budget = (
        CallLimits(result_bytes=10, seconds=2, entries=30),
        CallLimits(result_bytes=20, seconds=1, entries=40),
    )
    apps[0].limits, apps[0].task_limits = Limits(concurrent_calls=3), TaskLimits(seconds=4)
    app = make_gateway([], apps, "auto", [])
    assert app.budget == CallLimits(result_bytes=20, seconds=2, entries=40)
    assert (app.limits, app.task_limits) == (apps[0].limits, apps[0].task_limits)


@asynccontextmanager
async def as_(
    running: Run[Any], *names: str, scopes: str | None = None, version: str = ERAS[0]
) -> AsyncIterator[list[Peer]]:
    allowed = None if scopes is None else frozenset(scopes.split())
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                talking(running, version, principal=Principal(f"key of {name}", name, allowed))
            )
            for name in names
        ]


def tools_of(name: str) -> Server[Any]:
    app = small(name)

    @app.tool(name=f"look_{name}", read_only=True)
    async def look() -> str:
        """Look."""
        return "seen"

    @app.tool(name=f"change_{name}")
    async def change() -> str:
        """Change."""
        return "changed"

    return app


def granting(**scopes: str) -> Rules:
    return Rules(principals={name: Entitlement((frozenset(text.split()),)) for name, text in scopes.items()})


async def names(peer: Peer) -> list[str]:
    return [tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]]


@pytest.mark.parametrize("version", ERAS)
async def test_each_principal_sees_its_permitted_tools_of_each_member(version: str) -> None:
    a, b = (tools_of("a"), None, granting(ada="a:read")), (tools_of("b"), None, granting(bob="b:read", ada="b:write"))
    async with joined(a, b) as running, as_(running, "ada", "bob", "eve", version=version) as (ada, bob, eve):
        for _ in range(2):
            assert await names(ada) == ["look_a", "look_b", "change_b"]
            assert await names(bob) == ["look_a", "change_a", "look_b"]
            assert await names(eve) == ["look_a", "change_a", "look_b", "change_b"]
        assert "unknown tool" in (await ada.call("change_a"))["error"]["message"]
        assert await eve.text("change_a") == "changed"


@pytest.mark.parametrize("version", ERAS)
async def test_a_token_needs_the_scope_of_the_called_member(version: str) -> None:
    members: list[Member] = [(tools_of(name), None, Rules()) for name in ("a", "b")]
    async with joined(*members) as running, as_(running, "ada", scopes="a:write", version=version) as (ada,):
        assert await ada.text("change_a") == "changed"
        assert (await ada.call("change_b"))["error"]["data"] == {"scopes": ["b:write"]}
        assert (await ada.call("look_b"))["error"]["data"] == {"scopes": ["b:read"]}


async def test_a_tool_of_a_third_party_needs_scopes_by_the_name_that_its_own_endpoint_lists() -> None:
    """The one after `rename`, without the prefix and the digest of a joined list."""
    app, joined_name = small("b"), "b__loadall-139a2467d1"

    @app.tool(name="load.all")
    @app.tool(name="echo")
    @app.tool(name="plain", read_only=True)
    async def do() -> None:
        """Do nothing."""

    scopes = {name: frozenset({f"b:{name}"}) for name in ("load.all", "say", "echo", joined_name)}
    async with Behind(app, name="b").serving() as upstream:
        door = bridge(upstream, extensions=[rules(Names(rename={"echo": "say"}))])
        async with joined((door, None, Rules(scopes))) as running, as_(running, "ada", scopes="b:read") as (ada,):
            needed = {name: (await ada.call(name))["error"]["data"]["scopes"] for name in await names(ada)}
    assert needed == {"plain": ["b:write"], "say": ["b:say"], joined_name: ["b:load.all"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text(f"of {name}")
    return tmp_path


def files(folder: Path) -> Member:
    settings = FilesystemSettings(roots=[folder], poll=True)
    narrowed = {name: settings.narrow(Narrowing(roots=[folder / name])) for name in ("ada", "bob")}
    return filesystem, settings, Rules(principals={name: Entitlement((), one) for name, one in narrowed.items()})


async def test_each_principal_has_its_own_directories(folder: Path) -> None:
    async with joined(files(folder), (tools_of("b"), None, Rules())) as running, as_(running, "ada", "bob") as peers:
        for peer, own, other in zip(peers, ("ada", "bob"), ("bob", "ada"), strict=True):
            uri, foreign = (f"file://{folder}/{name}/file.txt" for name in (own, other))
            assert await peer.text("read_text_file", path=f"{folder}/{own}/file.txt") == f"of {own}"
            assert "outside" in await peer.text("read_text_file", path=f"{folder}/{other}/file.txt")
            shown = str((await peer.request("resources/list"))["result"]["resources"])
            assert other not in shown.replace(str(folder), "")
            assert "result" in await peer.request("resources/read", {"uri": uri})
            assert "error" in await peer.request("resources/read", {"uri": foreign})
            assert "error" in await peer.request("resources/subscribe", {"uri": foreign})


@pytest.mark.slow
async def test_changes_are_reported_only_to_their_principal(folder: Path) -> None:
    async with joined(files(folder)) as running, as_(running, "ada", "bob") as (ada, bob):
        for peer, name in ((ada, "ada"), (bob, "bob")):
            await peer.request("resources/list")
            await peer.request("resources/subscribe", {"uri": f"file://{folder}/{name}/file.txt"})
        (folder / "ada" / "file.txt").write_text("another text")
        (folder / "ada" / "new").mkdir()
        with anyio.fail_after(20):
            await ada.other("notifications/resources/updated")
            await ada.other("notifications/resources/list_changed")
        await bob.text("list_allowed_directories")
        assert bob.others == []


async def test_a_stream_acknowledges_only_permitted_resources(folder: Path) -> None:
    async with joined(files(folder)) as running, as_(running, "ada", version=STATELESS) as (ada,):
        uris = [f"file://{folder}/{name}/file.txt" for name in ("ada", "bob")]
        await ada.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
        told = await ada.other("notifications/subscriptions/acknowledged")
        assert told["params"]["notifications"]["resourceSubscriptions"] == uris[:1]
