"""Known faults of the official npm server, tried on it and on ours.

Ours has to pass; the others are tried by `make compare`, which prints what each does today.
"""

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from tests.checks.benchmarks.peers import NPM
from tests.wire import Json, Wire

KIND = "filesystem"
SERVERS = ("ours", "npm")
PATIENCE = 5.0
"""Seconds in which every call here has to be answered."""


class Server:
    """A filesystem server that serves one directory."""

    def __init__(self, wire: Wire, folder: Path) -> None:
        self.wire = wire
        self.folder = folder

    async def call(self, tool: str, **arguments: object) -> Json | None:
        """The result, or None for a protocol error."""
        with anyio.fail_after(PATIENCE):
            answer = await self.wire.request("tools/call", {"name": tool, "arguments": arguments})
        return answer.get("result")

    async def refused(self, tool: str, **arguments: object) -> bool:
        """Whether the call is an error of either kind."""
        result = await self.call(tool, **arguments)
        return result is None or bool(result.get("isError"))

    async def edit(self, name: str, old: str, new: str) -> bool:
        """Whether an edit was refused."""
        return await self.refused("edit_file", path=str(self.folder / name), edits=[{"oldText": old, "newText": new}])


async def f1_latin_1_survives_an_edit(server: Server) -> bool:
    file = server.folder / "a.txt"
    before = "Le café est fermé à midi, et le métro aussi.\nHier non.\n".encode("latin-1")
    file.write_bytes(before)
    await server.edit("a.txt", "Hier non.", "Hier oui.")
    return file.read_bytes().startswith(before[:30])


async def f2_an_edit_keeps_crlf(server: Server) -> bool:
    file = server.folder / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await server.edit("a.txt", "two", "2")
    return file.read_bytes() == b"one\r\n2\r\nthree\r\n"


async def f4_an_edit_that_fits_twice_is_refused(server: Server) -> bool:
    (server.folder / "a.txt").write_text("same\nsame\n")
    return await server.edit("a.txt", "same", "other") and "other" not in (server.folder / "a.txt").read_text()


async def f5_an_empty_old_text_is_refused(server: Server) -> bool:
    (server.folder / "a.txt").write_text("text\n")
    return await server.edit("a.txt", "", "before") and (server.folder / "a.txt").read_text() == "text\n"


async def f6_a_head_of_no_lines_is_refused(server: Server) -> bool:
    (server.folder / "a.txt").write_text("one\ntwo\n")
    return await server.refused("read_text_file", path=str(server.folder / "a.txt"), head=-1)


async def f7_an_unknown_argument_is_refused(server: Server) -> bool:
    (server.folder / "a.txt").write_text("one\n")
    return await server.refused("read_text_file", path=str(server.folder / "a.txt"), hed=1)


async def f8_a_link_out_tells_no_size(server: Server) -> bool:
    outside = server.folder.parent / f"{server.folder.name}-outside"
    outside.write_text("x" * 4_321)
    (server.folder / "link").symlink_to(outside)
    result = await server.call("list_directory_with_sizes", path=str(server.folder))
    text = json.dumps(result)
    return not any(size in text for size in ("4321", "4,321", "4.22"))


async def f9_a_name_forges_no_line(server: Server) -> bool:
    (server.folder / "a\n[FILE] forged").touch()
    result = await server.call("list_directory", path=str(server.folder))
    return result is not None and "[FILE] forged" not in result["content"][0]["text"].splitlines()


async def f10_a_name_that_is_not_utf_8_can_be_read(server: Server) -> bool:
    (server.folder / os.fsdecode(b"caf\xe9.txt")).write_text("here")
    uri = f"{server.folder.as_uri()}/caf%E9.txt"
    result = await server.call("read_text_file", path=uri)
    return result is not None and "here" in result["content"][0]["text"]


async def f11_a_write_protected_file_stays(server: Server) -> bool:
    file = server.folder / "a.txt"
    file.write_text("mine")
    file.chmod(0o444)
    await server.call("write_file", path=str(file), content="yours")
    return file.read_text() == "mine"


async def f12_a_link_is_moved_itself(server: Server) -> bool:
    (server.folder / "target").write_text("here")
    (server.folder / "link").symlink_to("target")
    await server.call("move_file", source=str(server.folder / "link"), destination=str(server.folder / "moved"))
    return (server.folder / "moved").is_symlink() and (server.folder / "target").exists()


async def f13_a_pipe_is_refused_at_once(server: Server) -> bool:
    os.mkfifo(server.folder / "pipe")
    return await server.refused("read_text_file", path=str(server.folder / "pipe"))


async def f14_of_parallel_edits_none_is_lost(server: Server) -> bool:
    names = [f"<{number}>" for number in range(30)]
    (server.folder / "a.txt").write_text("\n".join(names) + "\n")
    path, refused = str(server.folder / "a.txt"), {}
    for id_, name in enumerate(names, 1_000):
        arguments = {"path": path, "edits": [{"oldText": name, "newText": "."}]}
        params = {"name": "edit_file", "arguments": arguments}
        await server.wire.send({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})
    for id_, name in enumerate(names, 1_000):
        answer = await server.wire.response(id_)
        refused[name] = "result" not in answer or bool(answer["result"].get("isError"))
    text = (server.folder / "a.txt").read_text()
    return all((name in text) == refused[name] for name in names)


async def f17_a_glob_of_braces_ends(server: Server) -> bool:
    (server.folder / "a.txt").touch()
    await server.call("search_files", path=str(server.folder), pattern="{a,b}" * 20)
    return not await server.refused("list_allowed_directories")


async def f20_a_result_is_what_hosts_take(server: Server) -> bool:
    (server.folder / "a.txt").write_text("a line of text\n" * 150_000)
    result = await server.call("read_text_file", path=str(server.folder / "a.txt"))
    return len(json.dumps(result)) < 1_000_000


SCENARIOS: list[Callable[[Server], Awaitable[bool]]] = [
    one for name, one in list(globals().items()) if re.match(r"f\d+_", name)
]


def _command(server: str, folder: Path) -> list[str]:
    if server == "ours":
        return [sys.executable, "-m", "servers.filesystem", "--allow-write", str(folder)]
    return NPM.stdio(folder)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_a_failure_that_was_seen(
    scenario: Callable[[Server], Awaitable[bool]],
    server: str,
    tmp_path: Path,
    judge: Callable[[str, str, Awaitable[bool]], Awaitable[None]],
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()

    async def passes() -> bool:
        async with Wire(_command(server, folder), check=False) as wire:
            await wire.initialize()
            return await scenario(Server(wire, folder))

    await judge(scenario.__name__, server, passes())
