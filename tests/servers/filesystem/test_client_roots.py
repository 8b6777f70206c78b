"""`--client-roots` through the front door: a client works where its roots and the operator's directories meet."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from tests.servers.filesystem.conftest import SECRET
from tests.servers.filesystem.test_changes import cursor_of
from tests.servers.filesystem.test_confinement import filled
from tests.servers.filesystem.test_server import Peer, subscribe, updated, uri_of
from tests.servers.filesystem.test_subscriptions import http
from tests.shared.server.peer import STATELESS, talking
from tests.shared.transports.http.http_wire import Json, Site, events
from tests.wire import Wire, with_envelope

ROOTS = {"roots": {"listChanged": True}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory for the operator: with a project, another one, and a secret beside them."""
    for name in ("project/sub", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "sub" / "file.txt").write_text("mine")
    (tmp_path / "other" / "file.txt").write_text("other")
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


def named(*paths: Path) -> Json:
    return {"roots": [{"uri": uri_of(path)} for path in paths]}


@asynccontextmanager
async def served(folder: Path, roots: Json, *options: str, capabilities: Json = ROOTS) -> AsyncIterator[Peer]:
    """A client of the handshake era that names these roots when it is asked."""
    command = [sys.executable, "-m", "servers.filesystem", "--client-roots", *options, str(folder)]
    async with Wire(command, answers={"roots/list": roots}) as wire:
        await wire.initialize(capabilities=capabilities)
        yield Peer(wire, "2025-11-25")


def asked(peer: Peer) -> int:
    return [message["method"] for message in peer.wire.server_requests].count("roots/list")


async def allowed(peer: Peer) -> list[str]:
    """The lines that tell where this client may work."""
    return (await peer.text("list_allowed_directories")).splitlines()[1:]


# Where a client works


async def test_f18_the_roots_of_a_client_narrow_those_of_the_operator(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "file.txt").write_text(SECRET)
    async with served(folder, named(folder / "project")) as peer:
        assert await allowed(peer) == [f"{folder}/project (read only)"]
        assert await peer.text("read_text_file", path="sub/file.txt") == "mine"
        assert await peer.text("read_text_file", path=str(folder / "project/sub/file.txt")) == "mine"
        for path in ("secret.txt", "other/file.txt", "none", "project/../secret.txt", "/etc/passwd"):
            assert (await peer.text("read_text_file", path=str(folder / path))).startswith("outside_roots: "), path


@pytest.mark.parametrize("above", [Path("/"), Path("..")])
async def test_f18_roots_that_hold_the_operators_give_these_and_no_more(folder: Path, above: Path) -> None:
    async with served(folder, named((folder / above).resolve())) as peer:
        assert await allowed(peer) == [f"{folder} (read only)"]
        assert await peer.text("read_text_file", path="secret.txt") == SECRET
        assert (await peer.text("read_text_file", path="/etc/passwd")).startswith("outside_roots: ")


@pytest.mark.parametrize("roots", [named(), named(Path("/usr")), {"roots": [{"uri": "https://example.org"}]}])
async def test_f18_without_a_root_inside_there_is_nothing(folder: Path, roots: Json) -> None:
    async with served(folder, roots) as peer:
        assert await allowed(peer) == ["none, since no root of the client is in a directory of this server"]
        for path in (".", str(folder), str(folder / "secret.txt"), "/usr"):
            assert (await peer.text("list_directory", path=path)).startswith("outside_roots: "), path
        assert (await peer.request("resources/list"))["result"]["resources"] == []


async def test_a_client_without_roots_works_in_the_operators(folder: Path) -> None:
    async with served(folder, named(), capabilities={}) as peer:
        assert await allowed(peer) == [f"{folder} (read only)"]
        assert asked(peer) == 0


async def test_without_the_option_a_client_is_not_asked(folder: Path) -> None:
    async with served(folder, named(), "--no-client-roots") as peer:
        assert await allowed(peer) == [f"{folder} (read only)"]
        assert asked(peer) == 0


