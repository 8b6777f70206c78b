"""Nothing gets out of the allowed directories: what other servers were seen to do (F13, F18 to F24), here refused."""

import json
import os
import re
import socket
import sys
import time
from pathlib import Path

import pytest

from servers.filesystem.errors import FilesError
from tests.servers.filesystem.conftest import SECRET, swapping
from tests.servers.filesystem.test_server import ERAS, served
from tests.wire import Wire, with_envelope

# F13: what is no file


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # Bound by a short relative name, because the path of a socket has a hundred bytes at most.
    before = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(before)


def filled(schema: dict, path: str, tool: str) -> dict:
    """Arguments for what the schema requires: the path wherever a path is asked for, else anything that fits."""
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


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_pipe, make_socket])
async def test_f13_no_tool_opens_a_pipe_or_a_socket(tmp_path: Path, make) -> None:
    path = tmp_path / "special"
    async with served(tmp_path, "2025-11-25", "--allow-write") as peer:
        for tool in (await peer.request("tools/list"))["result"]["tools"]:
            path.unlink(missing_ok=True)
            make(path)
            if "required" in tool["inputSchema"]:
                text = await peer.text(tool["name"], **filled(tool["inputSchema"], "special", tool["name"]))
                assert re.match(CODES.get(tool["name"], "").format(path="special"), text), tool["name"]


@pytest.mark.slow
async def test_f13_no_tool_reads_a_device(tmp_path: Path) -> None:
    async with served(tmp_path, "2025-11-25", "--root", "/dev:ro") as peer:
        for tool in (await peer.request("tools/list"))["result"]["tools"]:
            if "required" in tool["inputSchema"]:
                text = await peer.text(tool["name"], **filled(tool["inputSchema"], "/dev/zero", tool["name"]))
                assert re.match(CODES.get(tool["name"], "").format(path="/dev/zero"), text), tool["name"]


async def test_f13_a_hundred_pipes_keep_no_file_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("here")
    async with served(tmp_path) as peer:
        for i in range(100):
            params = {"name": "read_text_file", "arguments": {"path": "pipe"}}
            await peer.wire.send({"jsonrpc": "2.0", "id": f"pipe{i}", "method": "tools/call", "params": params})
        assert await peer.text("read_text_file", path="file") == "here"


# F18: what the client calls its roots

EVERYTHING = {"roots": [{"uri": "file:///", "name": "everything"}]}


@pytest.mark.parametrize("era", ERAS)
async def test_f18_the_roots_of_a_client_never_widen_those_of_the_operator(tmp_path: Path, era: str) -> None:
    capabilities = {"roots": {"listChanged": True}} if era != ERAS[-1] else {"roots": {}}
    command = [sys.executable, "-m", "servers.filesystem", str(tmp_path)]
    async with Wire(command, answers={"roots/list": EVERYTHING}) as wire:
        if era != ERAS[-1]:
            await wire.initialize(era, capabilities)
            await wire.notify("notifications/roots/list_changed")
        texts = []
        for tool, arguments in (("read_text_file", {"path": "/etc/passwd"}), ("list_allowed_directories", {})):
            params = {"name": tool, "arguments": arguments}
            params = with_envelope(params, capabilities=capabilities) if era == ERAS[-1] else params
            answer = await wire.request("tools/call", params)
            texts.append(answer["result"]["content"][0]["text"])
    assert texts[0].startswith("outside_roots: ")
    assert texts[1].splitlines()[1:] == [f"{tmp_path.resolve()} (read only)"]


# F19: somebody changes the directories meanwhile

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


@pytest.mark.parametrize(
    "seconds", [pytest.param(2, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.slow)]
)
async def test_f19_no_byte_passes_while_a_directory_and_a_link_are_swapped(root, outside, seconds) -> None:
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "dir" / "sub" / "secret").write_text("mine")
    (root / "moved").touch()
    (outside / "sub").mkdir()
    for name in OUTSIDE:
        (outside / "sub" / name).write_text(SECRET)
    (root / "link").symlink_to(outside)
    states: set[str] = set()
    end = time.monotonic() + seconds
    command = [sys.executable, "-m", "servers.filesystem", "--allow-write", str(root)]
    async with Wire(command, check=False) as wire:
        await wire.initialize()
        offered = {tool["name"] for tool in (await wire.request("tools/list"))["result"]["tools"]}
        acts = [{"name": tool, "arguments": arguments} for tool, arguments in ACTS if tool in offered]
        with swapping(root):
            # And as long as it takes to meet both states, on a busy machine too.
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


# F21: what the operator names is all there is


async def test_f21_no_directory_is_allowed_but_those_the_operator_names(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    async with served(root, "2025-11-25", "--allow", "*") as peer:
        for path in ("~", str(Path.home()), "/tmp", str(tmp_path), str(Path.cwd()), "/"):
            assert (await peer.text("list_directory", path=path)).startswith("outside_roots: "), path


# F22: directories behind links


async def test_f22_a_link_to_a_directory_is_listed_as_a_link_and_leads_there(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file.txt").write_text("here")
    (tmp_path / "link").symlink_to("real")
    async with served(tmp_path) as peer:
        assert (await peer.text("list_directory", path=".")).splitlines() == ["[LINK] link", "[DIR] real"]
        assert await peer.text("list_directory", path="link") == "[FILE] file.txt"
        assert await peer.text("read_text_file", path="link/file.txt") == "here"
        assert await peer.text("search_files", path=".", pattern="*.txt") == "real/file.txt"


# F24: the case of letters


def test_f24_a_directory_of_the_same_letters_in_another_case_is_outside(files, root) -> None:
    other = root.with_name(root.name.upper())
    if other.exists():
        pytest.skip("this file system takes no notice of case")
    other.mkdir()
    (other / "secret").write_text(SECRET)
    (root / "link").symlink_to(other / "secret")
    with pytest.raises(FilesError) as caught:
        files.roots.place(str(other / "secret"))
    assert caught.value.code == "outside_roots"
    with pytest.raises(FilesError) as caught:
        files.stat(files.roots.place("link"))
    assert caught.value.code == "outside_roots"
