"""The path of one `tools/call` from stdin to stdout: the number of files and functions of ours."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import anyio

from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from shared.server.dispatch.connection import serve
from shared.transports.stdio import StdioTransport

ROOT = Path(__file__).resolve().parents[1]
AUTHOR = ROOT / "servers/filesystem/features/read.py"
FILE_WORK = ROOT / "shared/program/files"
MAX_FILES, MAX_FUNCTIONS = 12, 30
Pipe = tuple[Callable[[dict[str, object]], None], Callable[[], dict[str, object]]]


class Travelled:
    """Our functions that were called, by file: those of the package, and those of the server that face it."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        name = frame.f_code.co_qualname
        ours = file.is_relative_to(ROOT / "shared") and not file.is_relative_to(FILE_WORK)
        if event == "call" and (ours or file == AUTHOR) and not name.endswith(">"):
            self.functions[str(file.relative_to(ROOT)), name] = None

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}


@asynccontextmanager
async def piped(folder: Path) -> AsyncIterator[tuple[int, int]]:
    """Runs the filesystem server on two real pipes; yields our ends of them."""
    (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
    transport = StdioTransport(read_in, write_out)
    async with app.open(Settings(roots=[folder])) as running, anyio.create_task_group() as tasks:
        tasks.start_soon(serve, running, transport)
        yield write_in, read_out
        os.close(write_in)
    os.close(read_out)
    transport.close()


async def ask(pipe: tuple[int, int], message: dict[str, object]) -> dict[str, object]:
    os.write(pipe[0], json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    with anyio.fail_after(30):
        await anyio.wait_readable(pipe[1])
    answer: dict[str, object] = json.loads(os.read(pipe[1], 65_536))
    return answer


async def test_a_call_passes_few_files_and_functions(tmp_path: Path) -> None:
    """The work of the tool is not counted: it is the purpose of the call, not its path."""
    (tmp_path / "a.txt").write_text("hello")
    call = {"id": 2, "method": "tools/call", "params": {"name": "read_text_file", "arguments": {"path": "a.txt"}}}
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with piped(tmp_path) as pipe:
        await ask(pipe, {"id": 1, "method": "initialize", "params": client})
        for _ in range(30):  # the constructors of frequent records are compiled then
            await ask(pipe, call)
        path = Travelled()
        sys.setprofile(path)
        try:
            answer = await ask(pipe, {**call, "id": 3})
        finally:
            sys.setprofile(None)
    assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]
    print(f"\none tools/call: {len(path.files)} files, {len(path.functions)} functions")
    for file, function in path.functions:
        print(f"  {file}: {function}")
    assert len(path.files) <= MAX_FILES
    assert len(path.functions) <= MAX_FUNCTIONS
