"""Policy for the hosts, addresses and ports that may be reached.

A host is checked before it is resolved, and each of its addresses before a connection is made. Hosts that an operator
denies stay denied, whatever else is allowed, and so do this server's own endpoints. The addresses at which clouds
provide credentials are denied unless an operator allows one by its address.
"""

import re
import socket
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from ..errors import FetchError
from .addresses import METADATA, Address, find_embedded, is_public, parse_address
from .hosts import bracket, normalize_host

Endpoint = tuple[str, int]
"""The address and port that a server listens on."""

_ENTRY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(?::(?P<port>\*|[0-9]{1,5}))?")


class Rules(NamedTuple):
    """The operator's settings."""

    allow_private: Sequence[str] = ()
    """Private hosts and networks that may be reached: HOST[:PORT] or NET[:PORT], with IPv6 addresses in brackets.
    PORT may be `*`, and defaults to the ports in `allow_port`."""
    allow_host: Sequence[str] = ()
    """The only hosts that may be reached, with their subdomains; empty for all."""
    deny_host: Sequence[str] = ()
    allow_port: Sequence[int] = (80, 443)


class _Entry(NamedTuple):
    """An entry of `Rules.allow_private`: either a name or a network, and the allowed ports, or None for any port."""

    name: str | None
    network: IPv4Network | IPv6Network | None
    ports: frozenset[int] | None

    def allows_port(self, port: int) -> bool:
        return self.ports is None or port in self.ports

    def contains(self, host: str, address: Address, equivalents: Iterable[Address]) -> bool:
        """Return True if the entry allows this address of the host. An address in METADATA, even as one of the
        `equivalents`, is allowed only by an entry for that single address."""
        if self.network is None:
            return host == self.name and METADATA.isdisjoint(equivalents)
        is_single = self.network.num_addresses == 1
        return address in self.network and (is_single or METADATA.isdisjoint(equivalents))


class Policy:
    """Decides which hosts, addresses and ports may be reached. Hosts must be normalized, as `parse_url` does."""

    def __init__(self, rules: Rules, endpoints: Callable[[], Iterable[Endpoint]] = tuple) -> None:
        """Create a policy. `endpoints` returns this server's endpoints, and is called for each check. Raises
        ValueError, which quotes the value, for an invalid rule.
        """
        for port in rules.allow_port:
            _check_port(port, str(port))
        self._ports = frozenset(rules.allow_port)
        self._private = [_parse_entry(text, self._ports) for text in rules.allow_private]
        self.allowed = [_parse_host(text) for text in rules.allow_host]
        """The only hosts that may be reached, if any are listed."""
        self._denied = [_parse_host(text) for text in rules.deny_host]
        self._endpoints = endpoints

    def check_host(self, host: str, port: int) -> None:
        """Raise FetchError("blocked_host") for a host or port that is denied at every address."""
        if any(_is_within(host, denied) for denied in self._denied):
            raise FetchError("blocked_host", f"the operator does not allow {bracket(host)}")
        if self.allowed and not any(_is_within(host, allowed) for allowed in self.allowed):
            raise FetchError("blocked_host", f"{bracket(host)} is not among the hosts that the operator allows")
        if port not in self._ports and not any(
            entry.allows_port(port) and (entry.network is not None or entry.name == host) for entry in self._private
        ):
            is_private = not all(map(is_public, _equivalent_addresses(host)))
            raise self._make_private_error(host, port) if is_private else _make_port_error(port)

    def check_address(self, host: str, address: str, port: int) -> None:
        """Raise FetchError("blocked_address") if `host` may not be reached at this address, "blocked_host" if the
        operator denies the address or the port. Neither error reveals the address.
        """
        try:
            parsed = parse_address(address)
        except ValueError:
            raise self._make_private_error(host, port) from None
        equivalents = (parsed, *find_embedded(parsed))
        own_addresses = {own_host.partition("%")[0] for own_host, own_port in self._endpoints() if own_port == port}
        # An address of another machine that forwards connections to this server can't be recognized.
        if own_addresses and any(
            equivalent.is_loopback
            or equivalent.is_unspecified
            or str(equivalent) in own_addresses
            or _is_of_this_machine(equivalent)
            for equivalent in equivalents
        ):
            raise FetchError("blocked_address", f"{bracket(host)} is this server, which never fetches from itself")
        if any(str(equivalent) in self._denied for equivalent in equivalents):
            raise FetchError("blocked_host", f"the operator does not allow {bracket(host)}")
        if any(entry.allows_port(port) and entry.contains(host, parsed, equivalents) for entry in self._private):
            return
        if not is_public(parsed):
            raise self._make_private_error(host, port)
        if port not in self._ports:
            raise _make_port_error(port)

    def may_be_private(self, host: str, port: int) -> bool:
        """Return True if an entry of the operator allows this host by its name to be private. Such a host may resolve
        to any address except those that are always denied.
        """
        return any(entry.name == host and entry.allows_port(port) for entry in self._private)

    def _make_private_error(self, host: str, port: int) -> FetchError:
        if not METADATA.isdisjoint(_equivalent_addresses(host)):
            return FetchError("blocked_address", f"{bracket(host)} is where cloud providers hand out credentials")
        shown = bracket(host) if port in self._ports else f"{bracket(host)}:{port}"
        return FetchError(
            "blocked_address",
            f"{bracket(host)} is not on the public internet",
            f"The operator can allow it with --allow-private {shown}",
        )


