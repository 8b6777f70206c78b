"""The filesystem server through its front door, every message checked by the schemas. What is shown in
every version goes through a process; the rest needs none."""

import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from shared.kit.rooted.entries import etag_of
from tests.servers.peers import ERAS, Peer, inside
from tests.wire import Wire, with_envelope

every_era = pytest.mark.parametrize("era", ERAS)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


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
async def test_a_directory_is_listed_as_text(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("12345")
    (tmp_path / "sub").mkdir()
    async with served(tmp_path, era) as peer:
        result = await peer.call("list_directory", path=".")
    assert result["content"] == [{"type": "text", "text": "[FILE] a.txt\n[DIR] sub"}]
    assert "structuredContent" not in result


async def test_writing_tools_are_not_listed_without_allow_write(tmp_path: Path) -> None:
    async with inside(app, tmp_path) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)


@pytest.mark.parametrize(
    "tool", ["write_file", "edit_file", "create_directory", "move_file", "copy_file", "delete_file"]
)
async def test_calling_a_writing_tool_names_the_flag_that_allows_it(tmp_path: Path, tool: str) -> None:
    async with inside(app, tmp_path) as peer:
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
    async with inside(app, tmp_path, "--allow-write") as peer:
        edits = [{"oldText": "one", "newText": "1"}]
        diff = await peer.text("edit_file", path="a.txt", edits=edits, dryRun=True)
    assert "+1\n" in diff
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_files_are_written_moved_and_made_room_for(tmp_path: Path) -> None:
    async with inside(app, tmp_path, "--allow-write") as peer:
        await peer.text("create_directory", path="x/y")
        await peer.text("write_file", path="x/y/a.txt", content="hé\n")
        await peer.text("move_file", source="x/y/a.txt", destination="b.txt")
    assert (tmp_path / "b.txt").read_text("utf-8") == "hé\n"
    assert os.listdir(tmp_path / "x/y") == []


async def test_files_are_copied_and_deleted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("12345")
    async with inside(app, tmp_path, "--allow-write") as peer:
        assert await peer.text("copy_file", source="a", destination="c") == "Copied a to c: 2 entries, 5 bytes"
        assert (await peer.text("delete_file", path="a")).startswith("not_empty: a: ")
        assert await peer.text("delete_file", path="a", recursive=True) == "Deleted a: 2 entries"
        assert await peer.text("delete_file", path="c/b.txt") == "Deleted c/b.txt: 1 entry"
    assert (os.listdir(tmp_path), os.listdir(tmp_path / "c")) == (["c"], [])


