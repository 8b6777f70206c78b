"""Nothing gets out of the allowed directories: what other servers were seen to do (F13, F18 to F24), here refused."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers.filesystem.access.beneath import Beneath
from servers.filesystem.errors import FilesError
from servers.filesystem.finding.listing import directory_tree, list_directory
from servers.filesystem.finding.searching import Search, search_files
from servers.filesystem.reading.pages import read_text
from servers.filesystem.reading.parts import Part
from servers.filesystem.reading.read import read_bytes
from servers.filesystem.reading.small import SmallFiles
from servers.filesystem.writing.write import create_directory, edit_file, move, write_file
from tests.servers.filesystem.conftest import SECRET
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
    given = {"path": path, "paths": [path], "source": path, "destination": f"new-{tool}", "pattern": "*"}
    given["edits"] = [{"oldText": "a", "newText": "b"}]
    anything = {"string": "x", "array": ["x"], "integer": 1, "boolean": False}
    properties = schema["properties"]
    return {name: given.get(name, anything[properties[name].get("type", "string")]) for name in schema["required"]}


CODES = {
    **dict.fromkeys(["read_text_file", "read_file", "read_media_file", "write_file", "edit_file"], "special_file: "),
    **dict.fromkeys(["list_directory", "list_directory_with_sizes", "directory_tree"], "not_a_directory: "),
    **dict.fromkeys(["search_files", "create_directory"], "not_a_directory: "),
    "read_multiple_files": "{path}: Error - special_file: ",
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
                assert text.startswith(CODES.get(tool["name"], "").format(path="special")), tool["name"]


@pytest.mark.slow
async def test_f13_no_tool_reads_a_device(tmp_path: Path) -> None:
    async with served(tmp_path, "2025-11-25", "--root", "/dev:ro") as peer:
        for tool in (await peer.request("tools/list"))["result"]["tools"]:
            if "required" in tool["inputSchema"]:
                text = await peer.text(tool["name"], **filled(tool["inputSchema"], "/dev/zero", tool["name"]))
                assert text.startswith(CODES.get(tool["name"], "").format(path="/dev/zero")), tool["name"]


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

SWAPPING = """
import os, shutil, sys
os.chdir(sys.argv[1])
print("on", flush=True)

def rename(one, other):
    try:
        os.rename(one, other)
    except OSError:
        # The server made a directory in the moment in which there was none.
        shutil.rmtree("dir", ignore_errors=True)
        rename(one, other)

while True:
    for one, other in (("dir", "kept"), ("link", "dir"), ("dir", "link"), ("kept", "dir")):
        rename(one, other)
"""


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """A process that makes `dir` a directory and a link to the outside in turn, as fast as it can."""
    with subprocess.Popen([sys.executable, "-c", SWAPPING, str(root)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


class Everywhere:
    """Mounts where everything is local."""

    def local(self, place) -> bool:
        return True


class Attempts:
    """Each thing that can be done, done once at a path that leads outside every other moment."""

    def __init__(self, files: Beneath) -> None:
        self.files = files
        self.small = SmallFiles(files, Everywhere())
        self.at = files.roots.place
        self.seen: set[str] = set()

    def make(self) -> None:
        files, at = self.files, self.at
        self._try(lambda: read_bytes(files, at("dir/sub/secret"), 100).data)
        self._try(lambda: read_text(files, at("dir/sub/secret"), 1_000, Part(tail=1)).text)
        self._try(lambda: self.small.read(at("dir/sub/secret")))
        self._try(lambda: list_directory(files, at("dir/sub"), 100))
        self._try(lambda: directory_tree(files, at("."), (), 9, 100))
        self._try(lambda: search_files(files, at("."), Search("**/only*")).matches)
        self._try(lambda: write_file(files, at("dir/sub/secret"), b"mine"))
        self._try(lambda: write_file(files, at("dir/sub/new"), b"mine"))
        self._try(lambda: edit_file(files, at("dir/sub/secret"), [("mine", "mine")]))
        self._try(lambda: create_directory(files, at("dir/sub/made/there")))
        self._try(lambda: move(files, at("moved"), at("dir/sub/moved")))
        self._try(lambda: move(files, at("dir/sub/moved"), at("moved")))
        self._try(lambda: move(files, at("dir/sub/only here"), at("stolen")))

    def _try(self, act) -> None:
        try:
            self.seen.add(str(act()))
        except FilesError as error:
            self.seen.add(error.code)


@pytest.mark.parametrize(
    "seconds", [pytest.param(2, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.full)]
)
def test_f19_no_byte_passes_while_a_directory_and_a_link_are_swapped(files, root, outside, seconds) -> None:
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "dir" / "sub" / "secret").write_text("mine")
    (root / "moved").touch()
    (outside / "sub").mkdir()
    for name in ("secret", "only here"):
        (outside / "sub" / name).write_text(SECRET)
    (root / "link").symlink_to(outside)
    attempts = Attempts(files)
    end = time.monotonic() + seconds
    with swapping(root):
        # And as long as it takes to meet both states, on a busy machine too.
        while time.monotonic() < end or not {"b'mine'", "outside_roots"} <= attempts.seen:
            attempts.make()
            assert not [one for one in attempts.seen if SECRET in one or "only here" in one]
    assert not (root / "stolen").exists()
    assert {name: (outside / "sub" / name).read_text() for name in os.listdir(outside / "sub")} == {
        "secret": SECRET,
        "only here": SECRET,
    }


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
        read_bytes(files, files.roots.place("link"), 100)
    assert caught.value.code == "outside_roots"
