"""The filesystem server through its front door: a real process, both eras, every message checked by the schemas."""

import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.wire import Wire, with_envelope

ERAS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
every_era = pytest.mark.parametrize("era", ERAS)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Peer:
    """One server, spoken to in one era."""

    def __init__(self, wire: Wire, era: str) -> None:
        self.wire = wire
        self.stateless = era == "2026-07-28"

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        if self.stateless:
            return await self.wire.stateless(method, params)
        return await self.wire.request(method, params)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.request("tools/call", name=tool, arguments=arguments)
        result: dict[str, Any] = answer["result"]
        return result

    async def text(self, tool: str, **arguments: Any) -> str:
        result = await self.call(tool, **arguments)
        return "".join(block["text"] for block in result["content"])


@asynccontextmanager
async def served(folder: Path, era: str = "2025-11-25", *options: str) -> AsyncIterator[Peer]:
    async with Wire([sys.executable, "-m", "servers.filesystem", *options, str(folder)]) as wire:
        if era != "2026-07-28":
            await wire.initialize(era)
        yield Peer(wire, era)


@every_era
async def test_a_text_file_is_read(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    async with served(tmp_path, era) as peer:
        assert await peer.text("read_text_file", path="a.txt", head=2) == "one\ntwo\n"


@every_era
async def test_a_directory_is_listed_with_the_same_facts_in_both_forms(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("12345")
    (tmp_path / "sub").mkdir()
    async with served(tmp_path, era) as peer:
        result = await peer.call("list_directory", path=".")
    assert result["content"][0]["text"] == "[FILE] a.txt\n[DIR] sub"
    if era >= "2025-06-18":
        assert [entry["name"] for entry in result["structuredContent"]["entries"]] == ["a.txt", "sub"]


async def test_writing_tools_are_not_listed_without_allow_write(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)


@pytest.mark.parametrize(
    "tool", ["write_file", "edit_file", "create_directory", "move_file", "copy_file", "delete_file"]
)
async def test_calling_a_writing_tool_names_the_flag_that_allows_it(tmp_path: Path, tool: str) -> None:
    async with served(tmp_path) as peer:
        result = await peer.call(tool)
    assert result["isError"]
    assert "--allow-write" in result["content"][0]["text"]


@every_era
async def test_a_file_is_edited_and_the_diff_shown(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    async with served(tmp_path, era, "--allow-write") as peer:
        diff = await peer.text("edit_file", path="a.txt", edits=[{"oldText": "two", "newText": "2"}])
    assert "-two\n+2\n" in diff
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"


async def test_a_dry_run_shows_the_diff_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with served(tmp_path, "2025-11-25", "--allow-write") as peer:
        edits = [{"oldText": "one", "newText": "1"}]
        diff = await peer.text("edit_file", path="a.txt", edits=edits, dryRun=True)
    assert "+1\n" in diff
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_files_are_written_moved_and_made_room_for(tmp_path: Path) -> None:
    async with served(tmp_path, "2025-11-25", "--allow-write") as peer:
        await peer.text("create_directory", path="x/y")
        await peer.text("write_file", path="x/y/a.txt", content="hé\n")
        await peer.text("move_file", source="x/y/a.txt", destination="b.txt")
    assert (tmp_path / "b.txt").read_text("utf-8") == "hé\n"
    assert os.listdir(tmp_path / "x/y") == []


async def test_files_are_copied_and_deleted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("12345")
    async with served(tmp_path, "2025-11-25", "--allow-write") as peer:
        assert await peer.text("copy_file", source="a", destination="c") == "Copied a to c: 2 entries, 5 bytes"
        assert (await peer.text("delete_file", path="a")).startswith("not_empty: a: ")
        assert await peer.text("delete_file", path="a", recursive=True) == "Deleted a: 2 entries"
        assert await peer.text("delete_file", path="c/b.txt") == "Deleted c/b.txt: 1 entry"
    assert (os.listdir(tmp_path), os.listdir(tmp_path / "c")) == (["c"], [])


async def test_an_image_is_an_image_block(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    async with served(tmp_path) as peer:
        (block,) = (await peer.call("read_media_file", path="dot.png"))["content"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(block["data"]) == PIXEL


async def test_of_several_files_one_that_is_missing_gives_its_error_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    async with served(tmp_path) as peer:
        text = await peer.text("read_multiple_files", paths=["a.txt", "nope.txt", "a.txt"])
    first, second, third = text.split("\n---\n")
    assert (first, third) == ("a.txt:\nA", "a.txt:\nA")
    assert second.startswith("nope.txt: Error - not_found")


async def test_a_tree_is_shown_without_what_is_excluded(tmp_path: Path) -> None:
    for path in ("src/a.py", "node_modules/x.js"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    async with served(tmp_path) as peer:
        text = await peer.text("directory_tree", path=".", excludePatterns=["node_modules"])
    assert text.splitlines()[1:] == ["  src/", "    a.py"]


async def test_files_are_found_by_a_glob(tmp_path: Path) -> None:
    for path in ("a.py", "src/b.py", "src/c.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    async with served(tmp_path) as peer:
        assert await peer.text("search_files", path=".", pattern="*.py") == "a.py\nsrc/b.py"


async def test_information_on_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    async with served(tmp_path) as peer:
        info = (await peer.call("get_file_info", path="a.json"))["structuredContent"]
    assert (info["kind"], info["size"], info["mime"]) == ("file", 2, "application/json")


async def test_the_allowed_directories_are_named_with_their_permissions(tmp_path: Path) -> None:
    one, two = (tmp_path.resolve() / name for name in ("one", "two"))
    one.mkdir()
    two.mkdir()
    async with served(one, "2025-11-25", "--root", f"{two}:rw") as peer:
        result = await peer.call("list_allowed_directories")
    assert result["structuredContent"] == {"directories": [str(one), str(two)], "writable": [str(two)]}
    lines = ["Allowed directories:", f"{one} (read only)", f"{two} (read and write)"]
    assert result["content"][0]["text"].splitlines() == lines


async def test_one_writable_directory_brings_the_writing_tools_for_itself_only(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with served(tmp_path / "one", "2025-11-25", "--root", f"{tmp_path / 'two'}:rw") as peer:
        assert (await peer.text("write_file", path="two/a", content="")).startswith("Created two/a: 0 bytes, etag ")
        refused = await peer.text("write_file", path="one/a", content="")
    assert refused.startswith("read_only: one/a: is in a directory that may only be read")
    assert os.listdir(tmp_path / "one") == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/no-such-file", "../x", "a/../../x", "file:///etc/passwd"])
async def test_what_lies_outside_is_refused_whether_or_not_it_exists(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as peer:
        result = await peer.call("read_text_file", path=path)
    assert result["isError"]
    assert result["content"][0]["text"].startswith(f"outside_roots: {path}: is outside the allowed directories")


async def test_a_text_over_the_limit_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("0123456789\n" * 10_000)
    async with served(tmp_path, "2025-11-25", "--max-result", "20000") as peer:
        text = await peer.text("read_text_file", path="big.txt")
    assert len(text) < 20_000
    assert text.endswith("of 110,000 bytes shown; the rest begins at line 910; use head or tail]")


# What is denied


@every_era
async def test_a_secret_is_named_and_nothing_else(tmp_path: Path, era: str) -> None:
    (tmp_path / ".env").write_text("PASSWORD=1")
    (tmp_path / "link.txt").symlink_to(".env")
    async with served(tmp_path, era) as peer:
        assert "[FILE] .env" in await peer.text("list_directory", path=".")
        for tool in ("read_text_file", "read_file", "read_media_file", "get_file_info"):
            assert (await peer.text(tool, path=".env")).startswith("denied: .env: is denied to this server")
        assert (await peer.text("read_text_file", path="link.txt")).startswith("denied: link.txt: ")
        assert "denied: .env" in await peer.text("read_multiple_files", paths=[".env", "link.txt"])


async def test_a_secret_is_no_resource(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PASSWORD=1")
    uri = uri_of(tmp_path / ".env")
    async with served(tmp_path) as peer:
        assert (await peer.request("resources/list"))["result"]["resources"] == []
        assert (await peer.request("resources/read", uri=uri))["error"]["code"] == -32002
        assert (await peer.request("resources/subscribe", uri=uri))["error"]["code"] == -32002


async def test_the_operator_opens_one_name_and_closes_another(tmp_path: Path) -> None:
    for name in (".env", "notes.txt", "id_rsa"):
        (tmp_path / name).write_text(name)
    async with served(tmp_path, "2025-11-25", "--allow", ".env", "--deny", "notes*") as peer:
        assert await peer.text("read_text_file", path=".env") == ".env"
        for name in ("notes.txt", "id_rsa"):
            assert (await peer.text("read_text_file", path=name)).startswith("denied: ")


# Resources


def uri_of(path: Path) -> str:
    return path.resolve().as_uri()


@every_era
async def test_a_file_is_a_resource(tmp_path: Path, era: str) -> None:
    (tmp_path / "a b.txt").write_text("hello")
    uri = uri_of(tmp_path / "a b.txt")
    async with served(tmp_path, era) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        contents = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    assert [(resource["uri"], resource["size"]) for resource in listed] == [(uri, 5)]
    assert contents == [{"uri": uri, "mimeType": "text/plain", "text": "hello"}]


async def test_a_binary_file_is_a_blob(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    async with served(tmp_path) as peer:
        (contents,) = (await peer.request("resources/read", uri=uri_of(tmp_path / "dot.png")))["result"]["contents"]
    assert base64.b64decode(contents["blob"]) == PIXEL


@every_era
@pytest.mark.parametrize("name", ["missing.txt", "../outside.txt", "%2e%2e/outside.txt"])
async def test_a_resource_that_is_not_there_or_outside_is_not_found(tmp_path: Path, era: str, name: str) -> None:
    uri = f"{uri_of(tmp_path)}/{name}"
    async with served(tmp_path, era) as peer:
        error = (await peer.request("resources/read", uri=uri))["error"]
    assert error["code"] == (-32602 if era == "2026-07-28" else -32002)
    assert error["data"] == {"uri": uri}


async def updated(peer: Peer, uri: str) -> None:
    """Waits for the notification that tells of a change of `uri`."""
    with anyio.fail_after(10):
        while True:
            for message in peer.wire.notifications:
                if message["method"] == "notifications/resources/updated" and message["params"]["uri"] == uri:
                    return
            message = await peer.wire.receive()
            if "method" in message and "id" not in message:
                peer.wire.notifications.append(message)


async def subscribe(peer: Peer, uri: str) -> None:
    if not peer.stateless:
        await peer.request("resources/subscribe", uri=uri)
        return
    params = {"notifications": {"resourceSubscriptions": [uri, "file:///etc/passwd"]}}
    await peer.wire.send(
        {"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": with_envelope(params)}
    )
    acknowledged = await peer.wire.receive()
    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [uri]}


@every_era
async def test_a_subscriber_is_told_of_a_change_from_outside(tmp_path: Path, era: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one")
    async with served(tmp_path, era) as peer:
        await subscribe(peer, uri_of(file))
        file.write_text("two")
        await updated(peer, uri_of(file))
        contents = (await peer.request("resources/read", uri=uri_of(file)))["result"]["contents"]
    assert contents[0]["text"] == "two"


async def test_a_subscription_survives_a_rename_over_the_file(tmp_path: Path) -> None:
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("one")
    async with served(tmp_path) as peer:
        await subscribe(peer, uri_of(file))
        for text in ("two", "three"):
            other.write_text(text)
            other.replace(file)
            await updated(peer, uri_of(file))
            peer.wire.notifications.clear()


async def test_a_file_outside_can_not_be_subscribed_to(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        answer = await peer.request("resources/subscribe", uri="file:///etc/passwd")
    assert answer["error"]["code"] == -32002


async def test_whoever_listed_the_resources_is_told_of_new_ones(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        await peer.request("resources/list")
        (tmp_path / "new.txt").touch()
        message = await peer.wire.receive()
    assert message["method"] == "notifications/resources/list_changed"


async def test_the_surface_is_small_enough_for_a_model(tmp_path: Path) -> None:
    async with served(tmp_path, "2025-11-25", "--allow-write") as peer:
        tools = (await peer.request("tools/list"))["result"]
    assert len(json.dumps(tools)) < 16_000
