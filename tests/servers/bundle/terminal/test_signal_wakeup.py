"""Ctrl+C ends a waiting command at any moment."""

import asyncio
import signal
import sys
from pathlib import Path
from threading import Thread, get_ident, main_thread

import anyio
import pytest

from servers.bundle.terminal.session import Session
from servers.bundle.terminal.targets import ServerChoice
from shared.client.client import Client

TINY = Path(__file__).parents[1] / "tiny.py"
tells_who_waits = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a thread waits")


def interrupt() -> None:
    """Sends SIGINT once the main thread waits, to this thread: for the main thread it is as if the signal had come
    just before, since it interrupts nothing."""
    state = Path(f"/proc/self/task/{main_thread().native_id}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "S":
        pass
    signal.pthread_kill(get_ident(), signal.SIGINT)


@tells_who_waits
def test_sigint_before_the_loop_waits_ends_the_command() -> None:
    late: list[bool] = []

    async def work(_client: Client) -> int:
        asyncio.get_running_loop().call_later(30, late.append, True)  # this timer would wake the loop in any case
        Thread(target=interrupt).start()
        await anyio.sleep_forever()
        return 0

    with pytest.raises(KeyboardInterrupt):
        Session("watch", ServerChoice("-", (sys.executable, "-I", "-S", str(TINY)))).run(work)
    assert not late
