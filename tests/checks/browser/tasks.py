"""The durations of the tasks of a page, from traces of Chromium."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import Browser, Page

__all__ = ["Tasks", "traced_tasks"]

_TASK = "ThreadControllerImpl::RunTask"


@dataclass
class Tasks:
    """The tasks of the main thread of a page; filled in at the end of the block of `traced_tasks`."""

    longest_ms: float = 0
    count: int = 0


@asynccontextmanager
async def traced_tasks(browser: Browser, page: Page) -> AsyncIterator[Tasks]:
    """Traces what `page` does in the block. A task counts with the time for which it had a processor: what else the
    machine does meanwhile, such as other tests, says nothing of the page."""
    await browser.start_tracing(page=page, categories=["toplevel"])
    tasks = Tasks()
    try:
        yield tasks
    finally:
        events = json.loads(await browser.stop_tracing())["traceEvents"]
    threads = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    ran = [one for one in events if one["name"] == _TASK and (one["pid"], one["tid"]) in threads]
    # One that had begun before the trace did has no time of the processor; then the clock's has to do.
    spent = [one.get("tdur", one.get("dur", 0)) for one in ran]
    tasks.longest_ms, tasks.count = max(spent) / 1_000, len(spent)
