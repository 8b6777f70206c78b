"""H15: who may call themselves by a name."""

import socket
import ssl
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

import anyio
import httpcore
import pytest
from anyio.abc import SocketStream
from cryptography.hazmat.primitives.asymmetric import rsa

from servers.fetch.errors import FetchError
from servers.fetch.network.client import ClientOptions
from servers.fetch.network.streams import TlsStream, tls_context
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
from tests.servers.fetch.reaching import PATIENCE, Answers, listening, reaching

AUTHORITY = authority()


async def fetched(
    shown: Certificate | ssl.SSLContext,
    folder: Path,
    host: str = HOST,
    issuer: Certificate | None = AUTHORITY,
) -> str | FetchError:
    """What a site that shows this certificate gives, or why nothing."""
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
    error = await fetched(shown, folder, **more)
    assert isinstance(error, FetchError)
    assert error.code == "tls"
    return error


async def test_h15_an_authority_of_the_operators_own_is_trusted(tmp_path: Path) -> None:
    assert await fetched(certificate(AUTHORITY), tmp_path) == "hello"


async def test_h15_a_certificate_may_be_for_an_address(tmp_path: Path) -> None:
    assert await fetched(certificate(AUTHORITY, "127.0.0.1"), tmp_path, "127.0.0.1") == "hello"


async def test_h15_without_it_the_authority_is_not_trusted(tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY), tmp_path, issuer=None)
    assert str(error) == (
        "the certificate of secure.test comes from an authority that is not trusted. "
        "The operator can add the authority with --ca-file"
    )


@pytest.mark.parametrize(
    ("starts", "ends", "reason"),
    [(NOW - 2 * DAY, NOW - DAY, "has expired"), (NOW + DAY, NOW + 2 * DAY, "is not valid yet")],
)
async def test_h15_a_certificate_has_its_time(starts: datetime, ends: datetime, reason: str, tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY, starts=starts, ends=ends), tmp_path)
    assert str(error) == f"the certificate of secure.test {reason}"


async def test_h15_a_certificate_is_for_one_host(tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY, "other.test"), tmp_path)
    assert str(error) == "the certificate of secure.test is for another host"


async def test_h15_a_certificate_for_a_name_is_not_for_its_address(tmp_path: Path) -> None:
    error = await refused(certificate(AUTHORITY), tmp_path, host="127.0.0.1")
    assert str(error) == "the certificate of 127.0.0.1 is for another address"


async def test_h15_nobody_vouches_for_himself(tmp_path: Path) -> None:
    error = await refused(certificate(None), tmp_path)
    assert error.reason == "the certificate of secure.test is signed by itself and by nobody who is trusted"


@pytest.mark.slow  # keys of RSA take long to make
async def test_h15_sha_1_proves_nothing(tmp_path: Path) -> None:
    issuer = authority(rsa.generate_private_key(65_537, 2_048))
    assert await fetched(certificate(issuer), tmp_path, issuer=issuer) == "hello"
    error = await refused(signed_with_sha_1(issuer), tmp_path, issuer=issuer)
    assert str(error) == "the certificate of secure.test has a signature that is too weak"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_h15_old_versions_are_not_spoken(version: ssl.TLSVersion, tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    assert str(await refused(context, tmp_path)) == "secure.test offers no version of TLS from 1.2 on"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_h15_new_versions_are(version: ssl.TLSVersion, tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    context.minimum_version = context.maximum_version = version
    assert await fetched(context, tmp_path) == "hello"


async def test_http_2_is_spoken_where_the_site_does(tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    context.set_alpn_protocols(["h2"])
    options = ClientOptions(ca_file=AUTHORITY.write_public(tmp_path / "ca.pem"))
    with secure_site(context) as port:
        async with reaching(Answers(secure_test=["127.0.0.1"]), options, allow_private=["secure.test:*"]) as web:
            answer = await web.client.get(f"https://secure.test:{port}/")
    assert (answer.http_version, answer.text) == ("HTTP/2", "hello")


@asynccontextmanager
async def tunnel(port: int) -> AsyncIterator[int]:
    """A proxy that connects whatever is asked for to one port of this machine; its own port."""

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
async def test_h15_a_proxy_can_t_stand_in_for_the_site(host: str, outcome: str, tmp_path: Path) -> None:
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
                got = str(error)
    assert got == outcome


async def test_h15_a_site_that_wants_a_certificate_of_ours_gets_none(tmp_path: Path) -> None:
    context = server_context(certificate(AUTHORITY), tmp_path)
    context.load_verify_locations(AUTHORITY.write_public(tmp_path / "clients.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    assert str(await refused(context, tmp_path)) == "secure.test wants a certificate of the client"


async def test_h15_http_at_the_port_is_no_tls() -> None:
    names = Answers(secure_test=["127.0.0.1"])
    async with listening() as site, reaching(names, allow_private=["secure.test:*"]) as web:
        site.greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
        error = await web.refused(f"https://secure.test:{site.port}/")
    assert (error.code, str(error)) == ("tls", "secure.test does not speak TLS at this port")


async def test_h15_a_site_that_says_nothing_is_given_up() -> None:
    names = Answers(secure_test=["127.0.0.1"])
    async with (
        listening() as site,
        reaching(names, ClientOptions(seconds=0.1), allow_private=["secure.test:*"]) as web,
    ):
        error = await web.refused(f"https://secure.test:{site.port}/")
    assert (error.code, str(error)) == ("timeout", "secure.test did not agree on TLS in time")


async def test_h15_a_site_may_break_off() -> None:
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
    assert (error.code, str(error)) == ("tls", "secure.test ended the connection before TLS was agreed on")


class Broken(httpcore.AsyncMockStream):
    """A connection whose encryption fails after it was agreed on."""

    error = ssl.SSLError()
    error.reason = "SSLV3_ALERT_BAD_RECORD_MAC"

    async def read(self, *_: object) -> bytes:
        raise self.error

    async def write(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize("act", [lambda stream: stream.read(1), lambda stream: stream.write(b"x")])
async def test_h15_encryption_may_fail_later(act: Callable[[TlsStream], Awaitable[object]]) -> None:
    with pytest.raises(FetchError, match=r"^secure\.test did not agree on a safe connection$") as caught:
        await act(TlsStream(Broken([]), "secure.test"))
    assert caught.value.code == "tls"


def test_h15_a_file_of_authorities_has_to_hold_some(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(ValueError, match=r"empty\.pem holds no certificates in PEM"):
        tls_context(tmp_path / "empty.pem")
    with pytest.raises(ValueError, match=r"none\.pem: No such file"):
        tls_context(tmp_path / "none.pem")
