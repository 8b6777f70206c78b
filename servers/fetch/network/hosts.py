"""Normalizes hosts: if two parts of a program interpret a host differently, a forbidden one can slip through.

Names are mapped to lowercase ASCII (UTS 46, IDNA 2008), without a trailing dot. Numbers are parsed as in the URL
standard (https://url.spec.whatwg.org/#concept-ipv4-parser), so that `0x7f.1`, `2130706433` and `0177.0.0.1` become
127.0.0.1 before any check. IPv6 addresses have no brackets.
"""

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import unquote_to_bytes

MAX_NAME = 253
"""Maximum number of characters in a DNS name."""

# The DNS allows any byte in a label. The standard for host names allows no underscores, but sites use them.
_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def normalize_host(text: str) -> str:
    """Return the normalized form of a host written as in URLs or as an IPv6 address without brackets.

    Raises ValueError, which does not contain the host, for any other text.
    """
    if text.startswith("["):
        return _parse_ipv6(text.removeprefix("[").removesuffix("]") if text.endswith("]") else "")
    if ":" in text:
        return _parse_ipv6(text)
    if "%" in text:
        text = unquote_to_bytes(text).decode("utf-8", "replace")
    if text.isascii():
        ascii_name = text
    else:
        import idna

        try:
            mapped = idna.uts46_remap(text, std3_rules=False, transitional=False)
            ascii_name = mapped if mapped.isascii() else idna.encode(mapped).decode("ascii")
        except UnicodeError:
            raise ValueError("the host is not a valid DNS name") from None
    name = ascii_name.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("the host is neither a name nor an address")
    return _parse_ipv4(labels) if _NUMBER.fullmatch(labels[-1]) else name


def bracket(host: str) -> str:
    """Return a normalized host as it is written in a URL."""
    return f"[{host}]" if ":" in host else host


def _parse_ipv6(text: str) -> str:
    if "%" in text:
        raise ValueError("the host is an address with a zone, which is meaningful only on one machine")
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise ValueError("the host is not an IPv6 address") from None


def _parse_ipv4(labels: list[str]) -> str:
    """Return the address written as one to four numbers: the last one fills the remaining bytes."""
    if len(labels) > 4 or not all(map(_NUMBER.fullmatch, labels)):
        raise ValueError("the host ends in a number, but is not an IPv4 address")
    try:
        *first, last = (
            int(label[2:] or "0", 16) if label.startswith("0x") else int(label, 8 if label.startswith("0") else 10)
            for label in labels
        )
    except ValueError:
        raise ValueError("the host ends in a number, but is not an IPv4 address") from None
    last_size = 4 - len(first)
    if any(number > 255 for number in first) or last >= 256**last_size:
        raise ValueError("the host is a number beyond the IPv4 address range")
    return str(IPv4Address(bytes(first) + last.to_bytes(last_size, "big")))
