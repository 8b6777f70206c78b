"""Which addresses are public, according to the IANA registries as of 2026-11.

No special-purpose range counts as public, even if the registry calls it globally reachable: such ranges contain
relays, anycast services and sinks, but no sites. In IPv6 only 2000::/3 is assigned, so nothing else is public. An
IPv4 address embedded in an IPv6 address is checked as well, since a translator may send the packet to it.
https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

METADATA: frozenset[Address] = frozenset(
    {
        IPv4Address("169.254.169.254"),  # AWS, Azure, Google, Oracle, OpenStack, DigitalOcean and others
        IPv4Address("169.254.169.253"),  # AWS: VPC resolver
        IPv4Address("169.254.170.2"),  # AWS: container credentials
        IPv4Address("169.254.170.23"),  # AWS: pod credentials
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("168.63.129.16"),  # Azure: host agent, a public address
        IPv4Address("192.0.0.192"),  # Oracle
        IPv6Address("fd00:ec2::23"),
        IPv6Address("fd00:ec2::253"),
        IPv6Address("fd00:ec2::254"),
        IPv6Address("fd20:ce::254"),  # Google
    }
)
"""Addresses at which clouds provide credentials, and other services, to any program that runs in them."""

_SPECIAL_4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
]
_ASSIGNED = IPv6Network("2000::/3")
_SPECIAL_6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID, drones
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The third 32-bit word of an ISATAP address, whose last word is an IPv4 address (RFC 5214, 6.1)."""
_WORD_MASK = 0xFFFF_FFFF


def parse_address(text: str) -> Address:
    """Return the address. Raises ValueError for anything else, including an address with a zone."""
    if ":" not in text:
        return IPv4Address(text)
    if "%" in text:
        raise ValueError("an address with a zone")
    address = IPv6Address(text)
    # The system connects to the IPv4 address that an IPv6 address maps.
    return address.ipv4_mapped or address


def is_public(address: Address) -> bool:
    """Return True if sites on the public web can have this address."""
    if isinstance(address, IPv4Address):
        return address not in METADATA and not any(address in network for network in _SPECIAL_4)
    if address in _NAT64:  # in this range, networks without IPv4 reach all IPv4 addresses
        return all(map(is_public, find_embedded(address)))
    is_assigned = address in _ASSIGNED and not any(address in network for network in _SPECIAL_6)
    return is_assigned and all(map(is_public, find_embedded(address)))


def find_embedded(address: Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses in an IPv6 address: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    last_word = IPv4Address(number & _WORD_MASK)
    if address.ipv4_mapped or any(address in network for network in (_COMPATIBLE, _TRANSLATED, _NAT64)):
        yield last_word
    elif address in _NAT64_LOCAL:
        # The network's operator chooses the prefix length (RFC 6052, 2.2), so all four are checked. The address skips
        # bits 64 to 71.
        yield last_word
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)
        yield IPv4Address((number >> 64 & 0xFF) << 24 | number >> 32 & 0xFF_FFFF)
        yield IPv4Address(number >> 24 & _WORD_MASK)
    elif address.sixtofour:
        yield address.sixtofour
    elif address.teredo:
        yield from address.teredo
    if number >> 32 & _WORD_MASK in _ISATAP:
        yield last_word