async def test_an_image_is_an_image_block(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    async with inside(app, tmp_path) as peer:
        (block,) = (await peer.call("read_media_file", path="dot.png"))["content"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(block["data"]) == PIXEL


async def test_of_several_files_one_that_is_missing_gives_its_error_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    async with inside(app, tmp_path) as peer:
        text = await peer.text("read_multiple_files", paths=["a.txt", "nope.txt", "a.txt"])
    mark = text[: len("--- 12345678 ")]
    first, second, third = text.removeprefix(mark).split(f"\n{mark}")
    assert (first, third) == ("a.txt:\nA", "a.txt:\nA")
    assert second.startswith("nope.txt: Error - not_found")


async def test_a_tree_is_shown_without_what_is_excluded(tmp_path: Path) -> None:
    for path in ("src/a.py", "node_modules/x.js"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    async with inside(app, tmp_path) as peer:
        text = await peer.text("directory_tree", path=".", excludePatterns=["node_modules"])
    assert text.splitlines()[1:] == ["  src/", "    a.py"]


async def test_files_are_found_by_a_glob(tmp_path: Path) -> None:
    for path in ("a.py", "src/b.py", "src/c.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    async with inside(app, tmp_path) as peer:
        assert await peer.text("search_files", path=".", pattern="*.py") == "a.py\nsrc/b.py"


@every_era
async def test_lines_are_found_by_what_they_say(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.py").write_text("def one():\n    pass\n")
    (tmp_path / "b.txt").write_text("def two():\n")
    async with served(tmp_path, era) as peer:
        text = await peer.text("search_content", path=".", pattern=r"def \w+", glob="*.py", context=1)
    assert text == "a.py:1: def one():\na.py-2-     pass"


async def test_a_search_goes_on_by_its_cursor(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    async with inside(app, tmp_path) as peer:
        *first, note = (await peer.text("search_files", path=".", pattern="*", limit=2)).splitlines()
        cursor = note.removeprefix("[stopped: limit; for more, cursor: ").removesuffix("]")
        rest = await peer.text("search_files", path=".", pattern="*", cursor=cursor)
    assert (first, rest) == (["a", "b"], "c")


async def test_f16_a_tree_of_more_than_a_result_can_hold_is_cut_and_says_so(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"{number:080}").touch()
    async with served(tmp_path, "2025-11-25", "--max-result", "20000") as peer:
        tree = await peer.text("directory_tree", path=".")
        listing = await peer.text("list_directory", path=".")
        found = await peer.text("search_files", path=".", pattern="*")
    assert "[cut: " in tree
    assert "[cut: " in listing
    assert "[stopped: size" in found


async def test_f17_a_brace_bomb_is_refused_at_once(tmp_path: Path) -> None:
    async with inside(app, tmp_path) as peer:
        result = await peer.call("search_files", path=".", pattern="{a,b}" * 20)
    assert result["isError"]
    assert result["content"][0]["text"].startswith("bad_pattern: ")


async def test_information_on_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    async with inside(app, tmp_path) as peer:
        info = (await peer.call("get_file_info", path="a.json"))["structuredContent"]
    assert (info["kind"], info["size"], info["mime"]) == ("file", 2, "application/json")


async def test_the_allowed_directories_are_named_with_their_permissions(tmp_path: Path) -> None:
    one, two = (tmp_path.resolve() / name for name in ("one", "two"))
    one.mkdir()
    two.mkdir()
    async with inside(app, one, "--root", f"{two}:rw") as peer:
        text = await peer.text("list_allowed_directories")
    assert text.splitlines() == ["Allowed directories:", f"{one} (read only)", f"{two} (read and write)"]


async def test_one_writable_directory_brings_the_writing_tools_for_itself_only(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with inside(app, tmp_path / "one", "--root", f"{tmp_path / 'two'}:rw") as peer:
        assert (await peer.text("write_file", path="two/a", content="")).startswith("Created two/a: 0 bytes, etag ")
        refused = await peer.text("write_file", path="one/a", content="")
    assert refused.startswith("read_only: one/a: is in a directory that may only be read")
    assert os.listdir(tmp_path / "one") == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/no-such-file", "../x", "a/../../x", "file:///etc/passwd"])
async def test_what_lies_outside_is_refused_whether_or_not_it_exists(tmp_path: Path, path: str) -> None:
    async with inside(app, tmp_path) as peer:
        result = await peer.call("read_text_file", path=path)
    assert result["isError"]
    assert result["content"][0]["text"].startswith(f"outside_roots: {path}: is outside the allowed directories")


@every_era
async def test_a_text_over_the_limit_is_read_page_by_page(tmp_path: Path, era: str) -> None:
    whole = "".join(f"line {number}\n" for number in range(10_000))
    (tmp_path / "big.txt").write_text(whole)
    async with served(tmp_path, era, "--max-read", "40000") as peer:
        pages, arguments = [], {"path": "big.txt"}
        while True:
            page, _, note = (await peer.text("read_text_file", **arguments)).rpartition("\n[")
            if not note.startswith("cut: "):
                break
            pages.append(page)
            arguments["cursor"] = note.rpartition(" ")[2].removesuffix("]")
        pages.append(await peer.text("read_text_file", **arguments))
    assert "".join(pages) == whole
    assert len(pages) == 3


async def test_a_cut_text_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("0123456789\n" * 20_000)
    async with inside(app, tmp_path) as peer:
        result = await peer.call("read_text_file", path="big.txt")
    note = result["content"][0]["text"].rpartition("\n")[2]
    cursor = result["_meta"]["cursor"]
    assert cursor.startswith(result["_meta"]["etag"])
    assert note == (
        f"[cut: 91,663 of 220,000 bytes shown; the rest begins at line 8,334; go on with cursor {cursor}]"
    )


@every_era
async def test_every_read_gives_the_etag(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("A")
    etag = etag_of((tmp_path / "a.txt").stat())
    async with served(tmp_path, era) as peer:
        assert (await peer.call("read_text_file", path="a.txt"))["_meta"]["etag"] == etag
        assert (await peer.call("read_media_file", path="a.txt"))["_meta"]["etag"] == etag
        assert (await peer.call("read_multiple_files", paths=["a.txt"]))["_meta"]["etags"] == {"a.txt": etag}


async def test_a_charset_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Señor Müller\n".encode("latin-1"))
    async with inside(app, tmp_path) as peer:
        result = await peer.call("read_text_file", path="a.txt")
    assert result["content"][0]["text"] == "Señor Müller\n\n[charset cp1252]"
    assert result["_meta"]["charset"] == "cp1252"


@pytest.mark.parametrize("arguments", [{"head": 0}, {"head": -1}, {"head": 1.5}, {"tail": 0}, {"offset": 0}])
async def test_f6_numbers_of_lines_that_mean_nothing_are_refused(tmp_path: Path, arguments: dict[str, float]) -> None:
    (tmp_path / "a.txt").write_text("A")
    async with inside(app, tmp_path) as peer:
        result = await peer.call("read_text_file", path="a.txt", **arguments)
    assert result["isError"]
    assert next(iter(arguments)) in result["content"][0]["text"]


async def test_f7_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    async with inside(app, tmp_path) as peer:
        result = await peer.call("read_text_file", path="a.txt", hed=1)
    assert result["isError"]
    assert "unknown argument 'hed', did you mean 'head'?" in result["content"][0]["text"]


@pytest.mark.slow
async def test_f15_pages_of_a_large_file_take_little_memory(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        for position in (0, 200_000_000):
            file.seek(position)
            file.write(b"0123456789abcdef0123456789abcde\n" * 65_536)
    async with served(tmp_path, "2025-11-25", "--max-read", "900000") as peer:
        await peer.text("read_text_file", path="big.txt", head=1)
        before = peak_memory(peer)
        result = await peer.call("read_text_file", path="big.txt")
        for arguments in ({"cursor": result["_meta"]["cursor"]}, {"tail": 9}, {"offset": 100_000}):
            await peer.text("read_text_file", path="big.txt", **arguments)
        assert peak_memory(peer) - before < 32 * 1024 * 1024


def peak_memory(peer: Peer) -> int:
    status = Path(f"/proc/{peer.wire._process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@every_era
async def test_a_disabled_tool_is_unknown(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, era, "--disable-tool", "read_file", "--disable-tool", "write_file") as peer:
        names = [tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]]
        answer = await peer.request("tools/call", name="read_file", arguments={"path": "a"})
    assert "read_text_file" in names
    assert "read_file" not in names
    assert answer["error"] == {"code": -32602, "message": "unknown tool: read_file"}


async def test_tools_disabled_once_are_there_the_next_time_in_their_order(tmp_path: Path) -> None:
    before = app.tools.all()
    async with app.open(Settings(roots=[tmp_path], disable_tool=["read_file", "read_file"])) as running:
        assert [tool.name for tool in before if tool not in running.features.tools.all()] == ["read_file"]
    assert app.tools.all() == before


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
    async with inside(app, tmp_path) as peer:
        (listed,) = (await peer.request("resources/list"))["result"]["resources"]
        assert listed["uri"] == uri_of(tmp_path)
        assert (await peer.request("resources/read", uri=uri))["error"]["code"] == -32002
        assert (await peer.request("resources/subscribe", uri=uri))["error"]["code"] == -32002


async def test_the_operator_opens_one_name_and_closes_another(tmp_path: Path) -> None:
    for name in (".env", "notes.txt", "id_rsa"):
        (tmp_path / name).write_text(name)
    async with inside(app, tmp_path, "--allow", ".env", "--deny", "notes*") as peer:
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
    assert [(resource["uri"], resource["size"]) for resource in listed[1:]] == [(uri, 5)]
    if era >= "2025-06-18":
        facts = {
            "etag": etag_of((tmp_path / "a b.txt").stat()),
            "lastModified": listed[1]["annotations"]["lastModified"],
        }
        assert contents[0].pop("_meta") == facts
    assert contents == [{"uri": uri, "mimeType": "text/plain", "text": "hello"}]


async def test_a_binary_file_is_a_blob(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    async with inside(app, tmp_path) as peer:
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
    with anyio.fail_after(30):
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
    async with inside(app, tmp_path) as peer:
        answer = await peer.request("resources/subscribe", uri="file:///etc/passwd")
    assert answer["error"]["code"] == -32002


async def test_whoever_listed_the_resources_is_told_of_new_ones(tmp_path: Path) -> None:
    async with served(tmp_path) as peer:
        await peer.request("resources/list")
        (tmp_path / "new.txt").touch()
        message = await peer.wire.receive()
    assert message["method"] == "notifications/resources/list_changed"


async def test_the_surface_is_small_enough_for_a_model(tmp_path: Path) -> None:
    async with inside(app, tmp_path, "--allow-write") as peer:
        tools = (await peer.request("tools/list"))["result"]
    assert len(json.dumps(tools, separators=(",", ":"))) <= 16_384
