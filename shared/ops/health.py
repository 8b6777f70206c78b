"""What `/healthz` says: that the process answers, which server it is, how much it holds open, and what it
adds of its own."""

from typing import Any

from ..server.running import Running

__all__ = ["health"]


def health(running: Running[Any], *, sessions: int, streams: int) -> dict[str, Any]:
    """The body of a health check. `sessions` and `streams` are counts; nobody is named."""
    server, said = running.server.implementation, running.server.health
    return {
        "status": "ok",
        "server": server.name,
        "version": server.version,
        "sessions": sessions,
        "streams": streams,
        **({} if said is None else said(running)),
    }
