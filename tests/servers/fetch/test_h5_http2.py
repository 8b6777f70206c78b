"""Item H5 in HTTP/2: sites that misuse its streams."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import h2.config
import h2.connection
import h2.events
import httpcore
import httpx
import pytest
from h2.settings import SettingCodes

from servers.fetch.errors import FetchError
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import _Transport
from servers.fetch.read.page import Loaded
from tests.servers.fetch.loaders import AGENT, refused

STREAMS = 5
"""How many a site allows to be open at once."""
Answer = Callable[[h2.connection.H2Connection, int], None]


@asynccontextmanager
async def opened_site(answer: Answer, streams: int = STREAMS) -> AsyncIterator[str]:
    """A site that speaks HTTP/2 from the first byte on; `answer` is called for each request with its stream."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: streams})
        with suppress(ConnectionError, asyncio.CancelledError):
            writer.write(connection.data_to_send())
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        answer(connection, event.stream_id)
                writer.write(connection.data_to_send())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def opened_loader(timeout: float = 5) -> AsyncIterator[Loader]:
    """A loader that speaks HTTP/2 without having to agree on it by TLS."""
    transport = _Transport(httpcore.AsyncConnectionPool(http1=False, http2=True), None)
    policy = Policy(Rules(allow_private=["127.0.0.1:*"]))
    async with httpx.AsyncClient(transport=transport) as client:
        yield Loader(client, policy, LoadRules(AGENT, timeout=timeout, max_bytes=50_000, ignore_robots=True))


def page(connection: h2.connection.H2Connection, stream: int) -> None:
    connection.send_headers(stream, [(":status", "200")])
    connection.send_data(stream, b"page", end_stream=True)


async def test_h5_a_page_comes_by_http_2() -> None:
    async with opened_site(page) as url, opened_loader() as loader:
        assert (await loader.load(url)).body == b"page"


async def test_h5_streams_that_are_reset_at_once_are_errors() -> None:
    asked = 0

    def reset(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal asked
        asked += 1
        if asked > 50:
            page(connection, stream)
        else:
            connection.reset_stream(stream)

    async with opened_site(reset) as url, opened_loader() as loader:
        codes = [(await refused(loader, url)).code for _ in range(50)]
        assert set(codes) == {"bad_response"}
        assert (await loader.load(url)).body == b"page"


async def test_h5_a_stream_that_is_reset_within_the_body_is_an_error() -> None:
    def reset(connection: h2.connection.H2Connection, stream: int) -> None:
        connection.send_headers(stream, [(":status", "200")])
        connection.send_data(stream, b"half")
        connection.reset_stream(stream)

    async with opened_site(reset) as url, opened_loader() as loader:
        assert (await refused(loader, url)).code == "bad_response"


async def test_h5_a_body_beyond_the_limit_is_refused() -> None:
    def large(connection: h2.connection.H2Connection, stream: int) -> None:
        connection.send_headers(stream, [(":status", "200")])
        for _ in range(6):
            connection.send_data(stream, bytes(10_000))

    async with opened_site(large) as url, opened_loader() as loader:
        for _ in range(3):
            assert (await refused(loader, url)).code == "too_large"


async def test_h5_loads_that_are_given_up_do_not_use_up_the_connection() -> None:
    asked = 0

    def large(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal asked
        asked += 1
        if asked > STREAMS + 1:
            page(connection, stream)
            return
        connection.send_headers(stream, [(":status", "200")])
        for _ in range(4):
            connection.send_data(stream, bytes(16_000))

    async with opened_site(large) as url, opened_loader() as loader:
        codes = [(await refused(loader, url)).code for _ in range(STREAMS + 1)]
        assert set(codes) == {"too_large"}
        assert (await loader.load(url)).body == b"page"


async def test_h5_a_load_that_is_given_up_takes_none_with_it() -> None:
    begun = anyio.Event()
    asked = 0

    def answer(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            begun.set()
        elif asked == 2:
            connection.send_headers(stream, [(":status", "200"), ("content-length", "60000")])
        else:
            page(connection, stream)

    async with opened_site(answer) as url, opened_loader() as loader:
        first = asyncio.create_task(loader.load(url))
        await begun.wait()
        assert (await refused(loader, url)).code == "too_large"
        assert (await first).body == b"page"


async def test_h16_loads_that_are_given_up_take_none_with_them_however_many() -> None:
    given = 0

    def answer(connection: h2.connection.H2Connection, stream: int) -> None:
        nonlocal given
        if stream == 1 and given < 6:
            # The first on each connection is too large; what comes besides it stays without an answer.
            given += 1
            connection.send_headers(stream, [(":status", "200"), ("content-length", "60000")])
        elif given == 6:
            page(connection, stream)

    async with opened_site(answer, streams=100) as url, opened_loader() as loader:
        loads = await asyncio.gather(*(loader.load(url) for _ in range(10)), return_exceptions=True)
    assert [one.code for one in loads if isinstance(one, FetchError)] == ["too_large"] * 6
    assert [one.body for one in loads if isinstance(one, Loaded)] == [b"page"] * 4


async def test_h5_large_headers_are_refused() -> None:
    def large(connection: h2.connection.H2Connection, stream: int) -> None:
        fields = [(f"x-{n}", "x" * 1_000) for n in range(100)]
        connection.max_inbound_frame_size = 1 << 20
        connection.send_headers(stream, [(":status", "200"), *fields], end_stream=True)

    async with opened_site(large) as url, opened_loader() as loader:
        assert (await refused(loader, url)).code in {"too_large", "bad_response"}


@pytest.mark.parametrize("times", [1, 2])
async def test_h5_a_site_that_wants_to_go_away_is_left(times: int) -> None:
    def leave(connection: h2.connection.H2Connection, _: int) -> None:
        for _ in range(times):
            connection.close_connection()

    async with opened_site(leave) as url, opened_loader(timeout=0.5) as loader:
        assert (await refused(loader, url)).code in {"bad_response", "connect", "timeout"}
