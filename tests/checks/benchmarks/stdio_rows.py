"""The rows over stdio, of one server started afresh."""

import statistics
from collections.abc import Iterator
from functools import partial
from operator import truediv
from pathlib import Path

from tests.checks.benchmarks import messages, targets
from tests.checks.benchmarks.machine import apart, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import Pipes, sample, start_ms
from tests.checks.benchmarks.targets import Measure

STARTS = 3
"""How often a server is started for one figure: of all the figures, this one is disturbed most easily."""
TURNS = 3
"""How often both servers of a ratio are measured."""
MANY = 1_000
BEFORE = 50
"""Subscriptions made before memory is looked at: the first one starts the watcher that all share."""
RATES = (
    (targets.PING_SINGLE, targets.PING_PIPELINED),
    (targets.READ_SINGLE, targets.READ_PIPELINED),
    (targets.LIST_SINGLE, targets.LIST_PIPELINED),
)


def stdio_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The figures of `peer`. Raises Unavailable where it can't run here."""
    command = peer.stdio(folder)
    yield targets.START, statistics.median(start_ms(command) for _ in range(STARTS))
    with Pipes(command) as server:
        server.greet()
        server.one_at_a_time(messages.LIST, 1)
        yield targets.RESIDENT, resident(server.pid)
        asks = (messages.PING, messages.read(folder / messages.FILE), messages.LIST)
        for ask, (single, pipelined) in zip(asks, RATES, strict=True):
            with apart(server.pid):
                yield single, sample(partial(server.one_at_a_time, ask))
                yield pipelined, sample(partial(server.pipelined, ask))


def audit_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """The rates of `peer` with an audit log, to those without, in turns. Raises Unavailable."""
    command, ask = peer.stdio(folder), messages.read(folder / messages.FILE)
    with Pipes(command) as plain, Pipes([*command, "--audit", str(folder / "audit.log")]) as audited:
        ratios: list[tuple[float, ...]] = []
        for server in (plain, audited):
            server.greet()
        for _ in range(TURNS):
            rates = []
            for server in (audited, plain):
                with apart(server.pid):
                    rates.append((sample(partial(server.one_at_a_time, ask)), sample(partial(server.pipelined, ask))))
            ratios.append(tuple(map(truediv, *rates)))
    for measure, found in zip(targets.AUDITED, zip(*ratios, strict=True), strict=True):
        yield measure, statistics.median(found)


def subscription_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """What subscriptions to files take of memory, in one session. Raises Unavailable."""
    uris = [_written(folder / f"watched-{number}.txt").as_uri() for number in range(BEFORE + MANY)]
    asks = [Ask("resources/subscribe", {"uri": uri}, b'"result"') for uri in uris]
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        for ask in asks[:BEFORE]:
            server.one_at_a_time(ask, 1)
        before = resident(server.pid)
        for ask in asks[BEFORE:]:
            server.one_at_a_time(ask, 1)
        yield targets.SUBSCRIPTIONS, resident(server.pid) - before


def _written(file: Path) -> Path:
    file.write_text(messages.TEXT)
    return file
