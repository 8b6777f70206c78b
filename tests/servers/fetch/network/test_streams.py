"""TLS certificates and versions, and HTTP/2 connections that go silent."""

import asyncio
import socket
import ssl
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import h2.config
import h2.connection
import h2.events
import httpcore
import pytest
from anyio.abc import SocketStream
from cryptography.hazmat.primitives.asymmetric import rsa

from servers.fetch.errors import TRY_LATER, FetchError
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions, _close_all, open_client
from servers.fetch.network.streams import Http2Stream, TlsStream, tls_context
from tests.servers.fetch.authority import (
    DAY,
    HOST,
    NOW,
    Certificate,
    authority,
    certificate,
    secure_site,
    server_context,
    signed_with_sha_1,
)
from tests.servers.fetch.loaders import AGENT, Here
from tests.servers.fetch.loaders import refused as load_refused
from tests.servers.fetch.reaching import PATIENCE, Answers, listening, reaching

AUTHORITY = authority()


async def fetch_page(
    shown: Certificate | ssl.SSLContext, folder: Path, host: str = HOST, issuer: Certificate | None = AUTHORITY
) -> str | FetchError:
    """Fetches a page of a site with this certificate, and returns its text."""
    context = shown if isinstance(shown, ssl.SSLContext) else server_context(shown, folder)
    options = ClientOptions(ca_file=issuer.write_public(folder / "ca.pem") if issuer else None)
    with secure_site(context) as port:
        names = Answers(secure_test=["127.0.0.1"])
        async with reaching(names, options, allow_private=["secure.test:*", "127.0.0.1:*"]) as web:
            try:
                return await web.get(f"https://{host}:{port}/")
            except FetchError as error:
                return error


async def refused(shown: Certificate | ssl.SSLContext, folder: Path, **more: object) -> FetchError:
    error = await fetch_page(shown, folder, **more)
    assert isinstance(error, FetchError)
    assert error.code == "tls"
    return error


async def test_an_authority_in_ca_file_is_trusted(tmp_path: Path) -> None:
    assert await fetch_page(certificate(AUTHORITY), tmp_path) == "hello"


async def test_a_certificate_for_an_ip_address_is_valid(tmp_path: Path) -> None:
    assert await fetch_page(certificate(AUTHORITY, "127.0.0.1"), tmp_path, "127.0.0.1") == "hello"


async def test_an_unknown_authority_is_not_trusted(tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY), tmp_path, issuer=None)
    assert str(error) == (
        "the certificate of secure.test comes from an authority that is not trusted. "
        "The operator can add the authority with --ca-file"
    )


@pytest.mark.parametrize(
    ("starts", "ends", "reason"),
    [(NOW - 2 * DAY, NOW - DAY, "has expired"), (NOW + DAY, NOW + 2 * DAY, "is not valid yet")],
)
async def test_an_expired_or_future_certificate_is_refused(
    starts: datetime, ends: datetime, reason: str, tmp_path: Path
) -> None:
    error = await refused(certificate(AUTHORITY, starts=starts, ends=ends), tmp_path)
    assert error.reason == f"the certificate of secure.test {reason}"


async def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY, "other.test"), tmp_path)
    assert error.reason == "the certificate of secure.test is for another host"


async def test_a_certificate_for_a_name_is_invalid_for_its_address(tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY), tmp_path, host="127.0.0.1")
    assert error.reason == "the certificate of 127.0.0.1 is for another address"


async def test_a_self_signed_certificate_is_refused(tmp_path: Path) -> None:
    error = await refused(certificate(None), tmp_path)
    assert error.reason == "the certificate of secure.test is self-signed and not trusted"


