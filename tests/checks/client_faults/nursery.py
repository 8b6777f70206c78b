"""Servers in processes that can be killed, and started within milliseconds: each is forked off one that has loaded
everything.

    with nursery() as start:
        victim = start()
        ...
        victim.kill()
        start(victim.port)
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from shared.protocol.types.base import Implementation
from shared.server.context import Context
from shared.server.server import Server
from shared.transports.http.server import HttpOptions, run_http

ROOT = Path(__file__).resolve().parents[3]


def app() -> Server[None]:
    """What is served: a tool that tells its process id, one that never ends, and more than a page of others."""
    made = Server[None](Implementation(name="victim", version="1"))
    made.page_size = 2

    async def pid() -> str:
        """Tell the process id."""
        return str(os.getpid())

    async def hold(ctx: Context[None]) -> str:
        """Say so, and never end."""
        await ctx.progress(1, 2)
        await anyio.sleep_forever()
        return ""

    async def spare(name: str) -> str:
        """Do nothing."""
        return name

    async def one() -> str:
        """One."""
        return str(os.getpid())

    async def touch(ctx: Context[None]) -> str:
        """Change the resource."""
        ctx.changes.resource("memo://one")
        return ""

    for function in (pid, hold, touch):
        made.tool()(function)
    for number in range(4):
        made.tool(name=f"spare_{number}")(spare)
    made.resource("memo://one")(one)
    made.on_subscribe(_key)
    return made


async def _key(_ctx: object, uri: str) -> str:
    return uri


async def _serve(port: int, told: int) -> None:
    def started(_host: str, port: int) -> None:
        os.write(told, b"%d\n" % port)

    async with app().open() as running:
        await run_http(running, HttpOptions(port=port), started=started)


def main() -> None:
    """Forks a server for each line, on the port that it names, and writes its process id and its port."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            anyio.run(_serve, int(line), writes)
            os._exit(0)
        os.close(writes)
        with open(reads) as told:
            print(pid, told.readline().strip(), flush=True)


@dataclass
class Victim:
    """A server that runs, at a port of the loopback interface."""

    pid: int
    port: int

    def kill(self) -> None:
        """Ends it at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


@contextmanager
def nursery() -> Iterator[Callable[..., Victim]]:
    """What starts a server, at a port of its own or at one that it is given. All are killed in the end."""
    victims: list[Victim] = []
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-m", __name__], cwd=ROOT, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def start(port: int = 0) -> Victim:
            print(port, file=process.stdin, flush=True)
            victims.append(Victim(*map(int, process.stdout.readline().split())))
            return victims[-1]

        try:
            yield start
        finally:
            for victim in victims:
                victim.kill()
            process.stdin.close()


if __name__ == "__main__":
    main()
