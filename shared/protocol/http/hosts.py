"""Checks of the `Host` and `Origin` headers: the defense against DNS rebinding.

Hosts and origins are compared as parsed values, never as strings (2025-11-25, Transports, Security Warning; RFC
6454).
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import TypeVar

from .rules import Headers, Refusal, refuse

Parsed = TypeVar("Parsed")

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def is_loopback(host: str) -> bool:
    """Return True if `host` can be reached only from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        # This includes all of 127.0.0.0/8.
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(64)  # a client sends the same host with every request
def _parse_host(text: str) -> tuple[str, str | None] | None:
    match = _HOST.fullmatch(text)
    return None if match is None else (match[1].lower(), match[2])


def _parse_origin(text: str) -> tuple[str, str, str | None] | None:
    match = _ORIGIN.fullmatch(text)
    host = _parse_host(match[2]) if match is not None else None
    if match is None or host is None:
        return None
    scheme = match[1].lower()
    return scheme, host[0], host[1] or _DEFAULT_PORTS.get(scheme)


class HostPolicy:
    """The hosts and origins that a listener allows in requests.

    A listener on a loopback address allows the loopback names of this machine, with any port, and listed hosts. A
    listener on another address allows listed hosts, or all hosts if none is listed. A request from a page in a
    browser, which has an `Origin`, needs a listed origin or, on a loopback address, an origin on this machine.
    """

    def __init__(self, bound_to: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        """`bound_to` is the address of the listener. A host without a port allows any port. "*" allows everything,
        except the origin `null`.

        Raises ValueError for an entry that is not a host or not an origin.
        """
        hosts, origins = tuple(hosts), tuple(origins)
        self._is_local = is_loopback(bound_to)
        # A listener for other machines is reached by names that it can't know. DNS rebinding endangers only listeners
        # for this machine.
        self._any_host = "*" in hosts or not (self._is_local or hosts)
        self._any_origin = "*" in origins
        self._hosts = {_require_parsed(_parse_host(entry), entry) for entry in hosts if entry != "*"}
        self._origins = {_require_parsed(_parse_origin(entry), entry) for entry in origins if entry != "*"}

    def check_host(self, headers: Headers) -> Refusal | None:
        """Return a refusal with status 403 for a `Host` that is not allowed."""
        host = _parse_host(headers.get("host") or "")
        if self._any_host:
            return None
        if host is not None and (
            host in self._hosts or (host[0], None) in self._hosts or self._is_loopback_name(host[0])
        ):
            return None
        return refuse(403, "the Host of this request is not allowed; the operator can allow it with --allowed-host")

    def check_origin(self, headers: Headers) -> Refusal | None:
        """Return a refusal with status 403 for an `Origin` that is not allowed. One without is allowed."""
        header_value = headers.get("origin")
        # Browsers send this header with every request from a page to another origin. So a request without it comes
        # from another program, or from a page of this server.
        if header_value is None:
            return None
        origin = _parse_origin(header_value)
        if origin is not None:
            # Any port of this machine is allowed, since pages under development are served from another port.
            is_local_page = origin[0] in _DEFAULT_PORTS and self._is_loopback_name(origin[1])
            if self._any_origin or origin in self._origins or is_local_page:
                return None
        return refuse(
            403, "the Origin of this request is not allowed; the operator can allow it with --allowed-origin"
        )

    def _is_loopback_name(self, host: str) -> bool:
        return self._is_local and host in ("localhost", "127.0.0.1", "[::1]")


def _require_parsed(parsed: Parsed | None, text: str) -> Parsed:
    if parsed is None:
        raise ValueError(f"not a host or an origin: {text!r}")
    return parsed
