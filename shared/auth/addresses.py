"""Decides which addresses a URL from the metadata of an authorization server or a protected resource may lead to.

The author of such a document chooses URLs that this process then opens, from inside its network. So a document may
only name URLs whose addresses are at least as public as its own: a document from the public web must not name an
address of a private network, and a document from a private network must not name an address of this machine.
No document may name another host with a link-local address, where clouds hand out credentials to any client inside.
https is required, except within one machine.

(RFC 9728, section 7.7; RFC 8414, section 6.)
"""

import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio

from ..errors import AuthError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host, for connections to a port. Raises OSError if there are none."""

# The kinds of addresses: the higher, the more private.
_PUBLIC, _PRIVATE, _LOOPBACK, _FORBIDDEN = range(4)
_NAT64 = IPv6Network("64:ff9b::/96")


class ForbiddenAddress(AuthError):
    """Raised for a URL that must not be opened; the text gives the reason."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses that the resolver of the system knows for `host`."""
    infos = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


def parse_allowed_url(url: str) -> SplitResult:
    """Return the parts of `url`. Raises `ForbiddenAddress` unless it is an https URL, or an http URL of this machine,
    without a user name or fragment."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ForbiddenAddress("the URL of an authorization server is not valid") from None
    if not url.isprintable() or " " in url:  # `urlsplit` removes some such characters
        raise ForbiddenAddress("the URL of an authorization server has characters that are not allowed in a URL")
    host = parts.hostname
    if not host or parts.username is not None or parts.fragment or port == 0:
        raise ForbiddenAddress(
            "the URL of an authorization server must be https://HOST, without a user name or fragment"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback_name(host)):
        raise ForbiddenAddress(f"{parts.scheme}://{host} is refused: it must be https, or http on this machine")
    return parts


def _is_loopback_name(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return _privacy(host) == _LOOPBACK
    except ValueError:
        return False


class AddressFinder:
    """Finds the addresses of a URL, and checks that they are allowed."""

    def __init__(self, resolve: Resolve = resolve) -> None:
        self._resolve = resolve

    async def find(self, url: str, referrer: str | None = None) -> Sequence[str]:
        """Return the addresses to connect to for `url`; empty if a proxy from the environment connects. `referrer` is
        the URL of the document that names `url`. If the operator or the user has chosen `url`, `referrer` is None or
        `url` itself.

        Raises `ForbiddenAddress` if the document must not name that address, and OSError if the host has no address.
        """
        parts = parse_allowed_url(url)
        origin = None if referrer is None else parse_allowed_url(referrer)
        is_proxied = _is_proxied(parts)
        if origin is not None and parts.scheme == "http" and origin.scheme != "http":
            raise ForbiddenAddress(
                f"http is refused for {parts.hostname}, because the document that names it uses https"
            )
        if is_proxied and not _is_ip_address(parts):
            return ()
        addresses = await self._resolve_host(parts)
        if origin is not None and origin.hostname != parts.hostname:
            privacy = max(map(_privacy, addresses))
            if privacy != _PUBLIC:
                # If a host has several addresses, assume the worst: the document comes from its most public one, and
                # the URL leads to its most private one.
                origin_privacy = (
                    _PUBLIC if _is_proxied(origin) else min(map(_privacy, await self._resolve_host(origin)))
                )
                if privacy > origin_privacy or privacy == _FORBIDDEN:
                    raise ForbiddenAddress(
                        f"{parts.hostname} is on a more private network than {origin.hostname}, which refers to it"
                    )
        return () if is_proxied else addresses

    async def _resolve_host(self, parts: SplitResult) -> Sequence[str]:
        host = parts.hostname or ""
        if _is_ip_address(parts):
            return (host,)
        addresses = await self._resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
        if not addresses:
            raise OSError(f"{host} has no address")
        return addresses


def _is_ip_address(parts: SplitResult) -> bool:
    try:
        ip_address(parts.hostname or "")
    except ValueError:
        return False
    return True


def _is_proxied(parts: SplitResult) -> bool:
    proxies = getproxies()
    # A proxy resolves names itself, and may connect to other addresses than the resolver here returns.
    return (parts.scheme in proxies or "all" in proxies) and not proxy_bypass(parts.hostname or "")


def _privacy(text: str) -> int:
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        # `::ffff:127.0.0.1` and the NAT64 form of an address reach the IPv4 address inside (RFC 6052).
        address = address.ipv4_mapped or (IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address)
    if address.is_loopback:
        return _LOOPBACK
    # 169.254.169.254 is where clouds hand out credentials; 0.0.0.0 reaches this machine on Linux.
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return _FORBIDDEN
    return _PUBLIC if address.is_global else _PRIVATE
