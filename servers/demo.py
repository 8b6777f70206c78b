"""`make demo`: real work on real files, through the server as a desktop host would start it.

It needs no Node and no network. Everything happens in a temporary directory, which is gone at the end.
"""

import os
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.transports.http_client import connect_http
from shared.transports.process import connect_stdio

from .hosts import claude_desktop, script_path, snippet

__all__ = ["run_demo"]

SCRIPT = "mcp-bundle-filesystem"
MODES = ("handshake", "stateless")
NOTES = "# Shopping\n\n- bread\n- milk\n"


def run_demo() -> int:
    """Runs the demo; 0 when all of it worked. Raises what went wrong."""
    with tempfile.TemporaryDirectory(prefix="mcp-demo-") as folder:
        anyio.run(_demo, Path(folder).resolve())
    _say("\nTo use it in Claude Desktop, put this into claude_desktop_config.json:\n")
    _say(snippet(claude_desktop("filesystem", SCRIPT, [str(Path.cwd())])))
    return 0


async def _demo(folder: Path) -> None:
    (folder / "notes.md").write_text(NOTES)
    (folder / "src").mkdir()
    (folder / "src" / "hello.py").write_text('print("hello")\n')
    for mode in MODES:
        _say(f"\n=== stdio, {mode}")
        async with connect_stdio(_command(folder), ClientOptions(mode=mode)) as client:
            await _work(client, folder)
    token = secrets.token_urlsafe(24)
    async with _http_server(folder, token) as url:
        for mode in MODES:
            _say(f"\n=== HTTP at {url} with a token, {mode}")
            async with connect_http(url, ClientOptions(mode=mode), token=token) as client:
                await _work(client, folder)


def _command(folder: Path) -> list[str]:
    return [str(script_path(SCRIPT)), "--allow-write", str(folder)]


async def _work(client: Client, folder: Path) -> None:
    """Lists, reads, edits, and is told of a change from outside."""
    (folder / "notes.md").write_text(NOTES)
    tools = await client.list_tools()
    names = ", ".join(tool["name"] for tool in tools)
    name, version = client.server.info["name"], client.server.info["version"]
    _say(f"{name} {version} speaks {client.server.version} and offers {len(tools)} tools: {names}")
    await _call(client, "list_directory", path=str(folder))
    await _call(client, "search_files", path=str(folder), pattern="*.py")
    await _call(client, "read_text_file", path="notes.md")
    edits = [{"oldText": "- milk", "newText": "- oat milk\n- coffee"}]
    await _call(client, "edit_file", path="notes.md", edits=edits)
    await _watch(client, folder / "notes.md")


async def _watch(client: Client, file: Path) -> None:
    uri, told = file.as_uri(), anyio.Event()

    def notice(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/resources/updated" and not told.is_set():
            _say(f"<- {method} {params['uri']}")
            told.set()

    async with client.subscribed([uri], notice):
        _say(f"-> subscribed to {uri}; now another program writes to it")
        file.write_text(NOTES + "- tea\n")
        with anyio.fail_after(10):
            await told.wait()
    contents = (await client.read_resource(uri))["contents"][0]["text"]
    _say(f"   it ends with {contents.splitlines()[-1]!r} now")


async def _call(client: Client, tool: str, **arguments: Any) -> None:
    result = await client.call_tool(tool, arguments)
    text = result["content"][0]["text"]
    if result.get("isError"):
        raise RuntimeError(f"{tool} failed: {text}")
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    _say(f"-> {tool}({shown})")
    for line in text.splitlines():
        _say(f"   {line}")


@asynccontextmanager
async def _http_server(folder: Path, token: str) -> AsyncIterator[str]:
    """The server over HTTP on a free port, until the end of the block; its URL is what it says on stderr."""
    command = [*_command(folder), "--transport", "http", "--port", "0"]
    async with await anyio.open_process(command, env={**os.environ, "MCP_TOKEN": token}, stdout=None) as process:
        try:
            yield await _announced(process)
        finally:
            process.terminate()


async def _announced(process: anyio.abc.Process) -> str:
    said = b""
    stderr = process.stderr
    with anyio.fail_after(20):
        while stderr is not None and not said.endswith(b"\n"):
            said += await stderr.receive()
    return said.decode().removeprefix("listening on ").strip()


def _say(text: str) -> None:
    print(text, file=sys.stdout, flush=True)  # noqa: T201 - showing is what a demo is for
