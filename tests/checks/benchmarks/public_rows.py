"""The public comparison: the workload of the published benchmark of MCP servers of 2026 (tmdevlab.com), rebuilt.

50 users call four tools in turn: one computes, one asks an HTTP service, one changes JSON, one waits 10 ms as for a
database. There is one program of ours, of FastMCP, of the official SDK, and of Go (mcp-go), each with plain JSON
answers and without sessions, over HTTP at 2026-07-28. The load is on the first core, and one process on the others;
two workers take any core. Workers of ours share a Redis. Go has one process that uses all cores.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import pypi
from tests.checks.benchmarks import messages, prompts_peers, targets
from tests.checks.benchmarks.machine import busy_seconds, family, held
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import PUBLIC, UNLIMITED, go_program
from tests.checks.benchmarks.replica_rows import redis_alone, store_options
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import HOST, Web, stateless
from tests.checks.benchmarks.wrk import SECONDS, mixed_load
from tests.checks.replicas.cluster import KEY
from tests.ports import free_port

USERS = 50
PEER, API = str(PUBLIC / "peer.py"), str(PUBLIC / "api.py")

Figures = Iterator[tuple[Measure, float]]


@dataclass(frozen=True)
class Program:
    """One server: its name in the table, and its command for a port and a number of workers. Raises Unavailable."""

    name: str
    command: Callable[[int, int], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)


def public_rows(program: Program, _folder: Path) -> Figures:
    """One process under the load. Raises Unavailable."""
    yield from zip(targets.PUBLIC, _measured(program, 1), strict=True)


def public_worker_rows(program: Program, _folder: Path) -> Figures:
    """Two workers under the load. Raises Unavailable."""
    rate, core, _middle, _late, memory = _measured(program, 2)
    yield from zip(targets.PUBLIC_WORKERS, (rate, core, memory), strict=True)


def _measured(program: Program, workers: int) -> tuple[float, ...]:
    api_port, port = free_port(), free_port()
    with ExitStack() as stack:
        command = ["env", *(f"{name}={value}" for name, value in program.environment.items())]
        command += program.command(port, workers)
        if program is BUNDLE_PACKAGE and workers > 1:
            command += store_options(stack.enter_context(redis_alone()))
        stack.enter_context(Web([sys.executable, API, str(api_port)], api_port))
        web = stack.enter_context(Web(command, port))
        asks = _asks(f"http://{HOST}:{api_port}/api")
        headers = [stateless(ask) for ask in asks]
        mixed_load(web, asks, headers, USERS)  # until all workers have started
        before = sum(map(busy_seconds, family(web.pid)))
        load = mixed_load(web, asks, headers, USERS)
        took = sum(map(busy_seconds, family(web.pid))) - before
        return load.rate, load.rate * SECONDS / took, load.middle, load.late, held(web.pid)


def _asks(url: str) -> list[Ask]:
    data = {"name": "benchmark", "count": 42, "nested": {"key": "value"}}
    return [
        _ask("compute", b"55", n=10),
        _ask("fetch", b"a product", url=url),
        _ask("transform", b"BENCHMARK", data=data),
        _ask("wait", b"waited", ms=10),
    ]


def _ask(tool: str, expected: bytes, **arguments: Any) -> Ask:
    return Ask("tools/call", {"_meta": messages.ENVELOPE, "name": tool, "arguments": arguments}, expected)


def _fastmcp(port: int, workers: int) -> list[str]:
    python = pypi.require("fastmcp-server", prompts_peers.REQUIREMENTS)
    return [str(python), PEER, "fastmcp", str(port), str(workers)]


def _ours(port: int, workers: int) -> list[str]:
    module = [sys.executable, "-m", "tests.checks.benchmarks.public.ours", "--transport", "http"]
    return [*module, "--port", str(port), "--workers", str(workers), *UNLIMITED]


BUNDLE_PACKAGE = Program("ours", _ours, {"MCP_STATE_KEY": KEY})
SDK = Program("SDK", lambda port, workers: [sys.executable, PEER, "sdk", str(port), str(workers)])
FASTMCP = Program("FastMCP", _fastmcp)
GO = Program("Go", lambda port, _workers: [go_program(), str(port)])
PROGRAMS = (BUNDLE_PACKAGE, SDK, FASTMCP, GO)
