"""Item H5: connections of HTTP/2 that are kept and lead nowhere any more, and answers that are none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import h2.config
import h2.connection
import h2.events
import httpcore
import pytest

from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions, _close, open_client
from servers.fetch.network.streams import Http2Stream
from tests.servers.fetch.authority import authority, certificate, server_context
from tests.servers.fetch.loaders import AGENT, Here, refused

AUTHORITY = authority()
TIMEOUT = 2
"""Seconds for a load: a silent peer is left after two fifths of it, and asked again."""


class Site:
    """A site over TLS that goes silent: its connections take what comes, and say nothing more."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        """Of each request the number of its connection."""
        self.connections = 0
        self.silent: set[int] = set()
        """Connections that answer neither requests nor pings."""
        self.thinking: set[int] = set()
        """Connections that answer pings, and requests no more."""
        self.pinged = asyncio.Event()
        self.status = "200"
        self.waiting: list[tuple[h2.connection.H2Connection, asyncio.StreamWriter, int]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, validate_outbound_headers=False)
        )
        connection.initiate_connection()
        with suppress(ConnectionError, asyncio.CancelledError):
            while True:
                if number not in self.silent:
                    writer.write(connection.data_to_send())
                if not (data := await reader.read(65_536)):
                    break
                for event in connection.receive_data(data):
                    self.take(number, connection, event, writer)
        writer.close()

    def take(
        self, number: int, connection: h2.connection.H2Connection, event: object, writer: asyncio.StreamWriter
    ) -> None:
        if isinstance(event, h2.events.PingReceived):
            self.pinged.set()
        if not isinstance(event, h2.events.RequestReceived):
            return
        self.asked.append(number)
        if number in self.silent | self.thinking:
            self.waiting.append((connection, writer, event.stream_id))
            return
        connection.send_headers(event.stream_id, [(":status", self.status)])
        connection.send_data(event.stream_id, b"page", end_stream=True)

    def answer_all(self) -> None:
        """Gives the answers that were thought about."""
        for connection, writer, stream in self.waiting:
            connection.send_headers(stream, [(":status", self.status)])
            connection.send_data(stream, b"page", end_stream=True)
            writer.write(connection.data_to_send())


@asynccontextmanager
async def opened(folder: Path, timeout: float = TIMEOUT) -> AsyncIterator[tuple[Site, Loader, str]]:
    """A site, what loads from it, and its URL."""
    site = Site()
    context = server_context(certificate(AUTHORITY, "127.0.0.1"), folder)
    context.set_alpn_protocols(["h2"])
    policy = Policy(Rules(allow_private=["127.0.0.1:*"]))
    options = ClientOptions(seconds=timeout, ca_file=AUTHORITY.write_public(folder / "ca.pem"))
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    async with server, open_client(options, policy, Here()) as client:
        loader = Loader(client, policy, LoadRules(AGENT, timeout=timeout, ignore_robots=True))
        yield site, loader, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.slow
async def test_h5_a_kept_connection_whose_peer_is_gone_is_left_within_the_same_load(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        assert (await loader.load(url)).body == b"page"
        site.silent.add(1)
        assert (await loader.load(url)).body == b"page"
    assert site.asked == [1, 1, 2]


@pytest.mark.slow
async def test_h5_all_that_waits_on_such_a_connection_is_asked_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        await loader.load(url)
        site.silent.add(1)
        loads = await asyncio.gather(*(loader.load(f"{url}{number}") for number in range(5)))
    assert [one.body for one in loads] == [b"page"] * 5


@pytest.mark.slow
async def test_h5_a_site_that_is_gone_is_asked_twice_and_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        await loader.load(url)
        site.silent |= {1, 2}
        assert (await refused(loader, url)).code == "timeout"
        assert (await loader.load(url)).body == b"page"
    assert site.asked == [1, 1, 2, 3]


@pytest.mark.slow
async def test_h5_a_site_that_thinks_for_long_is_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        await loader.load(url)
        site.thinking.add(1)
        load = asyncio.create_task(loader.load(url))
        async with asyncio.timeout(TIMEOUT):
            await site.pinged.wait()
        site.answer_all()
        assert (await load).body == b"page"
    assert (site.asked, site.connections) == ([1, 1], 1)


class Silent(httpcore.AsyncMockStream):
    """A connection whose peer says nothing, and which notes how long it was waited for."""

    def __init__(self) -> None:
        super().__init__([])
        self.scope = anyio.CancelScope()
        self.waits: list[float | None] = []
        self.is_closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.waits.append(timeout)
        if len(self.waits) == 2:
            self.scope.cancel()
        raise httpcore.ReadTimeout

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.is_closed = True


@pytest.mark.parametrize(("timeout", "silence"), [(None, 3), (60, 3), (15, 3), (5, 1), (0.5, 0.1)])
async def test_h5_a_peer_has_a_share_of_the_time_to_show_itself(timeout: float | None, silence: float) -> None:
    peer = Silent()
    with pytest.raises(httpcore.ReadTimeout):
        await Http2Stream(peer).read(1, timeout)
    assert peer.waits == [silence] * 2


async def test_h5_a_silent_connection_is_closed_though_nobody_waits_any_more() -> None:
    peer = Silent()
    with peer.scope, suppress(httpcore.ReadTimeout):
        await Http2Stream(peer).read(1)
    assert peer.is_closed


async def test_h5_what_could_not_be_read_is_closed_though_nobody_waits_any_more() -> None:
    peer = Silent()
    with peer.scope:
        peer.scope.cancel()
        await _close([Http2Stream(peer)])
    assert peer.is_closed


@pytest.mark.parametrize("status", ["", "ok", "2 00", "\u0662\u0660\u0660", "1e2", "99999", "-200"])
async def test_h5_a_status_that_is_none_is_a_bad_response(status: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        site.status = status
        assert (await refused(loader, url)).code == "bad_response"
        site.status = "200"
        assert (await loader.load(url)).body == b"page"


async def test_h5_answers_without_a_status_do_not_use_up_the_connection(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        site.status = "ok"
        for _ in range(3):
            assert (await refused(loader, url)).code == "bad_response"
    assert site.asked == [1, 2, 3]
