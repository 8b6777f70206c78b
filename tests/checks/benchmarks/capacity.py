"""What one core, one GiB and one Redis carry, for the page docker/CAPACITY.md:

    python -m tests.checks.benchmarks.capacity

Rates are those of one process that has a core of its own; what Redis does for a request is told by the processor time
that it took itself, and so does not depend on where it runs. Needs wrk and redis-server.
"""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as Unreachable

from tests.checks.benchmarks import messages
from tests.checks.benchmarks.machine import MIB, resident
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import BUNDLE_PACKAGE
from tests.checks.benchmarks.web import ALWAYS, HOST, PATIENCE, Web, in_session, stateless
from tests.checks.benchmarks.wrk import SECONDS, load
from tests.npm import Unavailable
from tests.ports import free_port

CONNECTIONS = 32
FEW, MANY = 200, 1_000
"""Sessions before memory is looked at first, and those whose memory is told."""
GIB = 1_024


@contextmanager
def redis_in(folder: Path) -> Iterator[Redis]:
    """A Redis that writes down what it does, as that of compose.replicas.yaml. Raises Unavailable."""
    program = shutil.which("redis-server")
    if program is None:
        raise Unavailable("redis-server is not installed (Debian and Ubuntu: apt install redis-server)")
    port = free_port()
    command = [
        program,
        "--port",
        str(port),
        "--bind",
        HOST,
        "--dir",
        str(folder),
        "--appendonly",
        "yes",
        "--save",
        "",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, Redis(HOST, port) as client:
        try:
            _wait_for(client)
            yield client
        finally:
            process.kill()


def _wait_for(client: Redis) -> None:
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        try:
            client.ping()
        except Unreachable:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError("redis-server does not listen")


def serving(folder: Path, store: Redis | None) -> Web:
    """The filesystem server, by itself or as a replica."""
    assert BUNDLE_PACKAGE.http is not None
    port = free_port()
    command = BUNDLE_PACKAGE.http(folder, port)
    if store is not None:
        url = "redis://{host}:{port}".format(**store.connection_pool.connection_kwargs)
        command = ["env", "MCP_STATE_KEY=of the measurement", f"MCP_STORE={url}", *command]
    return Web(command, port)


def busy(store: Redis | None) -> float:
    """The seconds of a processor that Redis has used up."""
    if store is None:
        return 0.0
    said: Mapping[str, float] = store.info("cpu")
    return said["used_cpu_user"] + said["used_cpu_sys"]


def rate(web: Web, ask: Ask, headers: Mapping[str, str], store: Redis | None) -> tuple[float, float]:
    """Answers a second, and how many a second would keep Redis busy; infinitely many where there is none."""
    before = busy(store)
    answers = load(web, ask, [headers], CONNECTIONS)
    used = (busy(store) - before) / SECONDS
    return answers, answers / used if used else float("inf")


def memory(web: Web, store: Redis | None) -> tuple[float, float]:
    """MiB that the process and Redis hold."""
    kept: int = 0 if store is None else store.info("memory")["used_memory"]
    return resident(web.pid), kept / MIB


def sessions(web: Web, store: Redis | None) -> tuple[float, float]:
    """How many sessions a GiB of the process carries, and one of Redis."""
    _open(web, FEW)
    before = memory(web, store)
    _open(web, MANY)
    return _per_gib(before, memory(web, store))


def streams(web: Web, store: Redis | None, stack: ExitStack) -> tuple[float, float]:
    """The same of sessions of which each has a stream open."""
    _listen(web, FEW, stack)
    before = memory(web, store)
    _listen(web, MANY, stack)
    return _per_gib(before, memory(web, store))


def _open(web: Web, number: int) -> list[str]:
    return [web.open_session() for _ in range(number)]


def _listen(web: Web, number: int, stack: ExitStack) -> None:
    for session in _open(web, number):
        stream = stack.enter_context(socket.create_connection((HOST, web.port), PATIENCE))
        named = {"Host": f"{HOST}:{web.port}", **ALWAYS, "Accept": "text/event-stream", **in_session(session)}
        lines = [f"GET {web.path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
        stream.sendall("\r\n".join([*lines, "", ""]).encode())
        answered = stream.recv(4_096)
        if b" 200 " not in answered:
            raise ValueError(f"a stream was answered by {answered!r:.200}")


def _per_gib(before: tuple[float, float], after: tuple[float, float]) -> tuple[float, float]:
    grown = (max(then - now, 0.0) for now, then in zip(before, after, strict=True))
    process, store = (GIB * MANY / one if one else float("inf") for one in grown)
    return process, store


def measure(folder: Path, store: Redis | None) -> dict[tuple[str, str], float]:
    """Each figure by what it is of, and what it is."""
    call, stateless_call = (read(folder / messages.FILE) for read in (messages.read, messages.read_stateless))
    found = {}
    with serving(folder, store) as web:
        for name, (core, one_redis) in {
            "calls per second, without a session": rate(web, stateless_call, stateless(stateless_call), store),
            "calls per second, in a session": rate(web, call, in_session(web.open_session()), store),
            "sessions opened per second": rate(web, messages.INITIALIZE, {}, store),
        }.items():
            found["one core", name], found["one Redis", name] = core, one_redis
    with serving(folder, store) as web, ExitStack() as stack:
        for name, (process, kept) in {
            "sessions": sessions(web, store),
            "sessions with a stream": streams(web, store, stack),
        }.items():
            found["one GiB of a replica's memory", name], found["one GiB of Redis memory", name] = process, kept
    return found


def main() -> int:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / messages.FILE).write_text(messages.TEXT)
        alone = measure(folder, None)
        with tempfile.TemporaryDirectory() as kept, redis_in(Path(kept)) as store:
            shared = measure(folder, store)
    print("| of | carries | without `--store` | with |\n|---|---|---:|---:|")
    for of, what in sorted(shared):
        print(f"| {of} | {what} | {_figure(alone[of, what])} | {_figure(shared[of, what])} |")
    return 0


def _figure(number: float) -> str:
    return "–" if number == float("inf") else f"{number:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
