"""The operator's HTTP proxy, reached over http or https.

With a proxy, this server still resolves and checks a host first, and refuses a name that it can't resolve, unless
--allow-private allows the name. But the proxy may connect to another address than the one that was checked: it
resolves the name itself, and the address may have changed in between. A proxy that can reach private networks needs
its own rules.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from .hosts import normalize_host

_URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>[^@/:]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]/]*\]|[^@/:]+)(?::(?P<port>[0-9]{1,5}))?/?"
)


class Proxy(NamedTuple):
    """The address of a proxy, and the credentials for it."""

    scheme: str
    host: str
    port: int
    credentials: tuple[bytes, bytes] | None

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.host}:{self.port})"


def parse_proxy(text: str) -> Proxy:
    """Parse http[s]://[USER:PASSWORD@]HOST[:PORT]. Raises ValueError, which contains no part of it."""
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("a proxy is http[s]://[USER:PASSWORD@]HOST[:PORT]; other kinds are not supported")
    port = int(match["port"] or (443 if match["scheme"] == "https" else 80))
    if not 0 < port < 65_536:
        raise ValueError("the port of the proxy is not a number from 1 to 65535")
    credentials = None
    if match["user"] is not None:
        credentials = (unquote_to_bytes(match["user"]), unquote_to_bytes(match["password"] or ""))
    return Proxy(match["scheme"], normalize_host(match["host"]), port, credentials)
