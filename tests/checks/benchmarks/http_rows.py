"""The rows over HTTP, of one server started afresh: load within a session, without any, and from more clients."""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.checks.benchmarks import messages, targets
from tests.checks.benchmarks.machine import busy_seconds, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import ROOT, Peer
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import Web, in_session, stateless
from tests.checks.benchmarks.wrk import SECONDS, load
from tests.ports import free_port

TURNS = 5
MANY = 1_000
BEFORE = 200
"""Sessions opened before memory is looked at: the first ones pay for what all of them share."""


def http_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The rates of `peer`. Raises Unavailable where it, or the load, can't be had here."""
    call, stateless_call = (read(folder / messages.FILE) for read in (messages.read, messages.read_stateless))
    with serving(peer, folder) as web:
        session = in_session(web.open_session())
        for connections, measure in ((1, targets.SESSION_1), (32, targets.SESSION_32)):
            yield measure, load(web, call, [session], connections)
        for connections, measure in ((1, targets.STATELESS_1), (32, targets.STATELESS_32)):
            yield measure, load(web, stateless_call, [stateless(stateless_call)], connections)
        # Last, because what it opens stays open.
        for connections, measure in ((1, targets.OPENING_1), (32, targets.OPENING_32)):
            yield measure, load(web, messages.INITIALIZE, [{}], connections)


def guarded_row(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The CPU time of requests without guards, to that with an audit log, a token of one scope, and limits. Raises
    Unavailable."""
    ask, tokens = messages.read_stateless(folder / messages.FILE), folder / "tokens.toml"
    tokens.unlink(missing_ok=True)  # of the round before
    new = [sys.executable, "-m", "servers", "token", "new", "ada", "--scope", "filesystem:read"]
    token = subprocess.run([*new, "--tokens-file", str(tokens)], cwd=ROOT, capture_output=True, text=True, check=True)
    guards = ["--audit", str(folder / "http-audit.log"), "--tokens-file", str(tokens)]
    bearer = {"Authorization": f"Bearer {token.stdout.strip()}"}
    with serving(peer, folder) as plain, serving(peer, folder, *guards) as guarded:
        turns = [(_cost(plain, ask, {}), _cost(guarded, ask, bearer)) for _ in range(TURNS)]
    yield targets.GUARDED, statistics.median(without / with_all for without, with_all in turns)


def _cost(web: Web, ask: Ask, headers: dict[str, str]) -> float:
    """Seconds of CPU time that a request takes, 32 at once."""
    before = busy_seconds(web.pid)
    rate = load(web, ask, [{**stateless(ask), **headers}], 32)
    return (busy_seconds(web.pid) - before) / (rate * SECONDS)


def growth_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The rates of `peer` with more and more clients, a session and a connection for each. Raises Unavailable."""
    call = messages.read(folder / messages.FILE)
    rates = {}
    with serving(peer, folder) as web:
        for clients, measure in ((1, targets.CLIENTS_1), (8, targets.CLIENTS_8), (64, targets.CLIENTS_64)):
            sessions = [in_session(web.open_session()) for _ in range(clients)]
            rates[clients] = load(web, call, sessions, clients)
            yield measure, rates[clients]
    yield targets.GROWTH, rates[64] / rates[8]


def idle_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """What sessions that do nothing take of memory. Raises Unavailable."""
    with serving(peer, folder) as web:
        for _ in range(BEFORE):
            web.open_session()
        before = resident(web.pid)
        for _ in range(MANY):
            web.open_session()
        yield targets.IDLE, resident(web.pid) - before


def serving(peer: Peer, folder: Path, *options: str) -> Web:
    """A server of that kind over HTTP."""
    port = free_port()
    return Web([*peer.http(folder, port), *options], port)
