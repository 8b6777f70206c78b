"""Connects only to addresses that were checked.

A name is resolved once for each connection, and all of its addresses are checked. If one is denied, all are: a name
with both a public and a private address is misconfigured or malicious, and its owner must not decide which address is
used.
"""

import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

import anyio
from anyio import CancelScope, CapacityLimiter, create_task_group, to_thread
from anyio.abc import TaskGroup
from httpcore import (
    SOCKET_OPTION,
    AnyIOBackend,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
)

from ..errors import TRY_LATER, FetchError
from .address_policy import Policy
from .addresses import parse_address
from .hosts import bracket, normalize_host
from .streams import TlsStream

_UNKNOWN_NAME_ERRORS = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_MAX_LOOKUPS = 64
"""Maximum number of concurrent lookups, including abandoned ones whose thread is still running."""
HEAD_START_SECONDS = 0.25
"""Seconds after which the next address is tried as well (RFC 8305)."""
MAX_ADDRESSES = 8
"""Maximum number of addresses of a name that are tried."""


class Resolver(Protocol):
    """Resolves names to addresses."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of `host`, best first. Raises FetchError("dns") if there are none, or no answer."""
        ...


class SystemResolver:
    """Resolves names as all programs on this machine do: with files, DNS, or other configured sources."""

    def __init__(self, seconds: float = 10) -> None:
        """Create a resolver that abandons a lookup after `seconds`. Its thread runs until the system gives up."""
        self._seconds = seconds
        # Lookups don't use the default limiter, since a resolver that hangs must not block anything else.
        self._threads = CapacityLimiter(_MAX_LOOKUPS)

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of `host` in the order of RFC 6724. Raises FetchError("dns")."""
        try:
            with anyio.fail_after(self._seconds):
                return await to_thread.run_sync(_look_up, host, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError:
            reason = f"the address of {host} was not resolved within {self._seconds:g} s"
            raise FetchError("dns", reason, "Try again later") from None


def _look_up(host: str) -> list[str]:
    try:
        records = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _UNKNOWN_NAME_ERRORS:
            raise FetchError("dns", f"could not resolve {host}", "Check the spelling") from None
        raise FetchError("dns", f"the resolver failed for {host}", "Try again later") from None
    except UnicodeError:
        raise FetchError("dns", f"could not resolve {host}") from None
    return list(dict.fromkeys(str(address[4][0]) for address in records))


async def resolve_allowed(policy: Policy, resolver: Resolver, host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises FetchError if any of them may not be reached."""
    try:
        host = normalize_host(host)
    except ValueError as error:
        raise FetchError("bad_url", str(error)) from None
    policy.check_host(host, port)
    addresses: Sequence[str] = ()
    with suppress(ValueError):
        parse_address(host)
        addresses = (host,)
    addresses = addresses or await resolver.resolve(host)
    if not addresses:
        raise FetchError("dns", f"could not resolve {host}")
    for address in addresses:
        policy.check_address(host, address, port)
    return list(dict.fromkeys(str(parse_address(address)) for address in addresses))


class CheckedBackend(AsyncNetworkBackend):
    """Resolves a host, checks its addresses, and connects to one of them, within the time limit for connecting."""

    def __init__(self, policy: Policy, resolver: Resolver, inner: AsyncNetworkBackend | None = None) -> None:
        """Create a backend. `inner` makes the connections, and only receives addresses that were checked."""
        self._policy = policy
        self._resolver = resolver
        self._inner = inner or AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's name)
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """Return a connection to `host`. Raises FetchError, which httpcore does not catch."""
        try:
            with anyio.fail_after(timeout):
                addresses = await resolve_allowed(self._policy, self._resolver, host, port)
                stream = await _Race(self._inner, port, socket_options).run(addresses[:MAX_ADDRESSES])
        except TimeoutError:
            reason = f"{bracket(host)} was not reached within {timeout:g} s"
            raise FetchError("timeout", reason, TRY_LATER) from None
        if stream is None:
            raise FetchError("connect", f"{bracket(host)} accepts no connections on port {port}")
        return TlsStream(stream, host)


class _Race:
    """Connects to several addresses at once, each a moment after the one before, and keeps the first connection."""

    def __init__(self, inner: AsyncNetworkBackend, port: int, socket_options: Iterable[SOCKET_OPTION] | None) -> None:
        self._inner = inner
        self._port = port
        self._socket_options = socket_options
        self._winner: AsyncNetworkStream | None = None

    async def run(self, addresses: Sequence[str]) -> AsyncNetworkStream | None:
        """Return the connection; None if none can be made."""
        finished = False
        try:
            async with create_task_group() as tasks:
                await self._try_all(addresses, tasks)
            finished = True
        finally:
            if not finished and self._winner is not None:
                await _close(self._winner)
        return self._winner

    async def _try_all(self, addresses: Sequence[str], tasks: TaskGroup) -> None:
        for address in addresses:
            failed = anyio.Event()
            tasks.start_soon(self._try, address, failed, tasks.cancel_scope)
            with anyio.move_on_after(HEAD_START_SECONDS):
                await failed.wait()

    async def _try(self, address: str, failed: anyio.Event, race: CancelScope) -> None:
        try:
            stream = await self._inner.connect_tcp(address, self._port, socket_options=self._socket_options)
        except (ConnectError, ConnectTimeout):
            failed.set()
            return
        if self._winner is not None:
            await _close(stream)
            return
        self._winner = stream
        race.cancel()


async def _close(stream: AsyncNetworkStream) -> None:
    with CancelScope(shield=True):
        await stream.aclose()
