"""What the workbench and the apps weigh, and how fast they are, in Chromium on this machine.

A task is what the main thread of a page does in one go: while it lasts, nothing is drawn and nobody is answered. The
longest is taken from a trace of the browser, since pages are told only of those over 50 ms. What counts is the time
that the thread ran: it is not longer where others want the same cores.
"""

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from servers.bundle.workbench.front import INDEX
from servers.common.web import pages
from tests.checks.benchmarks import targets
from tests.checks.benchmarks.peers import ROOT, Peer
from tests.checks.benchmarks.targets import Measure
from tests.checks.browser.chromium import ARGUMENTS, NAMES, locate_chromium
from tests.checks.browser.hosts.serving import lay_out
from tests.checks.browser.opened import configure, open_servers
from tests.checks.browser.site import serve_pages
from tests.npm import Unavailable

KIB = 1_024
LOADS = 5
SCROLLS = 60
"""How often a long table is scrolled, each time by a part of it that shows other rows."""
TABLE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A table</title>
%s</head><body><main id="main"></main><script type="module" src="%s"></script></body></html>"""
SCRIPT = """import { DataTable } from "%s/table.js";
globalThis.showRows = (columns, rows) => new Promise((resolve) => {
  const table = new DataTable();
  document.getElementById("main").replaceChildren(table);
  const began = performance.now();
  table.show({
    columns: Array.from({ length: columns }, (_, at) => ({ name: `column ${at}`, type: "INTEGER" })),
    rows: Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, at) => row * columns + at)),
  });
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
});
globalThis.scrollThrough = async (steps) => {
  const grid = document.querySelector("[role=grid]");
  const place = [grid, ...document.querySelectorAll("[role=grid] *, data-table *")].find(
    (one) => one.scrollHeight > one.clientHeight + 1_000,
  );
  for (let step = 1; step <= steps; step += 1) {
    place.scrollTop = ((place.scrollHeight - place.clientHeight) * step) / steps;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  }
};"""

Figures = Iterator[tuple[Measure, float]]


def size_rows(_peer: Peer, _folder: Path) -> Figures:
    """What the pages weigh."""
    found = {path.stem: path for path in sorted(ROOT.glob("servers/*/apps/*.html"))}
    workbench, *apps = (
        pages.assemble(path).html.encode() for path in (INDEX, *(found[name] for name in targets.APPS))
    )
    for measure, page in zip(targets.PAGE_SIZES, (gzip.compress(workbench), workbench, *apps), strict=True):
        yield measure, len(page) / KIB


def load_rows(_peer: Peer, _folder: Path) -> Figures:
    """How long the workbench takes to load, and until it shows the servers. Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder, _browser() as browser:
        lay_out(Path(folder))
        with open_servers(configure(Path(folder))) as opened:
            loaded = [_loaded(browser, opened.address) for _ in range(LOADS)]
    yield targets.PAGE_LOAD, median(load for load, _ in loaded)
    yield targets.PAGE_READY, median(ready for _, ready in loaded)


def table_rows(_peer: Peer, _folder: Path) -> Figures:
    """Tables that are long, or wide. Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder, _browser() as browser, _table_page(browser, Path(folder)) as page:
        yield targets.FIRST_TABLE, median(page.evaluate("showRows(10, 10_000)") for _ in range(LOADS))
        page.evaluate("showRows(10, 100_000)")
        yield targets.LONG_NODES, _count_nodes(page)
        yield targets.LONGEST_TASK, _longest_task(browser, page)
        page.evaluate("showRows(10_000, 20)")
        yield targets.WIDE_NODES, _count_nodes(page)


def _loaded(browser: Browser, address: str) -> tuple[float, float]:
    """Milliseconds until the page has loaded, and until the first server stands there, in a browser without cache."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(address)
        page.get_by_role("link", name="sqlite").first.wait_for()
        ready = page.evaluate("performance.now()")
        load = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    finally:
        context.close()
    return load, ready


def _count_nodes(page: Page) -> float:
    nodes: float = page.evaluate("document.querySelectorAll('*').length")
    return nodes


def _longest_task(browser: Browser, page: Page) -> float:
    """Milliseconds that the longest task ran while the page was scrolled from top to bottom."""
    browser.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline"])
    page.evaluate(f"scrollThrough({SCROLLS})")
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event["tdur"] / 1_000
        for event in events
        if event["name"] == "RunTask" and "tdur" in event and (event["pid"], event["tid"]) in mains
    ]
    return max(tasks)


@contextmanager
def _table_page(browser: Browser, folder: Path) -> Iterator[Page]:
    """A page that can show tables."""
    web = os.path.relpath(Path(pages.__file__).parent, folder)  # pages name their parts by relative paths
    styles = "".join(
        f'<link rel="stylesheet" href="{web}/{name}">' for name in ("theme.css", "table.css", "whole.css")
    )
    (folder / "table.html").write_text(TABLE % (styles, "table.js"))
    (folder / "table.js").write_text(SCRIPT % web)
    with serve_pages() as site:
        page = browser.new_page()
        page.goto(site.add(pages.assemble(folder / "table.html")))
        yield page
        page.close()


@contextmanager
def _browser() -> Iterator[Browser]:
    program = locate_chromium()
    if program is None:
        raise Unavailable(f"none of {', '.join(NAMES)} is installed (Debian: apt install chromium-headless-shell)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()
