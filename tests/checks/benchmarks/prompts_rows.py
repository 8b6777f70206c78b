"""The rows of the prompt servers: a library of many prompts opened, one prompt after the other, and a change told."""

import json
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.checks.benchmarks import targets
from tests.checks.benchmarks.machine import apart, peak
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import Pipes, sample
from tests.checks.benchmarks.prompts_library import ARGUMENTS, FOLDERS, LIBRARY, NAME, TEXT, text
from tests.checks.benchmarks.targets import Measure

STARTS = 5
"""How often a server is started for one figure: each start gives but one first page."""
CHANGES = 9
LIST = Ask("prompts/list", {}, b'"nextCursor"')
GET = Ask("prompts/get", {"name": NAME, "arguments": ARGUMENTS}, json.dumps(TEXT)[1:-1].encode())

Figures = Iterator[tuple[Measure, float]]


def library_rows(peer: Peer, folder: Path) -> Figures:
    """Milliseconds from the start to the answer to `initialize`, and from there to the first page of the list; and
    MiB, the most that were held until then. Raises Unavailable where `peer` can't run here."""
    command = peer.stdio(folder)
    opened = [_opened(command) for _ in range(STARTS)]
    for measure, values in zip(targets.LIBRARY, zip(*opened, strict=True), strict=True):
        yield measure, statistics.median(values)


def _opened(command: list[str]) -> tuple[float, float, float]:
    began = time.perf_counter()
    with Pipes(command) as server:
        server.greet()
        greeted = time.perf_counter()
        server.ask(LIST)
        listed = time.perf_counter()
        # Once a prompt is rendered all is loaded that serving them takes.
        server.ask(GET)
        return 1_000 * (greeted - began), 1_000 * (listed - greeted), peak(server.pid)


def get_row(peer: Peer, folder: Path) -> Figures:
    """Prompts a second, each with the same arguments. Raises Unavailable."""
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        server.ask(GET)
        with apart(server.pid):
            yield targets.PROMPT, sample(partial(server.one_at_a_time, GET))


def told_row(peer: Peer, folder: Path) -> Figures:
    """Milliseconds from the save of a prompt to the notification that the list has changed. Raises Unavailable."""
    library, late = folder / LIBRARY, []
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        server.ask(GET)
        for number in range(CHANGES):
            # A save right after another is told with it, and the watch begins after the start: what is measured is
            # one that comes alone.
            time.sleep(0.5)
            [file] = library.glob(f"part-{number % FOLDERS:02}/review-{number:05}.md")
            changed = text(number, f"Changed at {time.time()}.")
            began = time.perf_counter()
            file.write_text(changed)
            while b"notifications/prompts/list_changed" not in server.noticed():
                continue
            late.append(1_000 * (time.perf_counter() - began))
    yield targets.PROMPT_TOLD, statistics.median(late)
