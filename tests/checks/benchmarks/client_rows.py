"""The rows of clients: calls a second that each of them makes to our server and to the official one, and how long a
command takes from its start to what it shows."""

import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import pypi
from tests.checks.benchmarks import client_raw, messages, peers, prompts_peers, targets
from tests.checks.benchmarks.client_load import Job
from tests.checks.benchmarks.http_rows import serving
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import ROOT, Peer
from tests.checks.benchmarks.pipes import PATIENCE
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import HOST, PATH, Web

Figures = Iterator[tuple[Measure, float]]

TOOL = "read_text_file"
STARTS = 3
"""How often a command is run for one figure."""


@dataclass(frozen=True)
class Client:
    """One client: its name in the table, and the calls a second it makes, one at a time and 32 at once, to a server
    that it starts, or that listens."""

    name: str
    over_stdio: Callable[[list[str], Ask], list[float]]
    over_http: Callable[[Web, Ask], list[float]]


@dataclass(frozen=True)
class Command:
    """A command that has a server read a file: its words, for the command of the server, and the file."""

    name: str
    words: Callable[[list[str], Path], list[str]]


def at_ours(client: Client, folder: Path) -> Figures:
    """The figures of one client at our server, with a tool that does nothing: it is the client that is measured.
    Raises Unavailable."""
    ask = Ask("tools/call", {"_meta": messages.ENVELOPE, "name": "test_simple_text", "arguments": {}}, b"simple text")
    return _figures(client, peers.OURS_SIMPLE, ask, targets.CLIENT_AT_OURS, folder)


def at_sdk(client: Client, folder: Path) -> Figures:
    """The figures of one client at the official server. Raises Unavailable."""
    return _figures(client, peers.SDK, messages.read_stateless(folder / messages.FILE), targets.CLIENT_AT_SDK, folder)


def _figures(client: Client, server: Peer, ask: Ask, rows: Sequence[Measure], folder: Path) -> Figures:
    rates = client.over_stdio(server.stdio(folder), ask)
    with serving(server, folder) as web:
        rates += client.over_http(web, ask)
    yield from zip(rows, rates, strict=True)


def start_row(command: Command, folder: Path) -> Figures:
    """From the start of a command that calls a tool to the first byte that it shows. Raises Unavailable."""
    file = folder / messages.FILE
    words = command.words(peers.BUNDLE_PACKAGE.stdio(folder), file)
    yield targets.CALL_START, statistics.median(_first_output_ms(words) for _ in range(STARTS))


def _first_output_ms(words: list[str]) -> float:
    began = time.perf_counter()
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        first = process.stdout.read(1)
        took = time.perf_counter() - began
        rest = process.stdout.read()
        process.wait(PATIENCE)
    # FastMCP breaks lines at the width of the terminal.
    if messages.TEXT.encode() not in (first + rest).replace(b"\n", b""):
        raise ValueError(f"{words} shows {first + rest!r:.500}")
    return 1_000 * took


def _program(name: str, job: Job) -> list[float]:
    command = [sys.executable, "-m", f"tests.checks.benchmarks.{name}", job.text()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise ValueError(f"{name} failed: {done.stderr[-2_000:]}")
    rates: list[float] = json.loads(done.stdout)
    return rates


def _with_library(name: str, program: str) -> Client:
    def job(target: str | list[str], server: int | None, ask: Ask) -> Job:
        return Job(target, server, ask.params["name"], ask.params["arguments"], ask.expected.decode())

    def over_stdio(command: list[str], ask: Ask) -> list[float]:
        return _program(program, job(command, None, ask))

    def over_http(web: Web, ask: Ask) -> list[float]:
        return _program(program, job(f"http://{HOST}:{web.port}{PATH}", web.pid, ask))

    return Client(name, over_stdio, over_http)


def _call(server: list[str], file: Path) -> list[str]:
    return [sys.executable, "-m", "servers", "call", "-", TOOL, f"path={file}", "--", *server]


def _fastmcp_call(server: list[str], file: Path) -> list[str]:
    program = pypi.require("fastmcp-server", prompts_peers.REQUIREMENTS).with_name("fastmcp")
    arguments = json.dumps({"path": str(file)})
    return [str(program), "call", "--command", shlex.join(server), "--target", TOOL, "--input-json", arguments]


CLIENTS = (
    _with_library("ours", "client_ours"),
    _with_library("SDK", "client_sdk"),
    Client("raw", client_raw.over_pipes, client_raw.over_http),
)
COMMANDS = (Command("ours", _call), Command("FastMCP", _fastmcp_call))
