"""The URL at which clients reach a listener, as published in metadata, tokens and cards."""

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from .mount import Mount


class BaseUrl:
    """The URL to which the paths of the servers are appended. It may depend on the host that a request names."""

    def __init__(self, mounts: Sequence[Mount], public_url: str | None) -> None:
        """`public_url` is set by the operator, and applies to every request."""
        self._mounts = mounts
        self._public_url = public_url
        self._cached_local_url = lru_cache(64)(self._local_url)

    @property
    def prefix(self) -> str:
        """The path that a proxy prepends to the paths of the servers."""
        return "" if self._public_url is None else urlsplit(self._public_url).path.rstrip("/")

    def for_host(self, host: str | None) -> str:
        """Return the URL for a request with this `Host` header, without a slash at its end."""
        return self._public_url or self._cached_local_url(host or "localhost")

    def _local_url(self, host: str) -> str:
        """Return the URL of the listener, with the name in the request's `Host` header if that is an address of the
        listener."""
        endpoints = [endpoint for mount in self._mounts for endpoint in mount.endpoints]
        if not endpoints:
            return f"http://{host.lower()}"
        try:
            parts = urlsplit(f"//{host}")
            name, named_port = parts.hostname or "", parts.port or 80
        except ValueError:
            name, named_port = "", 80
        # Neither the port nor an address comes from the request: otherwise a client with a token for another listener
        # of this machine could name that listener, and send the token here.
        ports = {port for _, port in endpoints}
        name = name if name in {address for address, _ in endpoints} else "localhost"
        port = named_port if named_port in ports else min(ports)
        return f"http://{f'[{name}]' if ':' in name else name}{'' if port == 80 else f':{port}'}"
