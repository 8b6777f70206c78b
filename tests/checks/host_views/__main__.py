"""python -m tests.checks.host_views [HOST ...] [PAGES ...]: what models of hosts receive of results of 1, 10 and 100
pages.

Beside it is what they receive from a server that knows no hosts. No test runs it, since it takes half an hour."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from servers.catalog import load_catalog
from shared.server.dispatch.hosts import find_host
from tests.checks.benchmarks.report import markdown
from tests.checks.host_views.dialects import Call
from tests.checks.host_views.large import Result, results
from tests.checks.host_views.model import Script
from tests.checks.host_views.programs import HOSTS, Host
from tests.checks.host_views.test_results import CURSOR

ROOT = Path(__file__).resolve().parents[3]
HEAD = ("result", "host", "before, bytes", "whole, or cursor seen", "now, bytes", "pages", "largest", "whole")
PATIENCE = 3_600.0
"""Seconds of a conversation."""
PAGES = (1, 10, 100)
LIMITS = {"sqlite": ["--max-rows", "1000000"], "fetch": ["--allow-private", "127.0.0.1:*"]}


def main(words: list[str]) -> int:
    """Prints the table; 1 if a result did not arrive whole."""
    hosts = [host for host in HOSTS if host.folder in words] or HOSTS
    counts = [int(word) for word in words if word.isdecimal()] or PAGES
    rows = [row for host in hosts for count in counts for row in _rows(host, count)]
    print("\n".join(markdown(HEAD, rows)))
    return int(any(row[-1] != "yes" for row in rows))


def _rows(host: Host, count: int) -> Iterator[list[str]]:
    known = find_host({"name": host.client})
    assert known is not None
    with tempfile.TemporaryDirectory() as name, results(Path(name).resolve(), count * known.text_bytes) as every:
        for result in every:
            (first,) = _received(host, result, Path(name), knows_hosts=False)
            pages = _received(host, result, Path(name), knows_hosts=True)
            sizes = [len(page.encode()) for page in pages]
            seen = CURSOR.search(first) is not None or not result.missing([first])
            row = [
                f"{result.tool}, {count}x", host.name, f"{len(first.encode()):,}", "yes" if seen else "no",
                f"{sum(sizes):,}", str(len(pages)), f"{max(sizes):,}", result.missing(pages) or "yes",
            ]  # fmt: skip
            print(*row, sep="; ", file=sys.stderr, flush=True)
            yield row


def _received(host: Host, result: Result, folder: Path, *, knows_hosts: bool) -> list[str]:
    """Return the pages of a result; without `knows_hosts` the first one alone.

    Each is followed in a conversation of its own, since hosts shorten those of many megabytes.
    """
    module = next(entry.module for entry in load_catalog().servers if entry.name == result.server)
    forget = "" if knows_hosts else "import shared.server.dispatch.hosts as hosts; hosts.HOSTS = (); "
    start = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); {forget}"
    start += f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", start, *LIMITS.get(result.server, ()), *result.operands]
    pages: list[str] = []
    host.play(Path(tempfile.mkdtemp(dir=folder)), command, _script(result, pages, goes_on=knows_hosts), PATIENCE)
    return pages


def _script(result: Result, pages: list[str], *, goes_on: bool) -> Script:
    pages.append((yield Call(result.tool, result.arguments)))
    while goes_on and result.is_paged and (cursor := CURSOR.search(pages[-1])):
        value = int(cursor[2]) if cursor[1] == "start_index" else cursor[2]
        pages.append((yield Call(result.tool, {**result.arguments, cursor[1]: value})))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
