"""The rows of the SQLite servers: single rows, many rows, readers beside a writer, and a big database."""

import json
import re
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.checks.benchmarks import targets
from tests.checks.benchmarks.machine import Watch, held, peak, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import Pipes, median_ms, sample, start_ms
from tests.checks.benchmarks.sqlite_peers import DBHUB, PLAIN, TOOLBOX
from tests.checks.benchmarks.sqlite_tables import BENCH, LONG, ROWS, SHARED
from tests.checks.benchmarks.targets import Measure

TIMES = 5
"""How often each call is made for one figure, which is the median."""
READERS, TURNS = 8, 50
WARM = 50
"""Calls before the rates are measured."""

_CURSOR = re.compile(rb'"next_cursor":"([^"]+)"')
_ONE = "SELECT id, c6, c9 FROM wide WHERE id = 777"
# Each reader sorts the whole table, to put parts of it together.
_SORTED = "SELECT length(group_concat(data)) FROM big GROUP BY -id / 10"
_SHARED = "SELECT count(*), max(id) FROM wide"

Figures = Iterator[tuple[Measure, float]]


def one_rows(peer: Peer, folder: Path) -> Figures:
    """Queries of one row a second, what the server takes to start, and what it holds after them. Each server has all
    cores, as one of them runs on several. Raises Unavailable where `peer` can't run here."""
    command = peer.stdio(folder)
    yield targets.SQL_START, statistics.median(start_ms(command) for _ in range(TIMES))
    with Pipes(command) as server:
        server.greet()
        ask = (_execute_sql if peer in (DBHUB, TOOLBOX) else _query)(_ONE, b"name 777")
        server.one_at_a_time(ask, WARM)
        yield targets.ONE_ROW, sample(partial(server.one_at_a_time, ask))
        yield targets.ONE_ROW_PIPELINED, sample(partial(server.pipelined, ask))
        yield targets.SQL_RESIDENT, resident(server.pid)


def _execute_sql(sql: str, expected: bytes) -> Ask:
    return Ask("tools/call", {"name": "execute_sql", "arguments": {"sql": sql}}, expected)


def many_rows(peer: Peer, folder: Path) -> Figures:
    """Milliseconds for a table of ten columns, all of it, and KiB of what was sent. Raises Unavailable."""
    query, last = "SELECT * FROM wide", f"name {ROWS}"
    if peer is PLAIN:
        with closing(sqlite3.connect(folder / BENCH)) as connection:
            yield from _many(lambda: [json.dumps(connection.execute(query).fetchall()).encode()])
        return
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        if peer is TOOLBOX:
            yield from _many(lambda: [server.ask(_execute_sql(query, last.encode()))])
        else:
            yield from _many(lambda: _read_all(server, query, last))


def _many(read: Callable[[], list[bytes]]) -> Figures:
    yield targets.MANY_ROWS, _ms(read)
    yield targets.MANY_BYTES, sum(map(len, read())) / 1_024


def _read_all(server: Pipes, query: str, last: str) -> list[bytes]:
    """Reads on until there is no cursor any more; the answers."""
    arguments: dict[str, Any] = {"query": query}
    answers: list[bytes] = []
    while True:
        answer = server.ask(Ask("tools/call", {"name": "read_query", "arguments": arguments}, b'"rows"'))
        answers.append(answer)
        # Found without decoding the answer: the client's time is not the server's.
        cursor = _CURSOR.search(answer)
        if cursor is None:
            break
        arguments = {"query": query, "cursor": cursor[1].decode()}
    if last.encode() not in answer:
        raise ValueError(f"the last page is not the last one: {answer[-200:]!r}")
    return answers


def busy_row(peer: Peer, folder: Path) -> Figures:
    """How many of the readers' queries fail, while another process writes as fast as it can. Raises Unavailable."""
    failed = 0
    with _writing(folder / SHARED), Pipes(peer.stdio(folder)) as server:
        server.greet()
        for _ in range(TURNS):
            answers = server.answers(_query(_SHARED, b""), READERS)
            failed += sum(str(ROWS).encode() not in answer for answer in answers)
    yield targets.BUSY, failed


@contextmanager
def _writing(database: Path) -> Iterator[None]:
    """Commits again and again in a thread, whose library is as good as another process: each has its own locks."""
    ended = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(database, isolation_level=None, timeout=60)) as connection:
            connection.execute("PRAGMA synchronous = off")
            while not ended.is_set():
                connection.execute("UPDATE counter SET n = n + 1")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def first_row(peer: Peer, folder: Path) -> Figures:
    """Milliseconds from the start to the list of tables. Raises Unavailable."""
    yield targets.FIRST, _ms(lambda: _first_answer(peer.stdio(folder)))


def _first_answer(command: list[str]) -> None:
    with Pipes(command) as server:
        server.greet()
        server.ask(Ask("tools/call", {"name": "list_tables", "arguments": {}}, b'"result"'))


def sort_rows(peer: Peer, folder: Path) -> Figures:
    """MiB that the server and all it starts hold while each reader sorts the big table, and by how much they have
    grown a minute later. Raises Unavailable."""
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        server.ask(_query("SELECT 1", b'"result"'))
        with Watch(server.pid) as watch:
            server.answers(_query(_SORTED, b""), READERS)
        yield targets.SORTS, watch.most
        time.sleep(60)
        yield targets.SORTED, held(server.pid) - watch.before


def paged_row(peer: Peer, folder: Path) -> Figures:
    """MiB by which memory grows when a long table is read to its end. Raises Unavailable."""
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        server.ask(_query(_ONE, b"name 777"))
        before = resident(server.pid)
        _read_all(server, "SELECT * FROM long", f"name {LONG}")
        yield targets.PAGED, peak(server.pid) - before


def _query(sql: str, expected: bytes) -> Ask:
    return Ask("tools/call", {"name": "read_query", "arguments": {"query": sql}}, expected)


def _ms(run: Callable[[], object]) -> float:
    return median_ms(run, TIMES)
