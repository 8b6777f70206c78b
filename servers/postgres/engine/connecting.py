"""Opens connections with libpq, which also reads service files, ~/.pgpass and the environment. Of several hosts, the
first that responds is used. libpq would block the event loop while it resolves a host name, so this module resolves
host names first, except those in a service file, which only libpq reads.
"""

import os
from contextlib import ExitStack, suppress
from socket import SOCK_STREAM

import anyio
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

from servers.common.sql.errors import SqlError

from .target import Conninfo, Target

_DEFAULT_TIMEOUT = 10.0
"""Seconds to wait for one host, if the operator sets no connect_timeout."""
_OWN_PARAMETERS = {
    "application_name": "mcp-bundle-postgres",
    "client_encoding": "UTF8",
    # With these values, a lost connection is detected after about twenty seconds, instead of two hours.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}


class OpeningError(SqlError):
    """Raised if a connection could not be made."""

    def __init__(self, details: str) -> None:
        super().__init__("unavailable", "the database can't be reached", "Try again.")
        self.details = details
        """The cause, for the operator only, since it contains hosts and roles. It contains no password."""


async def connect(target: Target) -> PGconn:
    """Open a non-blocking connection. Raises OpeningError."""
    details = "no host has an address"
    for attempt in await _list_attempts(target.conninfo):
        timeout = _DEFAULT_TIMEOUT
        with suppress(ValueError):
            configured = float(
                attempt.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or _DEFAULT_TIMEOUT
            )
            timeout = configured if configured > 0 else _DEFAULT_TIMEOUT
        try:
            with anyio.fail_after(timeout):
                return await _connect(attempt)
        except TimeoutError:
            details = "it did not answer in time"
        except OpeningError as error:
            details = error.details
    raise OpeningError(details)


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
    """Return the connection parameters of each attempt: one attempt for each address of each host, in order. Without
    a host, there is one attempt, in which libpq determines the host.
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
