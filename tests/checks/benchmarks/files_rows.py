"""The rows of long texts, of many files, and of changes: what the filesystem server itself costs."""

import json
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.checks.benchmarks import targets, tree
from tests.checks.benchmarks.machine import peak, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import OURS_WIDE, RG, Peer
from tests.checks.benchmarks.pipes import Pipes, median_ms
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.tree import HUGE_TEXT, LARGE_TEXT, LONG_TEXT, NEEDLE, NEEDLES, TYPESCRIPT

TIMES = 3
"""How often each call is made for one figure, which is the median."""
CHANGES = 200

_CURSOR = re.compile(rb'"cursor":"([^"]+)"')

Figures = Iterator[tuple[Measure, float]]


def text_rows(peer: Peer, folder: Path) -> Figures:
    """Milliseconds that `peer` takes for a text of 11 MB. Raises Unavailable where it can't run here."""
    path = str(folder / LONG_TEXT)
    last = f"this is line {tree.LINES:>8} and it is as long as any"
    edit = {"oldText": last, "newText": "this is the last line"}
    head, tail = ({name: 10, "path": path} for name in ("head", "tail"))
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        yield targets.PAGES, _ms(lambda: _read_all(server, path, last.encode()))
        yield targets.HEAD, _ms(lambda: server.ask(_call("read_text_file", b"line        1 ", head)))
        yield targets.TAIL, _ms(lambda: server.ask(_call("read_text_file", last.encode(), tail)))
        dry = {"path": path, "edits": [edit], "dryRun": True}
        yield targets.EDIT, _ms(lambda: server.ask(_call("edit_file", b"+this is the last line", dry)))


def _read_all(server: Pipes, path: str, last: bytes) -> None:
    """Reads on until there is no cursor any more."""
    arguments: dict[str, Any] = {"path": path}
    while True:
        answer = server.ask(_call("read_text_file", b"this is line", arguments))
        # Found without decoding the answer: the client's time is not the server's. A peer without pages has none.
        cursor = _CURSOR.search(answer, max(len(answer) - 1_000, 0))
        if cursor is None:
            break
        arguments = {"path": path, "cursor": cursor[1].decode()}
    if last not in answer:
        raise ValueError("the end of the text did not come")


def huge_row(peer: Peer, folder: Path) -> Figures:
    """What reading from a text of 200 MB takes of memory, while it is read. Raises Unavailable."""
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        server.ask(_call("read_text_file", b"this is line", {"path": str(folder / LONG_TEXT)}))
        before = resident(server.pid)
        for part in ({}, {"head": 10}, {"tail": 10}):
            server.ask(_call("read_text_file", b"xxxx", {"path": str(folder / HUGE_TEXT), **part}))
        yield targets.HUGE, peak(server.pid) - before


def tree_rows(peer: Peer, folder: Path) -> Figures:
    """Milliseconds that `peer` takes to walk over many files. Raises Unavailable."""
    path = str(folder / "tree")
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        search = _call("search_files", b"folder-999/file-00.ts", {"path": path, "pattern": "**/*.ts"})
        if peer is OURS_WIDE:
            search.params["arguments"]["limit"] = tree.FOLDERS * TYPESCRIPT
        yield targets.SEARCH, _ms(lambda: server.ask(search))
        yield targets.TREE, _ms(lambda: server.ask(_call("directory_tree", b"file-19.txt", {"path": path})))


def content_rows(peer: Peer, folder: Path) -> Figures:
    """Milliseconds that `peer` takes to find lines in many files, and the last line of a large one. Raises
    Unavailable."""
    for name, lines, measure in ("tree", NEEDLES, targets.CONTENT), (LARGE_TEXT, 1, targets.LARGE_CONTENT):
        path = folder / name
        if peer is RG:
            yield measure, _ms(partial(_rg, peer.stdio(path), lines))
            continue
        with Pipes(peer.stdio(folder)) as server:
            server.greet()
            arguments = {"path": str(path), "pattern": NEEDLE, "limit": 2 * NEEDLES}
            yield measure, _ms(partial(_matches, server, _call("search_content", NEEDLE.encode(), arguments), lines))


def _rg(command: list[str], lines: int) -> None:
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    _count(said.count(NEEDLE), lines)


def _matches(server: Pipes, ask: Ask, lines: int) -> None:
    _count(json.loads(server.ask(ask))["result"]["content"][0]["text"].count(f"a {NEEDLE}"), lines)


def _count(found: int, lines: int) -> None:
    if found != lines:
        raise ValueError(f"{found} lines were found, and there are {lines}")


def notice_rows(peer: Peer, folder: Path) -> Figures:
    """Milliseconds from a change to its notification, each change a rename over the file. Raises Unavailable."""
    watched, fresh, late = folder / "noticed.txt", folder / "noticed.tmp", []
    watched.write_text("0")
    with Pipes(peer.stdio(folder)) as server:
        server.greet()
        server.ask(Ask("resources/subscribe", {"uri": watched.as_uri()}, b'"result"'))
        for number in range(1, CHANGES + 1):
            fresh.write_text(str(number))
            began = time.perf_counter()
            fresh.replace(watched)
            if b"notifications/resources/updated" not in server.noticed():
                raise ValueError("what came is no notification of a change")
            late.append(1_000 * (time.perf_counter() - began))
            # A change right after another is told with the next: what is measured is one that comes alone.
            time.sleep(0.12)
    yield targets.NOTICE, statistics.median(late)
    yield targets.LATE_NOTICE, statistics.quantiles(late, n=100)[-1]


def _call(tool: str, expected: bytes, arguments: dict[str, Any]) -> Ask:
    return Ask("tools/call", {"name": tool, "arguments": arguments}, expected)


def _ms(run: Callable[[], object]) -> float:
    return median_ms(run, TIMES)
