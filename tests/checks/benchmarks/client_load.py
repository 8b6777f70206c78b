"""What the programs with a client do: they call one tool again and again, and tell how often they could in a
second.

python -m tests.checks.benchmarks.client_ours JOB, and client_sdk: JOB is a `Job` as JSON.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Self

from tests.checks.benchmarks.machine import apart, family
from tests.checks.benchmarks.pipes import SECONDS

AT_ONCE = 32
"""Calls that are under way at the same time, in the second of two samples."""

Call = Callable[[], Awaitable[str]]
"""Calls the tool, and gives the text that it answers."""


@dataclass(frozen=True)
class Job:
    """What a client is to do. `target` is a URL, or the command that it starts; `server` then is None, else the
    number of the process that listens there. What the tool answers has `expected` in it."""

    target: str | list[str]
    server: int | None
    tool: str
    arguments: dict[str, Any]
    expected: str

    @classmethod
    def read(cls) -> Self:
        """The job in the first argument."""
        return cls(**json.loads(sys.argv[1]))

    def text(self) -> str:
        """The same as an argument."""
        return json.dumps(asdict(self))


async def tell(job: Job, call: Call) -> None:
    """Prints the calls a second: one at a time, and so many at once. Raises ValueError for a wrong answer."""
    server = job.server or family(os.getpid())[1]
    rates = []
    with apart(server):
        for at_once in (1, AT_ONCE):
            rate = await _rate(job, call, at_once, AT_ONCE)
            for seconds in (SECONDS / 5, SECONDS):
                rate = await _rate(job, call, at_once, max(AT_ONCE, round(rate * seconds)))
            rates.append(rate)
    print(json.dumps(rates))


async def _rate(job: Job, call: Call, at_once: int, count: int) -> float:
    answers: list[str] = []

    async def work() -> None:
        answers.extend([await call() for _ in range(count // at_once)])

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    took = time.perf_counter() - began
    bad = next((answer for answer in answers if job.expected not in answer), None)
    if bad is not None:
        raise ValueError(f"a call was answered by {bad!r:.500}")
    return len(answers) / took
