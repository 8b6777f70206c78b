"""`make bench`: our servers beside others: official ones, dbhub, Toolbox, FastMCP, and the least that Python needs.

python -m tests.checks.benchmarks.run [--rounds N] [--articles FOLDER] [--json FILE]
    [--kinds FOLDER] [--manuals FOLDER]
    [--only stdio|http|auth|sessions|tasks|files|sqlite|fetch|prompts|client|gateway|replicas|public|browser]

A client without an SDK drives all of them, round by round, each server fresh in each round, so that a machine that
slows down slows all. What counts are the ratios; the figures themselves are this machine's. They are no assertions:
the exit code tells only whether everything could be measured that can be here.
"""

import argparse
import compileall
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tests.checks.benchmarks import (
    browser_rows,
    client_rows,
    fetch_peers,
    gateway_rows,
    messages,
    prompts_peers,
    public_rows,
    replica_rows,
    sqlite_peers,
    targets,
)
from tests.checks.benchmarks.auth_rows import auth_rows
from tests.checks.benchmarks.fair_rows import fair_rows
from tests.checks.benchmarks.fetch_articles import ARTICLES
from tests.checks.benchmarks.fetch_content_rows import kind_rows, manual_rows
from tests.checks.benchmarks.fetch_pages import KINDS_FOLDER, MANUALS_FOLDER
from tests.checks.benchmarks.fetch_rows import (
    article_rows,
    fetch_growth_row,
    fetch_start_row,
    large_rows,
    marked_rows,
    together_rows,
)
from tests.checks.benchmarks.files_rows import content_rows, huge_row, notice_rows, text_rows, tree_rows
from tests.checks.benchmarks.http_rows import growth_rows, guarded_row, http_rows, idle_rows
from tests.checks.benchmarks.machine import describe
from tests.checks.benchmarks.peers import BUNDLE_PACKAGE, FLOOR, GO, NPM, OURS_SHARED, OURS_WIDE, RG, ROOT, SDK
from tests.checks.benchmarks.prompts_library import make_library
from tests.checks.benchmarks.prompts_rows import get_row, library_rows, told_row
from tests.checks.benchmarks.report import table
from tests.checks.benchmarks.results import Results
from tests.checks.benchmarks.socket_rows import socket_rows
from tests.checks.benchmarks.sqlite_rows import busy_row, first_row, many_rows, one_rows, paged_row, sort_rows
from tests.checks.benchmarks.sqlite_tables import make_databases
from tests.checks.benchmarks.stdio_rows import audit_rows, stdio_rows, subscription_rows
from tests.checks.benchmarks.targets import Measure
from tests.checks.benchmarks.tasks_rows import task_rows
from tests.checks.benchmarks.tree import make_texts, make_tree
from tests.npm import Unavailable

Figures = Iterator[tuple[Measure, float]]


class Named(Protocol):
    """A server, a client or a command, by its name in the table."""

    name: str


@dataclass(frozen=True)
class Series:
    """Rows that one function measures of one server after the other, or of clients."""

    part: str
    measure: Callable[[Any, Path], Figures]
    rows: tuple[Measure, ...]
    peers: tuple[Named, ...]


