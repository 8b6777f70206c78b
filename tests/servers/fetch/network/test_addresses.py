"""Public and special-purpose addresses."""

from ipaddress import IPv4Address, ip_address, ip_network

import pytest

from servers.fetch.network.addresses import METADATA, find_embedded, is_public, parse_address

# The special-purpose registries of IANA, with multicast and unallocated networks.
SPECIAL = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
    "::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23",
    "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
    "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "4000::/2", "8000::/1", "::/3",
]  # fmt: skip
BESIDE = [
    "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "8.8.8.8",
    "2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2606:4700::1111", "3fff:1000::",
]  # fmt: skip


def test_special_purpose_addresses_are_not_public() -> None:
    networks = [ip_network(network) for network in SPECIAL]
    tried = [address for one in networks for address in (one[0], one[one.num_addresses // 2], one[-1])]
    assert [str(address) for address in tried if is_public(address)] == []


def test_addresses_beside_special_networks_are_public() -> None:
    assert [address for address in BESIDE if not is_public(parse_address(address))] == []


def test_addresses_embedded_in_ipv6_are_extracted() -> None:
    rows = [
        ("::8.8.8.8", ["8.8.8.8"]),
        ("::ffff:0:8.8.8.8", ["8.8.8.8"]),
        ("64:ff9b::8.8.8.8", ["8.8.8.8"]),
        ("2002:808:808::1", ["8.8.8.8"]),
        ("2001:0:808:404:0:0:f5f5:f5f5", ["8.8.4.4", "10.10.10.10"]),
        ("2606:4700::5efe:8.8.8.8", ["8.8.8.8"]),
        ("2606:4700::200:5efe:8.8.8.8", ["8.8.8.8"]),
        ("2002:808:808::5efe:8.8.4.4", ["8.8.8.8", "8.8.4.4"]),
        ("2606:4700::1111", []),
        ("8.8.8.8", []),
    ]
    assert [(address, [*map(str, find_embedded(ip_address(address)))]) for address, _ in rows] == rows


def test_addresses_behind_longer_nat64_prefixes_are_extracted() -> None:
    # RFC 6052, 2.2, with prefixes of 48, 56, 64 and 96 bits.
    tried = ["64:ff9b:1:c000:2:2100::", "64:ff9b:1:99c0:0:221::", "64:ff9b:1:99:c0:2:2100:0", "64:ff9b:1::192.0.2.33"]
    assert [one for one in tried if IPv4Address("192.0.2.33") not in set(find_embedded(ip_address(one)))] == []


def test_a_nat64_address_is_public_if_its_target_is() -> None:
    assert is_public(parse_address("64:ff9b::8.8.8.8"))
    assert not is_public(parse_address("64:ff9b::10.0.0.1"))


def test_an_ipv4_mapped_address_is_parsed_as_ipv4() -> None:
    assert parse_address("::ffff:8.8.8.8") == IPv4Address("8.8.8.8")


def test_invalid_addresses_are_refused() -> None:
    for text in ("", "fe80::1%1", "::1%", "1.2.3", "1.2.3.4.5", "example.com", "01.2.3.4", "[::1]"):
        with pytest.raises(ValueError):
            parse_address(text)


def test_metadata_addresses_are_not_public() -> None:
    assert not any(map(is_public, METADATA))
