"""The rows over HTTP, of one server started afresh: load within a session, without any, and from more clients."""

from collections.abc import Iterator
from pathlib import Path

from tests.checks.benchmarks import messages, targets
from tests.checks.benchmarks.machine import resident
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.web import Web, in_session, stateless
from tests.checks.benchmarks.wrk import load
from tests.ports import free_port

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


def serving(peer: Peer, folder: Path) -> Web:
    """A server of that kind over HTTP."""
    port = free_port()
    return Web(peer.http(folder, port), port)
