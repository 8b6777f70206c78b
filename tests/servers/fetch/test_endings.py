"""Calls that are given up, and a server that is stopped, while pages are fetched and read: nothing is left behind."""

import asyncio
import os
import sys
from pathlib import Path

import anyio
import pytest

from tests.servers.fetch.serving import served
from tests.servers.fetch.sites import Asked, Route, answer, opened_site
from tests.servers.peers import Peer
from tests.wire import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes and open files are counted in /proc"),
]


async def silent(asked: Asked, out: asyncio.StreamWriter) -> None:
    out.write(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\na")
    await asked.until_closed()


ROUTES: dict[str, Route] = {
    "/silent": silent,
    "/heavy": answer("[" + "1," * 3_000_000 + "1]", content_type="application/json"),
    "*": answer("<p>Hello", content_type="text/html"),
}


async def begin(peer: Peer, id: str, url: str) -> None:
    params = {"name": "fetch", "arguments": {"url": url}}
    await peer.wire.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def workers(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_h17_a_storm_of_cancelled_calls_leaves_nothing_behind() -> None:
    async with opened_site(ROUTES) as site, served("--readers", "1") as peer:
        assert "Hello" in await peer.text("fetch", url=site.url())
        pid = peer.wire._process.pid
        before = descriptors(pid)
        for wave in range(3):
            ids = [f"{wave}-{number}" for number in range(40)]
            for number, key in enumerate(ids):
                await begin(peer, key, site.url(("/silent", "/heavy")[number % 2] + f"?{key}"))
            for key in ids:
                await peer.wire.notify("notifications/cancelled", {"requestId": key})
        with anyio.fail_after(PATIENCE):
            while True:
                assert "Hello" in await peer.text("fetch", url=site.url(), refresh=True)
                if descriptors(pid) <= before:
                    break
        assert len(workers(pid)) == 1


async def test_a_server_that_is_stopped_ends_its_workers() -> None:
    reached = anyio.Event()

    async def reached_and_silent(asked: Asked, out: asyncio.StreamWriter) -> None:
        reached.set()
        await silent(asked, out)

    routes = {**ROUTES, "/silent": reached_and_silent}
    async with opened_site(routes) as site, served("--readers", "1", "--ignore-robots") as peer:
        assert "Hello" in await peer.text("fetch", url=site.url())
        (worker,) = workers(peer.wire._process.pid)
        for path in ("/heavy", "/heavy?2", "/silent"):
            await begin(peer, path, site.url(path))
        await peer.wire.close_stdin()
        with anyio.fail_after(PATIENCE):
            await reached.wait()
        # By now it has seen the end of its input, so that it does not wait for what is still open.
        peer.wire.terminate()
        await peer.wire.wait()
        assert not is_there(worker)