SERIES = (
    Series("stdio", stdio_rows, targets.STDIO, (BUNDLE_PACKAGE, SDK, NPM, GO, FLOOR)),
    # The SDK's server has no audit log.
    Series("stdio", audit_rows, targets.AUDITED, (BUNDLE_PACKAGE,)),
    Series("http", http_rows, targets.HTTP, (BUNDLE_PACKAGE, SDK, FLOOR)),
    # Each peer would need guards of its own.
    Series("http", guarded_row, (targets.GUARDED,), (BUNDLE_PACKAGE,)),
    Series("http", growth_rows, targets.CLIENTS, (BUNDLE_PACKAGE, SDK, FLOOR)),
    # The SDK's server has no WebSockets.
    Series("http", socket_rows, targets.SOCKETS, (BUNDLE_PACKAGE,)),
    Series("auth", auth_rows, targets.AUTH, (BUNDLE_PACKAGE,)),
    Series("sessions", idle_rows, targets.IDLE_SESSIONS, (BUNDLE_PACKAGE, SDK)),
    Series("tasks", task_rows, targets.TASKS, (BUNDLE_PACKAGE,)),
    Series("files", text_rows, targets.TEXTS, (OURS_WIDE, NPM)),
    Series("files", huge_row, (targets.HUGE,), (OURS_WIDE,)),
    Series("files", tree_rows, targets.TREES, (OURS_WIDE, NPM)),
    Series("files", content_rows, (targets.CONTENT, targets.LARGE_CONTENT), (OURS_WIDE, RG)),
    Series("files", notice_rows, targets.NOTICES, (BUNDLE_PACKAGE,)),
    Series("files", fair_rows, targets.FAIR, (OURS_SHARED,)),
    # The SDK's server takes no subscriptions to files.
    Series("sessions", subscription_rows, targets.SUBSCRIBED, (BUNDLE_PACKAGE,)),
    Series(
        "sqlite",
        one_rows,
        targets.ONE_ROWS,
        (sqlite_peers.BUNDLE_PACKAGE, sqlite_peers.DBHUB, sqlite_peers.ARCHIVED, sqlite_peers.TOOLBOX),
    ),
    Series("sqlite", many_rows, targets.MANY, (sqlite_peers.OURS_WIDE, sqlite_peers.PLAIN, sqlite_peers.TOOLBOX)),
    Series("sqlite", busy_row, (targets.BUSY,), (sqlite_peers.OURS_SHARED,)),
    Series("sqlite", first_row, (targets.FIRST,), (sqlite_peers.OURS_BIG, sqlite_peers.EMPTY)),
    Series("sqlite", sort_rows, targets.SQLITE_SORTS, (sqlite_peers.OURS_BIG,)),
    Series("sqlite", paged_row, (targets.PAGED,), (sqlite_peers.OURS_WIDE,)),
    Series("fetch", fetch_start_row, (targets.FETCH_START,), (fetch_peers.BUNDLE_PACKAGE, fetch_peers.OFFICIAL)),
    Series("fetch", article_rows, targets.ARTICLES, (fetch_peers.BUNDLE_PACKAGE, fetch_peers.OFFICIAL)),
    Series("fetch", marked_rows, targets.MARKED, (fetch_peers.BUNDLE_PACKAGE, fetch_peers.OFFICIAL)),
    Series("fetch", kind_rows, targets.KINDS, fetch_peers.READERS),
    Series("fetch", manual_rows, (targets.MANUALS_KEPT,), fetch_peers.READERS),
    Series("fetch", together_rows, targets.AT_ONCE, (fetch_peers.BUNDLE_PACKAGE,)),
    Series("fetch", large_rows, targets.LARGE, (fetch_peers.OURS_WIDE,)),
    Series("fetch", fetch_growth_row, (targets.FETCH_GROWTH,), (fetch_peers.BUNDLE_PACKAGE,)),
    Series("prompts", library_rows, targets.LIBRARY, (prompts_peers.BUNDLE_PACKAGE,)),
    Series("prompts", get_row, (targets.PROMPT,), (prompts_peers.BUNDLE_PACKAGE, prompts_peers.FASTMCP)),
    Series("prompts", told_row, (targets.PROMPT_TOLD,), (prompts_peers.BUNDLE_PACKAGE,)),
    Series("client", client_rows.at_ours, targets.CLIENT_AT_OURS, client_rows.CLIENTS),
    Series("client", client_rows.at_sdk, targets.CLIENT_AT_SDK, client_rows.CLIENTS),
    Series("client", client_rows.start_row, (targets.CALL_START,), client_rows.COMMANDS),
    Series("gateway", gateway_rows.door_rows, targets.DOORS, gateway_rows.DOORS),
    Series("gateway", gateway_rows.joined_row, (targets.JOINED_ENTRY,), gateway_rows.JOINED),
    Series("gateway", gateway_rows.connected_row, (targets.CONNECTED,), gateway_rows.CONNECTED),
    # FastMCP's proxy takes no subscriptions.
    Series("gateway", gateway_rows.watchers_row, (targets.WATCHERS,), (BUNDLE_PACKAGE,)),
    Series("replicas", replica_rows.store_rows, targets.STORED, (BUNDLE_PACKAGE,)),
    Series("replicas", replica_rows.worker_rows, targets.WORKERS, (BUNDLE_PACKAGE,)),
    Series("replicas", replica_rows.session_rows, targets.REPLICA_SESSIONS, (BUNDLE_PACKAGE,)),
    Series("public", public_rows.public_rows, targets.PUBLIC, public_rows.PROGRAMS),
    Series("public", public_rows.public_worker_rows, targets.PUBLIC_WORKERS, public_rows.PROGRAMS),
    Series("browser", browser_rows.size_rows, targets.PAGE_SIZES, (BUNDLE_PACKAGE,)),
    Series("browser", browser_rows.load_rows, targets.PAGE_LOADS, (BUNDLE_PACKAGE,)),
    Series("browser", browser_rows.table_rows, targets.PAGE_TABLES, (BUNDLE_PACKAGE,)),
)
MEASURES = tuple(row for series in SERIES for row in series.rows)
SERVER_DEMOS = tuple(dict.fromkeys(one.part for one in SERIES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, and prints the table."""
    options = _parser().parse_args(arguments)
    chosen = [one for one in SERIES if options.only in (None, one.part)]
    _compile()
    results = Results(datetime.now(UTC).isoformat(timespec="seconds"), options.rounds, describe())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / messages.FILE).write_text(messages.TEXT)
        if any(one.part == "files" for one in chosen):
            make_tree(Path(folder))
            make_texts(Path(folder))
        if any(one.part == "sqlite" for one in chosen):
            make_databases(Path(folder))
        if any(one.part == "prompts" for one in chosen):
            make_library(Path(folder))
        if options.articles is not None:
            (Path(folder) / ARTICLES).symlink_to(options.articles.resolve(), target_is_directory=True)
        if options.kinds is not None:
            (Path(folder) / KINDS_FOLDER).symlink_to(options.kinds.resolve(), target_is_directory=True)
        if options.manuals is not None:
            (Path(folder) / MANUALS_FOLDER).symlink_to(options.manuals.resolve(), target_is_directory=True)
        for number in range(options.rounds):
            _say(f"round {number + 1} of {options.rounds}")
            _round(results, number, chosen, Path(folder))
    if options.json is not None:
        results.save(options.json)
    print(table(results, MEASURES))
    return 0


def _compile() -> None:
    """Has all servers start from compiled files, as an installation leaves them; the peers' are installed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for package in ("shared", "servers"):
        compileall.compile_dir(ROOT / package, quiet=2)


def _round(results: Results, number: int, chosen: Sequence[Series], folder: Path) -> None:
    for series in chosen:
        # Whoever comes first or last may be lucky, so that changes from round to round.
        turn = number % len(series.peers)
        for peer in (*series.peers[turn:], *series.peers[:turn]):
            _say(f"  {series.rows[0].name}, and so on: {peer.name}")
            _measure(results, series, peer, folder)


def _measure(results: Results, series: Series, peer: Named, folder: Path) -> None:
    if peer.name in results.not_measured.get(series.rows[0].name, {}):
        return
    try:
        for measure, value in series.measure(peer, folder):
            results.add(measure.name, peer.name, value)
    except Unavailable as reason:
        for measure in series.rows:
            results.excuse(measure.name, peer.name, str(reason))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.checks.benchmarks.run")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured (default: 5)")
    parser.add_argument("--only", choices=SERVER_DEMOS, help="the one part to measure")
    parser.add_argument(
        "--articles", type=Path, metavar="FOLDER", help="a clone of scrapinghub/article-extraction-benchmark"
    )
    parser.add_argument("--kinds", type=Path, metavar="FOLDER", help="the folder `dev` of WCXB")
    parser.add_argument("--manuals", type=Path, metavar="FOLDER", help="where manuals of Debian are, or come to")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all samples")
    return parser


if __name__ == "__main__":
    sys.exit(main())
