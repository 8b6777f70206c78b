"""How the cost of our servers grows with their work: `make bench` prints these tables after those of `run`.

python -m tests.checks.benchmarks.growth

Time is CPU time of the server and its children, so that other programs do not count. The exponent is the slope of a
line through the last three sizes, on logarithmic scales: 1 is linear, and more than 1.1 calls for a reason.
"""

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.checks.benchmarks import messages, peers
from tests.checks.benchmarks.gateway_rows import BUNDLE, await_ready
from tests.checks.benchmarks.http_rows import serving
from tests.checks.benchmarks.machine import busy_seconds, family, held, peak
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.pipes import Pipes
from tests.checks.benchmarks.report import NONE, figure, markdown
from tests.checks.benchmarks.web import Web, in_session
from tests.ports import free_port

SESSIONS = (1, 10, 100, 1_000, 10_000)
FILES = (1, 10, 100, 1_000, 9_900)
"""At most 10,000 are watched one by one."""
BELOW = (100, 1_000, 10_000, 99_000)
"""At most 100,000 entries for one client; 100 are directories."""
BYTES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
DOORS = (1, 2, 4, 8, 16, 32, 64)
CALLS, CHANGES, SETTLED = 200, 10, 1.0
LARGEST = str(4 * BYTES[-1])

Row = tuple[str, str, dict[int, float]]
Cost = Callable[[], float]


def sessions(folder: Path) -> Iterator[Row]:
    """Sessions of one server over HTTP."""
    opening, calling, memory = {}, {}, {}
    call = messages.read(folder / messages.FILE)
    with serving(peers.BUNDLE_PACKAGE, folder) as web:
        web.open_session()
        before, opened, taken = held(web.pid), 0, 0.0
        for size in SESSIONS:
            with _cost(web.pid) as cost:
                while opened < size:
                    session = in_session(web.open_session())
                    opened += 1
            taken += cost()
            opening[size], memory[size] = taken, held(web.pid) - before
            with _cost(web.pid) as cost:
                for number in range(CALLS):
                    web.ask(call, session, number)
            calling[size] = cost()
    yield "open all of them", "ms", opening
    yield f"{CALLS} calls in one of them", "ms", calling
    yield "memory", "MiB", memory


def files(folder: Path) -> Iterator[Row]:
    """Files in one directory, each with a subscription."""
    place = _folder(folder, "files")
    every = [_written(place / f"file-{number}.txt") for number in range(FILES[-1])]
    yield from _watched(FILES, lambda size: every[:size], folder)


def below(folder: Path) -> Iterator[Row]:
    """Files below one directory, with one subscription to all of them."""
    places = [_folder(folder, f"below/{number}") for number in range(100)]
    every: list[Path] = []

    def grown(size: int) -> list[Path]:
        every.extend(_written(places[number % 100] / f"{number}.txt") for number in range(len(every), size))
        return [folder / "below" / "**" / "*"]

    yield from _watched(BELOW, grown, folder, folder / "below" / "0" / "0.txt")


def _watched(
    sizes: Sequence[int], targets: Callable[[int], list[Path]], folder: Path, changing: Path | None = None
) -> Iterator[Row]:
    subscribing, changes, memory = {}, {}, {}
    for size in sizes:
        uris = [one.as_uri().replace("%2A", "*") for one in targets(size)]
        changed = changing or targets(1)[0]
        with Pipes(peers.BUNDLE_PACKAGE.stdio(folder)) as server:
            server.greet()
            before = held(server.pid)
            with _cost(server.pid) as cost:
                for uri in uris:
                    server.one_at_a_time(Ask("resources/subscribe", {"uri": uri}, b'"result"'), 1)
                time.sleep(SETTLED)
            subscribing[size], memory[size] = cost(), held(server.pid) - before
            with _cost(server.pid) as cost:
                for number in range(CHANGES):
                    changed.write_text(f"{size} {number}")
                    server.noticed()
                    time.sleep(0.3)  # a change right after another is told with the next
            changes[size] = cost()
    yield "subscribe to all of them", "ms", subscribing
    yield f"{CHANGES} changes of one of them", "ms", changes
    yield "memory", "MiB", memory


