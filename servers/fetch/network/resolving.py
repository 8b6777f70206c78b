"""From the name of a host to its addresses."""

import socket
from collections.abc import Sequence
from typing import Protocol

import anyio
from anyio import CapacityLimiter, to_thread

from servers.fetch.errors import FetchError

__all__ = ["Resolver", "SystemResolver"]

_UNKNOWN = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


class Resolver(Protocol):
    """Tells the addresses of a name."""

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of `host`, best first. Raises FetchError("dns") where there are none, or no answer."""
        ...


class SystemResolver:
    """Asks as every program of this machine does: files, DNS, or what else it is set up for."""

    def __init__(self, seconds: float = 10, lookups: int = 64) -> None:
        """A lookup is given up after `seconds`. Its thread goes on until the system gives up, too; no more than
        `lookups` do so at once."""
        self._seconds = seconds
        # Not the one that all others share: a resolver that hangs is to keep nothing else waiting.
        self._threads = CapacityLimiter(lookups)

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of `host` in the order of RFC 6724. Raises FetchError("dns")."""
        try:
            with anyio.fail_after(self._seconds):
                return await to_thread.run_sync(_lookup, host, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError:
            reason = f"the address of {host} was not found out within {self._seconds:g} s"
            raise FetchError("dns", reason, "Try again later") from None


def _lookup(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _UNKNOWN:
            raise FetchError("dns", f"no address is known for {host}", "Check the spelling") from None
        raise FetchError("dns", f"the resolver failed for {host}", "Try again later") from None
    except UnicodeError:
        raise FetchError("dns", f"no address is known for {host}") from None
    return list(dict.fromkeys(str(address[4][0]) for address in found))
