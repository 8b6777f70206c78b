"""The options of a program as those of its HTTP listener, and what it says when it listens. Loaded for HTTP only."""

from dataclasses import replace

from ..transports.http.app import HttpOptions
from ..transports.http.endpoint import EndpointLimits
from ..transports.http.limits import SessionLimits
from .process import Options

__all__ = ["address", "http_options"]


def http_options(options: Options, token: str | None) -> HttpOptions:
    """Where to listen, whom to serve, and how much."""
    limits = EndpointLimits(sessions=SessionLimits(options.max_sessions, options.idle_seconds))
    return HttpOptions(
        host=options.host,
        port=options.port,
        path=options.path,
        allowed_hosts=tuple(options.allowed_host),
        allowed_origins=tuple(options.allowed_origin),
        tokens=() if token is None else (token,),
        limits=replace(limits, body_bytes=options.max_message or limits.body_bytes),
    )


def address(host: str, port: int) -> str:
    """The URL of a listener, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
