"""The first half of `make demo`: the official Python client renames a function throughout a real project.

The project is a copy of our own protocol package. In each era, over stdio and over HTTP, the client finds the name,
looks at what would change, changes all files at once or none, and is told what has changed on disk; then every file
is compiled, to see that the project is still one.
"""

import compileall
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from .peers import MODES, ROOT, HttpServer, command, over_http, over_stdio

PROJECT = ROOT / "shared" / "protocol"
_ERAS = dict(zip(MODES, ("in the newest version", "with a handshake", "without a handshake"), strict=True))
OLD, NEW = "to_wire", "as_message"


def main() -> int:
    """Runs it; 0 when all of it worked. Raises what went wrong."""
    _say(
        f"The official Python client renames the function {OLD} to {NEW} everywhere in a copy of the folder "
        f"{PROJECT.relative_to(ROOT)}, through the filesystem server:"
    )
    with tempfile.TemporaryDirectory(prefix="mcp-demo-") as folder:
        for number, mode in enumerate(MODES):
            anyio.run(_over_stdio, _copied(Path(folder).resolve() / f"stdio-{number}"), mode)
        anyio.run(_over_http, _copied(Path(folder).resolve() / "http"))
    return 0


def _copied(folder: Path) -> Path:
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


async def _over_stdio(folder: Path, mode: str) -> None:
    opening = over_stdio([*command("filesystem", folder), "--allow-write"])
    async with opening as transport, Client(transport, mode=mode) as client:
        _say(f"  over stdio, {_ERAS[mode]}: {await _rename(client, folder)}")


async def _over_http(folder: Path) -> None:
    server = HttpServer([*command("filesystem", folder), "--allow-write"], None)
    try:
        async with over_http(server.url, None) as transport, Client(transport) as client:
            _say(f"  over HTTP: {await _rename(client, folder)}")
    finally:
        server.close()


async def _rename(client: Client, folder: Path) -> str:
    """What was done."""
    cursor = (await _call(client, "changes")).removeprefix("[cursor: ").removesuffix("]")
    found = await _call(client, "search_content", path=".", pattern=OLD, literal=True, output="counts")
    counts = dict(line.rsplit(": ", 1) for line in found.splitlines())
    edits = [{"path": path, "oldText": OLD, "newText": NEW, "count": 0} for path in counts]
    diff = await _call(client, "edit_file", edits=edits, dryRun=True)
    lines = len(re.findall(r"^[+][^+]", diff, re.MULTILINE))
    await _call(client, "edit_file", edits=edits)
    left = await _call(client, "search_content", path=".", pattern=OLD, literal=True, output="counts")
    if not left.startswith("No matches found") or not compileall.compile_dir(folder, quiet=1):
        raise RuntimeError("the project is not what it was meant to become")
    changed = await _call(client, "changes", cursor=cursor, wait=10)
    if len(changed.splitlines()) < 2:
        raise RuntimeError("nobody was told of the changes")
    return f"{lines} lines in {len(edits)} files; all files still compile"


async def _call(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError(f"{tool} failed: {result.content[0].text}")
    text: str = result.content[0].text
    return text


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
