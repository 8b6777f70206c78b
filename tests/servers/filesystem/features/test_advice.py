"""Suggestions in error messages: similar paths, and only tools that are offered."""

import os
import re

import pytest

from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from tests.servers.filesystem.serving import inside
from tests.servers.peers import text_of
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, talking


@pytest.fixture
def call_text(root):
    """Call a tool of a server with these settings, and return the text of the result."""

    async def call(tool, version=NEWEST_HANDSHAKE, /, settings=None, **arguments):
        async with talking(app, version, settings=Settings(roots=[root], **(settings or {}))) as peer:
            answer = await peer.request("tools/call", {"name": tool, "arguments": arguments})
            return text_of(answer["result"])

    return call


@pytest.mark.parametrize("version", ERAS)
async def test_a_missing_name_that_looks_like_another_is_answered_with_its_uri(root, call_text, version):
    (root / "at 10.01\u202fPM.png").touch()
    (root / "Caf\u00e9").mkdir()
    text = await call_text("read_text_file", version, path="at 10.01 PM.png")
    meant = f"Did you mean {root.as_uri()}/at%2010.01%E2%80%AFPM.png?"
    assert text == f'not_found: "at 10.01 PM.png": does not exist. {meant}'
    text = await call_text("list_directory", version, path="cafe\u0301")
    assert text.endswith(f"Did you mean {root.as_uri()}/Caf%C3%A9?")
    many = await call_text("read_multiple_files", version, paths=["at 10.01 PM.png"])
    assert many.endswith(meant)


CALLS = {
    "read_text_file": {"path": "no/file"},
    "read_multiple_files": {"paths": ["no/file", "dir", "bytes"]},
    "list_directory": {"path": "no/file"},
    "search_content": {"path": "no/file", "pattern": "x"},
    "get_file_info": {"path": "no/file"},
    "read_media_file": {"path": "dir"},
    "read_file": {"path": "bytes"},
}


@pytest.mark.parametrize("tool", CALLS)
async def test_errors_of_read_tools_name_no_tool_that_writes(root, call_text, tool):
    (root / "dir").mkdir()
    (root / "bytes").write_bytes(b"\0\xff")
    assert "create_directory" not in await call_text(tool, **CALLS[tool])
    assert "create_directory" not in await call_text(tool, settings={"allow_write": True}, **CALLS[tool])


@pytest.mark.parametrize("tool", CALLS)
async def test_no_error_names_a_disabled_tool(root, call_text, tool):
    (root / "dir").mkdir()
    (root / "bytes").write_bytes(b"\0\xff")
    async with talking(app, NEWEST_HANDSHAKE, settings=Settings(roots=[root], allow_write=True)) as peer:
        listed = (await peer.request("tools/list"))["result"]["tools"]
    others = [other["name"] for other in listed if other["name"] != tool]
    text = await call_text(tool, settings={"allow_write": True, "disable_tool": others}, **CALLS[tool])
    assert not set(re.findall(r"\w+", text)) & (set(others) - {"changes"})


async def test_an_error_about_a_missing_parent_names_create_directory_if_offered(root, call_text):
    (root / "Folder").mkdir()
    writing = {"allow_write": True}
    text = await call_text("write_file", settings=writing, path="no/file", content="")
    reason = "not_found: no/file: its parent directory does not exist"
    assert text == f"{reason}. Create it with create_directory first."
    text = await call_text("write_file", settings=writing, path="folder/file", content="")
    assert text == f"{reason.replace('no/', 'folder/')}. Create it with create_directory first."
    text = await call_text("write_file", settings=writing, path=f"{root.name}/file", content="")
    assert text.endswith(f"Did you mean {root.as_uri()}/file? Create it with create_directory first.")
    withheld = {**writing, "disable_tool": ["create_directory"]}
    assert await call_text("write_file", settings=withheld, path="no/file", content="") == reason


async def test_errors_name_the_tool_for_directories_and_binary_files(root, call_text):
    (root / "dir").mkdir()
    assert await call_text("read_text_file", path="dir") == "not_a_file: dir: is a directory. Use list_directory."
    (root / "bytes").write_bytes(b"\0\xff")
    assert "Use read_media_file for binary files." in await call_text("read_text_file", path="bytes")


async def test_a_path_in_another_notation_is_answered_with_the_existing_one(root, call_text):
    (root / "a b").mkdir()
    (root / "a b" / "c.txt").touch()
    (root / ".env").touch()
    text = "Did you mean " + (root / "a b" / "c.txt").as_uri() + "?"
    absolute = f"{root}/a b/c.txt"
    for path in ("a b\\c.txt", "a%20b/c.txt", f"'{absolute}'", absolute[1:], f"{root.name}/a b/c.txt"):
        assert (await call_text("read_text_file", path=path)).endswith(text)
    assert "Did you mean" not in await call_text("read_text_file", path="%2eenv")


@pytest.mark.skipif(os.name == "nt", reason="it is a path there")
async def test_a_windows_path_is_refused_with_a_note_on_the_system(call_text):
    text = await call_text("read_text_file", path="C:\\Users\\me\\a.txt")
    assert text.endswith("does not run on Windows; list_allowed_directories lists its directories.")


ADVISED = [
    ("search_content", {"path": ".", "pattern": "(?=x)"}),
    ("search_content", {"path": ".", "pattern": "a\nb"}),
    *((tool, {"path": ".", "pattern": "*", "cursor": "x"}) for tool in ("search_content", "search_files")),
    ("list_directory", {"path": ".", "cursor": "x"}),
    ("changes", {"cursor": "x"}),
    *(("read_text_file", {"path": "a", **more}) for more in ({"cursor": "x"}, {"encoding": "none"})),
    *(("read_text_file", {"path": path}) for path in ("/etc/passwd", ".env", "dir", "bytes")),
    *(("undo", arguments) for arguments in ({"since": "yesterday"}, {"change": 99})),
    ("edit_file", {"patch": "nothing"}),
    *(("edit_file", {"path": "a", "edits": [{"oldText": old, "newText": ""}]}) for old in ("one", "none")),
    *(("write_file", {"path": path, "content": "x"}) for path in ("a/", "no/x", "dir")),
    *(
        ("write_file", {"path": "a", "content": "\u00e9", **more})
        for more in ({"if_match": "0"}, {"mode": "create"}, {"encoding": "ascii"})
    ),
    *(("move_file", {"source": "a", "destination": place}) for place in ("b", "dir")),
    ("delete_file", {"path": "dir"}),
]


async def test_an_error_says_what_to_do_next(root):
    (root / "a").write_text("one one")
    for name in ("b", ".env"):
        (root / name).touch()
    (root / "bytes").write_bytes(b"\0\xff")
    (root / "dir").mkdir()
    (root / "dir/file").touch()
    async with inside(root, "--allow-write") as peer:
        errors = [await peer.error(tool, **arguments) for tool, arguments in ADVISED]
    # A sentence of its own, after the reason.
    assert [error for error in errors if not re.search(r"\. [A-Z][^\n]+\.$", error)] == []