@pytest.mark.slow  # generating RSA keys takes long
async def test_a_sha_1_signature_is_refused(tmp_path: Path) -> None:
    issuer = authority(rsa.generate_private_key(65_537, 2_048))
    assert await fetch_page(certificate(issuer), tmp_path, issuer=issuer) == "hello"
    error = await refused(signed_with_sha_1(issuer), tmp_path, issuer=issuer)
    assert error.reason == "the certificate of secure.test has a signature that is too weak"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_tls_1_0_and_1_1_are_refused(version: ssl.TLSVersion, tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    assert (await refused(context, tmp_path)).reason == "secure.test does not support TLS 1.2 or newer"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_1_2_and_1_3_are_supported(version: ssl.TLSVersion, tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    context.minimum_version = context.maximum_version = version
    assert await fetch_page(context, tmp_path) == "hello"


async def test_http2_is_used_if_the_site_offers_it(tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    context.set_alpn_protocols(["h2"])
    options = ClientOptions(ca_file=AUTHORITY.write_public(tmp_path / "ca.pem"))
    with secure_site(context) as port:
        async with reaching(Answers(secure_test=["127.0.0.1"]), options, allow_private=["secure.test:*"]) as web:
            answer = await web.client.get(f"https://secure.test:{port}/")
    assert (answer.http_version, answer.text) == ("HTTP/2", "hello")


@asynccontextmanager
async def tunnel(port: int) -> AsyncIterator[int]:
    """Runs a proxy that connects every tunnel to one port of this machine, and yields its own port."""

    async def pass_on(source: SocketStream, target: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async for data in source:
                await target.send(data)
            await target.send_eof()

    async def serve(client: SocketStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", port) as site, anyio.create_task_group() as tasks:
            await client.receive()
            await client.send(b"HTTP/1.1 200 OK\r\n\r\n")
            tasks.start_soon(pass_on, client, site)
            tasks.start_soon(pass_on, site, client)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        with anyio.fail_after(PATIENCE):
            yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("host", "outcome"),
    [("secure.test", "hello"), ("other.test", "the certificate of other.test is for another host")],
)
async def test_a_proxy_cannot_impersonate_the_site(host: str, outcome: str, tmp_path: Path) -> None:
    ca_file = AUTHORITY.write_public(tmp_path / "ca.pem")
    names = Answers(secure_test=["93.184.215.14"], other_test=["93.184.215.14"])
    with secure_site(server_context(certificate(AUTHORITY), tmp_path)) as port:
        async with (
            tunnel(port) as proxy,
            reaching(names, ClientOptions(ca_file=ca_file, proxy_url=f"http://127.0.0.1:{proxy}")) as web,
        ):
            try:
                got = await web.get(f"https://{host}/")
            except FetchError as error:
                got = error.reason
    assert got == outcome


async def test_a_request_for_a_client_certificate_is_an_error(tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    context.load_verify_locations(AUTHORITY.write_public(tmp_path / "clients.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    assert (await refused(context, tmp_path)).reason == "secure.test requires a client certificate"


async def test_plain_http_on_a_tls_port_is_an_error() -> None:
    names = Answers(secure_test=["127.0.0.1"])
    async with listening() as site, reaching(names, allow_private=["secure.test:*"]) as web:
        site.greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
        error = await web.refused(f"https://secure.test:{site.port}/")
    assert (error.code, error.reason) == ("tls", "secure.test does not speak TLS on this port")


async def test_a_silent_tls_handshake_times_out() -> None:
    names = Answers(secure_test=["127.0.0.1"])
    async with (
        listening() as site,
        reaching(names, ClientOptions(timeout=0.2), allow_private=["secure.test:*"]) as web,
    ):
        error = await web.refused(f"https://secure.test:{site.port}/")
    reason = "secure.test did not complete the TLS handshake within 0.2 s"
    assert (error.code, error.reason, error.suggestion) == ("timeout", reason, TRY_LATER)


async def test_a_reset_during_the_handshake_is_an_error() -> None:
    async def reset(stream: SocketStream) -> None:
        linger = struct.pack("ii", 1, 0)
        stream.extra(anyio.abc.SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await stream.aclose()

    names = Answers(secure_test=["127.0.0.1"])
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, reset)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with reaching(names, allow_private=["secure.test:*"]) as web:
            error = await web.refused(f"https://secure.test:{port}/")
        tasks.cancel_scope.cancel()
    assert (error.code, error.reason) == ("tls", "secure.test ended the connection during the TLS handshake")


class Broken(httpcore.AsyncMockStream):
    """A connection that fails after the TLS handshake."""

    error = ssl.SSLError()
    error.reason = "SSLV3_ALERT_BAD_RECORD_MAC"

    async def read(self, *_: object) -> bytes:
        raise self.error

    async def write(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize("act", [lambda stream: stream.read(1), lambda stream: stream.write(b"x")])
async def test_a_tls_failure_after_the_handshake_is_an_error(act: Callable[[TlsStream], Awaitable[object]]) -> None:
    with pytest.raises(
        FetchError, match=r"^secure\.test failed the TLS handshake\. Check the host and the port"
    ) as caught:
        await act(TlsStream(Broken([]), "secure.test"))
    assert caught.value.code == "tls"


def test_a_ca_file_without_certificates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(ValueError, match=r"empty\.pem contains no PEM certificates"):
        tls_context(tmp_path / "empty.pem")
    with pytest.raises(ValueError, match=r"none\.pem: No such file"):
        tls_context(tmp_path / "none.pem")


# Dead HTTP/2 connections in the pool, and invalid HTTP/2 responses

TIMEOUT = 4
"""Seconds for a load. A silent connection is closed after two fifths of them, and the request repeated."""


class Site:
    """A TLS site whose connections go silent: they read requests and send nothing more."""

    def __init__(self) -> None:
        self.connection_numbers: list[int] = []
        """The number of the connection of each request."""
        self.connections = 0
        self.silent: set[int] = set()
        """Connections that answer neither requests nor pings."""
        self.thinking: set[int] = set()
        """Connections that answer pings, but no requests."""
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
        self.connection_numbers.append(number)
        if number in self.silent | self.thinking:
            self.waiting.append((connection, writer, event.stream_id))
            return
        connection.send_headers(event.stream_id, [(":status", self.status)])
        connection.send_data(event.stream_id, b"page", end_stream=True)

    def answer_all(self) -> None:
        """Sends the delayed responses."""
        for connection, writer, stream in self.waiting:
            connection.send_headers(stream, [(":status", self.status)])
            connection.send_data(stream, b"page", end_stream=True)
            writer.write(connection.data_to_send())


@asynccontextmanager
async def opened(folder: Path, timeout: float = TIMEOUT) -> AsyncIterator[tuple[Site, Loader, str]]:
    """Yields a site, a loader that may reach it, and its URL."""
    site = Site()
    context = server_context(certificate(AUTHORITY, "127.0.0.1"), folder)
    context.set_alpn_protocols(["h2"])
    policy = Policy(Rules(allow_private=["127.0.0.1:*"]))
    options = ClientOptions(timeout=timeout, ca_file=AUTHORITY.write_public(folder / "ca.pem"))
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    async with server, open_client(options, policy, Here()) as client:
        loader = Loader(client, policy, LoadRules(AGENT, timeout=timeout, ignore_robots=True))
        yield site, loader, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.slow
async def test_requests_on_a_dead_http2_connection_are_retried_on_a_new_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        await loader.load(url)
        site.silent.add(1)
        loads = await asyncio.gather(*(loader.load(f"{url}{number}") for number in range(5)))
    assert [one.body for one in loads] == [b"page"] * 5
    assert site.connection_numbers == [1] * 6 + [2] * 5


@pytest.mark.slow
async def test_a_dead_site_is_retried_once_and_its_connection_dropped(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        await loader.load(url)
        site.silent |= {1, 2}
        assert (await load_refused(loader, url)).code == "timeout"
        assert (await loader.load(url)).body == b"page"
    assert site.connection_numbers == [1, 1, 2, 3]


@pytest.mark.slow
async def test_a_slow_site_that_answers_pings_is_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as (site, loader, url):
        await loader.load(url)
        site.thinking.add(1)
        load = asyncio.create_task(loader.load(url))
        async with asyncio.timeout(TIMEOUT):
            await site.pinged.wait()
        site.answer_all()
        assert (await load).body == b"page"
    assert (site.connection_numbers, site.connections) == ([1, 1], 1)


class Silent(httpcore.AsyncMockStream):
    """A connection with a silent peer, which records the timeouts of its reads."""

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
async def test_a_silent_peer_is_pinged_after_a_share_of_the_timeout(timeout: float | None, silence: float) -> None:
    peer = Silent()
    with pytest.raises(httpcore.ReadTimeout):
        await Http2Stream(peer).read(1, timeout)
    assert peer.waits == [silence] * 2


async def test_a_silent_connection_is_closed_in_a_cancelled_scope() -> None:
    peer = Silent()
    with peer.scope, suppress(httpcore.ReadTimeout):
        await Http2Stream(peer).read(1)
    assert peer.is_closed


# Called by its name: a client can't cancel in the moment in which a response can't be read.
async def test_unread_streams_are_closed_in_a_cancelled_scope() -> None:
    peer = Silent()
    with peer.scope:
        peer.scope.cancel()
        await _close_all([Http2Stream(peer)])
    assert peer.is_closed


async def test_an_invalid_http2_status_is_a_bad_response(tmp_path: Path) -> None:
    async with opened(tmp_path, timeout=30) as (site, loader, url):
        for site.status in ("", "ok", "2 00", "\u0662\u0660\u0660", "1e2", "99999", "-200"):
            assert (await load_refused(loader, url)).code == "bad_response"
        assert site.connection_numbers == [*range(1, 8)]  # each on a new connection, so that none is exhausted
        site.status = "200"
        assert (await loader.load(url)).body == b"page"