async def test_a_client_is_asked_once_and_again_after_a_change(folder: Path) -> None:
    async with served(folder, named(folder / "project")) as peer:
        await peer.request("tools/list")
        assert asked(peer) == 0
        for _ in range(3):
            assert await allowed(peer) == [f"{folder}/project (read only)"]
        assert asked(peer) == 1
        peer.wire.answers["roots/list"] = named(folder / "other", folder / "project" / "sub")
        await peer.wire.notify("notifications/roots/list_changed")
        assert await allowed(peer) == [f"{folder}/other (read only)", f"{folder}/project/sub (read only)"]
        assert (await peer.text("list_directory", path=str(folder / "project"))).startswith("outside_roots: ")
        assert asked(peer) == 2


async def test_each_part_keeps_the_permission_of_the_operator(folder: Path) -> None:
    inner = ["--root", f"{folder}/project/sub:rw"]
    async with served(folder, named(folder / "project", folder / "other"), *inner) as peer:
        assert sorted(await allowed(peer)) == [
            f"{folder}/other (read only)",
            f"{folder}/project (read only)",
            f"{folder}/project/sub (read and write)",
        ]
        begins = {"project/sub/new": "Created ", "project/new": "read_only: ", "new": "outside_roots: "}
        for path, begin in begins.items():
            assert (await peer.text("write_file", path=str(folder / path), content="x")).startswith(begin)


ACT_ON_LINKS = {"get_file_info", "move_file", "copy_file", "delete_file"}
"""Tools to which a link is a thing of its own, which is inside."""


@pytest.mark.slow
async def test_no_tool_and_no_link_gets_out_of_the_roots(folder: Path) -> None:
    links = {"link": "../secret.txt", "up": "..", "absolute": str(folder), "missing": "../none"}
    for name, target in links.items():
        (folder / "project" / name).symlink_to(target)
    outside = [str(folder / "secret.txt"), str(folder), "link", "up/secret.txt", "absolute/other", "missing"]
    async with served(folder, named(folder / "project"), "--allow-write") as peer:
        for tool in (await peer.request("tools/list"))["result"]["tools"]:
            name, schema = tool["name"], {"required": ["path", "edits"], **tool["inputSchema"]}
            for path in outside if name not in ("list_allowed_directories", "changes") else ():
                if name not in ACT_ON_LINKS or "/" in path:
                    text = await peer.text(name, **filled(schema, path, name))
                    assert "outside_roots: " in text, (name, path)
                    assert SECRET not in text
    assert (folder / "secret.txt").read_text() == SECRET


# Resources and changes


async def test_resources_are_those_in_the_roots(folder: Path) -> None:
    (folder / "project" / "link").symlink_to("../secret.txt")
    async with served(folder, named(folder / "project")) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        assert [one["uri"] for one in listed] == [uri_of(folder / "project"), uri_of(folder / "project/sub")]
        inside = await peer.request("resources/read", uri=uri_of(folder / "project/sub/file.txt"))
        assert inside["result"]["contents"][0]["text"] == "mine"
        for path in (folder / "secret.txt", folder, folder / "none"):
            assert (await peer.request("resources/read", uri=uri_of(path)))["error"]["code"] == -32002
        assert (await peer.request("resources/read", uri=uri_of(folder) + "/project/link"))["error"]["code"] == -32002


async def test_a_path_is_completed_within_the_roots(folder: Path) -> None:
    async with served(folder, named(folder / "project")) as peer:
        at = str(folder).lstrip("/")
        for typed, values in (("", [f"{at}/project/"]), (f"{at}/", [f"{at}/project/"]), (f"{at}/secret", [])):
            answer = await peer.request(
                "completion/complete",
                ref={"type": "ref/resource", "uri": "file:///{+path}{?offset,length}"},
                argument={"name": "path", "value": typed},
            )
            assert answer["result"]["completion"]["values"] == values