def results(_folder: Path) -> Iterator[Row]:
    """Bytes of the result of one call, over stdio."""
    took, memory = {}, {}
    command = [sys.executable, "-m", "tests.checks.interop.bench_server"]
    for size in BYTES:
        times = max(1, min(CALLS, BYTES[-1] // size))
        ask = Ask("tools/call", {"name": "long", "arguments": {"characters": size // 2}}, b'"result"')
        with Pipes([*command, "--max-result", LARGEST, "--max-message", LARGEST]) as server:
            server.greet()
            before = held(server.pid)
            with _cost(server.pid) as cost:
                for _ in range(times):
                    server.ask(ask)
            took[size], memory[size] = cost() / times, peak(server.pid) - before
    yield "one call", "ms", took
    yield "peak memory", "MiB", memory


def doors(folder: Path) -> Iterator[Row]:
    """Servers behind one joined endpoint of the gateway."""
    starting, listing, calling, memory = {}, {}, {}, {}
    listed = Ask("tools/list", {}, b'"result"')
    for size in DOORS:
        one = f"    command: [{sys.executable}, -m, servers.everything]\n"
        settings = folder / "doors.yaml"
        settings.write_text("join: true\nservers:\n" + "".join(f"  s{number}:\n{one}" for number in range(size)))
        port = free_port()
        name = "s0__test_simple_text" if size > 1 else "test_simple_text"
        call = Ask("tools/call", {"name": name, "arguments": {}}, b"simple text")
        with Web([*BUNDLE, "serve", "--config", str(settings), "--port", str(port)], port) as web:
            await_ready(port, 10 * size)
            starting[size], memory[size] = _busy(web.pid), held(web.pid)
            session = in_session(web.open_session())
            web.ask(listed, session, 2)
            for ask, found in ((listed, listing), (call, calling)):
                with _cost(web.pid) as cost:
                    for number in range(CALLS):
                        web.ask(ask, session, number + 3)
                found[size] = cost()
    yield "start all of them", "ms", starting
    yield f"{CALLS} lists of tools", "ms", listing
    yield f"{CALLS} calls of one tool", "ms", calling
    yield "memory of all", "MiB", memory


TABLES = {
    "sessions": sessions,
    "files, each with a subscription": files,
    "files below one subscription": below,
    "bytes of a result": results,
    "joined servers": doors,
}


def exponent(costs: dict[int, float]) -> float | None:
    """The slope of the costs over the last three sizes, on logarithmic scales; None where the clock is too coarse."""
    points = sorted(costs.items())[-3:]
    if any(cost <= 0 for _, cost in points):
        return None
    return statistics.linear_regression(
        *zip(*((math.log(size), math.log(cost)) for size, cost in points), strict=True)
    ).slope


def main() -> int:
    """Prints the tables."""
    for name, measure in TABLES.items():
        print(name, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve()
            _written(folder / messages.FILE)
            rows = list(measure(folder))
        head = [name, "unit", *(f"{size:,}" for size in rows[0][2]), "exponent"]
        slopes = [exponent(costs) for _, _, costs in rows]
        cells = [
            [what, unit, *map(figure, costs.values()), NONE if slope is None else f"{slope:.2f}"]
            for (what, unit, costs), slope in zip(rows, slopes, strict=True)
        ]
        print("\n".join([*markdown(head, cells), ""]), flush=True)
    return 0


@contextmanager
def _cost(pid: int) -> Iterator[Cost]:
    """Counts the milliseconds of CPU time of a server within the block."""
    before, took = _busy(pid), [0.0]
    yield lambda: took[0]
    took[0] = _busy(pid) - before


def _busy(pid: int) -> float:
    return 1_000 * sum(map(busy_seconds, family(pid)))


def _folder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    return made


def _written(file: Path) -> Path:
    file.write_text(messages.TEXT)
    return file


if __name__ == "__main__":
    sys.exit(main())
