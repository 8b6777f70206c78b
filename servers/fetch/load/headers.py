"""Request headers: the name of this server, and headers that the operator sets for one host, such as credentials.

The values of the operator's headers are secret. This module is imported at startup, to check the settings, so it
imports nothing that is slow.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..network.hosts import normalize_host

HOST = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(?::(?P<port>[0-9]{1,5}))?")
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
PROTOCOL_HEADERS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "proxy-connection", "proxy-authorization", "accept-encoding", "range", "if-range", "if-match"),
        *("if-unmodified-since", "if-none-match", "if-modified-since"),
    }
)
"""Headers that the operator can't set: they belong to the protocol, and would change the meaning of the response."""


def make_user_agent(version: str) -> str:
    """Return the `User-Agent` that names this server, its version, and the purpose of its requests."""
    return f"mcp-bundle-fetch/{version} (reads single pages that a person or a model asks for; not a crawler)"


def product_token(agent: str) -> str:
    """Return the name by which robots.txt refers to `agent`: its first word, in lowercase."""
    match = re.match(r"[A-Za-z_-]+", agent)
    return match[0].lower() if match else ""


class HostHeader(NamedTuple):
    """One header, and the only host and port it is sent to. With port 443 it is sent over https only."""

    host: str
    port: int
    name: str
    value: str

    def __repr__(self) -> str:
        return f"HostHeader({self.host}:{self.port}, {self.name})"


def parse_host_header(text: str) -> HostHeader:
    """Parse HOST[:PORT]=NAME:VALUE; the default port is 443. Raises ValueError, which does not contain the value."""
    origin, equals, header = text.partition("=")
    name, colon, value = header.partition(":")
    if not equals or not colon:
        raise ValueError("a header must be written HOST=NAME:VALUE or HOST:PORT=NAME:VALUE")
    match = HOST.fullmatch(origin.strip())
    port = int(match["port"] or 443) if match else 0
    if match is None or not 0 < port < 65_536:
        raise ValueError("the part before = is not HOST or HOST:PORT")
    host = normalize_host(match["host"])
    name, value = name.strip(), value.strip()
    if not NAME.fullmatch(name):
        raise ValueError(f"the header for {host} has no valid name")
    if name.lower() in PROTOCOL_HEADERS:
        raise ValueError(f"the header {name} belongs to the protocol and can't be set")
    if not VALUE.fullmatch(value):
        raise ValueError(f"the value of {name} for {host} is empty or has characters that a header can't have")
    return HostHeader(host, port, name, value)


def headers_for(headers: Iterable[HostHeader], scheme: str, host: str, port: int) -> dict[str, str]:
    """Return the `headers` that are sent to this origin, by lowercase name."""
    return {
        header.name.lower(): header.value
        for header in headers
        if (header.host, header.port) == (host, port) and (scheme == "https" or port != 443)
    }
