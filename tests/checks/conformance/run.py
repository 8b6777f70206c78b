"""`make conformance`: the official suite against `servers/everything` and against our client, leg by leg, and a table
at the end.

    python -m tests.checks.conformance.run [LEG ...]

What the suite writes is kept in build/conformance. Exit code: 0 when every leg passed, 1 when one did not, 2 when
the suite can't be run here.
"""

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from tests.checks.conformance.legs import LEGS, Leg, Outcome, Way, read_outcome, row, table
from tests.checks.conformance.suite import Suite, find_suite
from tests.checks.replicas.serving import replicated
from tests.npm import Unavailable
from tests.wire import serving, start_http

ROOT = Path(__file__).resolve().parents[3]
BUNDLE = [sys.executable, "-m", "servers"]
SERVER = [sys.executable, "-m", "servers.everything"]
CLIENT = f"{shlex.quote(sys.executable)} -m tests.checks.conformance.client"
"""A shell runs it, with the URL of a server after it."""
LEG_SECONDS = 240


async def run_leg(suite: Suite, leg: Leg, folder: Path) -> Outcome:
    """Runs one leg, one of the server's against a server of its own; the suite writes into `folder`, which must be
    empty or missing.

    Raises TimeoutError when it takes too long."""
    began = time.monotonic()
    async with _tested(leg) as what:
        command = suite.command(leg.side, *what, *leg.arguments, "-o", str(folder))
        with anyio.fail_after(LEG_SECONDS):
            done = await anyio.run_process(command, stderr=subprocess.STDOUT, check=False, cwd=ROOT)
    seconds = time.monotonic() - began
    return read_outcome(leg, folder, exit_code=done.returncode, output=done.stdout.decode(), seconds=seconds)


@asynccontextmanager
async def _tested(leg: Leg) -> AsyncIterator[tuple[str, str]]:
    """The arguments that say what is tested, which is there meanwhile."""
    if leg.side == "client":
        yield "--command", CLIENT
        return
    async with WAYS[leg.way]() as base_url:
        yield "--url", f"{base_url}/mcp"


@asynccontextmanager
async def _joined() -> AsyncIterator[str]:
    command = [*BUNDLE, "serve", "everything", "prompts", "--join", "--host", "127.0.0.1", "--port", "0"]
    async with serving(command) as base_url:
        yield base_url


@asynccontextmanager
async def _chained() -> AsyncIterator[str]:
    async with start_http(SERVER) as base_url:
        child = [*BUNDLE, "connect", f"{base_url}/mcp"]
        async with serving([*BUNDLE, "expose", "--host", "127.0.0.1", "--port", "0", "--", *child]) as exposed:
            yield exposed


@asynccontextmanager
async def _replicated() -> AsyncIterator[str]:
    async with replicated({"/": SERVER}) as base_url:
        yield base_url


WAYS: Mapping[Way, Callable[[], AbstractAsyncContextManager[str]]] = {
    "direct": partial(start_http, SERVER),
    "joined": _joined,
    "chained": _chained,
    "replicated": _replicated,
}
"""What gives the base URL of the server, by each way."""


async def run_legs(suite: Suite, legs: list[Leg]) -> list[Outcome]:
    """Runs `legs` one after another and tells what goes wrong."""
    outcomes = []
    folder = ROOT / "build" / "conformance" / time.strftime("%Y%m%d-%H%M%S")
    for leg in legs:
        print(f"running {leg.name} ...", flush=True)
        outcomes.append(await run_leg(suite, leg, folder / leg.name.replace(" ", "-")))
        if outcomes[-1].complaints:
            print("\n".join(f"  {fault}" for fault in outcomes[-1].faults))
    return outcomes


def main() -> int:
    """Runs the legs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("legs", nargs="*", metavar="LEG", help=", ".join(leg.name for leg in LEGS))
    names = parser.parse_args().legs
    legs = [leg for leg in LEGS if not names or leg.name in names]
    try:
        outcomes = anyio.run(run_legs, find_suite(), legs)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    print(f"\n{table(map(row, outcomes))}")
    for name in sorted({name for outcome in outcomes for name in outcome.untested}):
        print(f"nothing to check in {name}")
    return int(any(outcome.complaints for outcome in outcomes) or not outcomes)


if __name__ == "__main__":
    sys.exit(main())
