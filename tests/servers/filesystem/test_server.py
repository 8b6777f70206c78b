"""The filesystem server through the protocol: one call of each kind, in a process where that matters."""

import base64
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.filesystem import server
from servers.filesystem.errors import FilesError
from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from shared.program.files.entries import etag_of
from tests.servers.filesystem.conftest import SECRET
from tests.servers.filesystem.serving import COMMAND, inside, served, uri_of
from tests.servers.peers import ERAS, Peer, text_of, wired_inside
from tests.wire import STATELESS

every_era = pytest.mark.parametrize("era", ERAS)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@every_era
async def test_read_tools_return_text_and_etag(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    etag = etag_of((tmp_path / "a.txt").stat())
    async with served(tmp_path, era) as peer:
        read = await peer.call("read_text_file", path="a.txt", head=2)
        assert (read["content"], read["_meta"]["etag"]) == ([{"type": "text", "text": "one\ntwo\n"}], etag)
        assert (await peer.call("read_media_file", path="a.txt"))["_meta"]["etag"] == etag
        assert (await peer.call("read_multiple_files", paths=["a.txt"]))["_meta"]["etags"] == {"a.txt": etag}


READING: list[tuple[str, Mapping[str, Any], str]] = [
    ("list_directory", {"path": "."}, "[FILE] a.py\n[DIR] node_modules\n[DIR] src"),
    ("directory_tree", {"path": "src", "excludePatterns": ["*.txt"]}, "src/\n  b.py"),
    ("search_files", {"path": ".", "pattern": "*.py"}, "a.py\nsrc/b.py"),
    (
        "search_content",
        {"path": ".", "pattern": r"def \w+", "glob": "*.py", "context": 1},
        "a.py:1: def one():\na.py-2-     pass",
    ),
    ("search_content", {"path": "src", "pattern": "none"}, "No matches found in 2 files"),
    (
        "search_files",
        {"path": "src", "pattern": "none"},
        "No matches found\n[a pattern without a wildcard is a whole name; *name* finds it within names]",
    ),
    (
        "search_files",
        {"path": "src", "pattern": r".*\.css"},
        "No matches found\n[a pattern is a glob such as **/*.css, not a regular expression]",
    ),
    *(
        (
            "search_files",
            {"path": "src", "pattern": pattern},
            "No matches found\n[a slash separates directories in a pattern, as in src/*.css]",
        )
        for pattern in (r"src\*.py", r"src\docs\a.py", r"**\*.py")
    ),
    ("search_files", {"path": "src", "pattern": "*.css"}, "No matches found"),
    (
        "search_files",
        {"path": "src", "pattern": "*.css,*.ts"},
        "No matches found\n[a pattern is one glob; *.{js,ts} matches either]",
    ),
    (
        "search_content",
        {"path": "src", "pattern": "a", "glob": "*.py,*.ts"},
        "No matches found in 0 files\n"
        "[glob is one pattern of files, such as *.{js,ts} or src/**; excludePatterns excludes files]",
    ),
    (
        "search_content",
        {"path": "src", "pattern": r"none\|nil"},
        "No matches found in 2 files\n"
        r"[in RE2, | separates alternatives, \| is a bar, and \b is the edge of a word]",
    ),
    ("search_content", {"path": "src", "pattern": r"none\|nil", "literal": True}, "No matches found in 2 files"),
    ("search_files", {"path": ".", "pattern": "*.py", "cursor": "", "limit": ""}, "a.py\nsrc/b.py"),
    ("list_directory", {"path": "src", "cursor": "", "limit": 0}, "[FILE] b.py\n[FILE] c.txt"),
    (
        "read_text_file",
        {"path": "src/c.txt", "head": 0, "tail": 0, "offset": 0, "cursor": "", "encoding": "", "pages": ""},
        "def two():\n",
    ),
]


async def test_directories_are_listed_and_searched_as_text(tmp_path: Path) -> None:
    for path, text in {
        "a.py": "def one():\n    pass\n",
        "src/b.py": "",
        "src/c.txt": "def two():\n",
        "node_modules/x": "",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    async with inside(tmp_path) as peer:
        results = [await peer.call(tool, **arguments) for tool, arguments, _ in READING]
        first, _, note = (await peer.text("search_files", path=".", pattern="*.py", limit=1)).partition("\n")
        cursor = note.removeprefix("[stopped: limit; for more, cursor: ").removesuffix("]")
        rest = await peer.text("search_files", path=".", pattern="*.py", cursor=cursor)
        info = await peer.data("get_file_info", path="src/c.txt")
    assert [result["content"] for result in results] == [[{"type": "text", "text": text}] for *_, text in READING]
    assert not any("structuredContent" in result for result in results)
    assert (first, rest) == ("a.py", "src/b.py")
    assert (info["kind"], info["size"], info["mime"]) == ("file", 11, "text/plain")


async def test_write_tools_are_not_listed_without_allow_write_and_name_the_flag(
    tmp_path: Path,
) -> None:
    writing = ("write_file", "edit_file", "create_directory", "move_file", "copy_file", "delete_file")
    async with inside(tmp_path) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
        errors = [await peer.error(tool) for tool in writing]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert all("--allow-write" in error for error in errors)


async def test_files_are_written_moved_copied_and_deleted(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        await peer.text("create_directory", path="x/y")
        await peer.text("write_file", path="x/y/a.txt", content="hé\n")
        await peer.text("move_file", source="x/y/a.txt", destination="b.txt")
        assert await peer.text("copy_file", source="x", destination="c") == "Copied x to c: 2 entries, 0 bytes"
        assert (await peer.text("delete_file", path="x")).startswith("not_empty: x: ")
        assert await peer.text("delete_file", path="x", recursive=True) == "Deleted x: 2 entries"
        assert await peer.text("delete_file", path="c/y") == "Deleted c/y: 1 entry"
    assert (tmp_path / "b.txt").read_text("utf-8") == "hé\n"
    assert (sorted(os.listdir(tmp_path)), os.listdir(tmp_path / "c")) == (["b.txt", "c"], [])


async def test_an_image_is_an_image_block_and_a_blob(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    async with inside(tmp_path) as peer:
        (block,) = (await peer.call("read_media_file", path="dot.png"))["content"]
        (contents,) = (await peer.request("resources/read", uri=uri_of(tmp_path / "dot.png")))["result"]["contents"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(block["data"]) == base64.b64decode(contents["blob"]) == PIXEL


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("drawn.jpg", PIXEL, {"type": "image", "mimeType": "image/png"}),
        ("noname", PIXEL, {"type": "image", "mimeType": "image/png"}),
        ("a.svg", b"<svg/>", {"type": "resource", "mimeType": "image/svg+xml", "text": "<svg/>"}),
        ("a.bmp", b"BM\0\0", {"type": "resource", "mimeType": "image/bmp", "blob": "Qk0AAA=="}),
        ("no.png", b"no", {"type": "resource", "mimeType": "image/png", "text": "no"}),
        ("empty.png", b"", {"type": "text", "text": "[empty file]"}),
    ],
)
async def test_only_image_types_that_models_accept_are_image_blocks(
    tmp_path: Path, name: str, data: bytes, expected: dict[str, str]
) -> None:
    (tmp_path / name).write_bytes(data)
    async with inside(tmp_path) as peer:
        (block,) = (await peer.call("read_media_file", path=name))["content"]
    assert expected.items() <= {**block, **block.get("resource", {})}.items()


async def test_a_damaged_image_is_returned_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "cut.png").write_bytes(PIXEL[:-1])
    async with inside(tmp_path) as peer:
        note, block = (await peer.call("read_media_file", path="cut.png"))["content"]
    assert note["text"] == "[damaged or incomplete image: as bytes]"
    assert base64.b64decode(block["resource"]["blob"]) == PIXEL[:-1]


async def test_empty_files_and_directories_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "empty").mkdir()
    async with inside(tmp_path) as peer:
        assert await peer.text("read_text_file", path="a.txt") == "[empty file]"
        assert await peer.text("list_directory", path="empty") == "[empty directory]"


async def test_results_over_the_limit_are_truncated_with_a_note(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:080}").touch()
    async with served(tmp_path, "2025-11-25", "--max-result", "20000") as peer:
        assert "[truncated: " in await peer.text("directory_tree", path=".")
        assert "[truncated: " in await peer.text("list_directory", path=".")
        assert "[stopped: size" in await peer.text("search_files", path=".", pattern="*")


async def test_list_allowed_directories_shows_permissions(tmp_path: Path) -> None:
    one, two = (tmp_path.resolve() / name for name in ("one", "two"))
    one.mkdir()
    two.mkdir()
    async with inside(one, "--root", f"{two}:rw") as peer:
        text = await peer.text("list_allowed_directories")
        assert (await peer.text("write_file", path="two/a", content="")).startswith("Created two/a: 0 bytes, etag ")
        refused = await peer.text("write_file", path="one/a", content="")
    assert text.splitlines() == ["Allowed directories:", f"{one} (read only)", f"{two} (read and write)"]
    assert refused.startswith("read_only: one/a: is in a read-only directory")
    assert os.listdir(one) == []


async def test_a_text_over_the_limit_is_read_page_by_page_with_cursors(tmp_path: Path) -> None:
    whole = "0123456789\n" * 20_000
    (tmp_path / "big.txt").write_text(whole)
    async with inside(tmp_path) as peer:
        first = await peer.call("read_text_file", path="big.txt")
        pages, result = [], first
        while "cursor" in result.get("_meta", {}):
            pages.append(text_of(result).rpartition("\n[truncated: ")[0])
            result = await peer.call("read_text_file", path="big.txt", cursor=result["_meta"]["cursor"])
    assert "".join([*pages, text_of(result)]) == whole
    assert len(pages) == 2
    cursor = first["_meta"]["cursor"]
    assert cursor.startswith(first["_meta"]["etag"])
    shown = "91,663 of 220,000 bytes shown; the rest begins at line 8,334; continue with cursor"
    assert text_of(first).rpartition("\n")[2] == f"[truncated: {shown} {cursor}]"


async def test_a_charset_other_than_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Señor Müller\n".encode("latin-1"))
    async with inside(tmp_path) as peer:
        result = await peer.call("read_text_file", path="a.txt")
    assert result["content"][0]["text"] == "Señor Müller\n\n[charset cp1252]"
    assert result["_meta"]["charset"] == "cp1252"


async def test_invalid_line_numbers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    async with inside(tmp_path) as peer:
        for name, number in (("head", -1), ("head", 1.5), ("tail", -1), ("offset", -1)):
            assert name in await peer.error("read_text_file", path="a.txt", **{name: number})


async def test_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    async with inside(tmp_path) as peer:
        error = await peer.error("read_text_file", path="a.txt", hed=1)
    assert "unknown argument 'hed'; did you mean 'head'?" in error


@pytest.mark.slow
async def test_pages_of_a_large_file_take_little_memory(tmp_path: Path) -> None:
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
    status = Path(f"/proc/{peer.wire.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def test_a_disabled_tool_is_unknown_to_this_run_only(tmp_path: Path) -> None:
    before = app.tools.all()
    disabled = ("--disable-tool", "read_file", "--disable-tool", "write_file", "--disable-tool", "read_file")
    async with inside(tmp_path, *disabled) as peer:
        names = [tool["name"] for tool in (await peer.request("tools/list"))["result"]["tools"]]
        answer = await peer.request("tools/call", name="read_file", arguments={"path": "a"})
        missing = [tool.name for tool in before if tool not in peer.running.features.tools.all()]
    assert ("read_text_file" in names, "read_file" in names) == (True, False)
    assert answer["error"] == {"code": -32602, "message": "unknown tool: read_file; did you mean 'read_text_file'?"}
    assert sorted(missing) == ["read_file", "write_file"]
    assert app.tools.all() == before


@pytest.mark.parametrize("race_free", [True, False])
async def test_the_server_warns_if_the_system_has_no_race_free_open(root, race_free, monkeypatch, caplog) -> None:
    monkeypatch.setattr(server, "RACE_FREE", race_free)  # determined once, at import
    with caplog.at_level(logging.WARNING):
        async with app.open(Settings(roots=[root])):
            pass
    assert ("checked before and after they are opened" in caplog.text) == (not race_free)


async def test_tool_definitions_stay_below_16_kib(tmp_path: Path) -> None:
    async with inside(tmp_path, "--allow-write") as peer:
        tools = (await peer.request("tools/list"))["result"]
    assert len(json.dumps(tools, separators=(",", ":"))) <= 16_384


# Denied and outside paths


async def test_a_denied_file_is_listed_but_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PASSWORD=1")
    (tmp_path / "link.txt").symlink_to(".env")
    uri = uri_of(tmp_path / ".env")
    async with inside(tmp_path) as peer:
        assert "[FILE] .env" in await peer.text("list_directory", path=".")
        for tool in ("read_text_file", "read_file", "read_media_file", "get_file_info"):
            assert (await peer.error(tool, path=".env")).startswith("denied: .env: is denied to this server")
        assert (await peer.error("read_text_file", path="link.txt")).startswith("denied: link.txt: ")
        assert "denied: .env" in await peer.text("read_multiple_files", paths=[".env", "link.txt"])
        (listed,) = (await peer.request("resources/list"))["result"]["resources"]
        assert listed["uri"] == uri_of(tmp_path)
        for method in ("resources/read", "resources/subscribe"):
            assert (await peer.request(method, uri=uri))["error"]["code"] == -32002


async def test_allow_and_deny_options_change_the_denylist(tmp_path: Path) -> None:
    for name in (".env", "notes.txt", "id_rsa"):
        (tmp_path / name).write_text(name)
    async with inside(tmp_path, "--allow", ".env", "--deny", "notes*") as peer:
        assert await peer.text("read_text_file", path=".env") == ".env"
        for name in ("notes.txt", "id_rsa"):
            assert (await peer.error("read_text_file", path=name)).startswith("denied: ")


async def test_paths_outside_are_refused_whether_or_not_they_exist(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    async with inside(root, "--allow", "*") as peer:
        for path in ("/etc/passwd", "/etc/no-such-file", "../x", "a/../../x", "file:///etc/passwd"):
            error = await peer.error("read_text_file", path=path)
            assert error.startswith(f"outside_roots: {path}: is outside the allowed directories")
        for path in ("~", str(Path.home()), "/tmp", str(tmp_path), str(Path.cwd()), "/"):
            assert (await peer.error("list_directory", path=path)).startswith("outside_roots: "), path
        assert (await peer.request("resources/subscribe", uri="file:///etc/passwd"))["error"]["code"] == -32002


async def test_reads_of_a_hundred_pipes_do_not_block_other_reads(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("here")
    async with inside(tmp_path) as peer:
        for _ in range(100):
            await peer.client.start("read_text_file", path="pipe")
        assert await peer.text("read_text_file", path="file") == "here"


@pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
async def test_roots_of_a_client_never_widen_those_of_the_operator(tmp_path: Path, era: str) -> None:
    async with wired_inside(app, tmp_path, era=era, capabilities={"roots": {"listChanged": True}}) as wire:
        wire.answers["roots/list"] = lambda _: {"roots": [{"uri": "file:///", "name": "everything"}]}
        texts = []
        for tool, arguments in (("read_text_file", {"path": "/etc/passwd"}), ("list_allowed_directories", {})):
            answer = await wire.request("tools/call", {"name": tool, "arguments": arguments})
            texts.append(text_of(answer["result"]))
            await wire.client.notify("notifications/roots/list_changed")
    assert texts[0].startswith("outside_roots: ")
    assert texts[1].splitlines()[1:] == [f"{tmp_path.resolve()} (read only)"]


async def test_a_link_to_a_directory_is_listed_as_a_link_and_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file.txt").write_text("here")
    (tmp_path / "link").symlink_to("real")
    async with inside(tmp_path) as peer:
        assert (await peer.text("list_directory", path=".")).splitlines() == ["[LINK] link", "[DIR] real"]
        assert await peer.text("list_directory", path="link") == "[FILE] file.txt"
        assert await peer.text("read_text_file", path="link/file.txt") == "here"
        assert await peer.text("search_files", path=".", pattern="*.txt") == "real/file.txt"


def test_a_directory_that_differs_from_the_root_by_case_is_outside(files, root) -> None:
    other = root.with_name(root.name.upper())
    if other.exists():
        pytest.skip("this file system takes no notice of case: give pytest --basetemp on one that does")
    other.mkdir()
    (other / "secret").write_text(SECRET)
    (root / "link").symlink_to(other / "secret")
    for act in (lambda: files.roots.place(str(other / "secret")), lambda: files.stat(files.roots.place("link"))):
        with pytest.raises(FilesError) as caught:
            act()
        assert caught.value.code == "outside_roots"


# Resources


@every_era
async def test_files_are_listed_and_read_as_resources(tmp_path: Path, era: str) -> None:
    (tmp_path / "a b.txt").write_text("hello")
    uri = uri_of(tmp_path / "a b.txt")
    async with inside(tmp_path, era=era) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        contents = (await peer.request("resources/read", uri=uri))["result"]["contents"]
        for name in ("missing.txt", "../outside.txt", "%2e%2e/outside.txt"):
            missing = f"{uri_of(tmp_path)}/{name}"
            error = (await peer.request("resources/read", uri=missing))["error"]
            assert (error["code"], error["data"]) == (-32602 if era == STATELESS else -32002, {"uri": missing})
    assert [(resource["uri"], resource["size"]) for resource in listed[1:]] == [(uri, 5)]
    if era >= "2025-06-18":
        modified = listed[1]["annotations"]["lastModified"]
        etag = etag_of((tmp_path / "a b.txt").stat())
        assert contents[0].pop("_meta") == {"etag": etag, "lastModified": modified}
    assert contents == [{"uri": uri, "mimeType": "text/plain", "text": "hello"}]


@every_era
async def test_a_missing_root_is_skipped_until_it_appears(
    tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "there").mkdir()
    later = tmp_path / "later"
    async with inside(tmp_path / "there", later, era=era) as peer:
        assert f"the allowed directory {later} can't be reached" in caplog.text
        listed = await peer.text("list_allowed_directories")
        assert f"{later} (read only, can't be reached now)" in listed
        assert f"{tmp_path / 'there'} (read only)" in listed
        assert "can't be reached at the moment" in await peer.text("read_text_file", path=str(later / "a.txt"))
        later.mkdir()
        (later / "a.txt").write_text("here")
        assert await peer.text("read_text_file", path=str(later / "a.txt")) == "here"
        assert "can't be reached" not in await peer.text("list_allowed_directories")


async def test_the_server_does_not_start_without_an_existing_root(tmp_path: Path) -> None:
    ended = await anyio.run_process([*COMMAND, str(tmp_path / "no"), str(tmp_path / "none")], check=False)
    assert ended.returncode == 2
    assert b"no is not a directory" in ended.stderr