@pytest.mark.slow
async def test_w16_what_is_outside_of_the_roots_can_not_be_subscribed_to(folder: Path) -> None:
    async with served(folder, named(folder / "project")) as peer:
        for uri in (uri_of(folder / "secret.txt"), uri_of(folder) + "/*.txt", uri_of(folder)):
            assert (await peer.request("resources/subscribe", uri=uri))["error"]["code"] == -32002
        for uri in (uri_of(folder / "project/sub/file.txt"), uri_of(folder) + "/project/**/*.py"):
            await subscribe(peer, uri)
        (folder / "project" / "sub" / "file.txt").write_text("new")
        await updated(peer, uri_of(folder / "project/sub/file.txt"))
        (folder / "project" / "sub" / "a.py").touch()
        await updated(peer, uri_of(folder) + "/project/**/*.py")


@pytest.mark.slow
async def test_the_changes_are_those_in_the_roots(folder: Path) -> None:
    async with served(folder, named(folder / "project")) as peer:
        cursor = await cursor_of(peer)
        (folder / "secret.txt").write_text("new")
        (folder / "project" / "new.txt").touch()
        change, _ = (await peer.text("changes", cursor=cursor, wait=9)).splitlines()
        assert change.endswith(f" created {folder}/project/new.txt")
        assert (await peer.text("changes", path=str(folder))).startswith("outside_roots: ")


@pytest.mark.slow
async def test_a_new_file_at_the_top_of_a_root_changes_the_list(folder: Path) -> None:
    async with served(folder, named(folder / "project")) as peer:
        await peer.request("resources/list")
        (folder / "project" / "new.txt").touch()
        assert (await peer.wire.receive())["method"] == "notifications/resources/list_changed"


# Clients that do not help


