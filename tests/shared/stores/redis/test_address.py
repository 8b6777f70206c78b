"""`--store URL`: invalid URLs, and connections to a real Redis over TLS and by Sentinels."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.stores.redis.address import client_factory
from shared.stores.redis.stores import RedisReplica, Stores
from tests.ports import free_port
from tests.redis_server import RedisServer
from tests.shared.stores.redis.breaking import until

SECRET = "geheim"
PASSWORD = "p@ss/word"  # with characters that are special in a URL


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:6379", "starts with one of redis://"),
        (f"redis://:{SECRET}/1@host", "percent-encoded"),
        (f"redis://:{SECRET}#1@host", "percent-encoded"),
        (f"redis://:{SECRET}?1@host", "percent-encoded"),
        (f"redis://:{SECRET}℀@host", "percent-encoded"),
        (f"redis://[{SECRET}@host", "percent-encoded"),
        (f"redis+sentinel://:{SECRET}/1@host", "percent-encoded"),
        (f"redis+sentinel://one:{SECRET},two", "percent-encoded"),
        (f"redis+sentinel://host/name/{SECRET}", "not a database number"),
        (f"redis://host/{SECRET}", "not a database number"),
        (f"redis://host/0?{SECRET}=1", "has an unknown option"),
        (f"redis://host/0?health_check_interval={SECRET}", "has an unknown option"),
    ],
)
def test_an_invalid_url_is_refused_without_quoting_it(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match="--store: ") as refused:
        client_factory(url, None)
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("option", ["socket_timeout=100", "decode_responses=yes", "protocol=3", "password=another"])
def test_url_options_do_not_override_required_settings(option: str) -> None:
    found = client_factory(f"redis://host/0?{option}", SECRET)().connection_pool.connection_kwargs
    assert (found["socket_timeout"], found["decode_responses"], found["protocol"]) == (2.0, False, 2)
    assert found["password"] == SECRET


def test_a_url_names_host_port_credentials_and_database() -> None:
    found = client_factory("redis://ada:p%40ss@[::1]:1/2", None)().connection_pool.connection_kwargs
    assert (found["host"], found["port"]) == ("::1", 1)
    assert (found["username"], found["password"], found["db"]) == ("ada", "p@ss", 2)
    assert client_factory("unix:///run/redis.sock?db=3", None)().connection_pool.connection_kwargs["db"] == 3


@asynccontextmanager
async def joined(url: str, password: str | None = None) -> AsyncIterator[RedisReplica]:
    async with Stores(client_factory(url, password), "mcp:", 30.0, b"secret").join() as replica:
        yield replica


async def test_a_store_connects_over_tls_with_a_password(tmp_path: Path) -> None:
    from tests.servers.fetch.authority import authority, certificate  # loads much of a library

    issuer, port = authority(), free_port()
    trusted = issuer.write_public(tmp_path / "authority.pem")
    shown = str(certificate(issuer, "localhost").write(tmp_path / "certificate.pem"))
    options = ["--tls-port", str(port), "--tls-cert-file", shown, "--tls-key-file", shown]
    options += ["--tls-ca-cert-file", str(trusted), "--tls-auth-clients", "no", "--requirepass", PASSWORD]
    server = RedisServer(tmp_path, *options)
    server.start()
    try:
        async with joined(f"rediss://localhost:{port}/0?ssl_ca_certs={trusted}", PASSWORD) as replica:
            assert await replica.blobs.claim("name", 60.0)
        async with joined(f"rediss://localhost:{port}/0?ssl_ca_certs={trusted}", "another") as replica:
            assert replica.disconnect_reason == "Redis can't be reached (AuthenticationError)"
        async with joined(f"rediss://localhost:{port}/0", PASSWORD) as replica:  # its issuer is not trusted
            assert replica.disconnect_reason == "Redis can't be reached (ConnectionError)"
    finally:
        server.stop()


@pytest.fixture
def sentinel(tmp_path: Path) -> Iterator[tuple[int, list[RedisServer]]]:
    """Yields the port of a Sentinel, and a primary and its replica."""
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    one, other, port = free_port(), free_port(), free_port()
    servers = [
        RedisServer(folders[0], port=one),
        RedisServer(folders[1], "--replicaof", f"127.0.0.1 {one}", port=other),
    ]
    for server in servers:
        server.start()
    settings = tmp_path / "sentinel.conf"
    settings.write_text(
        f"port {port}\ndir {tmp_path}\nsentinel monitor mymaster 127.0.0.1 {one} 1\n"
        "sentinel down-after-milliseconds mymaster 300\nsentinel failover-timeout mymaster 3000\n"
    )
    process = subprocess.Popen(["redis-server", str(settings), "--sentinel"], stdout=subprocess.DEVNULL)
    yield port, servers
    process.terminate()
    process.wait(10)
    for server in servers:
        server.stop(kill=True)


@pytest.mark.slow
async def test_a_sentinel_failover_moves_the_store_to_the_new_primary(
    sentinel: tuple[int, list[RedisServer]],
) -> None:
    port, servers = sentinel
    async with joined(f"redis+sentinel://127.0.0.1:{port}/mymaster") as replica:
        await until(lambda: replica.disconnect_reason is None)
        assert await replica.blobs.claim("name", 60.0)
        await until(lambda: b"name" in replicated(servers[1]))
        servers[0].stop(kill=True)
        while True:
            try:
                assert not await replica.blobs.claim("name", 60.0)
                break
            except OSError:
                await asyncio.sleep(0)


def replicated(server: RedisServer) -> bytes:
    """Returns the keys of a Redis server."""
    return subprocess.run(["redis-cli", "-p", str(server.port), "keys", "*"], capture_output=True, check=True).stdout
