"""New connections, made by libpq, with service files, ~/.pgpass and the environment, to the first of several hosts
that responds. libpq would block the event loop while it resolves a host, so names are resolved beforehand, except
those in a service file, which only libpq reads.
"""

import os
from contextlib import ExitStack, suppress
from socket import SOCK_STREAM

import anyio
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

from servers.common.sql.errors import SqlError
from servers.postgres.engine.target import Conninfo, Target

_SECONDS = 10.0
"""Timeout for one host, if the operator sets no connect_timeout."""
_OWN_PARAMETERS = {
    "application_name": "mcp-bundle-postgres",
    "client_encoding": "UTF8",
    # A peer that has vanished is detected after about twenty seconds, instead of two hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}


class OpeningError(SqlError):
    """Raised if a connection could not be made."""

    def __init__(self, words: str) -> None:
        super().__init__("unavailable", "the database can't be reached", "Try again.")
        self.words = words
        """The reason, for the operator only, since it contains hosts and roles. It contains no password."""


async def connect(target: Target) -> PGconn:
    """Open a non-blocking connection. Raises OpeningError."""
    words = "no host has an address"
    for attempt in await _list_attempts(target.conninfo):
        seconds = _SECONDS
        with suppress(ValueError):
            timeout = float(attempt.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or _SECONDS)
            seconds = timeout if timeout > 0 else _SECONDS
        try:
            with anyio.fail_after(seconds):
                return await _connect(attempt)
        except TimeoutError:
            words = "it did not answer in time"
        except OpeningError as error:
            words = error.words
    raise OpeningError(words)


async def _connect(conninfo: Conninfo) -> PGconn:
    with ExitStack() as unless_connected:
        pgconn = pq.PGconn.connect_start(make_conninfo(**(_OWN_PARAMETERS | conninfo)).encode())
        unless_connected.callback(pgconn.finish)
        status = pq.PollingStatus.WRITING
        while status != pq.PollingStatus.OK:
            if pgconn.status == pq.ConnStatus.BAD or status == pq.PollingStatus.FAILED:
                raise OpeningError("; ".join(map(str.strip, pgconn.get_error_message().strip().splitlines())))
            wait = anyio.wait_readable if status == pq.PollingStatus.READING else anyio.wait_writable
            await wait(pgconn.socket)
            status = pq.PollingStatus(pgconn.connect_poll())
        pgconn.nonblocking = 1
        unless_connected.pop_all()
        return pgconn


async def _list_attempts(conninfo: Conninfo) -> list[Conninfo]:
    """List the parameters of each attempt, one for each address of each host, in order. libpq finds a host itself if
    none is given here.
    """
    host_list = conninfo.get("host") or ("" if "service" in conninfo else os.environ.get("PGHOST", ""))
    if not host_list or "hostaddr" in conninfo:
        return [conninfo]
    hosts = host_list.split(",")
    ports = (conninfo.get("port") or os.environ.get("PGPORT") or "5432").split(",")
    # A single port applies to all hosts (libpq, Specifying Multiple Hosts).
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    attempts: list[Conninfo] = []
    for host, port in zip(hosts, ports, strict=True):
        attempt = conninfo | {"host": host, "port": port}
        # The directory of a socket, or an abstract socket, has no address.
        if host.startswith(("/", "@")) or not port.isdecimal():
            attempts.append(attempt)
            continue
        with suppress(OSError):
            addresses = await anyio.getaddrinfo(host, int(port), type=SOCK_STREAM)
            attempts += [attempt | {"hostaddr": str(address[0])} for *_, address in addresses]
    return attempts
