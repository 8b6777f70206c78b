"""How long a client waits while another one, with an address of its own, does the worst that it can."""

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.checks.benchmarks import targets
from tests.checks.benchmarks.http_rows import serving
from tests.checks.benchmarks.messages import ENVELOPE, PING, Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.tree import LINES, LONG_TEXT
from tests.checks.benchmarks.web import ALWAYS, HOST, PATH, Web, in_session, stateless

TIMES = 100
GREEDY = "127.0.0.2"

_EDITED, _EDITS, _GLOBS = "edited.txt", 20_000, 2_000
_BEGUN = 2.0
"""Seconds after which all that the other client does is under way."""
_LONGEST = 120.0


def fair_rows(peer: Peer, folder: Path) -> Iterator[tuple[Measure, float]]:
    """Milliseconds within which 99 of 100 answers come, the worst of all that the other client does. Raises
    Unavailable."""
    (folder / _EDITED).write_text("".join(f"line {number} {'x' * 100}\n" for number in range(45_000)))
    listing = _call("list_directory", path=str(folder / "tree" / "part-0" / "folder-000"))
    late: dict[str, list[float]] = {"tools/call": [], "ping": []}
    for ask, count in _worst(folder):
        with serving(peer, folder) as web:
            session = in_session(web.open_session())
            with _busy(web, ask, count):
                for asked in (listing, PING):
                    late[asked.method].append(_late(partial(web.ask, asked, session, 2)))
    yield targets.FAIR_LISTING, max(late["tools/call"])
    yield targets.FAIR_PING, max(late["ping"])
    with serving(peer, folder) as web, ExitStack() as stack:
        session = in_session(web.open_session())
        for ask, count in _worst(folder):
            # A client may have 64 calls under way, and each kind gets some of them.
            stack.enter_context(_busy(web, ask, count // 4 or 1))
        yield targets.MIXED_PING, statistics.quantiles(_times(partial(web.ask, PING, session, 2), 1_000), n=1_000)[-1]


def _worst(folder: Path) -> Iterator[tuple[Ask, int]]:
    """What takes long, and how many of it at once."""
    edits = [{"oldText": f"line {number} ", "newText": f"LINE {number} "} for number in range(_EDITS)]
    globs = [f"{(folder / 'tree').as_uri()}/**/*{number}*.ts" for number in range(_GLOBS)]
    yield _call("search_content", path=str(folder / "tree"), pattern="[a-z]+ [0-9]+zz"), 64
    yield _call("edit_file", path=str(folder / _EDITED), edits=edits, dryRun=True), 45
    yield _call("read_text_file", path=str(folder / LONG_TEXT), offset=LINES - 1), 64
    yield Ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": globs}}, b""), 1


def _call(tool: str, **arguments: Any) -> Ask:
    return Ask("tools/call", {"name": tool, "arguments": arguments}, b'"result"')


@contextmanager
def _busy(web: Web, ask: Ask, count: int) -> Iterator[None]:
    """So many requests of the other client at once, again and again, from a process of its own: its threads would
    otherwise delay the answers that are timed."""
    process = multiprocessing.get_context("fork").Process(target=_ask_on, args=(web.port, ask, count), daemon=True)
    process.start()
    time.sleep(_BEGUN)
    try:
        yield
    finally:
        process.kill()
        process.join()


def _ask_on(port: int, ask: Ask, count: int) -> None:
    asked = Ask(ask.method, {"_meta": ENVELOPE, **ask.params}, b"")
    body = asked.text(1)
    headers = {**ALWAYS, **stateless(asked)}

    def work() -> None:
        while True:
            connection = HTTPConnection(HOST, port, timeout=_LONGEST, source_address=(GREEDY, 0))
            with suppress(OSError, HTTPException):
                connection.request("POST", PATH, body, headers)
                response = connection.getresponse()
                while response.read1(65_536):
                    pass
            connection.close()

    for _ in range(count - 1):
        threading.Thread(target=work, daemon=True).start()
    work()


def _late(ask: Callable[[], object]) -> float:
    return sorted(_times(ask, TIMES))[-2]


def _times(ask: Callable[[], object], count: int) -> list[float]:
    """The milliseconds that each of so many takes, one after the other."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        ask()
        times.append(1_000 * (time.perf_counter() - began))
    return times
