"""The rows of the gateway: what it adds to a call, and what a thousand clients of it are to the server behind it."""

import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests import pypi
from tests.checks.benchmarks import messages, peers, prompts_peers, targets
from tests.checks.benchmarks.http_rows import MANY, serving
from tests.checks.benchmarks.machine import apart
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import ROOT, UNLIMITED
from tests.checks.benchmarks.pipes import Pipes, sample
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import HOST, PATH, PATIENCE, Web, in_session, stateless
from tests.checks.benchmarks.wrk import load
from tests.ports import free_port

BUNDLE = [sys.executable, "-m", "servers"]
CALL = Ask("tools/call", {"name": "test_simple_text", "arguments": {}}, b"simple text")
CALL_STATELESS = Ask(CALL.method, {"_meta": messages.ENVELOPE, **CALL.params}, CALL.expected)
PROXY = ROOT / "tests" / "checks" / "interop" / "gateway" / "proxy_fastmcp.py"
WARM_UP = 100
"""Calls before the clock runs, among which come the notifications of the start."""
ASKING = ("resources/subscribe", "subscriptions/listen")

Figures = Iterator[tuple[Measure, float]]


@dataclass(frozen=True)
class Door:
    """One of the paths at which a server is served: its name in the table, and where that is."""

    name: str
    path: str


@dataclass(frozen=True)
class Entry:
    """What a host starts to reach a server at a URL: its name in the table, and the command. Raises Unavailable."""

    name: str
    command: Callable[[str], list[str]]


def door_rows(door: Door, _folder: Path) -> Figures:
    """Calls a second over HTTP, of a server that is served by itself and among others. Raises Unavailable."""
    port = free_port()
    command = [*BUNDLE, "serve", "everything", "prompts", "--join", "--port", str(port)]
    with Web(command, port, door.path) as web:
        await_ready(port)
        for connections, measure in ((1, targets.JOINED_1), (32, targets.JOINED_32)):
            yield measure, load(web, CALL_STATELESS, [stateless(CALL_STATELESS)], connections)


def joined_row(entry: Entry, folder: Path) -> Figures:
    """Calls a second over stdio, of a server that is one of several behind the entry. Raises Unavailable."""
    yield targets.JOINED_ENTRY, _calls_a_second(entry, folder)


def connected_row(entry: Entry, folder: Path) -> Figures:
    """Calls a second over stdio, of a server that is somewhere else. Raises Unavailable."""
    yield targets.CONNECTED, _calls_a_second(entry, folder)


def _calls_a_second(entry: Entry, folder: Path) -> float:
    with serving(peers.OURS_SIMPLE, folder) as web, Pipes(entry.command(f"http://{HOST}:{web.port}{PATH}")) as server:
        server.greet()
        for _ in range(WARM_UP):
            server.ask(CALL)
        with apart(server.pid):
            return sample(partial(server.one_at_a_time, CALL))


def watchers_row(_peer: peers.Peer, folder: Path) -> Figures:
    """How often the server behind the gateway is asked to watch a file that so many clients watch."""
    file, trace = folder / "watched.txt", folder / "trace.jsonl"
    file.write_text(messages.TEXT)
    trace.unlink(missing_ok=True)
    port = free_port()
    server = [sys.executable, "-m", "servers.filesystem", str(folder), "--trace", str(trace)]
    options = ["--port", str(port), *UNLIMITED]
    subscribe = Ask("resources/subscribe", {"uri": file.as_uri()}, b'"result"')
    with Web([*BUNDLE, "expose", "--shared", *options, "--", *server], port) as web:
        await_ready(port)
        for number in range(MANY):
            web.ask(subscribe, in_session(web.open_session()), number + 2)
        asked = [json.loads(line).get("received", {}) for line in trace.read_text().splitlines()]
    yield targets.WATCHERS, sum(one.get("method") in ASKING and file.as_uri() in json.dumps(one) for one in asked)


def await_ready(port: int, seconds: float = PATIENCE) -> None:
    """Waits until everything behind the port is there. Raises TimeoutError."""
    limit = time.monotonic() + max(seconds, PATIENCE)
    while time.monotonic() < limit:
        connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
        with suppress(OSError):
            connection.request("GET", "/readyz")
            if connection.getresponse().status == http.client.OK:
                return
        connection.close()
        time.sleep(0.02)
    raise TimeoutError("it does not say that it is ready")


def _proxy(url: str) -> list[str]:
    return [str(pypi.require("fastmcp-server", prompts_peers.REQUIREMENTS)), str(PROXY), url]


DOORS = (Door("ours", PATH), Door("direct", f"/everything{PATH}"))
FASTMCP = Entry("FastMCP", _proxy)
JOINED = (Entry("ours", lambda _url: [*BUNDLE, "run", "--join", "everything", "prompts"]), FASTMCP)
CONNECTED = (Entry("ours", lambda url: [*BUNDLE, "connect", url]), FASTMCP)
