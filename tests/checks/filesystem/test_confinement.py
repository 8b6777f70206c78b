"""Confinement to the allowed directories, with special files in them and concurrent changes."""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from servers.filesystem.server import app
from tests.servers.filesystem.conftest import SECRET, outside, root, swapping
from tests.servers.filesystem.serving import inside, uri_of
from tests.servers.peers import text_of, wired_inside
from tests.wire import Wire

__all__ = ["outside", "root"]


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # Bound to a short relative name, since the path of a socket has at most a hundred bytes.
    before = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(before)


def filled(schema: dict, path: str, tool: str) -> dict:
    """Returns arguments that the schema requires: the path for every path, else any valid value."""
    given = {"path": path, "paths": [path], "source": path, "destination": f"new-{tool}", "pattern": "x*"}
    given["edits"] = [{"oldText": "a", "newText": "b"}]
    anything = {"string": "x", "array": ["x"], "integer": 1, "boolean": False}
    properties = schema["properties"]
    return {name: given.get(name, anything[properties[name].get("type", "string")]) for name in schema["required"]}


CODES = {
    **dict.fromkeys(["read_text_file", "read_file", "read_media_file", "copy_file"], "special_file: "),
    **dict.fromkeys(["write_file", "edit_file"], "special_file: "),
    **dict.fromkeys(["list_directory", "list_directory_with_sizes", "directory_tree"], "not_a_directory: "),
    **dict.fromkeys(["search_files", "create_directory"], "not_a_directory: "),
    "read_multiple_files": r"--- \w+ {path}: Error - special_file: ",
    "get_file_info": "kind: other\n",
}


@pytest.mark.parametrize("make", [make_pipe, make_socket])
async def test_no_tool_opens_a_pipe_or_a_socket(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "special"
    async with inside(tmp_path, "--allow-write") as peer:
        for tool in (await peer.request("tools/list"))["result"]["tools"]:
            path.unlink(missing_ok=True)
            make(path)
            if "required" in tool["inputSchema"]:
                text = await peer.text(tool["name"], **filled(tool["inputSchema"], "special", tool["name"]))
                assert re.match(CODES.get(tool["name"], "").format(path="special"), text), tool["name"]


async def test_no_tool_reads_a_device(tmp_path: Path) -> None:
    async with inside(tmp_path, "--root", "/dev:ro") as peer:
        for tool in (await peer.request("tools/list"))["result"]["tools"]:
            if "required" in tool["inputSchema"]:
                text = await peer.text(tool["name"], **filled(tool["inputSchema"], "/dev/zero", tool["name"]))
                assert re.match(CODES.get(tool["name"], "").format(path="/dev/zero"), text), tool["name"]


ACT_ON_LINKS = {"get_file_info", "move_file", "copy_file", "delete_file"}
"""Tools to which a link is a thing of its own, which is inside."""
WITHOUT_PATH = {"list_allowed_directories", "changes", "undo", "recent_changes"}


async def test_no_tool_or_link_leaves_the_roots_of_a_client(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "secret.txt").write_text(SECRET)
    links = {"link": "../secret.txt", "up": "..", "absolute": str(tmp_path), "missing": "../none"}
    for name, target in links.items():
        (tmp_path / "project" / name).symlink_to(target)
    beyond = [str(tmp_path / "secret.txt"), str(tmp_path), "link", "up/secret.txt", "absolute/other", "missing"]
    roots = {"roots": [{"uri": uri_of(tmp_path / "project")}]}
    options, capabilities = ("--allow-write", "--client-roots", tmp_path), {"roots": {}}
    async with wired_inside(app, *options, era="2025-11-25", capabilities=capabilities) as wire:
        wire.answers["roots/list"] = lambda _: roots
        for tool in (await wire.request("tools/list", {}))["result"]["tools"]:
            name, schema = tool["name"], {"required": ["path", "edits"], **tool["inputSchema"]}
            for path in beyond if name not in WITHOUT_PATH else ():
                if name not in ACT_ON_LINKS or "/" in path:
                    call = {"name": name, "arguments": filled(schema, path, name)}
                    text = text_of((await wire.request("tools/call", call))["result"])
                    assert "outside_roots: " in text, (name, path)
                    assert SECRET not in text
    assert (tmp_path / "secret.txt").read_text() == SECRET


ACTS: list[tuple[str, dict[str, object]]] = [
    ("read_text_file", {"path": "dir/sub/secret"}),
    ("read_text_file", {"path": "dir/sub/secret", "tail": 1}),
    ("read_media_file", {"path": "dir/sub/secret"}),
    ("read_multiple_files", {"paths": ["dir/sub/secret", "dir/sub/secret"]}),
    ("list_directory", {"path": "dir/sub"}),
    ("list_directory_with_sizes", {"path": "dir/sub"}),
    ("directory_tree", {"path": "."}),
    ("search_files", {"path": ".", "pattern": "**/*never*"}),
    ("search_content", {"path": "dir", "pattern": "SECRET"}),
    ("get_file_info", {"path": "dir/sub/only there"}),
    ("write_file", {"path": "dir/sub/secret", "content": "mine"}),
    ("write_file", {"path": "dir/sub/new", "content": "mine"}),
    ("edit_file", {"path": "dir/sub/secret", "edits": [{"oldText": "mine", "newText": "mine"}]}),
    ("create_directory", {"path": "dir/sub/made/there"}),
    ("move_file", {"source": "moved", "destination": "dir/sub/moved"}),
    ("move_file", {"source": "dir/sub/moved", "destination": "moved"}),
    ("move_file", {"source": "dir/sub/only there", "destination": "stolen"}),
    ("copy_file", {"source": "dir/sub", "destination": "stolen too"}),
    ("copy_file", {"source": "moved", "destination": "dir/sub/copied"}),
    ("delete_file", {"path": "dir/sub/copied"}),
    ("delete_file", {"path": "dir/sub/only there"}),
    ("delete_file", {"path": "stolen too", "recursive": True}),
]
"""What is done at paths that lead outside every other moment."""
OUTSIDE = ("secret", "only there", "never named")
"""Files there: one with the name of ours, one that is asked for, and one that is not."""
SECONDS = 10.0


async def test_swapping_a_directory_and_a_link_leaks_no_byte(root: Path, outside: Path) -> None:
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "dir" / "sub" / "secret").write_text("mine")
    (root / "moved").touch()
    (outside / "sub").mkdir()
    for name in OUTSIDE:
        (outside / "sub" / name).write_text(SECRET)
    (root / "link").symlink_to(outside)
    states: set[str] = set()
    end = time.monotonic() + SECONDS
    command = [sys.executable, "-m", "servers.filesystem", "--allow-write", str(root)]
    async with Wire(command, check=False) as wire:
        await wire.initialize()
        offered = {tool["name"] for tool in (await wire.request("tools/list"))["result"]["tools"]}
        acts = [{"name": tool, "arguments": arguments} for tool, arguments in ACTS if tool in offered]
        with swapping(root):
            # And until both states were seen, on a busy machine too.
            while time.monotonic() < end or not {"mine", "outside_roots"} <= states:
                for act in acts:
                    result = (await wire.request("tools/call", act))["result"]
                    text = json.dumps(result)
                    assert SECRET not in text, act
                    assert "never named" not in text, act
                    assert "only there" not in str(act) or "isError" in result, act
                    states.add(str(result["content"][0].get("text")).partition(":")[0])
    assert not (root / "stolen").exists()
    left = {name: (outside / "sub" / name).read_text() for name in os.listdir(outside / "sub")}
    assert left == dict.fromkeys(OUTSIDE, SECRET)
