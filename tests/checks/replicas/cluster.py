"""Replicas of a server as processes on fixed ports, so that one that is started anew is where it was."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import anyio

from tests.checks.interop.peers import ROOT
from tests.checks.replicas.proxy import balanced
from tests.ports import free_port
from tests.redis_server import RedisServer

__all__ = ["COUNTING", "KEY", "PATIENCE", "UNLIMITED", "Cluster", "Replica", "Replicas", "cluster", "until"]

PATIENCE = 60.0
KEY = "a-key-of-all-replicas-for-tests-only"
COUNTING = [sys.executable, "-m", "tests.checks.replicas.counting_server"]
MANY = "1000000"
UNLIMITED = ["--max-rate", MANY, "--max-burst", MANY, "--max-client-calls", MANY, "--max-client-sessions", MANY]
"""All clients of a test have one address, that of the proxy."""


async def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Waits until it holds. Raises TimeoutError that says `what` did not come."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            raise TimeoutError(what)
        await anyio.sleep(0.02)


class Replica:
    """One process, which may be ended in any way and started again."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], said: Path) -> None:
        """What it says to people goes to the file `said`."""
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.said = said
        self._command = [*command, "--transport", "http", "--port", str(self.port)]
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
        self._environment |= environment
        self._process: subprocess.Popen[bytes] | None = None
        self.is_stopped = False

    @property
    def pid(self) -> int:
        """The number of the process, which runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether there is a process, be it a stopped one."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts it, if it does not run; it is not ready yet."""
        if not self.is_alive:
            with self.said.open("ab") as said:
                self._process = subprocess.Popen(
                    self._command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
                )

    def kill(self) -> None:
        """Ends it by -9."""
        self._signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """Has it stand still, its connections open: SIGSTOP."""
        self._signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self) -> None:
        """Has it go on after `stop`."""
        self._signal(signal.SIGCONT)
        self.is_stopped = False

    def terminate(self) -> None:
        """Asks it to end in order."""
        self._signal(signal.SIGTERM)

    def wait(self) -> int:
        """Waits for its end; the exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def _signal(self, number: signal.Signals) -> None:
        if self.is_alive:
            assert self._process is not None
            self._process.send_signal(number)

    def end(self) -> None:
        """Ends it, however it is."""
        if self._process is not None:
            self.go_on()
            self.terminate()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()


class Replicas:
    """Several replicas of one server."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        folder: Path,
        *,
        redis: RedisServer | None,
        lease: float = 6.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """What they say goes into `folder`. Without `redis` they know nothing of each other."""
        shared = [] if redis is None else ["--store", redis.url, "--store-lease", str(lease)]
        self.lease = lease
        known = {"MCP_STATE_KEY": KEY, **(environment or {})}
        whole = [*command, *shared, *UNLIMITED]
        self.all = [Replica(whole, known, folder / f"replica-{number}.txt") for number in range(count)]
        self._http: aiohttp.ClientSession

    def __getitem__(self, number: int) -> Replica:
        return self.all[number]

    def __len__(self) -> int:
        return len(self.all)

    @property
    def ports(self) -> list[int]:
        """Where they listen."""
        return [one.port for one in self.all]

    async def heal(self) -> None:
        """Has all run, and be ready."""
        for one in self.all:
            if one.is_stopped:
                one.go_on()
            one.start()
        for one in self.all:
            await self.wait_ready(one)

    async def readiness(self, one: Replica) -> tuple[int, str]:
        """What it answers to `/readyz`: the status and the body; 0 where it does not answer."""
        try:
            async with self._http.get(f"{one.url}/readyz", timeout=aiohttp.ClientTimeout(5)) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0, ""

    async def wait_ready(self, one: Replica, *, ready: bool = True) -> str:
        """Waits until it says that it is ready, or that it is not; what it says then."""
        ends = time.monotonic() + PATIENCE
        while True:
            status, said = await self.readiness(one)
            if status == (200 if ready else 503):
                return said
            assert one.is_alive, one.said.read_text()[-4000:]
            assert time.monotonic() < ends, f"{status} {said}; {one.said.read_text()[-4000:]}"
            await anyio.sleep(0.05)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Has them run, and be ready when the block begins."""
        async with aiohttp.ClientSession() as self._http:
            try:
                await self.heal()
                yield
            finally:
                for one in self.all:
                    one.end()

    def said(self) -> str:
        """What all of them have said to people."""
        return "".join(one.said.read_text() for one in self.all)


class Cluster:
    """Replicas of the counting server, the Redis that they share, and the proxy before them."""

    def __init__(self, replicas: Replicas, redis: RedisServer, url: str, folder: Path) -> None:
        self.replicas = replicas
        self.redis = redis
        self.url = url
        self.folder = folder
        """Where the replicas count."""

    def __getitem__(self, number: int) -> Replica:
        return self.replicas[number]

    async def heal(self) -> None:
        """Has Redis and all replicas run, and be ready."""
        if not self.redis.is_running:
            self.redis.start()
        await self.replicas.heal()


@asynccontextmanager
async def cluster(folder: Path, *, lease: float, count: int = 3) -> AsyncIterator[Cluster]:
    """Replicas of the counting server behind nginx, and a Redis that writes down each change before it answers."""
    async with AsyncExitStack() as stack:
        redis = RedisServer(folder, "--appendonly", "yes", "--appendfsync", "always")
        redis.start()
        stack.callback(redis.stop)
        counted = folder / "counted"
        counted.mkdir()
        replicas = Replicas([*COUNTING, "--folder", str(counted)], count, folder, redis=redis, lease=lease)
        await stack.enter_async_context(replicas.running())
        url = stack.enter_context(balanced({"/": replicas.ports}))
        yield Cluster(replicas, redis, url, counted)