async def test_a_client_that_does_not_name_its_roots_is_refused(folder: Path) -> None:
    command = [sys.executable, "-m", "servers.filesystem", "--client-roots", str(folder)]
    async with Wire(command) as wire:
        await wire.initialize(capabilities=ROOTS)
        for _ in range(2):
            call = {"name": "read_text_file", "arguments": {"path": str(folder / "secret.txt")}}
            await wire.send({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": call})
            question = await wire.receive()
            assert question["method"] == "roots/list"
            error = {"code": -32601, "message": "no such method"}
            await wire.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
            result = (await wire.response("call"))["result"]
            assert result["isError"]
            assert result["content"][0]["text"].endswith("the client refused roots/list")


# Over HTTP


class Session:
    """One session over HTTP, whose client names its roots when it is asked."""

    def __init__(self, site: Site, headers: Json, roots: Json) -> None:
        self.site = site
        self.headers = headers
        self.roots = roots

    async def text(self, tool: str, **arguments: Any) -> str:
        message = self.site.message("tools/call", {"name": tool, "arguments": arguments})
        async with self.site.stream(message, self.headers) as answer:
            if answer.headers["content-type"] == "application/json":
                return self._said(json.loads(await answer.aread()))
            async for event in events(answer):
                if event.get("method") == "roots/list":
                    reply = {"jsonrpc": "2.0", "id": event["id"], "result": self.roots}
                    assert (await self.site.post(reply, self.headers)).status_code == 202
                elif event.get("id") == message["id"]:
                    return self._said(event)
        raise AssertionError("no answer")

    @staticmethod
    def _said(answer: Json) -> str:
        text: str = answer["result"]["content"][0]["text"]
        return text


@pytest.mark.slow
async def test_two_sessions_work_each_in_its_own_roots_at_once(folder: Path) -> None:
    async with http(folder, "--client-roots") as site:
        sessions = {}
        for name in ("project", "other", "other"):
            headers = await site.initialize(capabilities=ROOTS)
            sessions[headers["Mcp-Session-Id"]] = Session(site, headers, named(folder / name)), folder / name
        plain = Session(site, await site.initialize(), named())

        async def work(session: Session, own: Path) -> None:
            for _ in range(5):
                assert await session.text("list_allowed_directories") == f"Allowed directories:\n{own} (read only)"
                assert (await session.text("read_text_file", path=str(folder / "secret.txt"))).startswith("outside")
                assert await plain.text("read_text_file", path="secret.txt") == SECRET

        async with anyio.create_task_group() as tasks:
            for session, own in sessions.values():
                tasks.start_soon(work, session, own)
        first, _ = next(iter(sessions.values()))
        first.roots = named(folder / "other")
        await site.post({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}, first.headers)
        assert await first.text("read_text_file", path=str(folder / "other/file.txt")) == "other"


@pytest.mark.slow
async def test_w9_what_another_client_subscribes_to_through_a_link_is_no_way_in(folder: Path) -> None:
    (folder / "project" / "link").symlink_to("../secret.txt")
    subscribe_to_link = "resources/subscribe", {"uri": uri_of(folder) + "/project/link"}
    async with http(folder, "--client-roots") as site:
        plain = await site.initialize()
        assert (await site.post(site.message(*subscribe_to_link), plain)).json()["result"] == {}
        session = Session(site, await site.initialize(capabilities=ROOTS), named(folder / "project"))
        await session.text("list_allowed_directories")
        answer = (await site.post(site.message(*subscribe_to_link), session.headers)).json()
        assert answer["error"]["code"] == -32002


# Without sessions


@asynccontextmanager
async def stateless(folder: Path) -> AsyncIterator[Wire]:
    async with Wire([sys.executable, "-m", "servers.filesystem", "--client-roots", str(folder)]) as wire:
        yield wire


async def in_rounds(wire: Wire, method: str, params: Json, roots: Json) -> Json:
    """The answer to a request, after the question for the roots."""
    asked = (await wire.stateless(method, params, capabilities={"roots": {}}))["result"]
    assert [one["method"] for one in asked["inputRequests"].values()] == ["roots/list"]
    brought = {"inputResponses": dict.fromkeys(asked["inputRequests"], roots), "requestState": asked["requestState"]}
    return await wire.stateless(method, {**params, **brought}, capabilities={"roots": {}})


async def test_f18_without_a_session_each_call_works_in_the_roots_it_brings(folder: Path) -> None:
    async with stateless(folder) as wire:
        for roots, text in ((named(folder / "project"), "outside_roots: "), (named(Path("/")), SECRET)):
            call = {"name": "read_text_file", "arguments": {"path": str(folder / "secret.txt")}}
            answer = await in_rounds(wire, "tools/call", call, roots)
            assert answer["result"]["content"][0]["text"].startswith(text)
        answer = await in_rounds(wire, "resources/read", {"uri": uri_of(folder / "secret.txt")}, named())
        assert answer["error"]["code"] == -32602


async def test_without_a_session_what_can_not_ask_gives_nothing(folder: Path) -> None:
    async with stateless(folder) as wire:
        for capabilities, count in (({"roots": {}}, 0), ({}, 4)):
            listed = await wire.stateless("resources/list", capabilities=capabilities)
            assert len(listed["result"]["resources"]) == count
        wanted = {"notifications": {"resourceSubscriptions": [uri_of(folder / "secret.txt")]}}
        params = with_envelope(wanted, capabilities={"roots": {}})
        await wire.send({"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": params})
        assert (await wire.receive())["params"]["notifications"] == {}


async def test_a_run_asks_for_roots_only_where_it_was_told_to_and_leaves_the_next_one_as_it_was(folder: Path) -> None:
    async def asks(**options: bool) -> bool:
        async with (
            app.open(Settings(roots=[folder], **options)) as running,
            talking(running, STATELESS, {"roots": {}}) as client,
        ):
            return "inputRequests" in (await client.call("list_allowed_directories"))["result"]

    assert [await asks(), await asks(client_roots=True), await asks()] == [False, True, False]
