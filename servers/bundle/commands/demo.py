"""`mcp-server-bundle demo`: does some work on real files with each server, started as desktop hosts do it.

It needs neither Node nor a network. Everything happens in a temporary directory, which is deleted at the end.
"""

import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream
from anyio.streams.buffered import BufferedByteReceiveStream

from servers.catalog import load_catalog
from shared.client.client import Client
from shared.client.connect import connect_http, connect_stdio
from shared.client.options import ClientOptions

from ..demo.printing import DemoOutput, say
from ..demo.work import SERVER_DEMOS, ServerDemo
from ..host_entries import BUNDLE
from ..hosts.launching import local_command
from ..terminal.command_parser import CommandParser

MODES = ("handshake", "stateless")
_START_SECONDS = 20.0
_MAX_LINE_BYTES = 65_536
_JOINED = [demo for demo in SERVER_DEMOS if not demo.is_excluded_from_join]


def main(argv: Sequence[str]) -> int:
    """Run the demo and return 0; any failure raises an exception. Prints a line for each piece of work, or, with
    `--verbose`, each call with its result."""
    parser = CommandParser("demo", "Start the servers as a desktop host does, and call their tools.")
    parser.add_argument("--verbose", action="store_true", help="show every call with its result")
    verbose: bool = parser.parse_args(argv).verbose
    for demo in SERVER_DEMOS:
        if demo.required_variable is not None and not os.environ.get(demo.required_variable):
            say(f"{demo.server}: skipped, because {demo.required_variable} names no database to use")
            continue
        with tempfile.TemporaryDirectory(prefix="mcp-demo-") as folder:
            anyio.run(_run_demo, demo, Path(folder).resolve(), verbose)
    with tempfile.TemporaryDirectory(prefix="mcp-demo-") as folder:
        anyio.run(_run_joined, Path(folder).resolve(), verbose)
    # The absolute path, so that the commands work in any directory and shell.
    program, names = local_command(BUNDLE)[0], " ".join(demo.server for demo in _JOINED)
    say("\nTo let Claude Desktop use one of them on your Documents, or all of them as one entry:")
    say(f"  {program} install filesystem ~/Documents --client claude-desktop")
    say(f"  {program} install --join {names} --env MCP_FILESYSTEM_ROOTS=~/Documents --client claude-desktop")
    return 0


async def _run_demo(demo: ServerDemo, folder: Path, verbose: bool) -> None:
    arguments = demo.arguments(folder)
    command = local_command(load_catalog().entry(demo.server), arguments)
    # If the variable names several databases, use the first.
    env = (
        {}
        if demo.required_variable is None
        else {demo.required_variable: os.environ[demo.required_variable].partition(",")[0]}
    )
    versions = []
    for mode in MODES:
        output = DemoOutput(full=verbose, brief=not verbose and mode == MODES[0])
        output.show(f"\n=== {demo.server}, stdio, {mode}")
        async with connect_stdio(command, ClientOptions(mode=mode), env=env, stderr="inherit") as client:
            await _work(demo, client, folder, output)
            versions.append(client.server.version)
    token = secrets.token_urlsafe(24)
    async with _http_server(command, {**os.environ, **env, "MCP_TOKEN": token}) as url:
        for mode in MODES:
            output = DemoOutput(full=verbose, brief=False)
            output.show(f"\n=== {demo.server}, HTTP at {url} with a token, {mode}")
            async with connect_http(url, ClientOptions(mode=mode), token=token) as client:
                await _work(demo, client, folder, output)
    say(f"  the same over HTTP with a token; both transports with versions {' and '.join(versions)} of the protocol")


async def _run_joined(folder: Path, verbose: bool) -> None:
    """Do the same work through one program that joins the servers."""
    for demo in _JOINED:
        (folder / demo.server).mkdir()
        demo.arguments(folder / demo.server)
    settings = {demo.server: demo.settings(folder / demo.server) for demo in _JOINED}
    (folder / "bundle.yaml").write_text(json.dumps({"servers": settings}))
    command = local_command(BUNDLE, ["run", "--join", "--config", str(folder / "bundle.yaml")])
    versions = []
    for mode in MODES:
        output = DemoOutput(full=verbose, brief=not verbose and mode == MODES[0])
        output.show(f"\n=== all as one, stdio, {mode}")
        async with connect_stdio(command, ClientOptions(mode=mode), stderr="inherit") as client:
            if output.brief:
                say(f"all as one, {len(await client.list_tools())} tools")
            for demo in _JOINED:
                await demo.work(client, folder / demo.server, output._replace(brief=False))
            output.summarize("all of the above", "the same work through one program that joins them")
            versions.append(client.server.version)
    say(f"  in versions {' and '.join(versions)} of the protocol")


async def _work(demo: ServerDemo, client: Client, folder: Path, output: DemoOutput) -> None:
    tools = await client.list_tools()
    names = ", ".join(tool.name for tool in tools)
    name, version = client.server.info["name"], client.server.info["version"]
    output.show(f"{name} {version} speaks {client.server.version} and offers {len(tools)} tools: {names}")
    if output.brief:
        say(f"{name} {version}, {len(tools)} tools")
    await demo.work(client, folder, output)


@asynccontextmanager
async def _http_server(command: list[str], env: dict[str, str]) -> AsyncIterator[str]:
    """Run the server over HTTP on a free port during the block; yield the URL that it prints to stderr."""
    served = [*command, "--transport", "http", "--port", "0"]
    async with await anyio.open_process(served, env=env, stdout=None) as process:
        try:
            with anyio.fail_after(_START_SECONDS):
                stderr = BufferedByteReceiveStream(cast("ByteReceiveStream", process.stderr))
                line = await stderr.receive_until(b"\n", _MAX_LINE_BYTES)
            yield line.decode().removeprefix("listening on ").strip()
        finally:
            process.terminate()