def _make_port_error(port: int) -> FetchError:
    return FetchError(
        "blocked_host", f"port {port} is not allowed", f"The operator can allow it with --allow-port {port}"
    )


def _equivalent_addresses(host: str) -> tuple[Address, ...]:
    """Return all addresses that are equivalent to a host written as an address."""
    try:
        parsed = parse_address(host)
    except ValueError:
        return ()
    return (parsed, *find_embedded(parsed))


def _is_within(host: str, other: str) -> bool:
    """Return True if `host` is `other` or a subdomain of it."""
    return host == other or host.endswith(f".{other}")


def _is_of_this_machine(address: Address) -> bool:
    """Return True if a network interface of this machine has the address. A connection to it would then have the same
    source address."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # This sends no packet: connecting a datagram socket only selects a route.
            probe.connect((str(address), 9))
        except OSError:
            return False  # there is no route to it
        return str(probe.getsockname()[0]) == str(address)


# Parsing of the operator's rules


def _parse_host(text: str) -> str:
    """Return a normalized host."""
    try:
        host = normalize_host(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a host; write it as example.com, without a scheme, port or path") from None
    # An IPv4-mapped IPv6 address becomes an IPv4 address, to which the rules for IPv4 apply.
    return str(parse_address(host)) if ":" in host else host


def _parse_entry(text: str, ports: frozenset[int]) -> _Entry:
    match = _ENTRY.fullmatch(text)
    if match is None or not match["host"]:
        raise ValueError(f"{text!r} is not HOST[:PORT] or NET[:PORT]; IPv6 needs brackets, as in [fd00::/8]:443")
    port = match["port"]
    if port == "*":
        allowed_ports = None
    elif port is None:
        allowed_ports = ports
    else:
        allowed_ports = frozenset({_check_port(int(port), text)})
    network_text = match["host"].removeprefix("[").removesuffix("]")
    if "/" in network_text:
        try:
            network = ip_network(network_text)
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
        return _Entry(None, network, allowed_ports)
    host = _parse_host(match["host"])
    if ":" in host or host.rpartition(".")[2].isdigit():
        return _Entry(None, ip_network(host), allowed_ports)
    return _Entry(host, None, allowed_ports)


def _check_port(port: int, text: str) -> int:
    if not 0 < port < 65_536:
        raise ValueError(f"{text!r}: a port is a number from 1 to 65535")
    return port
